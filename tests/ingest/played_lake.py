"""Lakes whose histories are compared with a model: small hours of a day, and copies as a killed process leaves them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from include.hours import Hour
from include.tables import PUBLISHED_CLICKS_BY_URL_HOURLY
from tests.support.lake_model import Files, LakeModel, landed, stored_counts
from tests.support.temporary_lake import TemporaryLake

DAY = Hour.parse("2026-03-01T00")
LATENESS, OLDEST = 2, 3

#: Clicks by click hour and URL.
Counts = Counter[tuple[int, str]]


def hour_name(number: int) -> str:
    return str(DAY.plus(number))


def with_short_reach(lake: TemporaryLake) -> TemporaryLake:
    """As everywhere, with a small lateness, so that clicks are duplicates of duplicates, and a small reach."""
    sources = lake.settings.sources_file
    declared = sources.read_text(encoding="utf-8")
    for format_ in ('format = "json"', 'format = "combined"'):
        declared = declared.replace(format_, f"{format_}\nlateness_hours = {LATENESS}\noldest_hours = {OLDEST}", 1)
    sources.write_text(declared, encoding="utf-8")
    return lake


def land(lake: TemporaryLake, hour: int, files: Files) -> None:
    lake.land(hour_name(hour), landed(files))


def run_jobs(lake: TemporaryLake, hour: int, *jobs: str, end: int | None = None, **options: Any) -> None:
    """``TemporaryLake.run_jobs`` of this log hour, or up to another."""
    lake.run_jobs(hour_name(hour), hour_name(end or hour + 1), *jobs, **options)


@dataclass
class Homes:
    """Folders for lakes of one test."""

    folder: Path

    def __post_init__(self) -> None:
        self._numbers = count()

    def copy(self, lake: TemporaryLake) -> TemporaryLake:
        """What a process that is killed now leaves behind."""
        return lake.copy(self.folder / str(next(self._numbers)))


def model_of(hours: Mapping[int, Files]) -> LakeModel:
    return LakeModel(LATENESS, {DAY.number + hour: files for hour, files in hours.items()})


def with_files(model: LakeModel, hours: Mapping[int, Files]) -> LakeModel:
    return LakeModel(LATENESS, model.ingested | model_of(hours).ingested)


def published_counts(lake: TemporaryLake) -> Counts:
    return stored_counts(lake, PUBLISHED_CLICKS_BY_URL_HOURLY)


def unlike_all(published: Counts, *allowed: Counts) -> list[str]:
    """The click hours whose counts are those of none of these."""

    def of_hour(counts: Counts, hour: int) -> dict[str, int]:
        return {url: clicks for (of, url), clicks in counts.items() if of == hour}

    hours = sorted({hour for counts in (published, *allowed) for hour, _ in counts})
    return [
        f"published of {Hour.of_number(hour)}: {of_hour(published, hour)}"
        for hour in hours
        if of_hour(published, hour) not in [of_hour(counts, hour) for counts in allowed]
    ]
