"""Whether a part of Airflow, or a stream, has reported lately, for the health checks of docker-compose.yml.

`python -m ops.containers.health scheduler`, or dag_processor or triggerer, asks the API server; `worker` asks whether
this container's worker answers; `stream NAME` whether the source's stream has given a sign of life lately.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.request
from datetime import UTC, datetime, timedelta


def _is_healthy(part: str) -> bool:
    base = os.environ["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"].partition("/execution")[0]
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{base}/api/v2/monitor/health", timeout=8) as answer:
        return bool(json.load(answer)[part]["status"] == "healthy")


def _answers() -> bool:
    app = "airflow.providers.celery.executors.celery_executor.app"
    command = [sys.executable, "-m", "celery", "--app", app, "inspect", "ping", "-d", f"celery@{socket.gethostname()}"]
    return subprocess.run(command, stdout=subprocess.DEVNULL).returncode == 0


def _streams(source: str) -> bool:
    from include.settings import Settings
    from include.streams.signs_of_life import sign_of_life

    last = sign_of_life(Settings.from_environment(), source)
    return last is not None and datetime.now(UTC) - last.at < timedelta(minutes=2)


def main() -> int:
    """0 if it does its work, 1 if not."""
    part, *of = sys.argv[1:]
    try:
        healthy = _answers() if part == "worker" else _streams(*of) if part == "stream" else _is_healthy(part)
        return 0 if healthy else 1
    except (OSError, ValueError, KeyError) as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
