"""The folders of one Clickmill home, each named once.

Standard library only: the services read it before they read any settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
#: The page of the published counts, in the folder of reports.
REPORT_FILE = "report.html"


def home_path(environment: Mapping[str, str]) -> Path:
    """CLICKMILL_HOME, by default ``var`` beside the code; nothing is made yet."""
    return Path(environment.get("CLICKMILL_HOME") or REPOSITORY / "var").expanduser().resolve()


def data_path(environment: Mapping[str, str]) -> Path | None:
    """CLICKMILL_DATA, a folder or a place in an object store; None where it is not set: the data is in the home.

    Raises:
        UsageError: if it is another kind of store.
    """
    location = environment.get("CLICKMILL_DATA")
    if location and "://" in location:
        from include.storage import place

        return place(location)
    return Path(location).expanduser().resolve() if location else None


def locks_database(environment: Mapping[str, str]) -> str | None:
    """CLICKMILL_LOCKS, PostgreSQL's address of a database; None: locks are files."""
    return environment.get("CLICKMILL_LOCKS") or None


class HomeFolders:
    """What lies where under CLICKMILL_HOME, and under CLICKMILL_DATA, which homes of several machines may share.

    Two homes share nothing else, so they may run side by side.
    """

    #: CLICKMILL_DATA; None: the data is in the home.
    data_folder: Path | None
    #: CLICKMILL_LOCKS, PostgreSQL's address of the database whose locks jobs take; None: files are locked. It may have
    #: a password.
    locks_database: str | None

    @property
    def root(self) -> Path:
        """The home itself."""
        raise NotImplementedError

    @property
    def data(self) -> Path:
        """The folder of what jobs of all machines read and write; the home itself, unless it is another."""
        return self.data_folder or self.root

    @property
    def data_on_disk(self) -> Path:
        """The same, for what an object store cannot keep, since it is locked or added to: then the home."""
        return self.data if isinstance(self.data, Path) else self.root

    @property
    def landing(self) -> Path:
        """Where writers put click logs, by source and log hour."""
        return self.data / "landing"

    @property
    def lake(self) -> Path:
        """The Delta tables."""
        return self.data / "lake"

    @property
    def reports(self) -> Path:
        """The HTML report, Data Docs and exports."""
        return self.data / "reports"

    @property
    def report(self) -> Path:
        """The page of the published counts."""
        return self.reports / REPORT_FILE

    @property
    def quality_index(self) -> Path:
        """What the pages on data quality read; made from two tables by include/quality_index."""
        return self.root / "quality_index.sqlite"

    @property
    def streams(self) -> Path:
        """The checkpoints of streams, by source."""
        return self.data_on_disk / "streams"

    @property
    def received(self) -> Path:
        """Lines that a receiver has stored, until they are in the landing zone of an object store."""
        return self.root / "received"

    @property
    def kafka_topics(self) -> Path:
        """The embedded broker's topics."""
        return self.root / "kafka"

    @property
    def airflow(self) -> Path:
        """AIRFLOW_HOME."""
        return self.root / "airflow"

    @property
    def logs(self) -> Path:
        """Service and task logs."""
        return self.root / "logs"

    @property
    def run(self) -> Path:
        """What lives as long as the services: pids, socket, rendered settings, ports."""
        return self.root / "run"

    @property
    def spark_local(self) -> Path:
        """What Spark keeps while it runs; emptied when the services start."""
        return self.run / "spark"

    @property
    def locks(self) -> Path:
        """Lock files of what must not run beside itself; those of jobs too, unless a database has these."""
        return self.data_on_disk / "run" / "locks"

    @property
    def scratch(self) -> Path:
        """What jobs keep while they run; what a killed one leaves is removed when the lake's Spark server starts."""
        return self.data / "run" / "staged"

    @property
    def service_file(self) -> Path:
        """The ports of the home's services, while they run."""
        return self.run / "service.json"

    @property
    def spark_remote_file(self) -> Path:
        """Where jobs run by hand find the Spark server; holds its token."""
        return self.run / "spark_remote"

    @property
    def broker_file(self) -> Path:
        """Where streams find the embedded broker, while it runs."""
        return self.run / "kafka_bootstrap_servers"

    @property
    def secrets(self) -> Path:
        """Readable by the owner alone."""
        return self.root / "secrets"

    @property
    def visitor_keys(self) -> Path:
        """The secrets under which client addresses become visitors, for all machines; a file for each day."""
        return self.data / "secrets" / "visitor_keys"

    @property
    def release_key_file(self) -> Path:
        """The secret by which released counts are known again; of no visitor, and kept for good."""
        return self.data / "secrets" / "release_key"

    @property
    def erasure_key_file(self) -> Path:
        """The secret under which what was erased is known on record; made by the first erasure."""
        return self.data / "secrets" / "erasure_key"
