"""What the tables of a lake are to have, in plain Python: from the files that log hours had when they were ingested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from include.hours import Hour
from include.tables import CLICKS, DUPLICATE_CLICKS, INGEST_ACCOUNTING, QUARANTINED_CLICKS, UNFINISHED_INGESTS
from tests.support.temporary_lake import TemporaryLake, click


class Line(NamedTuple):
    """A landed line: a click in a second since 1970, or, without an id, one that is none."""

    event_id: str | None
    second: int = 0
    url: str = ""

    def as_bytes(self) -> bytes:
        """As it lands."""
        if self.event_id is None:
            return b"nonsense\n"
        return click(self.event_id, f"{datetime.fromtimestamp(self.second, UTC):%Y-%m-%dT%H:%M:%SZ}", self.url)


#: The lines of a log hour's files, by name.
Files = Mapping[str, tuple[Line, ...]]


class Place(NamedTuple):
    """Where a line stands, its log hour in hours since 1970; in the order in which lines arrive."""

    hour: int
    file: str
    line: int


def landed(files: Files) -> dict[str, bytes]:
    """What ``TemporaryLake.land`` takes."""
    return {name: b"".join(line.as_bytes() for line in lines) for name, lines in files.items()}


@dataclass
class LakeModel:
    """The files of each log hour that was ingested, by its number, as they were then; and what follows from them."""

    lateness: int
    ingested: dict[int, Files] = field(default_factory=dict)

    def lines(self) -> dict[Place, Line]:
        """Every line by its place, in the order in which they arrived."""
        return {
            Place(hour, name, number): line
            for hour, files in sorted(self.ingested.items())
            for name, lines in sorted(files.items())
            for number, line in enumerate(lines, 1)
        }

    def first_hours(self) -> dict[Place, int | None]:
        """Of every arrival with an id: None if it is accepted, else the log hour of the accepted one."""
        last_accepted: dict[str, int] = {}
        hours: dict[Place, int | None] = {}
        for place, line in self.lines().items():
            if line.event_id is None:
                continue
            last = last_accepted.get(line.event_id)
            if last is None or place.hour - last > self.lateness:
                last_accepted[line.event_id] = place.hour
                last = None
            hours[place] = last
        return hours

    def clicks(self) -> dict[Place, Line]:
        """The accepted arrivals."""
        first, lines = self.first_hours(), self.lines()
        return {place: lines[place] for place, hour in first.items() if hour is None}

    def duplicates(self) -> dict[Place, tuple[Line, int]]:
        """The others, each with the log hour of the accepted one."""
        first, lines = self.first_hours(), self.lines()
        return {place: (lines[place], hour) for place, hour in first.items() if hour is not None}

    def counts(self) -> Counter[tuple[int, str]]:
        """Clicks by click hour and URL."""
        return Counter((line.second // 3600, line.url) for line in self.clicks().values())

    def accounts(self) -> dict[int, dict[str, Any]]:
        """Of ``ingest_accounting``, by log hour, what follows from the lines."""
        return {hour: self._account(hour) for hour in self.ingested}

    def _account(self, hour: int) -> dict[str, Any]:
        accepted = {place: line for place, line in self.clicks().items() if place.hour == hour}
        first = [first for place, (_, first) in self.duplicates().items() if place.hour == hour]
        seconds = [line.second for line in accepted.values()]
        lines = sum(map(len, self.ingested[hour].values()))
        return {
            "lines": lines,
            "accepted": len(accepted),
            "duplicates": len(first),
            "duplicates_of": {str(Hour.of_number(number)): count for number, count in sorted(Counter(first).items())},
            "quarantined": lines - len(accepted) - len(first),
            "late": sum(second // 3600 < hour for second in seconds),
            "out_of_order": len(accepted.keys() & self._out_of_order(hour)),
            "first_clicked_at": datetime.fromtimestamp(min(seconds), UTC) if seconds else None,
            "last_clicked_at": datetime.fromtimestamp(max(seconds), UTC) if seconds else None,
            "files": len(self.ingested[hour]),
        }

    def _out_of_order(self, hour: int) -> set[Place]:
        late = set()
        for name, lines in self.ingested[hour].items():
            newest = 0
            for number, line in enumerate(lines, 1):
                if line.event_id is not None:
                    if line.second < newest:
                        late.add(Place(hour, name, number))
                    newest = max(newest, line.second)
        return late


def differences(lake: TemporaryLake, model: LakeModel) -> list[str]:
    """What the tables of the ingest have otherwise than the model; a line each."""
    clicks = {_place(row): _line(row) for row in lake.rows(CLICKS)}
    duplicates = {_place(row): (_line(row), _first_hour(row)) for row in lake.rows(DUPLICATE_CLICKS)}
    quarantined = Counter(_place(row) for row in lake.rows(QUARANTINED_CLICKS))
    noise = Counter(place for place, line in model.lines().items() if line.event_id is None)
    accounts = {_hour(row): row for row in lake.rows(INGEST_ACCOUNTING)}
    expected = model.accounts()
    of_model = {hour: {name: accounts[hour][name] for name in expected[hour]} for hour in accounts.keys() & expected}
    messages = [
        *_unlike("clicks", clicks, model.clicks()),
        *_unlike("duplicate_clicks", duplicates, model.duplicates()),
        *_unlike("quarantined_clicks", quarantined, noise),
        *_unlike("ingest_accounting", of_model | {hour: {} for hour in accounts.keys() - expected}, expected),
        *(f"unfinished_ingests: found {_said(hour)}" for hour in sorted(unfinished(lake))),
    ]
    for place, line in model.clicks().items():
        if (hour := str(Hour.of_number(line.second // 3600))) not in accounts.get(place.hour, {}).get(
            "click_hours", ()
        ):
            messages.append(f"ingest_accounting {_said(place.hour)}: click_hours without {hour} of {_said(place)}")
    return messages


def unfinished(lake: TemporaryLake) -> set[int]:
    """The log hours whose ingest has not ended."""
    return {_hour(row) for row in lake.rows(UNFINISHED_INGESTS)}


def _unlike(table: str, actual: Mapping[Any, Any], expected: Mapping[Any, Any]) -> Iterable[str]:
    for key in sorted(actual.keys() | expected.keys()):
        if actual.get(key) != expected.get(key):
            yield f"{table} {_said(key)}: found {actual.get(key)}, expected {expected.get(key)}"


def _said(key: int | Place) -> str:
    return f"{Hour.of_number(key[0])} {key.file}:{key.line}" if isinstance(key, Place) else str(Hour.of_number(key))


def _hour(row: Mapping[str, Any], of: str = "log") -> int:
    return Hour.of(row[f"{of}_date"], row[f"{of}_hour"]).number


def _first_hour(row: Mapping[str, Any]) -> int:
    return _hour(row, "first_log")


def _place(row: Mapping[str, Any]) -> Place:
    return Place(_hour(row), row["file"], row["line"])


def _line(row: Mapping[str, Any]) -> Line:
    return Line(row["event_id"], int(row["clicked_at"].timestamp()), row["url"])


def stored_counts(lake: TemporaryLake, table: Any) -> Counter[tuple[int, str]]:
    """Clicks by click hour and URL, as a table per URL has them."""
    return Counter({(_hour(row, "click"), row["url"]): row["click_count"] for row in lake.rows(table)})
