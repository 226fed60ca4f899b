"""Where one Clickmill keeps its state, and the secrets it makes for itself."""

from __future__ import annotations

import base64
import json
import os
import secrets
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from include.errors import ClickmillError, UsageError
from include.home import HomeFolders, data_path, home_path, locks_database
from include.storage import is_on_disk, write_whole
from include.visitor_keys import VisitorKeys

# Each of them means something to Airflow's configuration, a database URL, a JVM option, or a pattern of paths.
UNUSABLE = frozenset("%?#,$\"'\\{}[]*")
#: The file of Spark Connect's token, among the secrets.
SPARK_TOKEN = "spark_connect_token"


@dataclass(frozen=True)
class Home(HomeFolders):
    """A home as set-up and services know it: its path alone, no settings read."""

    path: Path
    data_folder: Path | None = None
    locks_database: str | None = field(default=None, repr=False)

    @property
    def root(self) -> Path:
        """The home itself."""
        return self.path

    def make(self) -> None:
        """Make every folder that is missing, and close each to other accounts; home and data are left as they are.

        Raises:
            UsageError: when one of them cannot be written, or Airflow could not take its path.
        """
        _make(
            "CLICKMILL_HOME",
            self.path,
            (self.logs, self.kafka_topics),
            (self.airflow, self.run, self.secrets, self.received),
        )
        name = "CLICKMILL_DATA" if self.data_folder else "CLICKMILL_HOME"
        _make(name, self.data_on_disk, (self.streams,), (self.locks.parent,))
        if is_on_disk(self.data):
            keys = self.visitor_keys
            _make(name, self.data, (self.landing, self.lake, self.reports), (keys.parent, keys))


def _make(name: str, root: Path, folders: Sequence[Path], private: Sequence[Path]) -> None:
    """Make the root that the variable names, and in it these folders; a group may keep what it may do in the first."""
    unusable = sorted({character for character in str(root) if character in UNUSABLE or not character.isprintable()})
    if unusable:
        raise UsageError(
            f"{name} {str(root)!r} holds {' '.join(map(repr, unusable))}, which Airflow and "
            f"Spark cannot take in a path: set {name} to a folder without",
        )
    try:
        root.mkdir(parents=True, exist_ok=True)
        for folder in folders:
            folder.mkdir(mode=0o700, exist_ok=True)
            _close_to_everyone(folder)
        for folder in private:
            folder.mkdir(mode=0o700, exist_ok=True)
            folder.chmod(0o700)  # a folder that was there keeps its mode otherwise
    except OSError as error:
        raise UsageError(
            f"cannot write {name} {root}: {error.strerror} ({error.filename}); set {name} to a folder you may write",
        ) from error


def _close_to_everyone(folder: Path) -> None:
    """Take a folder from all other accounts, if everyone may enter it.

    What only a group may do stays: it was given to an uploader, or to readers of the exports. So does a folder that
    is a link or another account's.
    """
    status = folder.lstat()
    if status.st_mode & 0o007 and stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid():
        # A group that may only read has that from the usual umask, and nobody gave it.
        folder.chmod(status.st_mode & (0o7770 if status.st_mode & 0o020 else 0o7700))


def find_home(path: Path | str | None = None, environment: Mapping[str, str] | None = None) -> Home:
    """Return the home at `path`, else at CLICKMILL_HOME, else <repository>/var; nothing is made yet."""
    environment = os.environ if environment is None else environment
    root = home_path({"CLICKMILL_HOME": str(path)} if path else environment)
    return Home(root, data_path(environment), locks_database(environment))


def _keep_secret(path: Path, make: Callable[[], str]) -> str:
    """Return the secret in a file; make it when there is none."""
    if not path.exists():
        write_whole(path, f"{make()}\n".encode(), mode=0o600)
    path.chmod(0o600)
    return _required(path, path.read_text(encoding="utf-8").strip())


def _required(file: Path, secret: str) -> str:
    if not secret:
        raise ClickmillError(f"the secret file {file} is empty: expected one line; delete it to have a new one made")
    return secret


def first_start(home: Home) -> str:
    """Return when the home's services were started for the first time, in ISO 8601: now, if they never were.

    The caller holds the home's lock.
    """
    file = home.airflow / "first_start"
    if not file.exists():
        file.write_text(datetime.now(UTC).isoformat() + "\n", encoding="utf-8")
    return file.read_text(encoding="utf-8").strip()


def _fernet_key() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


@dataclass(frozen=True, repr=False)
class Secrets:
    """The secrets of one home; each is made once. `repr` is off so that none reaches a log."""

    spark_token: str
    airflow_password: str
    airflow_jwt_secret: str
    airflow_secret_key: str
    airflow_fernet_key: str
    airflow_passwords_file: Path


def make_visitor_key(home: Home) -> None:
    """Make today's key for visitors, which all homes of the data share, unless it is there; and close all of them.

    Raises:
        UsageError: if it cannot be read or written.
    """
    try:
        VisitorKeys.of(home).of_day(datetime.now(UTC).date())
        if is_on_disk(home.visitor_keys):
            for file in home.visitor_keys.iterdir():
                with suppress(FileNotFoundError):  # unfinished, or destroyed meanwhile
                    file.chmod(0o600)
    except OSError as error:
        raise UsageError(
            f"cannot read and write {home.visitor_keys}: {' '.join(str(error).split())[:300]}; of a folder, see who "
            "may write it; of an object store, set AWS_ENDPOINT_URL (unless it is AWS), AWS_REGION, AWS_ACCESS_KEY_ID, "
            "AWS_SECRET_ACCESS_KEY, and for http:// AWS_ALLOW_HTTP=true"
        ) from None


def load_secrets(home: Home) -> Secrets:
    """Read the home's secrets, making those that are missing.

    The caller holds the home's lock: two processes would otherwise both make one.
    """
    folder = home.secrets
    make_visitor_key(home)
    password = _keep_secret(folder / "airflow_admin_password", lambda: secrets.token_urlsafe(12))
    passwords = folder / "airflow_passwords.json"
    write_whole(passwords, json.dumps({"admin": password}).encode() + b"\n", mode=0o600)
    return Secrets(
        spark_token=_keep_secret(folder / SPARK_TOKEN, lambda: secrets.token_urlsafe(32)),
        airflow_password=password,
        # Airflow signs with HS512, which wants 64 bytes.
        airflow_jwt_secret=_keep_secret(folder / "airflow_jwt_secret", lambda: secrets.token_urlsafe(64)),
        airflow_secret_key=_keep_secret(folder / "airflow_secret_key", lambda: secrets.token_urlsafe(32)),
        airflow_fernet_key=_keep_secret(folder / "airflow_fernet_key", _fernet_key),
        airflow_passwords_file=passwords,
    )
