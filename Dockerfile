# Clickmill in one image: what `make setup` installs, on Debian's Python and Java, and what a team's containers need.
# docker-compose.yml and docker-compose.small.yml run it. Versions are said once: Python packages and
# JARs in locks/, each with its checked sum.
# Behind mirrors: an image of Debian 12 that knows them (apt, pip.conf, certificates, CLICKMILL_IVY_SETTINGS).
ARG BASE_IMAGE=docker.io/library/debian:bookworm-slim
FROM ${BASE_IMAGE} AS base

RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends openjdk-17-jre-headless python3 \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/clickmill

# What installs does not stay.
FROM base AS installed
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3-venv
# The slow part needs the lock files only: a change of the code does not do it again.
COPY locks locks
COPY ops/__init__.py ops/bootstrap.py ops/
COPY ops/setup ops/setup
COPY include/__init__.py include/errors.py include/home.py include/command.py include/storage.py include/
RUN PIP_NO_CACHE_DIR=1 UV_NO_CACHE=1 python3 -m ops.bootstrap --team

FROM base
COPY --from=installed /opt/clickmill /opt/clickmill
# What .dockerignore lets in. Compiled now: later nobody may write here.
COPY . .
RUN .venv/bin/python -m compileall -q -x '/\.venv/' .

# Its own user, that owns the state and nothing else: a home, and what a team's containers share beside it. A folder
# of the host that is mounted as the state should belong to the same number.
ARG CLICKMILL_UID=1000
RUN useradd --uid "$CLICKMILL_UID" --user-group --home-dir /var/lib/clickmill --create-home --skel /dev/null clickmill \
    && install --directory --owner clickmill --group clickmill \
        /var/lib/clickmill-tls /var/lib/spark-events /var/lib/spark-work
USER clickmill

ENV PATH=/opt/clickmill/.venv/bin:$PATH \
    CLICKMILL_HOME=/var/lib/clickmill \
    AIRFLOW_HOME=/var/lib/clickmill/airflow
CMD ["clickmill", "serve"]
