"""What the containers of docker-compose.yml wait for: databases, bucket, keys, Airflow's tables, roles and first user.

All of it may be there already: nothing is made twice.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from include.errors import ClickmillError
from ops.containers.certificate import make_certificate
from ops.containers.databases import make_databases
from ops.home import Home, make_visitor_key

#: How long the database and the object store may take to answer.
_PATIENCE_SECONDS = 300.0
#: The folder of the certificate for Spark Connect, which clients check by ca.crt.
TLS = Path("/var/lib/clickmill-tls")


def prepare(home: Home, environment: Mapping[str, str]) -> None:
    """Do all of it, with a line for each step.

    Raises:
        ClickmillError: if a server does not answer, or Airflow's tables cannot be made.
    """
    _patiently("PostgreSQL", lambda: make_databases(environment))
    _say("databases airflow and clickmill are there")
    _patiently("the object store", lambda: make_bucket(str(home.data), environment))
    make_visitor_key(home)
    _say(f"{home.data} is there, with today's key for visitors")
    if make_certificate(TLS):
        _say("made a certificate for Spark Connect")
    done = subprocess.run([sys.executable, "-m", "ops.airflow_database"], env=dict(environment))
    if done.returncode != 0:
        raise ClickmillError("Airflow's database could not be migrated; its lines above say why")
    done = subprocess.run([sys.executable, "-m", "ops.containers.roles"], env=dict(environment))
    if done.returncode != 0:
        raise ClickmillError("Airflow's roles could not be made; its lines above say why")


def _say(message: str) -> None:
    print(f"prepare: {message}", flush=True)


def _patiently(service: str, attempt: Callable[[], None]) -> None:
    """Try until it works, or for too long."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return attempt()
        except OSError as error:
            if time.monotonic() > deadline:
                message = " ".join(str(error).split())
                raise ClickmillError(f"{service} does not answer: {message}; see: docker compose ps") from error
            time.sleep(1)


def make_bucket(data: str, environment: Mapping[str, str]) -> None:
    """Make the bucket of s3://bucket/prefix, unless it is there; of a folder nothing.

    Raises:
        OSError: if the store does not answer, or refuses.
    """
    from pyarrow.fs import FileType, S3FileSystem

    if not data.startswith("s3://"):
        return
    bucket = data.removeprefix("s3://").partition("/")[0]
    store = S3FileSystem(
        endpoint_override=environment.get("AWS_ENDPOINT_URL"),
        region=environment.get("AWS_REGION", "us-east-1"),
        allow_bucket_creation=True,
    )
    if store.get_file_info(bucket).type == FileType.NotFound:
        store.create_dir(bucket)
