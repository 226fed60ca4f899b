"""How far a stream has read the files of a landing zone; methods as of ``topic_position.TopicPosition``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from include.hours import Hour
from include.landing import LandedHour, look_at, printed_name
from include.settings import Settings
from include.sources import Source
from include.stored_rows import StoredLake, of_log_hour
from include.tables import INGEST_ACCOUNTING, STREAM_BATCHES, Table


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

    def unread_files(self, log_hour: Hour) -> list[str]:
        """Those that neither a micro-batch has lines of, nor an ingest before the source was streamed.

        But for names that are not UTF-8: Spark never lists such a file, so it is not waited for.
        """
        all_landed = look_at(self.settings.landing, self.source.name, log_hour)
        landed = replace(
            all_landed, files=tuple(file for file in all_landed.files if printed_name(file) == file.name), others=()
        )
        if not landed.files:
            return []
        read, ingested = self._read_files(log_hour), self._account(log_hour)
        if not read and ingested is not None and ingested["lines"]:
            return []  # the stream leaves them out, as the batch has read them
        return landed.unread(read)

    def _has_read(self, log_hour: Hour) -> bool:
        landed = look_at(self.settings.landing, self.source.name, log_hour)
        return landed.is_closed and not landed.unread(self._read_files(log_hour))

    def _read_files(self, log_hour: Hour) -> set[str]:
        return {row["file"] for row in self._rows(STREAM_BATCHES, "file", log_hour)}

    def _account(self, log_hour: Hour) -> dict[str, Any] | None:
        return next(iter(self._rows(INGEST_ACCOUNTING, "lines", log_hour)), None)

    def _rows(self, table: Table, column: str, log_hour: Hour) -> list[dict[str, Any]]:
        where = of_log_hour(log_hour, self.source.name)
        return StoredLake(self.settings.lake).read_rows(table, [column], where)
