"""A Clickmill home of a test: land lines, run jobs, and read the tables back without Spark."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable
from rich.console import Console

from include.errors import QualityError
from include.holds import PUBLISHED, Event, event_row
from include.hours import Hour
from include.job_arguments import JobArguments
from include.journal import ACT, CLICK_HOUR, Act, read_events
from include.landing import SUCCESS, hour_folder
from include.settings import Settings
from include.tables import TABLES, Table

if TYPE_CHECKING:
    from spark_jobs.backfill.plan import Request

#: When a row was written, or a file that it names, is no part of what it says.
WRITTEN_AT = frozenset({"ingested_at", "counted_at", "validated_at", "written_at", "looked_at", "landed_files"})

JOBS = ("ingest", "aggregate", "validate", "publish")

SOURCES = """
[sources.web]
format = "json"
scheduled = true
[sources.web.fields]
event_id = "event_id"
time = "ts"
url = "url"
country = "geo.country"
visitor = "visitor_id"
referrer = "referrer"
user_agent = "user_agent"
status = "status"

[sources.access]
format = "combined"
base_url = "http://www.example.com"
"""

PIPELINE = """
buckets = 4
tracking_parameters = [
  "utm_*", "gclid", "fbclid", "msclkid", "dclid", "yclid", "igshid", "mc_cid", "mc_eid",
]
"""


def make_settings(home: Path) -> Settings:
    """A home with the two sources and a small pipeline; no data."""
    config = home / "config"
    config.mkdir(parents=True)
    (config / "sources.toml").write_text(SOURCES, encoding="utf-8")
    (config / "pipeline.toml").write_text(PIPELINE, encoding="utf-8")
    return Settings(home.resolve(), config / "sources.toml", config / "pipeline.toml")


def copied_home(settings: Settings, home: Path) -> Settings:
    """The same home elsewhere: Spark, which has tables in mind, is not to know of what a test takes away."""
    shutil.copytree(settings.home, home)
    moved = (home / file.relative_to(settings.home) for file in (settings.sources_file, settings.pipeline_file))
    return Settings(home, *moved)


def click(event_id: str, ts: str, url: str = "http://shop.test/", **fields: Any) -> bytes:
    """A line of the source web; the country is DE unless told, in place of ``geo`` as a whole."""
    record = {"event_id": event_id, "ts": ts, "url": url, "geo": {"country": "DE"}, "visitor_id": "v"} | fields
    return json.dumps(record).encode() + b"\n"


@dataclass
class TemporaryLake:
    """One home and the session that works on it."""

    spark: Any
    settings: Settings

    def copy(self, home: Path) -> TemporaryLake:
        """The same lake elsewhere, as ``copied_home``."""
        return replace(self, settings=copied_home(self.settings, home))

    def land(self, hour: str, files: dict[str, bytes], *, is_closed: bool = True, source: str = "web") -> Path:
        """Replace a log hour in the landing zone by these files; ``.gz`` ones are compressed here."""
        folder = hour_folder(self.settings.landing, source, Hour.parse(hour))
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for name, content in files.items():
            (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        if is_closed:
            (folder / SUCCESS).touch()
        return folder

    def run(self, job: str, start: str, end: str | None = None, *, source: str = "web", **options: Any) -> list[str]:
        """Run the job of that name for one log hour, or for a half-open range."""
        from spark_jobs.grouping.load import aggregate_measured
        from spark_jobs.ingest.job import ingest
        from spark_jobs.publish.job import publish
        from spark_jobs.quality.job import require_valid

        jobs: dict[str, Callable[..., list[str]]] = {
            "ingest": ingest,
            "aggregate": aggregate_measured,
            "validate": require_valid,
            "publish": lambda *session_settings_arguments: publish(*session_settings_arguments).lines,
        }
        first = Hour.parse(start)
        arguments = JobArguments.of(source, start, end or str(first.plus(1)))
        return jobs[job](self.spark, self.settings, arguments, **options)

    def run_all(self, start: str, end: str | None = None, *, source: str = "web") -> None:
        """Ingest, aggregate, validate and publish."""
        for job in JOBS:
            self.run(job, start, end, source=source)

    def run_jobs(self, start: str, end: str, *jobs: str, **options: Any) -> None:
        """Run these jobs; that a critical check fails is no error here."""
        for job in jobs:
            try:
                self.run(job, start, end, **options)
            except QualityError:
                assert job == "validate"

    def backfill(self, request: Request) -> None:
        """Run a backfill to its end."""
        from spark_jobs.backfill import job

        console = Console(file=StringIO(), width=200)
        job.run(self.spark, self.settings, request, "faulty files", console)

    def say_published(self, hour: Hour) -> None:
        """Append the event that a click hour was published now."""
        from spark_jobs.lake.journal import append_events
        from spark_jobs.lake.lake import Lake

        event = event_row(Act("test", "publish_clicks"), datetime.now(UTC), hour, PUBLISHED, "test")
        append_events(Lake(self.spark, self.settings), [event])

    def events(self, hour: Hour | str) -> list[Event]:
        """What became of a click hour, oldest first."""
        rows = read_events(self.settings.lake, [("kind", "=", CLICK_HOUR), ("subject", "=", str(hour))])
        return [Event.of(row) for row in rows]

    def acts(self) -> list[tuple[str, str]]:
        """What people have asked for, in order: the name of each act, and whether it began, was completed or failed."""
        return [(row["act"], row["event"]) for row in read_events(self.settings.lake, [("kind", "=", ACT)])]

    def rows(self, table: Table, without: Iterable[str] = WRITTEN_AT) -> list[dict[str, Any]]:
        """The rows as plain values, in order; none when the table has not been made."""
        path = self.settings.lake / table.name
        if not (path / "_delta_log").is_dir():
            return []
        stored = DeltaTable(str(path)).to_pyarrow_table()
        dropped = [name for name in stored.column_names if name in set(without)]
        rows = [
            {name: _plain(value, table, name) for name, value in row.items()}
            for row in stored.drop_columns(dropped).to_pylist()
        ]
        return sorted(rows, key=repr)

    def exports(self) -> list[str]:
        """The names of the exported files, with their folders."""
        folder = self.settings.reports / "exports"
        return sorted(str(file.relative_to(folder)) for file in folder.rglob("*.*") if file.is_file())

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """All tables but those whose rows carry the id of a run, or of an act."""
        ids = {"run_id", "act_id"}
        return {name: self.rows(table) for name, table in TABLES.items() if ids.isdisjoint(table.column_names)}

    def accounting(self) -> dict[str, dict[str, Any]]:
        """The accounting by log hour."""
        return {f"{row['log_date']}T{row['log_hour']:02d}": row for row in self.rows(TABLES["ingest_accounting"])}

    def commits(self, table: Table) -> int:
        """How many commits the table has."""
        return len(list((self.settings.lake / table.name / "_delta_log").glob("*.json")))


def assert_same_tables(tables: dict[str, list[dict[str, Any]]], expected: dict[str, list[dict[str, Any]]]) -> None:
    """The same tables with the same rows; says the first that differ."""
    assert tables.keys() == expected.keys()
    for table, rows in expected.items():
        differing = [pair for pair in zip(tables[table], rows, strict=False) if pair[0] != pair[1]]
        assert (len(tables[table]), differing[:2]) == (len(rows), []), table


def _plain(value: Any, table: Table, name: str) -> Any:
    # A table of an earlier version has columns that are declared no more.
    declared = next((column.type for column in table.columns if column.name == name), "")
    return dict(sorted(value)) if declared.startswith("MAP") and value is not None else value
