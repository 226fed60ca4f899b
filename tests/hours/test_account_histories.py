"""Whatever happened to a log hour, its account has the lines that were read of it, each as what became of it.

A history is: an ingest by the batch, before the source is streamed; micro-batches, runs that finalise, micro-batches
that are added up, replays and their withdrawal, erasures, and the removal of clicks for their age. Micro-batches, runs
and erasures are killed between two commits, and done again at once or after something else. What accounts is the
product's own, on a lake in memory; what should come of it is counted line by line.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from include.hours import Hour, log_hour_of, log_hours_predicate
from include.landing import LandedHour
from include.settings import Settings
from include.sources import Source, load_sources
from include.stored_rows import arrow_schema, of_log_hour
from include.tables import (
    CLICKS,
    DUPLICATE_CLICKS,
    INGEST_ACCOUNTING,
    QUARANTINED_CLICKS,
    REPLAYED_LINES,
    STREAM_BATCHES,
    Table,
)
from spark_jobs.erasure.accounts import recount
from spark_jobs.hours import stream_batches
from spark_jobs.hours.account import HourAccount
from spark_jobs.hours.finalise import finalise
from spark_jobs.lake.transactions import StreamTransaction
from spark_jobs.lines.kept import reason_of_rule
from spark_jobs.replay import streamed_replay
from spark_jobs.stream.micro_batch import PartOfBatch
from tests.stream.streamed_source import streamed_source
from tests.support.fault_rounds import ROUNDS, SEED
from tests.support.memory_lake import MemoryLake
from tests.support.temporary_lake import make_settings

HISTORIES, STEPS = 40 * ROUNDS, 14
HOURS = [Hour.parse("2026-03-20T08").plus(shift) for shift in range(3)]
CLICK, DUPLICATE, QUARANTINED, LEFT_OUT = "click", "duplicate", "quarantined", "left out"
VISITORS = "abcd"
_ACCOUNT = [
    "log_date", "log_hour", "lines", "accepted", "duplicates", "duplicates_of", "quarantined", "quarantined_by_reason",
    "left_out", "late", "out_of_order", "first_clicked_at", "last_clicked_at", "click_hours", "clicks_removed_at",
    "ingested_at",
]  # fmt: skip
_REASONS, _RULES = ("not_json", "bad_url"), ("robots", "assets")


@dataclass
class Line:
    """A line that was read, what became of it, and whether the lake has a row of it."""

    hour: Hour
    file: str
    number: int
    kind: str
    visitor: str
    minutes: int
    is_out_of_order: bool
    reason: str | None = None
    #: Of the batch's duplicates only.
    first: Hour | None = None
    replay_id: str | None = None
    is_removed: bool = False

    @property
    def table(self) -> Table | None:
        if self.is_removed:
            return None
        if self.kind == DUPLICATE:
            return DUPLICATE_CLICKS if self.first else None
        if self.kind == LEFT_OUT:
            return None
        return CLICKS if self.kind == CLICK else QUARANTINED_CLICKS

    @property
    def clicked_at(self) -> datetime:
        return self.hour.start + timedelta(minutes=self.minutes)

    @property
    def click_hour(self) -> Hour:
        return Hour.containing(self.clicked_at)

    def as_row(self) -> dict[str, Any]:
        first = self.first or self.hour
        return {
            "source": "web", "log_date": self.hour.day, "log_hour": self.hour.hour, "file": self.file,
            "line": self.number, "clicked_at": self.clicked_at, "click_date": self.click_hour.day,
            "click_hour": self.click_hour.hour, "is_out_of_order": self.is_out_of_order, "visitor_id": self.visitor,
            "replay_id": self.replay_id, "reason": self.reason, "first_log_date": first.day,
            "first_log_hour": first.hour,
        }  # fmt: skip


class Killed(Exception):
    """Whoever was at work is no more."""


@dataclass
class History:
    """A lake, and every line that was read."""

    lake: MemoryLake
    source: Source
    random: random.Random
    lines: list[Line] = field(default_factory=list)
    #: Those of which a micro-batch was killed before its account: it is done again before the next.
    half_written: list[Line] = field(default_factory=list)
    waiting: list[tuple[str, Any]] = field(default_factory=list)
    is_streamed: bool = False
    batch_id: int = 0
    files: int = 0
    replays: dict[str, list[Line]] = field(default_factory=dict)
    #: Where first and last click are not known any more.
    withdrawn: set[Hour] = field(default_factory=set)
    log: list[str] = field(default_factory=list)
    cuts: int = -1

    def __post_init__(self) -> None:
        self.lake.before_commit = self.cut

    def cut(self) -> None:
        """Die here, if it is to be here."""
        self.cuts -= 1
        if self.cuts == 0:
            raise Killed

    # --- what happens -------------------------------------------------------------------------------------------

    def play(self) -> None:
        act, asked = self._next()
        self.cuts = self.random.choice([-1, -1, 1, 2, 3, 4, 5, 6]) if act in ("stream", "run", "erase") else -1
        self.log.append(f"{act} {asked if isinstance(asked, str) else [*map(str, asked)]} {self.cuts}")
        try:
            getattr(self, act)(asked)
        except Killed:
            self.waiting.append((act, asked))
        self.check()

    def _next(self) -> tuple[str, Any]:
        if self.waiting and self.random.random() < 0.6:
            return self.waiting.pop(0)
        hours = [hour for hour in HOURS if self.random.random() < 0.6] or [HOURS[0]]
        acts = ["ingest"] * 2 + ["stream"] if not self.is_streamed else ["stream"] * 3 + ["run"] * 2
        accounted = self.accounts()
        if accounted and not self.half_written:
            acts += ["erase"] * 2
        if self.is_streamed and not self.waiting and not self.half_written:
            acts += ["replay", "withdraw", "retain", "ingest_again"]
        act = self.random.choice(acts)
        if act == "erase":
            return act, self.random.choice(VISITORS)
        if act in ("replay", "withdraw"):
            return act, f"replay {len(self.log)}"
        return act, hours

    def end(self) -> None:
        """All that was killed is done, and all is accounted for."""
        self.cuts = -1
        while self.waiting:
            act, asked = self.waiting.pop(0)
            self.log.append(f"{act} {asked} in the end")
            getattr(self, act)(asked)
        if self.is_streamed:
            self.stream([])
            self.run(HOURS)
        self.check(is_end=True)

    def ingest(self, hours: list[Hour]) -> None:
        if self.is_streamed:
            return  # who had been killed does not come back
        for hour in hours:
            self.lines = [line for line in self.lines if line.hour != hour]
            lines = self._read(hour, is_stream=False)
            self.lines += lines
            for table in (CLICKS, DUPLICATE_CLICKS, QUARANTINED_CLICKS):
                self.lake.replace_rows(table, _stored(table, lines), log_hours_predicate("web", [hour]))
            if self.random.random() < 0.3:  # as an ingest leaves it that was killed while it changed duplicates
                was = [
                    replace(line, kind=DUPLICATE, first=hour)
                    for line in lines
                    if line.kind == CLICK and line.number % 2
                ]
                self._add(DUPLICATE_CLICKS, was)
            account = HourAccount(len(lines), {line.file for line in lines})
            for line in lines:
                if line.reason is not None:
                    account.add_refused(line.reason, 1)
                elif line.kind == DUPLICATE:
                    account.duplicates_of[str(line.first)] += 1
                else:
                    account.add_accepted(_outcome(line), hour, line.click_hour)
            row = account.as_row("web", LandedHour(Path(), hour, (), 0, True), datetime.now(UTC))
            stream_batches.forget_counts(self.lake, "web", [hour])  # type: ignore[arg-type]
            self.lake.replace_rows(INGEST_ACCOUNTING, [row], log_hours_predicate("web", [hour]))

    def ingest_again(self, hours: list[Hour]) -> None:
        """The source is none of a stream for a while, in which some files are gone."""
        self.is_streamed = False
        self.ingest([hour for hour in hours if hour in self.accounts() and self._all_accounted([hour])])
        self.is_streamed = True

    def stream(self, hours: list[Hour]) -> None:
        """A micro-batch; first the one that was killed."""
        self.is_streamed = True
        if not self.half_written:
            self.half_written = [line for hour in hours for line in self._read(hour, is_stream=True)]
            for table in (CLICKS, QUARANTINED_CLICKS):
                self._add(table, self.half_written)
        parts: dict[tuple[str, Hour], PartOfBatch] = {}
        for line in self.half_written:
            part = parts.setdefault((line.file, line.hour), PartOfBatch())
            offset = {"first_offset": line.number, "last_offset": line.number}
            part.add({"is_read": True, "lines": 1, "bytes": 9, "damage": None, **offset}, line.hour)
            if line.kind != DUPLICATE:
                part.add({"is_read": False, "reason": line.reason, **_outcome(line)}, line.hour)
        with stream_batches.in_order_of_time(self.lake) as now:  # type: ignore[arg-type]
            rows = [self._row_of_batch(file, hour, part, now) for (file, hour), part in parts.items()]
            self.lake.append_rows(STREAM_BATCHES, rows, StreamTransaction("s", self.batch_id))
        self.lines += self.half_written
        self.half_written, self.batch_id = [], self.batch_id + 1

    def run(self, hours: list[Hour]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            if self.random.random() < 0.3:
                patch.setattr(stream_batches, "MOST_FILES", 0)
                patch.setattr(stream_batches, "KEPT_DAYS", -1)
            finalise(self.lake, self.source, hours)  # type: ignore[arg-type]
        self.check()

    def erase(self, visitor: str) -> None:
        if self.half_written:
            self.stream([])
        hours = sorted({line.hour for line in self.lines})
        known = [hour for hour in hours if hour in self.accounts().keys() - self.removed()]
        if self.is_streamed and known:
            finalise(self.lake, self.source, known)  # type: ignore[arg-type]
        for table in (CLICKS, DUPLICATE_CLICKS, QUARANTINED_CLICKS):
            rows = self.lake.rows(table)
            if table == QUARANTINED_CLICKS:
                gone = [(line.hour, line.file, line.number) for line in self.lines if line.visitor == visitor]
                keep = pa.array(
                    [(log_hour_of(row), row["file"], row["line"]) not in gone for row in rows.to_pylist()], pa.bool_()
                )
            else:
                keep = pc.not_equal(rows["visitor_id"], visitor)
            self.lake.tables[table.name] = rows.filter(keep)
            self.cut()
        removed = self.removed()
        recount(self.lake, "web", hours)  # type: ignore[arg-type]
        self.lines = [
            line for line in self.lines if line.visitor != visitor or line.table is None or line.hour in removed
        ]

    def replay(self, replay_id: str) -> None:
        """Lines leave the quarantine of finalised hours, some as duplicates."""
        if replay_id not in self.replays:
            hours = self.accounts().keys() - self.removed()
            may_be = [line for line in self.lines if line.kind == QUARANTINED and line.hour in hours]
            self.replays[replay_id] = [line for line in may_be if self.random.random() < 0.6]
        lines = self.replays[replay_id]
        if not lines or not self._all_accounted(sorted({line.hour for line in lines})):
            return
        places = [{**line.as_row(), "replay_id": replay_id} for line in lines]
        self.lake.append_rows(
            REPLAYED_LINES, [{**row, "raw": "", "bytes": 1, "digest": 1} for row in map(_named, places)]
        )
        now_clicks = [replace(line, kind=CLICK, reason=None, replay_id=replay_id) for line in lines if line.number % 3]
        self._add(CLICKS, now_clicks)
        self._take(QUARANTINED_CLICKS, lines)
        self._account_for(replay_id, 0, places, [line.as_row() for line in now_clicks], 1)
        for line in lines:
            line.kind, line.reason, line.replay_id = (CLICK if line.number % 3 else DUPLICATE), None, replay_id

    def withdraw(self, _: str) -> None:
        done = [of for of in self.replays if self.replays[of]]
        if not done:
            return
        replay_id = self.random.choice(done)
        there = {id(line) for line in self.lines}
        lines = [line for line in self.replays.pop(replay_id) if id(line) in there and line.hour not in self.removed()]
        lines = [line for line in lines if line.replay_id == replay_id]
        places = [{**line.as_row(), "replay_id": replay_id, "reason": "not_json"} for line in lines]
        if not lines:
            return
        self._add(QUARANTINED_CLICKS, [replace(line, kind=QUARANTINED, reason="not_json") for line in lines])
        self._account_for(replay_id, 1, places, [line.as_row() for line in lines if line.kind == CLICK], -1)
        self._take(CLICKS, lines)
        self.withdrawn |= {line.hour for line in lines}
        for line in lines:
            line.kind, line.reason, line.replay_id = QUARANTINED, "not_json", None

    def retain(self, hours: list[Hour]) -> None:
        """Clicks of accounted hours go for their age."""
        going = [hour for hour in hours if hour in self.accounts() and self._all_accounted([hour])]
        accounts = self.lake.read_rows(INGEST_ACCOUNTING, INGEST_ACCOUNTING.column_names, [])
        rows = [
            account | {"clicks_removed_at": datetime.now(UTC)} for account in accounts if log_hour_of(account) in going
        ]
        if going:
            self.lake.replace_rows(INGEST_ACCOUNTING, rows, log_hours_predicate("web", going))
        left = self.removed()
        for table in (CLICKS, DUPLICATE_CLICKS, QUARANTINED_CLICKS):
            if left:
                self.lake.replace_rows(table, [], log_hours_predicate("web", left))
        for line in self.lines:
            line.is_removed |= line.hour in left

    # --- what should be ----------------------------------------------------------------------------------------------

    def accounts(self) -> dict[Hour, dict[str, Any]]:
        return {log_hour_of(row): row for row in self.lake.read_rows(INGEST_ACCOUNTING, _ACCOUNT, [])}

    def removed(self) -> list[Hour]:
        return [hour for hour, row in self.accounts().items() if row["clicks_removed_at"]]

    def _all_accounted(self, hours: list[Hour]) -> bool:
        """Whether the accounts of these log hours are to have all their lines."""
        known = self.accounts()
        for hour in hours:
            of_hour = self.lake.read_rows(STREAM_BATCHES, ["written_at"], of_log_hour(hour))
            newest = max((row["written_at"] for row in of_hour), default=None)
            if hour not in known or (newest and newest > known[hour]["ingested_at"]):
                return False
        return True

    def check(self, is_end: bool = False) -> None:
        """Accounts of all lines, as far as nothing is half done."""
        if any(act in ("erase", "ingest", "replay") for act, _ in self.waiting):
            return
        for hour, row in self.accounts().items():
            if not self._all_accounted([hour]):
                assert not is_end
                continue
            lines = [line for line in self.lines if line.hour == hour]
            clicks = [line for line in lines if line.kind == CLICK]
            moments = [line.clicked_at for line in clicks]
            expected = {
                "lines": len(lines),
                "accepted": len(clicks),
                "duplicates": sum(line.kind == DUPLICATE for line in lines),
                "quarantined": sum(line.kind == QUARANTINED for line in lines),
                "quarantined_by_reason": Counter(line.reason for line in lines if line.kind == QUARANTINED),
                "left_out": sum(line.kind == LEFT_OUT for line in lines),
                "late": sum(line.click_hour < hour for line in clicks),
                "out_of_order": sum(line.is_out_of_order for line in clicks),
            }
            if hour not in self.withdrawn:
                expected |= {
                    "first_clicked_at": min(moments, default=None),
                    "last_clicked_at": max(moments, default=None),
                }
            actual = {name: row[name] for name in expected}
            actual["quarantined_by_reason"] = Counter(dict(row["quarantined_by_reason"]))
            assert actual == expected, (str(hour), self.log)
            if not self.removed():  # else some of them stay as they were counted
                assert {str(line.click_hour) for line in clicks} <= set(row["click_hours"])
            assert row["lines"] == row["accepted"] + row["duplicates"] + row["quarantined"] + row["left_out"]
            assert sum(dict(row["duplicates_of"]).values()) == row["duplicates"]

    # --- how the lake is written -------------------------------------------------------------------------------------

    def _read(self, hour: Hour, *, is_stream: bool) -> list[Line]:
        """A few new lines of an hour, in a file of their own."""
        self.files += 1
        lines = []
        for number in range(1, self.random.randint(1, 6)):
            kind = self.random.choice([CLICK, CLICK, CLICK, DUPLICATE, QUARANTINED, LEFT_OUT])
            lines.append(
                Line(
                    hour,
                    f"{'s' if is_stream else 'b'}{self.files}",
                    number,
                    kind,
                    self.random.choice(VISITORS),
                    self.random.randint(-70, 50),
                    is_out_of_order=self.random.random() < 0.2,
                    reason=self._reason(kind),
                    first=hour.plus(-self.random.randint(0, 1)) if kind == DUPLICATE and not is_stream else None,
                )
            )
        return lines

    def _reason(self, kind: str) -> str | None:
        if kind == LEFT_OUT:
            return reason_of_rule(self.random.choice(_RULES))
        return self.random.choice(_REASONS) if kind == QUARANTINED else None

    def _row_of_batch(self, file: str, hour: Hour, part: PartOfBatch, now: datetime) -> dict[str, Any]:
        return {
            "source": "web", "stream_id": "s", "batch_id": self.batch_id, "file": file, "log_date": hour.day,
            "log_hour": hour.hour, "first_offset": part.first_offset, "last_offset": part.last_offset,
            "bytes": part.bytes, "damage": part.damage, **part.account.of_lines(), "written_at": now,
        }  # fmt: skip

    def _account_for(self, replay_id: str, step: int, places: list[Any], clicks: list[Any], sign: int) -> None:
        with stream_batches.in_order_of_time(self.lake) as now:  # type: ignore[arg-type]
            transaction = StreamTransaction(replay_id, step)
            counted = [{**row, "lines": 1, "first": row["line"], "last": row["line"]} for row in places]
            accepted = [
                {**row, "lines": 1, "out_of_order": int(row["is_out_of_order"]),
                 "first_clicked_at": row["clicked_at"], "last_clicked_at": row["clicked_at"]}
                for row in clicks
            ]  # fmt: skip
            rows = streamed_replay._batch(self.lake, self.source, transaction, counted, accepted, sign, now)  # type: ignore[arg-type]
            self.lake.append_rows(STREAM_BATCHES, rows)

    def _add(self, table: Table, lines: list[Line]) -> None:
        self.lake.tables[table.name] = pa.concat_tables([self.lake.rows(table), _stored(table, lines)])

    def _take(self, table: Table, lines: list[Line]) -> None:
        gone = {(line.hour, line.file, line.number) for line in lines}
        rows = self.lake.rows(table)
        keep = [(log_hour_of(row), row["file"], row["line"]) not in gone for row in rows.to_pylist()]
        self.lake.tables[table.name] = rows.filter(pa.array(keep, pa.bool_()))


def _stored(table: Table, lines: list[Line]) -> pa.Table:
    rows = [line.as_row() for line in lines if line.table == table]
    return pa.Table.from_pylist(rows, arrow_schema(table, table.column_names))


def _named(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in REPLAYED_LINES.column_names if name in row}


def _outcome(line: Line) -> dict[str, Any]:
    return {
        "lines": 1, "out_of_order": int(line.is_out_of_order), "click_hour": line.click_hour.number,
        "first_clicked_at": line.clicked_at, "last_clicked_at": line.clicked_at,
    }  # fmt: skip


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    made = make_settings(tmp_path_factory.mktemp("accounts") / "home")
    made.sources_file.write_text(streamed_source("files", {}), encoding="utf-8")
    return made


@pytest.mark.faults
def test_an_account_has_each_line_that_was_read_as_what_became_of_it(settings: Settings) -> None:
    source = load_sources(settings)["web"]
    for seed in range(SEED, SEED + HISTORIES):
        history = History(MemoryLake(settings), source, random.Random(seed))
        try:
            for _ in range(STEPS):
                history.play()
            history.end()
        except Exception as error:
            raise AssertionError(f"history {seed}: {history.log}") from error
