"""A Clickmill home whose source web is streamed from its landing zone, and read back without Spark."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from include.sources import Source, load_sources
from include.tables import STREAM_BATCHES
from tests.stream.streamed_source import streamed_source
from tests.support.temporary_lake import TemporaryLake


@dataclass
class FilesLake(TemporaryLake):
    """A home whose source web has [files]."""

    @property
    def source(self) -> Source:
        """The streamed source."""
        return load_sources(self.settings)["web"]

    @property
    def checkpoint(self) -> Path:
        """The checkpoint's folder."""
        return self.settings.streams / "web"

    def configure(self, **files: Any) -> None:
        """Declare the source, with these settings of its files."""
        self.settings.sources_file.write_text(streamed_source("files", files), encoding="utf-8")

    def read_all(self, *, live: bool = False) -> None:
        """Stream what is in the landing zone now."""
        from spark_jobs.stream import job as stream_job

        stream_job.stream(self.spark, self.settings, [self.source], available_now=True, live=live)

    def read_places(self) -> list[tuple[str, int, int]]:
        """File, and first and last line, of every row of ``stream_batches``."""
        return sorted((row["file"], row["first_offset"], row["last_offset"]) for row in self.rows(STREAM_BATCHES))


def in_order_of_names(landing: Path) -> None:
    """Date the files as if they had come one after the other, hour by hour: the stream reads the oldest first."""
    files = sorted(file for file in landing.rglob("*") if file.is_file())
    for place, file in enumerate(files):
        moment = time.time() - 3600 + place
        os.utime(file, (moment, moment))
