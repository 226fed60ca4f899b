"""The keys under which client addresses become visitors: one for each day of clicks, kept for some days.

Each is a file in the data, ``secrets/visitor_keys/2026-03-01``: its text, and when it was made. Whoever needs the key
of a day first makes it, and of several that do so at the same time one: a file is there whole or not at all. So it is
for all machines and in an object store, for a worker in the middle of a stream too; nobody has a key that others do not
find. When it is removed, what was derived under it cannot be derived again.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from include.errors import ClickmillError
from include.home import HomeFolders
from include.storage import entries, make_secret

#: What a killed process has left of a key that it was making is removed when it is that old.
_UNFINISHED = timedelta(days=1)


@dataclass(frozen=True)
class VisitorKey:
    """A key, from which visitors are derived, and when it was made."""

    text: bytes = field(repr=False)
    made_at: datetime


@dataclass(frozen=True)
class VisitorKeys:
    """The keys of one data: where they are, so that none of them is sent to workers or shown."""

    folder: Path
    #: Whether a key is made where there is none.
    are_made: bool = True

    @classmethod
    def of(cls, home: HomeFolders) -> VisitorKeys:
        """Those of a home's data."""
        return cls(home.visitor_keys)

    def of_days(self, days: Iterable[date]) -> dict[date, bytes]:
        """The keys of these days; without those that are not known, if none is made."""
        return {day: self.of_day(day) for day in days} if self.are_made else self.known(days)

    def of_day(self, day: date) -> bytes:
        """The key for clicks of that day, UTC; a new one, if there is none or it was destroyed."""
        while (key := self._known(day)) is None:
            self._make(f"{day}", secrets.token_hex(32).encode())
        return key

    def known(self, days: Iterable[date]) -> dict[date, bytes]:
        """The keys of those of these days that have one: what was derived for them can be derived again."""
        return {day: key for day in days if (key := self._known(day)) is not None}

    def stored(self) -> dict[str, VisitorKey]:
        """All keys, by the day."""
        names = [entry.path.name for entry in entries(self.folder) if not entry.path.name.startswith(".")]
        return {name: key for name in names if (key := self._read(name)) is not None}

    def made_before(self, moment: datetime) -> list[str]:
        """The days of the keys that are older."""
        return sorted(name for name, key in self.stored().items() if key.made_at < moment)

    def remove(self, names: Iterable[str], now: datetime) -> None:
        """Remove these keys, and what is left of those that were never finished."""
        left = [
            entry.path.name
            for entry in entries(self.folder)
            if entry.path.name.startswith(".") and entry.changed_ns < (now - _UNFINISHED).timestamp() * 1e9
        ]
        for name in (*names, *left):
            with suppress(FileNotFoundError):
                (self.folder / name).unlink()

    def _known(self, day: date) -> bytes | None:
        key = self._read(f"{day}")
        return key.text if key else None

    def _make(self, name: str, text: bytes) -> None:
        make_secret(self.folder / name, b"%s\n%s\n" % (text, datetime.now(UTC).isoformat().encode()))

    def _read(self, name: str) -> VisitorKey | None:
        content = _content(self.folder / name)
        if content is None:
            return None
        try:
            text, made_at = content.splitlines()
            key = VisitorKey(text, datetime.fromisoformat(made_at.decode()))
        except ValueError:
            key = None
        if not key or not key.text:
            raise ClickmillError(
                f"the secret file {self.folder / name} is not whole: expected a key and when it was made; delete it to "
                "have a new one made, under which the day's visitors are others"
            )
        return key


def _content(file: Path) -> bytes | None:
    with suppress(FileNotFoundError):  # removed meanwhile
        return file.read_bytes() if file.exists() else None
    return None


def days_in_words(names: Iterable[str]) -> str:
    """Days that follow each other as one range."""
    ranges: list[list[str]] = []
    for name in names:
        if ranges and date.fromisoformat(name) - timedelta(1) == date.fromisoformat(ranges[-1][-1]):
            ranges[-1].append(name)
        else:
            ranges.append([name])
    return ", ".join(f"{days[0]} to {days[-1]}" if days[1:] else days[0] for days in ranges)
