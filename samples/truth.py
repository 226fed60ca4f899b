"""The truth about a sample: what the tables must say once it is ingested. Counted as it is written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from include.hours import Hour
from include.storage import write_whole

MILLISECONDS_PER_HOUR = 3_600_000

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class KeyCounts(NamedTuple):
    """One click hour and key: accepted clicks, those by crawlers, distinct visitors without crawlers."""

    clicks: int
    bots: int
    visitors: int


@dataclass(frozen=True)
class LogHourTruth:
    """One log hour: lines = accepted + duplicates + all quarantined.

    ``late`` are accepted clicks whose click hour is before the log hour; ``out_of_order`` are accepted clicks
    that are older than an accepted or duplicate line before them in the same file.
    """

    lines: int
    accepted: int
    duplicates: int
    late: int
    out_of_order: int
    quarantined: Mapping[str, int]
    files: int


class HourlyCounts(Mapping[str, Mapping[str, KeyCounts]]):
    """Click hour to key to counts. Kept as arrays, 16 bytes a key and hour; dictionaries when asked for."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = keys
        self._hours: dict[str, npt.NDArray[np.int32]] = {}

    def __getitem__(self, click_hour: str) -> dict[str, KeyCounts]:
        return {self._keys[key]: KeyCounts(*counts) for key, *counts in self._hours[click_hour].tolist()}

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._hours))

    def __len__(self) -> int:
        return len(self._hours)

    def count(self, click_hour: str, keys: Integers, visitors: Integers, is_bot: Flags) -> None:
        """Count all accepted clicks of a click hour: per click the index of its key, and who clicked.

        Visitors are numbers from 0 to below 2**32.
        """
        size = len(self._keys)
        clicks = np.bincount(keys, minlength=size)
        bots = np.bincount(keys[is_bot], minlength=size)
        distinct = np.unique(keys[~is_bot] << 32 | visitors[~is_bot])
        humans = np.bincount(distinct >> 32, minlength=size)
        clicked = np.flatnonzero(clicks)
        rows = np.column_stack([clicked, clicks[clicked], bots[clicked], humans[clicked]])
        self._hours[click_hour] = rows.astype(np.int32)


@dataclass(frozen=True)
class Truth:
    """What the sample holds, by log hour and by click hour and key; hours are texts: 2026-03-01T00, UTC."""

    source: str
    seed: int
    log_hours: Mapping[str, LogHourTruth]
    clicks_by_url: HourlyCounts
    clicks_by_country: HourlyCounts

    def write(self, file: Path) -> None:
        """Write it as JSON, an hour a line, one at a time; readers see the file whole or not at all."""
        write_whole(file, lambda out: out.writelines(self._json()))

    def _json(self) -> Iterator[bytes]:
        yield b'{"source":%b,"seed":%d' % (orjson.dumps(self.source), self.seed)
        yield from _json_section("log_hours", ((hour, asdict(truth)) for hour, truth in self.log_hours.items()))
        for name, counts in (
            ("clicks_by_url", self.clicks_by_url),
            ("clicks_by_country", self.clicks_by_country),
        ):
            yield from _json_section(
                name,
                ((hour, {key: of_key._asdict() for key, of_key in counts[hour].items()}) for hour in counts),
            )
        yield b"}\n"


def _json_section(name: str, hours: Iterator[tuple[str, Any]]) -> Iterator[bytes]:
    yield b',\n"%b":{' % name.encode()
    for number, (hour, content) in enumerate(hours):
        yield b'%b\n"%b":%b' % (b"," if number else b"", hour.encode(), orjson.dumps(content))
    yield b"}"


class TruthCounter:
    """Gathers accepted clicks by click hour, and counts a click hour when it can get no more of them."""

    def __init__(self, urls: Sequence[str], countries: Sequence[str]) -> None:
        self.clicks_by_url = HourlyCounts(urls)
        self.clicks_by_country = HourlyCounts(countries)
        self._open: dict[int, list[tuple[Integers, Integers, Integers, Flags]]] = defaultdict(list)

    def add(self, clicked_at: Integers, urls: Integers, countries: Integers, visitors: Integers, is_bot: Flags) -> None:
        """Add accepted clicks: times in milliseconds since 1970, indexes of keys, visitors' numbers."""
        hours = clicked_at // MILLISECONDS_PER_HOUR
        for hour in np.unique(hours).tolist():
            of_hour = hours == hour
            self._open[hour].append((urls[of_hour], countries[of_hour], visitors[of_hour], is_bot[of_hour]))

    def close_before(self, log_hour: int) -> None:
        """Count the click hours (hours since 1970) before this one: no later line is of them."""
        for hour in sorted(hour for hour in self._open if hour < log_hour):
            parts = zip(*self._open.pop(hour), strict=True)
            urls, countries, visitors, is_bot = (np.concatenate(part) for part in parts)
            name = hour_name(hour)
            self.clicks_by_url.count(name, urls, visitors, is_bot)
            self.clicks_by_country.count(name, countries, visitors, is_bot)


def hour_name(number: int) -> str:
    """The text of the hour that many hours after 1970-01-01T00."""
    return str(Hour.parse("1970-01-01T00").plus(number))
