"""A compact SQLite copy of ``quality_results`` for pages that must be quick: states, newest results, histories.

It is a function of the table alone. Each file of the table is taken in once, in any order, by any process;
the index is made anew when it is absent, damaged, of another schema, or when the table lost or rewrote a file.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from filelock import FileLock

from include.log_hours import Hour, HourRange
from include.settings import Settings
from include.tables import QUALITY_RESULTS

#: Raised with every change of the tables below: an index of another number is made anew.
SCHEMA_VERSION = 1

#: The suite whose rows are decisions on click hours, not checks.
PUBLICATION = "publication"

#: From good to bad; the state of several is the worst. ``undecided``: not enough history to judge, or not final.
STATES = ("pass", "undecided", "warning", "fail")

_COMMIT = re.compile(r"\d{20}\.json")
_LOCK_PATIENCE_SECONDS = 60
_ROWS_AT_ONCE = 20_000

_SCHEMA = """
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE file (path TEXT PRIMARY KEY) WITHOUT ROWID;
-- Expectations and advice: the same few sentences on every row.
CREATE TABLE sentence (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
-- One row: what one run found for one suite, partition and table.
CREATE TABLE verdict (
    suite TEXT NOT NULL, partition TEXT NOT NULL, run_id TEXT NOT NULL, checked_table TEXT NOT NULL,
    validated_at TEXT NOT NULL, source TEXT, hour TEXT NOT NULL,
    passed INT NOT NULL, undecided INT NOT NULL, warnings INT NOT NULL, failures INT NOT NULL, newest INT NOT NULL,
    PRIMARY KEY (suite, partition, run_id, checked_table)
) WITHOUT ROWID;
CREATE INDEX verdict_by_hour ON verdict (hour, suite, source, checked_table, passed, undecided, warnings, failures)
    WHERE newest;
CREATE INDEX verdict_bad ON verdict (hour) WHERE newest AND failures + warnings > 0;
-- One row: what the newest run found for one suite, partition and check.
CREATE TABLE result (
    suite TEXT NOT NULL, partition TEXT NOT NULL, check_id TEXT NOT NULL,
    run_id TEXT NOT NULL, validated_at TEXT NOT NULL, source TEXT, series TEXT NOT NULL, hour TEXT NOT NULL,
    checked_table TEXT NOT NULL, severity TEXT NOT NULL, outcome TEXT NOT NULL,
    observed TEXT, observed_value REAL, lowest REAL, highest REAL,
    expectation INT NOT NULL REFERENCES sentence, advice INT REFERENCES sentence,
    examples TEXT, duration_seconds REAL, link TEXT,
    PRIMARY KEY (suite, partition, check_id)
) WITHOUT ROWID;
CREATE INDEX result_by_hour ON result (hour);
CREATE INDEX result_by_series ON result (
    suite, check_id, series, hour, observed_value, lowest, highest, outcome, severity, partition);
-- One row: what became of a click hour.
CREATE TABLE event (
    hour TEXT NOT NULL, decided_at TEXT NOT NULL, run_id TEXT NOT NULL, outcome TEXT NOT NULL,
    observed TEXT, advice INT REFERENCES sentence, actor TEXT,
    PRIMARY KEY (hour, decided_at, run_id, outcome)
) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class Counts:
    """How many checks had which outcome; ``warnings`` and ``failures`` are failed ones by severity."""

    passed: int = 0
    undecided: int = 0
    warnings: int = 0
    failures: int = 0

    @property
    def state(self) -> str:
        """The worst of ``STATES`` among them; ``missing`` of none."""
        if self.failures:
            return "fail"
        if self.warnings:
            return "warning"
        if self.passed:
            return "pass"
        return "undecided" if self.undecided else "missing"

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.passed + other.passed,
            self.undecided + other.undecided,
            self.warnings + other.warnings,
            self.failures + other.failures,
        )


@dataclass(frozen=True)
class Result:
    """What the newest run found for one check of one partition; as ``quality_results`` has it."""

    suite: str
    partition: str
    check_id: str
    run_id: str
    validated_at: str
    source: str | None
    series: str
    hour: str
    checked_table: str
    severity: str
    outcome: str
    observed: str | None
    observed_value: float | None
    lowest: float | None
    highest: float | None
    expectation: str
    advice: str | None
    examples: tuple[str, ...]
    duration_seconds: float | None
    link: str | None

    @property
    def state(self) -> str:
        """One of ``STATES``."""
        return state_of(self.outcome, self.severity)


@dataclass(frozen=True)
class Event:
    """What became of a click hour: ``outcome`` is held, published, published_anyway or dropped.

    ``observed`` is why; ``actor`` the person who decided, None for a job.
    """

    hour: str
    decided_at: str
    run_id: str
    outcome: str
    observed: str | None
    advice: str | None
    actor: str | None


@dataclass(frozen=True)
class Point:
    """The value of a check at one hour, with its bounds; None where there is no number."""

    hour: str
    value: float | None
    lowest: float | None
    highest: float | None
    state: str
    partition: str


@dataclass(frozen=True)
class Run:
    """What one run found for one suite and partition."""

    suite: str
    partition: str
    run_id: str
    validated_at: str
    counts: Counts


def state_of(outcome: str, severity: str) -> str:
    """One of ``STATES`` for an outcome of ``quality_results``."""
    if outcome == "pass":
        return "pass"
    if outcome in ("not_enough_history", "not_final"):
        return "undecided"
    return "fail" if severity == "critical" else "warning"


def catch_up(settings: Settings) -> None:
    """Take in what ``quality_results`` has and the index has not; several processes may, one waits for the other.

    Raises:
        OSError, sqlite3.Error, filelock.Timeout: if the index cannot be written.
    """
    table, index = settings.lake / QUALITY_RESULTS.name, settings.quality_index
    stamp = _newest_commit(table)
    if _is_current(index, stamp):
        return
    settings.locks.mkdir(parents=True, exist_ok=True)
    with FileLock(settings.locks / "quality-index.lock", timeout=_LOCK_PATIENCE_SECONDS):
        # Read anew: what came while waiting is taken in as well.
        stamp = _newest_commit(table)
        if not _is_current(index, stamp):
            _take_in(table, index, stamp)


@contextmanager
def open_index(settings: Settings) -> Iterator[QualityIndex]:
    """The index as of now, to read; caught up first, and made when there is none."""
    catch_up(settings)
    address = f"{settings.quality_index.as_uri()}?mode=ro"
    # A web server opens it in one of its threads, reads in another and closes it in a third, one after the other.
    with closing(sqlite3.connect(address, uri=True, check_same_thread=False)) as connection:
        # All of a page's queries see one state of the index.
        connection.execute("BEGIN")
        yield QualityIndex(connection)


class QualityIndex:
    """Reads an index. Hours are texts such as ``2026-03-01T05``, which sort as the hours do."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def span(self) -> tuple[Hour, Hour] | None:
        """The first and the last hour that there is anything about; None of an empty lake."""
        first, last = self._one(
            "SELECT min(hour), max(hour) FROM (SELECT min(hour) hour FROM verdict WHERE newest "
            "UNION ALL SELECT max(hour) FROM verdict WHERE newest "
            "UNION ALL SELECT min(hour) FROM event UNION ALL SELECT max(hour) FROM event)"
        )
        return None if first is None else (Hour.parse(first), Hour.parse(last))

    def suites(self) -> list[str]:
        """All suites, by name."""
        return self._distinct("suite")

    def sources(self) -> list[str]:
        """All sources, by name."""
        return self._distinct("source")

    def tables(self) -> list[str]:
        """All tables that were looked at, by name."""
        return self._distinct("checked_table")

    def counts(
        self, hours: HourRange, *, source: str | None = None, table: str | None = None
    ) -> dict[tuple[str, str], Counts]:
        """By suite and hour, the newest verdicts of the partitions that pass the filters, summed."""
        filters, values = _filters(source, table)
        rows = self._connection.execute(
            "SELECT suite, hour, sum(passed), sum(undecided), sum(warnings), sum(failures) FROM verdict "
            f"INDEXED BY verdict_by_hour WHERE newest AND hour >= ? AND hour < ?{filters} GROUP BY hour, suite",
            (str(hours.start), str(hours.end), *values),
        )
        return {(suite, hour): Counts(*counts) for suite, hour, *counts in rows}

    def bad_hours(self, *, source: str | None = None, table: str | None = None) -> list[tuple[str, Counts]]:
        """Every hour, newest first, that fails or warns, with the verdicts that do so, summed."""
        filters, values = _filters(source, table)
        rows = self._connection.execute(
            "SELECT hour, sum(passed), sum(undecided), sum(warnings), sum(failures) FROM verdict "
            f"INDEXED BY verdict_bad WHERE newest AND failures + warnings > 0{filters} "
            "GROUP BY hour ORDER BY hour DESC",
            values,
        )
        return [(hour, Counts(*counts)) for hour, *counts in rows]

    def publications(self, hours: HourRange) -> dict[str, Event]:
        """The newest event of each of these click hours that has one."""
        return {
            event.hour: event
            for event in self._events("WHERE event.hour >= ? AND event.hour < ?", (str(hours.start), str(hours.end)))
        }

    def held(self) -> list[Event]:
        """The newest event of every click hour that is held, newest hour first."""
        return [
            event
            for event in self._events(
                "WHERE event.outcome = 'held' AND NOT EXISTS (SELECT 1 FROM event later WHERE later.hour = event.hour "
                "AND (later.decided_at, later.run_id, later.outcome) > (event.decided_at, event.run_id, event.outcome))"
            )
        ][::-1]

    def events(self, hour: str) -> list[Event]:
        """All that became of a click hour, oldest first."""
        return list(self._events("WHERE event.hour = ?", (hour,)))

    def results(self, hour: str, *, failing_only: bool = False) -> list[Result]:
        """The newest results of every partition of the hour."""
        failing = " AND outcome = 'fail'" if failing_only else ""
        return [
            self._result(row)
            for row in self._connection.execute(
                f"{_RESULTS} WHERE result.hour = ?{failing} ORDER BY suite, partition, check_id", (hour,)
            )
        ]

    def runs(self, hour: str) -> list[Run]:
        """Every validation of the hour's partitions, oldest first."""
        rows = self._connection.execute(
            "SELECT suite, partition, run_id, min(validated_at), sum(passed), sum(undecided), sum(warnings), "
            "sum(failures) FROM verdict WHERE hour = ? GROUP BY 1, 2, 3 ORDER BY 4, 3, 1, 2",
            (hour,),
        )
        return [Run(suite, partition, run, at, Counts(*counts)) for suite, partition, run, at, *counts in rows]

    def newest_result(self, suite: str, check_id: str, series: str) -> Result | None:
        """The result of the last hour of a check's series; None when there is no such check."""
        row = self._connection.execute(
            f"{_RESULTS} WHERE suite = ? AND check_id = ? AND series = ? ORDER BY hour DESC LIMIT 1",
            (suite, check_id, series),
        ).fetchone()
        return self._result(row) if row else None

    def history(self, suite: str, check_id: str, series: str, hours: HourRange) -> list[Point]:
        """The check's newest values at these hours, oldest first."""
        rows = self._connection.execute(
            "SELECT hour, observed_value, lowest, highest, outcome, severity, partition FROM result "
            "WHERE suite = ? AND check_id = ? AND series = ? AND hour >= ? AND hour < ? ORDER BY hour, partition",
            (suite, check_id, series, str(hours.start), str(hours.end)),
        )
        return [
            Point(hour, value, lowest, highest, state_of(outcome, severity), partition)
            for hour, value, lowest, highest, outcome, severity, partition in rows
        ]

    def _events(self, where: str, values: Sequence[str] = ()) -> Iterator[Event]:
        rows = self._connection.execute(
            "SELECT event.hour, event.decided_at, event.run_id, event.outcome, observed, text, actor FROM event "
            f"LEFT JOIN sentence ON sentence.id = advice {where} "
            "ORDER BY event.hour, event.decided_at, event.run_id, event.outcome",
            values,
        )
        return (Event(*row) for row in rows)

    def _result(self, row: Sequence[Any]) -> Result:
        values = list(row)
        values[_EXAMPLES] = tuple(json.loads(row[_EXAMPLES] or "[]"))
        return Result(*values)

    def _one(self, query: str) -> Sequence[Any]:
        row: Sequence[Any] = self._connection.execute(query).fetchone()
        return row

    def _distinct(self, column: str) -> list[str]:
        rows = self._connection.execute(
            f"SELECT DISTINCT {column} FROM verdict WHERE newest AND {column} IS NOT NULL ORDER BY 1"
        )
        return [value for (value,) in rows]


def _filters(source: str | None, table: str | None) -> tuple[str, list[str]]:
    """A condition on verdicts, to go on a WHERE, and its values."""
    asked = {column: value for column, value in (("source", source), ("checked_table", table)) if value is not None}
    return "".join(f" AND {column} = ?" for column in asked), list(asked.values())


_RESULTS = """
SELECT suite, partition, check_id, run_id, validated_at, source, series, hour, checked_table, severity, outcome,
       observed, observed_value, lowest, highest, expected.text, advised.text, examples, duration_seconds, link
FROM result
JOIN sentence expected ON expected.id = expectation
LEFT JOIN sentence advised ON advised.id = advice
"""
_EXAMPLES = [field.name for field in fields(Result)].index("examples")


# --- taking in ------------------------------------------------------------------------------------


def _newest_commit(table: Path) -> str | None:
    """What tells a table's newest commit from all others; None when there is no table."""
    try:
        with os.scandir(table / "_delta_log") as entries:
            newest = max((name for entry in entries if _COMMIT.fullmatch(name := entry.name)), default=None)
    except FileNotFoundError:
        return None
    if newest is None:
        return None
    # A table that was removed and made anew may have the same number of commits.
    return f"{newest} {(table / '_delta_log' / newest).stat().st_mtime_ns}"


def _is_current(index: Path, stamp: str | None) -> bool:
    if not index.exists():
        return False
    try:
        with closing(sqlite3.connect(f"{index.as_uri()}?mode=ro", uri=True)) as connection:
            if connection.execute("PRAGMA user_version").fetchone() != (SCHEMA_VERSION,):
                return False
            found = connection.execute("SELECT value FROM state WHERE name = 'commit'").fetchone()
    except sqlite3.DatabaseError:
        return False
    return bool(found == (stamp or "",))


def _take_in(table: Path, index: Path, stamp: str | None) -> None:
    try:
        _bring_up(table, index, stamp)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):  # locked, disk full: another file would not help
            raise
        _remove(index)
        _bring_up(table, index, stamp)


def _bring_up(table: Path, index: Path, stamp: str | None) -> None:
    files = _data_files(table) if stamp else {}
    index.parent.mkdir(parents=True, exist_ok=True)
    index.touch(0o600)
    index.chmod(0o600)  # one of an earlier version; what SQLite puts beside it has the same mode
    with closing(sqlite3.connect(index, timeout=_LOCK_PATIENCE_SECONDS, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("BEGIN IMMEDIATE")
        try:
            known = _known_files(connection)
            if known is None or known - files.keys():
                _empty(connection)
                known = set()
            _add(connection, {name: path for name, path in files.items() if name not in known})
            connection.execute("INSERT OR REPLACE INTO state VALUES ('commit', ?)", (stamp or "",))
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def _data_files(table: Path) -> dict[str, Path]:
    """The table's data files as they are now: as Delta names them, and where each is."""
    from deltalake import DeltaTable

    # Delta's log escapes names as URLs do.
    return {name: table / unquote(name) for name in DeltaTable(table).get_add_actions()["path"].to_pylist()}


def _known_files(connection: sqlite3.Connection) -> set[str] | None:
    """The files that were taken in; None when the index has another schema, or none."""
    if connection.execute("PRAGMA user_version").fetchone() != (SCHEMA_VERSION,):
        return None
    return {path for (path,) in connection.execute("SELECT path FROM file")}


def _empty(connection: sqlite3.Connection) -> None:
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (name,) in tables:
        connection.execute(f'DROP TABLE "{name}"')
    for statement in _SCHEMA.split(";"):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _remove(index: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        index.with_name(index.name + suffix).unlink(missing_ok=True)


def _add(connection: sqlite3.Connection, files: Mapping[str, Path]) -> None:
    """Take in the rows of these files; not those of an earlier version, which say no outcome."""
    if not files:
        return
    import pyarrow as pa
    import pyarrow.dataset as ds

    types = {
        "STRING": pa.string(),
        "DOUBLE": pa.float64(),
        "TIMESTAMP": pa.timestamp("us", tz="UTC"),
        "ARRAY<STRING>": pa.list_(pa.string()),
    }
    schema = pa.schema([(column.name, types[column.type]) for column in QUALITY_RESULTS.columns])
    writer = _Writer(connection)
    rows = ds.dataset([str(path) for path in files.values()], schema=schema, format="parquet")
    for batch in rows.to_batches(filter=ds.field("outcome").is_valid(), batch_size=_ROWS_AT_ONCE):
        writer.add(batch.to_pylist())
    connection.executemany("INSERT INTO file VALUES (?)", [(name,) for name in files])


class _Writer:
    """Puts rows of ``quality_results`` into the index; in whatever order they come, the same index."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._sentences: dict[str, int] = {}
        #: By suite and partition, when which run judged it last.
        self._newest: dict[tuple[str, str], tuple[str, str]] = {}

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Take in rows."""
        for row in rows:
            if row["suite"] == PUBLICATION:
                self._add_event(row)
            else:
                self._add_result(row)

    def _add_event(self, row: Mapping[str, Any]) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO event VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                row["hour"],
                _as_text(row["validated_at"]),
                row["run_id"],
                row["outcome"],
                row["observed"],
                self._sentence(row["advice"]),
                row["actor"],
            ),
        )

    def _add_result(self, row: Mapping[str, Any]) -> None:
        key = (row["suite"], row["partition"])
        judged = (_as_text(row["validated_at"]), row["run_id"])
        newest = self._newest.get(key) or self._newest_run(key)
        if newest is None or judged > newest:
            self._connection.execute("DELETE FROM result WHERE suite = ? AND partition = ?", key)
            self._connection.execute("UPDATE verdict SET newest = 0 WHERE suite = ? AND partition = ?", key)
            newest = judged
        self._newest[key] = newest
        state = state_of(row["outcome"], row["severity"])
        self._connection.execute(
            "INSERT INTO verdict VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET passed = passed + excluded.passed, undecided = undecided + excluded.undecided, "
            "warnings = warnings + excluded.warnings, failures = failures + excluded.failures",
            (
                *key,
                row["run_id"],
                row["checked_table"],
                judged[0],
                row["source"],
                row["hour"],
                *(int(state == other) for other in STATES),
                int(judged == newest),
            ),
        )
        if judged == newest:
            self._connection.execute(
                f"INSERT OR REPLACE INTO result VALUES ({', '.join('?' * 20)})",
                (
                    *key,
                    row["check_id"],
                    row["run_id"],
                    judged[0],
                    row["source"],
                    series_of(row["partition"], row["hour"]),
                    row["hour"],
                    row["checked_table"],
                    row["severity"],
                    row["outcome"],
                    row["observed"],
                    row["observed_value"],
                    row["lowest"],
                    row["highest"],
                    self._sentence(row["expectation"]),
                    self._sentence(row["advice"]),
                    json.dumps(row["examples"]) if row["examples"] else None,
                    row["duration_seconds"],
                    row["link"],
                ),
            )

    def _newest_run(self, key: tuple[str, str]) -> tuple[str, str] | None:
        row: tuple[str, str] | None = self._connection.execute(
            "SELECT validated_at, run_id FROM verdict WHERE suite = ? AND partition = ? AND newest LIMIT 1", key
        ).fetchone()
        return row

    def _sentence(self, text: str | None) -> int | None:
        if text is None:
            return None
        if text not in self._sentences:
            self._connection.execute("INSERT OR IGNORE INTO sentence (text) VALUES (?)", (text,))
            (self._sentences[text],) = self._connection.execute(
                "SELECT id FROM sentence WHERE text = ?", (text,)
            ).fetchone()
        return self._sentences[text]


def series_of(partition: str, hour: str) -> str:
    """What stays when the hour changes: the source, the operator; empty for click hours."""
    return partition.partition(hour)[0].strip()


def _as_text(moment: Any) -> str:
    """ISO, UTC, with microseconds: sorts as the moments do."""
    return str(moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
