"""The landing zone: ``landing/<source>/log_date=YYYY-MM-DD/log_hour=HH/``, closed by ``_SUCCESS``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from include.errors import UsageError
from include.hours import Hour
from include.sources import Source
from include.storage import Entry, entries, find, names

SUCCESS = "_SUCCESS"


@dataclass(frozen=True)
class LandedHour:
    """What lies in the landing zone for one source and log hour; ``others`` is what is no file, such as a folder.

    ``looked_at`` is just before it was listed: of what lands during that, one or the other may be said.
    """

    folder: Path
    hour: Hour
    files: tuple[Path, ...]
    size_bytes: int
    is_closed: bool
    others: tuple[Path, ...] = ()
    listed: tuple[Entry, ...] = ()
    looked_at: datetime | None = None

    @property
    def data(self) -> list[Entry]:
        """The files, as they were listed."""
        return [entry for entry in self.listed if entry.is_file and is_data(entry)]

    def unread(self, read: Collection[str]) -> list[str]:
        """The names of what was not read, given those that were; of a file of no bytes there is nothing to read."""
        files = [path for path in self.files if printed_name(path) not in read and path.stat().st_size]
        return sorted(printed_name(path) for path in (*self.others, *files))


def is_data(entry: Entry) -> bool:
    """Whether it is for readers of the landing zone: what is named with ``.`` or ``_`` first is not."""
    return entry.path.name[0] not in "._"


def hour_folder(landing: Path, source: str, log_hour: Hour) -> Path:
    """The landing partition of a source's log hour."""
    return landing / source / f"log_date={log_hour.day.isoformat()}" / f"log_hour={log_hour.hour:02d}"


def hour_of_folder(folder: Path) -> Hour | None:
    """The log hour whose landing partition a folder is, as it is named; none for any other folder."""
    day, hour = folder.parent.name.removeprefix("log_date="), folder.name.removeprefix("log_hour=")
    try:
        return Hour.parse(f"{day}T{hour}")
    except UsageError:
        return None


def closed_hours(landing: Path, source: str) -> dict[Hour, int]:
    """A source's closed hours, each with the moment it was closed (ns), and no folder that names no hour."""
    marks = find(landing / source, f"log_date=*/log_hour=*/{SUCCESS}")
    closed = ((hour_of_folder(mark.path.parent), mark.changed_ns) for mark in marks)
    return {hour: moment for hour, moment in closed if hour}


def look_at(landing: Path, source: str, log_hour: Hour) -> LandedHour:
    """The data files of a source's log hour, by name; names starting with ``.`` or ``_`` are not data."""
    folder, looked_at = hour_folder(landing, source, log_hour), datetime.now(UTC)
    listed = entries(folder)
    data = [entry for entry in listed if is_data(entry)]
    return LandedHour(
        folder=folder,
        hour=log_hour,
        files=tuple(entry.path for entry in data if entry.is_file),
        size_bytes=sum(entry.size for entry in data if entry.is_file),
        is_closed=any(entry.path.name == SUCCESS for entry in listed),
        others=tuple(entry.path for entry in data if not entry.is_file),
        listed=tuple(listed),
        looked_at=looked_at,
    )


def as_landed_files(listed: Iterable[Entry]) -> list[dict[str, Any]]:
    """What was listed, as ``ingest_accounting`` keeps it."""
    return [{"name": name, "bytes": size, "changed_ns": at} for name, (size, at) in _states(listed).items()]


def landed_since(listed: Iterable[Entry], account: Mapping[str, Any]) -> list[str]:
    """The names of what lies there and was not read in this very state, given the row of ``ingest_accounting``.

    Sizes and dates are compared with those of then, so no clocks are; of what is gone nothing is to be read.
    """
    read = {file["name"]: (file["bytes"], file["changed_ns"]) for file in account["landed_files"] or ()}
    return [name for name, state in _states(listed).items() if read.get(name) != state]


def landing_days(landing: Path, source: str) -> list[date]:
    """The days of a source that have landing partitions."""
    days = []
    for name in names(landing / source):
        with suppress(ValueError):
            days.append(date.fromisoformat(name.removeprefix("log_date=")))
    return days


def listed_hours(landing: Path, source: str, days: Iterable[date]) -> dict[Hour, list[Entry]]:
    """What lies in the landing partitions of these days: of each day one listing, also in an object store."""
    entries_of_hour: dict[Hour, list[Entry]] = {}
    for day in days:
        for entry in find(hour_folder(landing, source, Hour.of(day, 0)).parent, "log_hour=*/*"):
            if hour := hour_of_folder(entry.path.parent):
                entries_of_hour.setdefault(hour, []).append(entry)
    return entries_of_hour


def _states(listed: Iterable[Entry]) -> dict[str, tuple[int, int]]:
    """Size and date by name, of data and ``_SUCCESS``; none of a folder, which changes with what is in it."""
    landed = [entry for entry in listed if entry.path.name == SUCCESS or is_data(entry)]
    in_order = sorted(landed, key=lambda entry: entry.path.name)
    return {printed_name(entry.path): (entry.size, entry.changed_ns) if entry.is_file else (0, 0) for entry in in_order}


def printed_name(path: Path) -> str:
    r"""A file's name as tables have it: bytes that are not UTF-8 are written as ``\xff``."""
    return path.name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def is_ready(landing: Path, source: Source, log_hour: Hour, now: datetime) -> bool:
    """Whether a source's log hour can be ingested: it is closed, or its grace time is over."""
    if look_at(landing, source.name, log_hour).is_closed:
        return True
    return now >= log_hour.end + timedelta(minutes=source.grace_minutes)
