"""Taking the rows of ``quality_results``, and of ``journal`` on click hours, into the index.

Each file of a table is taken in once, in any order, by any process; what is of a table is taken in anew when that lost
or rewrote a file, and all when the index is absent, damaged or of another schema.
"""

from __future__ import annotations

import json
import logging
import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from filelock import FileLock, Timeout

from include.journal import CLICK_HOUR
from include.quality_index.model import STATES, series_of, state_of
from include.settings import Settings
from include.storage import filesystem_of, key_of, names
from include.stored_rows import StoredLake, arrow_schema
from include.tables import JOURNAL, QUALITY_RESULTS, Table

log = logging.getLogger("clickmill")
#: Raised with every change of the tables below: an index of another number is rebuilt.
SCHEMA_VERSION = 4
#: What the index has of each table.
_PARTS = {QUALITY_RESULTS: ("verdict", "result"), JOURNAL: ("event",)}
_COMMIT = re.compile(r"\d{20}\.json")
_LOCK_PATIENCE_SECONDS = 60
_ROWS_AT_ONCE = 20_000
_SCHEMA = """
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE file (of_table TEXT NOT NULL, path TEXT NOT NULL, PRIMARY KEY (of_table, path)) WITHOUT ROWID;
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
    examples TEXT, link TEXT,
    PRIMARY KEY (suite, partition, check_id)
) WITHOUT ROWID;
CREATE INDEX result_by_hour ON result (hour);
CREATE INDEX result_by_series ON result (
    suite, check_id, series, hour, observed_value, lowest, highest, outcome, severity, partition);
-- One row: what became of a click hour.
CREATE TABLE event (
    hour TEXT NOT NULL, at TEXT NOT NULL, act_id TEXT NOT NULL, outcome TEXT NOT NULL,
    because TEXT, actor TEXT, details TEXT NOT NULL,
    PRIMARY KEY (hour, at, act_id, outcome)
) WITHOUT ROWID;
"""
#: Values are by the names of the columns that rows of the tables have.
_ADD_EVENT = "INSERT OR REPLACE INTO event VALUES (:subject, :at, :act_id, :event, :because, :actor, :details)"
_ADD_VERDICT = """
INSERT INTO verdict VALUES (:suite, :partition, :run_id, :checked_table, :validated_at, :source, :hour,
    :pass, :undecided, :warning, :fail, :newest)
ON CONFLICT DO UPDATE SET passed = passed + excluded.passed, undecided = undecided + excluded.undecided,
    warnings = warnings + excluded.warnings, failures = failures + excluded.failures
"""
_ADD_RESULT = """
INSERT OR REPLACE INTO result VALUES (:suite, :partition, :check_id, :run_id, :validated_at, :source, :series, :hour,
    :checked_table, :severity, :outcome, :observed, :observed_value, :lowest, :highest, :expectation, :advice,
    :examples, :link)
"""


def catch_up(settings: Settings) -> None:
    """Take in what the tables have and the index has not; several processes may, one waits for the other.

    Raises:
        OSError, sqlite3.Error, filelock.Timeout: if the index cannot be written.
    """
    index = settings.quality_index
    if _is_current(index, _stamp(settings.lake)):
        return
    settings.run.mkdir(parents=True, exist_ok=True)
    # The index is this machine's own.
    with FileLock(settings.run / "quality-index.lock", timeout=_LOCK_PATIENCE_SECONDS):
        # Read again: what came while waiting is taken in as well.
        stamp = _stamp(settings.lake)
        if not _is_current(index, stamp):
            _take_in(settings.lake, index, stamp)


def catch_up_if_possible(settings: Settings) -> None:
    """As ``catch_up``, or with a warning in the log: the rows are in the tables, and who reads next takes them in."""
    try:
        catch_up(settings)
    except (OSError, sqlite3.Error, Timeout) as error:
        log.warning("%s is behind the lake: %s", settings.quality_index, error)


def _stamp(lake: Path) -> str:
    """What identifies the newest commits of both tables."""
    return "; ".join(_newest_commit(lake / table.name) for table in _PARTS)


def _newest_commit(table: Path) -> str:
    """What identifies a table's newest commit; empty when there is no table."""
    folder = table / "_delta_log"
    newest = max(filter(_COMMIT.fullmatch, names(folder)), default=None)
    # A table that was removed and made again may have the same number of commits.
    return f"{newest} {(folder / newest).stat().st_mtime_ns}" if newest else ""


def _is_current(index: Path, stamp: str) -> bool:
    if not index.exists():
        return False
    try:
        with closing(sqlite3.connect(f"{index.as_uri()}?mode=ro", uri=True)) as connection:
            if connection.execute("PRAGMA user_version").fetchone() != (SCHEMA_VERSION,):
                return False
            row = connection.execute("SELECT value FROM state WHERE name = 'commit'").fetchone()
    except sqlite3.DatabaseError:
        return False
    return bool(row == (stamp,))


def _take_in(lake: Path, index: Path, stamp: str) -> None:
    try:
        _bring_up(lake, index, stamp)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):  # locked, disk full: another file would not help
            raise
        _remove(index)
        _bring_up(lake, index, stamp)


def _bring_up(lake: Path, index: Path, stamp: str) -> None:
    files = {table: _data_files(StoredLake(lake), table) for table in _PARTS}
    index.parent.mkdir(parents=True, exist_ok=True)
    index.touch(0o600)  # what SQLite puts beside it has the same mode
    with closing(sqlite3.connect(index, timeout=_LOCK_PATIENCE_SECONDS, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("BEGIN IMMEDIATE")
        try:
            if connection.execute("PRAGMA user_version").fetchone() != (SCHEMA_VERSION,):
                _make(connection)
            for table, of_table in files.items():
                _add(connection, table, of_table)
            connection.execute("INSERT OR REPLACE INTO state VALUES ('commit', ?)", (stamp,))
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def _data_files(lake: StoredLake, table: Table) -> dict[str, Path]:
    """The data files that the index is of, as they are now: as Delta names them, and where each is."""
    stored = lake.stored(table)
    if stored is None:
        return {}
    actions = stored.get_add_actions(flatten=True)
    files = [str(name) for name in actions["path"].to_pylist()]
    if table == JOURNAL and files:
        kinds = actions["partition.kind"].to_pylist()
        files = [name for name, kind in zip(files, kinds, strict=True) if kind == CLICK_HOUR]
    # Delta's log escapes names as URLs do.
    return {name: lake.path(table) / unquote(name) for name in files}


def _make(connection: sqlite3.Connection) -> None:
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (name,) in tables:
        connection.execute(f'DROP TABLE "{name}"')
    for statement in _SCHEMA.split(";"):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _remove(index: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        index.with_name(index.name + suffix).unlink(missing_ok=True)


def _add(connection: sqlite3.Connection, table: Table, files: Mapping[str, Path]) -> None:
    """Take in the rows of these files, all that the table has; if it has lost one that was taken in, all anew."""
    known = {path for (path,) in connection.execute("SELECT path FROM file WHERE of_table = ?", (table.name,))}
    if known - files.keys():
        for part in _PARTS[table]:
            connection.execute(f"DELETE FROM {part}")
        connection.execute("DELETE FROM file WHERE of_table = ?", (table.name,))
        known = set()
    new = {name: path for name, path in files.items() if name not in known}
    if not new:
        return
    import pyarrow.dataset as ds

    writer = _Writer(connection)
    add = writer.add_result if table == QUALITY_RESULTS else writer.add_event
    schema = arrow_schema(table, [name for name in table.column_names if name not in table.partitioned_by])
    paths = list(new.values())
    keys, filesystem = [key_of(path) for path in paths], filesystem_of(paths[0])
    rows = ds.dataset(keys, schema=schema, format="parquet", filesystem=filesystem)
    for batch in rows.to_batches(batch_size=_ROWS_AT_ONCE):
        for row in batch.to_pylist():
            add(row)
    connection.executemany("INSERT INTO file VALUES (?, ?)", [(table.name, name) for name in new])


class _Writer:
    """Puts rows of the tables into the index; in whatever order they come, the same index."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._sentences: dict[str, int] = {}
        #: By suite and partition, when which run judged it last.
        self._newest: dict[tuple[str, str], tuple[str, str]] = {}

    def add_event(self, row: Mapping[str, Any]) -> None:
        """Take in what became of a click hour, a row of ``journal``."""
        changed = {"at": _as_text(row["at"]), "details": json.dumps(dict(row["details"]))}
        self._connection.execute(_ADD_EVENT, {**row, **changed})

    def add_result(self, row: Mapping[str, Any]) -> None:
        """Take in an outcome, a row of ``quality_results``."""
        key = (row["suite"], row["partition"])
        judged = (_as_text(row["validated_at"]), row["run_id"])
        newest = self._newest.get(key) or self._newest_run(key)
        if newest is None or judged > newest:
            self._connection.execute("DELETE FROM result WHERE suite = ? AND partition = ?", key)
            self._connection.execute("UPDATE verdict SET newest = 0 WHERE suite = ? AND partition = ?", key)
            newest = judged
        self._newest[key] = newest
        state = state_of(row["outcome"], row["severity"])
        counted = {other: int(state == other) for other in STATES}
        added = {**row, "validated_at": judged[0]}
        self._connection.execute(_ADD_VERDICT, {**added, **counted, "newest": int(judged == newest)})
        if judged == newest:
            changed = {
                "series": series_of(row["partition"], row["hour"]),
                "expectation": self._sentence(row["expectation"]),
                "advice": self._sentence(row["advice"]),
                "examples": json.dumps(row["examples"]) if row["examples"] else None,
            }
            self._connection.execute(_ADD_RESULT, {**added, **changed})

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


def _as_text(moment: Any) -> str:
    """ISO, UTC, with microseconds: sorts as the moments do."""
    return str(moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
