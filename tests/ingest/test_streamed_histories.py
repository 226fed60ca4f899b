"""Whatever the history of a streamed source, its log hours are accounted for and counted as plain Python adds them up.

A history is: micro-batches with records of any log hour (of long ago and of finalised hours too), of which one may be
killed before its account, or commit that account late; new checkpoints, of other topics; runs over log hours, killed
after they have finalised them, and run again; micro-batches that are added up; hours that the batch has ingested
before. What finalises and what says whose click hour it is are the product's own, on Delta tables, without Spark: so
many are tried, and Hypothesis shortens what fails. Streaming itself is tested in ``tests/stream``.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from include.hours import Hour, HourRange, log_hours_predicate
from include.landing import LandedHour
from include.settings import Settings
from include.sources import load_sources
from include.stored_rows import ARROW_TYPES
from include.tables import CLICKS, INGEST_ACCOUNTING, STREAM_BATCHES
from spark_jobs.hours import stream_batches
from spark_jobs.hours.account import HourAccount
from spark_jobs.hours.finalise import finalise, open_log_hours
from spark_jobs.hours.touched_hours import touched_click_hours
from spark_jobs.lake.data_files import may_have_click_hours
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.transactions import StreamTransaction
from tests.stream.streamed_source import streamed_source
from tests.support.fault_rounds import ARE_MANY, ROUNDS
from tests.support.temporary_lake import copied_home, make_settings

pytestmark = [pytest.mark.slow, pytest.mark.faults]

HISTORIES = 16 * ROUNDS
#: Log hours next to each other, and some of weeks before.
NEAR = Hour.parse("2026-03-20T08")
HOURS = [NEAR.plus(-500), NEAR.plus(-499), *(NEAR.plus(shift) for shift in range(5))]


#: The columns of ``clicks`` that are looked at here.
_TYPES = {column.name: ARROW_TYPES[column.type] for column in CLICKS.columns if column.type in ARROW_TYPES}
CLICKS_SCHEMA = pa.schema([(name, _TYPES[name]) for name in (*CLICKS.partitioned_by, "click_date", "click_hour")])


@dataclass(frozen=True)
class Lines:
    """What a micro-batch has of one log hour: clicks of it and of the hour before it, and its other lines."""

    log_hour: int
    clicks: int
    late: int
    duplicates: int
    quarantined: int
    left_out: int

    @property
    def number(self) -> int:
        return self.clicks + self.late + self.duplicates + self.quarantined + self.left_out


@dataclass(frozen=True)
class Batch:
    """A micro-batch. It is killed before its account, and run again by the next; or its account comes late."""

    parts: tuple[Lines, ...]
    partition: int
    is_killed: bool
    is_slow: bool


@dataclass(frozen=True)
class NewCheckpoint:
    """The checkpoint is removed, perhaps for another topic, when no micro-batch is half written."""

    topic: int


@dataclass(frozen=True)
class Run:
    """Finalise, count and publish these log hours; if it is killed, finalise alone."""

    first: int
    hours: int
    is_killed: bool
    adds_up: bool


Step = Batch | NewCheckpoint | Run
_numbers = st.integers(0, 3)
lines = st.builds(Lines, st.integers(0, len(HOURS) - 1), *[_numbers] * 5)
parts = st.lists(lines, min_size=1, max_size=3, unique_by=lambda part: part.log_hour).map(tuple)
steps = st.lists(
    st.one_of(
        st.builds(Batch, parts, st.integers(0, 1), st.booleans(), st.booleans()),
        st.builds(Run, st.integers(0, len(HOURS) - 1), st.integers(1, 3), st.booleans(), st.booleans()),
        st.builds(NewCheckpoint, st.integers(0, 1)),
    ),
    min_size=1,
    max_size=14,
)


@dataclass
class History:
    """A lake and what plain Python knows of it."""

    lake: Lake
    #: All that is in ``clicks``: by log hour, and click hour.
    clicks: dict[Hour, Counter[Hour]] = field(default_factory=lambda: defaultdict(Counter))
    #: Lines, accepted, duplicates and quarantined of each log hour, of what has an account.
    lines: dict[Hour, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    published: dict[Hour, int] = field(default_factory=dict)
    #: The micro-batch that was killed, and the runs.
    half_written: Batch | None = None
    killed: list[Run] = field(default_factory=list)
    finalised: set[Hour] = field(default_factory=set)
    ingested: set[Hour] = field(default_factory=set)
    checkpoint: int = 0
    topic: int = 0
    batch_id: int = 0
    offset: int = 0

    def ingest(self, part: Lines) -> None:
        """The batch has ingested a log hour, before the source was streamed."""
        hour = HOURS[part.log_hour]
        account = HourAccount(part.number, accepted=part.clicks + part.late, click_hours=set(click_hours(part)))
        account.duplicates_of[str(hour)], account.quarantined["not_json"] = part.duplicates, part.quarantined
        account.left_out["tests"] = part.left_out
        row = account.as_row("web", LandedHour(Path(), hour, (), 0, True), datetime.now(UTC))
        self.lake.replace_rows(INGEST_ACCOUNTING, [row], log_hours_predicate("web", [hour]))
        self._add_clicks(part)
        self._add(part)
        self.finalised.add(hour)
        self.ingested.add(hour)
        self._count(HourRange(hour, hour.plus(1)))

    def play(self, step: Step) -> None:
        if isinstance(step, Batch):
            self.finish_batch()
            self.write(step)
        elif isinstance(step, NewCheckpoint):
            self.finish_batch()
            self.checkpoint, self.topic, self.batch_id = self.checkpoint + 1, step.topic, 0
        else:
            self.run(step)

    def write(self, batch: Batch) -> None:
        for part in batch.parts:
            self._add_clicks(part)
        if batch.is_killed:
            self.half_written = batch
        else:
            self.account_for(batch)

    def finish_batch(self) -> None:
        if self.half_written:
            batch, self.half_written = self.half_written, None
            self.account_for(batch)

    def account_for(self, batch: Batch) -> None:
        # What a row says of its time is a moment before it can be read.
        # Of an hour that the batch has ingested, only the time tells what its account has of the stream: not tried.
        is_slow = batch.is_slow and not self.ingested.intersection(HOURS[part.log_hour] for part in batch.parts)
        now = datetime.now(UTC) - (timedelta(seconds=30) if is_slow else timedelta())
        stream_id = f"web-{self.checkpoint}"
        rows = [self._row(part, batch.partition, stream_id, now) for part in batch.parts]
        self.lake.append_rows(STREAM_BATCHES, rows, StreamTransaction(stream_id, self.batch_id))
        self.batch_id += 1
        for part in batch.parts:
            self._add(part)

    def _add_clicks(self, part: Lines) -> None:
        hour, clicks = HOURS[part.log_hour], clicks_of(part)
        self.clicks[hour] += clicks
        if clicks:
            rows = [("web", hour.day, hour.hour, of.day, of.hour) for of in clicks.elements()]
            columns = dict(zip(CLICKS_SCHEMA.names, zip(*rows, strict=True), strict=True))
            write_deltalake(self.lake.path(CLICKS), pa.table(columns, CLICKS_SCHEMA), mode="append")

    def _add(self, part: Lines) -> None:
        self.lines[HOURS[part.log_hour]] += Counter(
            lines=part.number,
            accepted=part.clicks + part.late,
            duplicates=part.duplicates,
            quarantined=part.quarantined,
            left_out=part.left_out,
        )

    def _row(self, part: Lines, partition: int, stream_id: str, now: datetime) -> dict[str, Any]:
        hour, first = HOURS[part.log_hour], self.offset
        self.offset += part.number
        return {
            "source": "web", "stream_id": stream_id, "batch_id": self.batch_id,
            "file": f"topic-{self.topic}/{partition}", "topic": f"topic-{self.topic}", "partition": partition,
            "log_date": hour.day, "log_hour": hour.hour, "first_offset": first, "last_offset": self.offset - 1,
            "lines": part.number, "bytes": part.number, "accepted": part.clicks + part.late,
            "quarantined_by_reason": {"not_json": part.quarantined} if part.quarantined else {}, "late": part.late,
            # Rows of before there were rules have null.
            "left_out_by_rule": {"tests": part.left_out} if part.left_out else None,
            "out_of_order": 0, "click_hours": click_hours(part), "written_at": now,
        }  # fmt: skip

    def run(self, run: Run) -> None:
        hours = hours_of(run)
        with pytest.MonkeyPatch.context() as patch:
            if run.adds_up:
                patch.setattr(stream_batches, "MOST_FILES", 0)
                patch.setattr(stream_batches, "KEPT_DAYS", -1)
            finalise(self.lake, load_sources(self.lake.settings)["web"], list(hours))
        # What has come of an earlier log hour that nobody has run is run along.
        self.finalised |= {
            *hours,
            *(hour for hour, counts in self.lines.items() if hour < hours.start and counts["lines"]),
        }
        if run.is_killed:
            self.killed.append(run)
        else:
            self._count(hours)
        self.check_accounts()
        if not self.killed:
            self.check_published()

    def _count(self, hours: HourRange) -> None:
        source = load_sources(self.lake.settings)["web"]
        own = touched_click_hours(self.lake, [source], hours).own
        files = self.lake.data_files(CLICKS, may_have_click_hours(CLICKS, own))
        is_open = open_log_hours(self.lake, ["web"], files)["web"]
        for click_hour in own:
            self.published[click_hour] = self._in_clicks(click_hour, self.clicks.keys() - is_open)

    def _in_clicks(self, click_hour: Hour, log_hours: Iterable[Hour]) -> int:
        return sum(self.clicks[hour][click_hour] for hour in log_hours)

    def check_accounts(self) -> None:
        """Of each finalised log hour all that has an account is in its account, whoever came to it."""
        names = ["log_date", "log_hour", "lines", "accepted", "duplicates", "quarantined", "left_out"]
        rows = self.lake.read_rows(INGEST_ACCOUNTING, names, [])
        accounts = {Hour.of(row.pop("log_date"), row.pop("log_hour")): row for row in rows}
        expected = {hour: {name: self.lines[hour][name] for name in names[2:]} for hour in self.finalised}
        assert accounts == expected

    def check_published(self) -> None:
        """What is published are the clicks of the finalised log hours; those of a half written micro-batch or not."""
        half = self.half_written.parts if self.half_written else ()
        for hour in {click_hour for log_hour in self.finalised for click_hour in self.clicks[log_hour]}:
            clicks = self._in_clicks(hour, self.finalised)
            without = clicks - sum(clicks_of(part)[hour] for part in half if HOURS[part.log_hour] in self.finalised)
            assert without <= self.published.get(hour, 0) <= clicks, str(hour)

    def end(self) -> None:
        """What was killed is run again, then the newest log hour; all is published."""
        self.finish_batch()
        while self.killed:
            run = self.killed.pop()
            self.run(Run(run.first, run.hours, is_killed=False, adds_up=run.adds_up))
        for first in (0, HOURS.index(NEAR)):
            self.run(Run(first, len(HOURS), is_killed=False, adds_up=False))
        assert self.finalised == set(HOURS)
        for hour in {of for clicks in self.clicks.values() for of in clicks}:
            assert self.published.get(hour, 0) == self._in_clicks(hour, self.clicks), str(hour)


def clicks_of(part: Lines) -> Counter[Hour]:
    """Clicks by click hour."""
    return +Counter({HOURS[part.log_hour].plus(-1): part.late, HOURS[part.log_hour]: part.clicks})


def click_hours(part: Lines) -> list[str]:
    return sorted(map(str, clicks_of(part)))


def hours_of(run: Run) -> HourRange:
    """The log hours of a run: those next to each other, from one of HOURS on."""
    first = HOURS[run.first]
    last = first
    for hour in HOURS[run.first : run.first + run.hours]:
        last = hour if hour == last.plus(1) or hour == first else last
    return HourRange(first, last.plus(1))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A home with the tables, made without Spark."""
    settings = make_settings(tmp_path_factory.mktemp("histories") / "home")
    settings.sources_file.write_text(streamed_source("files", {}), encoding="utf-8")
    for table in (STREAM_BATCHES, INGEST_ACCOUNTING):
        schema = pa.schema([(column.name, ARROW_TYPES[column.type], not column.required) for column in table.columns])
        DeltaTable.create(str(settings.lake / table.name), schema, partition_by=list(table.partitioned_by))
    DeltaTable.create(str(settings.lake / CLICKS.name), CLICKS_SCHEMA, partition_by=list(CLICKS.partitioned_by))
    return settings


@hypothesis_settings(
    max_examples=HISTORIES,
    # The same ones each time, until asked for more: what is rare is looked for by make test-faults.
    derandomize=not ARE_MANY,
    deadline=None,
    database=None,
    print_blob=ARE_MANY,
    suppress_health_check=list(HealthCheck),
)
@given(ingested=st.lists(lines, max_size=2, unique_by=lambda part: part.log_hour), history=steps)
def test_streamed_hours_are_counted_as_plain_python_adds_them_up(
    template: Settings, ingested: list[Lines], history: list[Step]
) -> None:
    with tempfile.TemporaryDirectory(prefix="cm-history-") as folder:
        played = History(Lake(None, copied_home(template, Path(folder) / "home")))  # type: ignore[arg-type]
        for part in ingested:
            played.ingest(part)
        for step in history:
            played.play(step)
        played.end()


def test_a_micro_batch_that_commits_while_its_hour_is_finalised_is_accounted_for(
    template: Settings, tmp_path: Path
) -> None:
    """Of an hour that the batch has ingested; and once, by this run or by the next."""
    played = History(Lake(None, copied_home(template, tmp_path / "home")))  # type: ignore[arg-type]
    newest = len(HOURS) - 1
    played.ingest(Lines(newest, clicks=3, late=1, duplicates=1, quarantined=1, left_out=1))
    is_begun, batches = threading.Event(), 5

    def stream() -> None:
        for number in range(batches):
            with stream_batches.in_order_of_time(played.lake) as now:
                rows = [played._row(Lines(newest, 2, 0, 0, 0, 0), 0, "web-0", now)]
                is_begun.set()
                time.sleep(0.3)
                played.lake.append_rows(STREAM_BATCHES, rows, StreamTransaction("web-0", number))
            played.batch_id += 1

    streaming = threading.Thread(target=stream)
    streaming.start()
    is_begun.wait()
    source = load_sources(played.lake.settings)["web"]
    while streaming.is_alive():
        finalise(played.lake, source, [HOURS[newest]])
    streaming.join()
    finalise(played.lake, source, [HOURS[newest]])
    (account,) = played.lake.read_rows(INGEST_ACCOUNTING, ["lines", "accepted"], [])
    assert account == {"lines": 7 + 2 * batches, "accepted": 4 + 2 * batches}
