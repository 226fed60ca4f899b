"""The certificate of an erasure: what is to be done before it is, and at the end what was done and what was found.

It names no visitor: a request is known by its keyed hash. So a run that is killed is found again by the same requests.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from include.hours import Hour
from include.settings import Settings
from include.storage import entries, kept_secret, write_whole
from spark_jobs.engine.run_ids import new_run_id
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.transactions import StreamTransaction
from spark_jobs.lines.read_lines import LandedFile

BEGUN, COMPLETED = "begun", "completed"


#: By source, log hour and file: lines.
_Places = dict[str, dict[str, dict[str, list[int]]]]


@dataclass
class Certificate:
    """One erasure.

    ``log_hours`` by source and ``click_hours`` are those in which something was to go; ``found`` how many lines or rows
    were to, by table; ``versions`` those of each table before and after, of which only the last can be read.
    ``published_hours`` are all click hours that were published again, as the same log hours touch others too, and
    ``not_published_hours`` those that stay as they were published, with the reason. ``unjoined_hours`` by source are
    log hours in which it cannot be said which landed lines are those of rows that went. ``searched`` says what was
    looked into at the end, ``left`` which files have one of the words still.
    """

    erasure_id: str
    requests: list[str]
    by: str
    because: str
    state: str = BEGUN
    begun_at: str = ""
    #: When something more to erase was found last: what was published before may count it.
    found_at: str = ""
    #: When its hours were counted again last.
    counted_at: str = ""
    completed_at: str | None = None
    log_hours: dict[str, list[str]] = field(default_factory=dict)
    click_hours: list[str] = field(default_factory=list)
    found: dict[str, int] = field(default_factory=dict)
    gone: dict[str, int] = field(default_factory=dict)
    published_hours: list[str] = field(default_factory=list)
    not_published_hours: dict[str, str] = field(default_factory=dict)
    unjoined_hours: dict[str, list[str]] = field(default_factory=dict)
    #: Of landed files, by source, log hour and name: the numbers that the lines had which went last.
    removed_lines: _Places = field(default_factory=dict)
    #: While they go: the places of rows, by the same; and how many lines the files had.
    removed_rows: _Places = field(default_factory=dict)
    lines_before: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    #: How often lines or rows were to go: once, unless more is found when a killed run goes on.
    removals: int = 0
    is_removing: bool = False
    versions: dict[str, dict[str, int | None]] = field(default_factory=dict)
    searched: dict[str, int] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, settings: Settings, requests: list[str]) -> Certificate | None:
        """The one of these requests that has begun and is not completed; none if there is none."""
        for entry in entries(_folder(settings)):
            if entry.path.suffix == ".json":
                known = cls(**orjson.loads(entry.path.read_bytes()))
                if known.state == BEGUN and known.requests == requests:
                    return known
        return None

    @classmethod
    def new(cls, requests: list[str], by: str, because: str) -> Certificate:
        """One that begins now."""
        now = datetime.now(UTC)
        return cls(new_run_id(now), requests, by, because, begun_at=now.isoformat())

    def add(self, log_hours: dict[str, set[Hour]], click_hours: set[Hour], numbers: dict[str, int]) -> None:
        """Take in what is to go; of a run that was killed the rest may have been found again."""
        for source, hours in log_hours.items():
            self.log_hours[source] = sorted({*self.log_hours.get(source, []), *map(str, hours)})
        self.click_hours = sorted({*self.click_hours, *map(str, click_hours)})
        self.found = {name: max(numbers.get(name, 0), self.found.get(name, 0)) for name in {*numbers, *self.found}}
        if any(numbers.values()):
            self.found_at = datetime.now(UTC).isoformat()

    def begin_removal(
        self,
        lines: Mapping[str, Mapping[LandedFile, Collection[int]]],
        before: Mapping[LandedFile, int],
        rows: Mapping[str, Mapping[Hour, Collection[tuple[str, int]]]],
    ) -> None:
        """Take in which lines go from landed files, and of which places rows: a run that is killed goes on by these."""
        self.removals, self.is_removing = self.removals + 1, True
        self.removed_lines, self.lines_before, self.removed_rows = {}, {}, {}
        for source, files in lines.items():
            for file, numbers in files.items():
                hour = str(file.hour)
                self.removed_lines.setdefault(source, {}).setdefault(hour, {})[file.name] = sorted(numbers)
                self.lines_before.setdefault(source, {}).setdefault(hour, {})[file.name] = before[file]
        for source, hours in rows.items():
            for log_hour, places in hours.items():
                of_hour = self.removed_rows.setdefault(source, {}).setdefault(str(log_hour), {})
                for name, line in sorted(places):
                    of_hour.setdefault(name, []).append(line)

    def end_removal(self) -> None:
        """What was to go has gone."""
        self.is_removing, self.removed_rows, self.lines_before = False, {}, {}

    def places_of(self, source: str, hour: Hour) -> tuple[set[tuple[str, int]], dict[str, list[int]]]:
        """The places of a log hour whose rows go; and of its files the lines that go."""
        rows = self.removed_rows.get(source, {}).get(str(hour), {})
        lines = self.removed_lines.get(source, {}).get(str(hour), {})
        return {(file, line) for file, numbers in rows.items() for line in numbers}, lines

    def transaction(self, part: str) -> StreamTransaction:
        """By which a commit of this removal is known."""
        return StreamTransaction(f"{self.erasure_id} {part}", self.removals)

    def add_published(self, _: Lake, hours: Iterable[Hour]) -> None:
        """Take in which click hours are about to be published."""
        named = set(map(str, hours))
        self.published_hours = sorted({*self.published_hours, *named})
        self.not_published_hours = {hour: why for hour, why in self.not_published_hours.items() if hour not in named}

    @property
    def is_counted(self) -> bool:
        """Whether nothing has been found since the hours were counted again: what was decided on them since holds."""
        return self.counted_at > self.found_at

    def hours_of(self, source: str) -> list[Hour]:
        """The log hours of a source."""
        return [Hour.parse(hour) for hour in self.log_hours.get(source, [])]

    @property
    def hours_counted(self) -> list[Hour]:
        """The click hours."""
        return [Hour.parse(hour) for hour in self.click_hours]

    def write(self, settings: Settings) -> Path:
        """Put it where it is kept."""
        content: dict[str, Any] = asdict(self)
        text = orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
        return write_whole(_folder(settings) / f"{self.erasure_id}.json", text + b"\n")


def erasure_key(settings: Settings) -> bytes:
    """The secret under which requests are hashed, made when it is first asked for."""
    return kept_secret(settings.erasure_key_file)


def _folder(settings: Settings) -> Path:
    return settings.reports / "erasures"
