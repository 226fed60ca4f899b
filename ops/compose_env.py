"""Make the passwords and keys that docker-compose.yml needs, in `.env` beside it: `make compose-env`.

What `.env` has already stays, so after an upgrade this adds what is new. Whoever may read the file may do everything.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from include.command import exit_with
from include.home import REPOSITORY
from include.storage import write_whole


def _password() -> str:
    """Of letters, digits, - and _: it stands in addresses."""
    return secrets.token_urlsafe(24)


#: What is made, and how. No default stands in docker-compose.yml.
MADE: Mapping[str, Callable[[], str]] = {
    # The first user's of Airflow, to log in with.
    "CLICKMILL_ADMIN_PASSWORD": lambda: secrets.token_urlsafe(12),
    "CLICKMILL_AIRFLOW_FERNET_KEY": lambda: base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
    "CLICKMILL_AIRFLOW_SECRET_KEY": _password,
    # Airflow signs with HS512, which wants 64 bytes.
    "CLICKMILL_AIRFLOW_JWT_SECRET": lambda: secrets.token_urlsafe(64),
    "CLICKMILL_POSTGRES_PASSWORD": _password,
    "CLICKMILL_AIRFLOW_DB_PASSWORD": _password,
    "CLICKMILL_RESULTS_PASSWORD": _password,
    "CLICKMILL_READER_PASSWORD": _password,
    "CLICKMILL_REDIS_PASSWORD": _password,
    "CLICKMILL_S3_ACCESS_KEY": lambda: secrets.token_hex(10),
    "CLICKMILL_S3_SECRET_KEY": _password,
    # Clients' of Spark Connect, and what Spark's programs know each other by.
    "CLICKMILL_SPARK_TOKEN": _password,
    "CLICKMILL_SPARK_SECRET": _password,
    # DAGs are scheduled from now on; runs of earlier hours are asked for.
    "CLICKMILL_SCHEDULE_START": lambda: datetime.now(UTC).isoformat(timespec="seconds"),
}


def complete(file: Path) -> list[str]:
    """Add to a file what it lacks; the names of what was added. Nobody but its owner may read it afterwards."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    there = {line.partition("=")[0].strip() for line in text.splitlines() if line.partition("=")[2].strip()}
    missing = [name for name in MADE if name not in there]
    lines = [*text.splitlines(), *(f"{name}={MADE[name]()}" for name in missing)]
    write_whole(file, "".join(f"{line}\n" for line in lines).encode(), mode=0o600)
    return missing


def main() -> None:
    """Of this checkout."""
    file = REPOSITORY / ".env"
    made = complete(file)
    print(f"compose-env: {file.name}: made {', '.join(made)}" if made else f"compose-env: {file.name} has all")


if __name__ == "__main__":
    exit_with(main, "compose-env")
