"""How far a stream has read the files of a landing zone; see ``include.stream_position.StreamPosition``."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import zstandard

from include.damage import find_damaged_files
from include.landing import LandedHour, hour_folder, look_at
from include.log_hours import Hour, hours_predicate
from include.settings import Settings
from include.sources import Source
from include.stored_rows import read_rows
from include.tables import STREAM_BATCHES


@dataclass(frozen=True)
class FilesPosition:
    """The landed log hours of a source: a file is read when a micro-batch has lines of it."""

    settings: Settings
    source: Source

    def has_read(self, log_hour: Hour, now: datetime) -> bool:
        """Whether the hour is closed and all of its files are read."""
        landed = look_at(self.settings.landing, self.source.name, log_hour)
        if not landed.is_closed:
            return False
        read = self._read_files(log_hour)
        return all(file.name in read or not _has_lines(file) for file in landed.files)

    def landed(self, log_hour: Hour, batches: Sequence[Mapping[str, Any]]) -> LandedHour:
        """The hour's files as they are in the landing zone, those not yet read left out."""
        landed = look_at(self.settings.landing, self.source.name, log_hour)
        read = {unquote(row["file"]) for row in batches if row["file"] is not None}
        files = tuple(file for file in landed.files if file.name in read or not _has_lines(file))
        size = sum(file.stat().st_size for file in files)
        return LandedHour(landed.folder, log_hour, files, size, landed.is_closed)

    def damaged(self, landed: LandedHour) -> frozenset[str]:
        """The compressed files that break off."""
        return frozenset(map(str, find_damaged_files(landed.files)))

    def still_needed(self, batches: Sequence[Mapping[str, Any]]) -> str:
        """Those of log hours that are in the landing zone still."""
        hours = {Hour.of(row["log_date"], row["log_hour"]) for row in batches}
        there = [hour for hour in hours if hour_folder(self.settings.landing, self.source.name, hour).is_dir()]
        return hours_predicate(there, "log_date", "log_hour")

    def _read_files(self, log_hour: Hour) -> set[str]:
        where = [("source", "=", self.source.name), ("log_date", "=", log_hour.day), ("log_hour", "=", log_hour.hour)]
        rows = read_rows(self.settings.lake, STREAM_BATCHES, ["file"], where)
        # Spark writes a file's name as in a URL.
        return {unquote(row["file"]) for row in rows if row["file"] is not None}


def _has_lines(file: Path) -> bool:
    """Whether Spark finds anything in a file: not in an empty one, nor in one that breaks off before its first byte."""
    try:
        match file.suffix:
            case ".gz":
                with gzip.open(file) as stream:
                    return bool(stream.read(1))
            case ".zst":
                with zstandard.open(file) as stream:
                    return bool(stream.read(1))
            case _:
                return file.stat().st_size > 0
    except (EOFError, OSError, zlib.error, zstandard.ZstdError):
        return False
