"""Accounts of log hours of which rows go, where nobody ingests again: no line is forgotten, and none is made up.

Without Spark: what micro-batches write is written by the product's own functions.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from include.hours import Hour, log_hours_predicate
from include.landing import look_at
from include.sources import Source, load_sources
from include.tables import CLICKS, DUPLICATE_CLICKS, INGEST_ACCOUNTING, STREAM_BATCHES, Table
from spark_jobs.erasure.erase import Erasure
from spark_jobs.erasure.requests import Requests
from spark_jobs.hours.account import HourAccount
from spark_jobs.ingest.decided_files import as_clicks
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.new_files import NewFile, files_of
from spark_jobs.lake.transactions import StreamTransaction
from spark_jobs.lines.arrivals import LineParser, read_files, rows_of_files
from spark_jobs.lines.columns import as_numpy
from spark_jobs.lines.read_lines import LandedFile, ReadFile
from spark_jobs.stream.micro_batch import StreamIngest, parts_of
from spark_jobs.stream.written_rows import WrittenRows, rows_written
from tests.stream.streamed_source import streamed_source
from tests.support.temporary_lake import TemporaryLake, click, make_settings

HOUR = "2026-03-20T08"
VISITOR = "visitor-to-go"


def clicks(ids: str, visitor: str = "somebody-else") -> bytes:
    return b"".join(click(event_id, f"{HOUR}:10:00Z", visitor_id=visitor) for event_id in ids)


class FirstOf:
    """Drops the arrivals of ids that were there before."""

    def of(self, arrivals: pa.Table) -> pa.Table:
        ids = arrivals["event_id"].to_pylist()
        return arrivals.filter(
            pa.array([place == ids.index(event_id) for place, event_id in enumerate(ids)], pa.bool_())
        )

    def end(self) -> dict[str, object]:
        return {}


class Played:
    """A home whose source web is ingested, or streamed, a landed file at a time."""

    def __init__(self, home: Path) -> None:
        self.temporary = TemporaryLake(None, make_settings(home))
        self.settings = self.temporary.settings
        self.lake = Lake(None, self.settings)
        self.batch_id = 0

    @property
    def source(self) -> Source:
        return load_sources(self.settings)["web"]

    def land(self, **files: bytes) -> None:
        folder = self.temporary.land(HOUR, {})
        for name, content in files.items():
            (folder / name).write_bytes(content)

    def arrivals(self, name: str) -> tuple[list[pa.Table], list[ReadFile]]:
        landed = look_at(self.settings.landing, "web", Hour.parse(HOUR))
        file = next(LandedFile(path, landed.hour) for path in landed.files if path.name == name)
        done: list[ReadFile] = []
        parser = LineParser.of(self.source, self.settings)
        return list(read_files([file], parser, lambda _, lines: lines.astype(np.int64), done)), done

    def ingest(self, name: str) -> None:
        """As the batch: duplicates have rows."""
        (arrivals,), (read,) = self.arrivals(name)
        accepted = FirstOf().of(arrivals)
        kept = set(as_numpy(accepted["line"]))
        repeated = arrivals.filter(pa.array([line not in kept for line in arrivals["line"].to_pylist()]))
        hour = Hour.parse(HOUR)
        first = {"first_log_date": pa.array([hour.day] * len(repeated)), "first_log_hour": [hour.hour] * len(repeated)}
        duplicates = as_clicks(repeated, "web")
        for column, values in first.items():
            duplicates = duplicates.append_column(
                column, pa.array(values, pa.date32() if "date" in column else pa.int32())
            )
        self._replace(CLICKS, as_clicks(accepted, "web"))
        self._replace(DUPLICATE_CLICKS, duplicates)
        account = HourAccount(read.lines, {name}, accepted=len(accepted), click_hours={HOUR})
        account.duplicates_of[HOUR] = len(repeated)
        account.first_clicked_at = account.last_clicked_at = datetime(2026, 3, 20, 8, 10, tzinfo=UTC)
        landed = look_at(self.settings.landing, "web", hour)
        row = account.as_row("web", landed, datetime.now(UTC))
        self.lake.replace_rows(INGEST_ACCOUNTING, [row], log_hours_predicate("web", [hour]))

    def _replace(self, table: Table, rows: pa.Table) -> None:
        files = list(files_of(rows.to_batches(), table, self.lake.folder_for_files(table)))
        self.lake.append(table, files, StreamTransaction("ingest", 0))

    def stream(self, name: str) -> None:
        """As a micro-batch: duplicates have none."""
        self.settings.sources_file.write_text(streamed_source("files", {}), encoding="utf-8")
        arrivals, done = self.arrivals(name)
        batches = [batch for table in (*arrivals, rows_of_files(done)) for batch in table.to_batches()]
        folder = self.lake.folder_for_files(CLICKS)
        written, new = WrittenRows(), list[NewFile]()
        for kind, items in rows_written(batches, self.source, folder, folder, FirstOf()):  # type: ignore[arg-type]
            if kind == "clicks":
                new += [NewFile(**item) for item in items]
            elif kind == "outcome":
                written.outcomes.extend(items)
        transaction = StreamTransaction("s", self.batch_id)
        self.lake.append(CLICKS, new, transaction)
        of_stream = StreamIngest(self.settings, self.source, "s", None)
        rows = of_stream._account(parts_of(written), self.batch_id, datetime.now(UTC))
        self.lake.append_rows(STREAM_BATCHES, rows, transaction)
        self.batch_id += 1

    def erase(self) -> None:
        """What is to go, from the tables and the landing zone."""
        erasure = Erasure(None, self.settings, Requests.of([VISITOR]))  # type: ignore[arg-type]
        certificate, selection = erasure.certificate("Ada", "asked for by letter")
        assert selection is not None
        erasure.plan(certificate, selection)
        erasure.erase(certificate, selection)

    def account(self, *names: str) -> list[int]:
        (row,) = self.lake.read_rows(INGEST_ACCOUNTING, names, [])
        return [row[name] for name in names]


@pytest.fixture(autouse=True)
def _rows_come_two_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of a large log hour come some thousands at a time."""
    monkeypatch.setattr("spark_jobs.lake.copied_files._ROWS", 2)


@pytest.mark.parametrize("gone", ["x", "xx", "xyxy"])
def test_duplicates_of_a_batch_and_of_a_stream_that_nobody_has_accounted_for(tmp_path: Path, gone: str) -> None:
    played = Played(tmp_path)
    played.land(
        first=clicks("aab") + clicks(gone, VISITOR), second=clicks("ccd"), third=clicks("ee") + clicks("z", VISITOR)
    )
    played.ingest("first")
    played.stream("second")
    played.stream("third")
    played.erase()
    assert played.account("lines", "accepted", "duplicates") == [8, 5, 3]


def test_a_log_hour_whose_clicks_were_removed_for_their_age_stays_as_it_was_counted(tmp_path: Path) -> None:
    played = Played(tmp_path)
    played.land(first=clicks("aab") + clicks("xx", VISITOR))
    played.ingest("first")
    (row,) = played.lake.read_rows(INGEST_ACCOUNTING, INGEST_ACCOUNTING.column_names, [])
    hour = [Hour.parse(HOUR)]
    row |= {"clicks_removed_at": datetime.now(UTC)}
    played.lake.replace_rows(INGEST_ACCOUNTING, [row], log_hours_predicate("web", hour))
    for table in (CLICKS, DUPLICATE_CLICKS):
        played.lake.replace_rows(table, [], log_hours_predicate("web", hour))
    played.erase()
    (file,) = look_at(played.settings.landing, "web", hour[0]).files
    assert file.read_bytes() == clicks("aab")
    assert played.account("lines", "accepted", "duplicates") == [5, 3, 2]
