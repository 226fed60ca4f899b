"""How far a stream has read the files of a landing zone; see ``include.streams.position.StreamPosition``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from include.landing import LandedHour, look_at
from include.log_hours import Hour
from include.settings import Settings
from include.sources import Source
from include.stored_rows import read_rows
from include.tables import STREAM_BATCHES


@dataclass(frozen=True)
class FilesPosition:
    """The landed log hours of a source: a file is read when a micro-batch has lines of it."""

    settings: Settings
    source: Source

    def read_hours(self, log_hours: Sequence[Hour], now: datetime) -> set[Hour]:
        """Those of these hours that are closed, and of which all files are read."""
        return {hour for hour in log_hours if self._has_read(hour)}

    def landed(self, log_hour: Hour, batches: Sequence[Mapping[str, Any]]) -> LandedHour:
        """The hour as it is in the landing zone."""
        return look_at(self.settings.landing, self.source.name, log_hour)

    def _has_read(self, log_hour: Hour) -> bool:
        landed = look_at(self.settings.landing, self.source.name, log_hour)
        if not landed.is_closed:
            return False
        return not landed.unread(self._read_files(log_hour))

    def _read_files(self, log_hour: Hour) -> set[str]:
        where = [("source", "=", self.source.name), ("log_date", "=", log_hour.day), ("log_hour", "=", log_hour.hour)]
        rows = read_rows(self.settings.lake, STREAM_BATCHES, ["file"], where)
        return {row["file"] for row in rows}
