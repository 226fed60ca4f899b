"""Landed files as the input of a stream: each file once, as it appears."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from pyspark.sql import DataFrame, SparkSession

from include.errors import ClickmillError
from include.landing import hour_folder
from include.log_hours import Hour
from include.settings import Settings
from include.sources import LandedFiles, Source
from include.tables import INGEST_ACCOUNTING, STREAM_BATCHES
from spark_jobs.io import keep_files_whole
from spark_jobs.stream_start import StreamStart
from spark_jobs.transforms.stream_lines import lines_of_files, without_files

_FOLDERS = "log_date=[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]/log_hour=[0-2][0-9]"
#: In a path with one of these Spark's file source reads each file as often as there are files.
_PATTERN_CHARACTERS = re.compile(r"[{}\[\]*?\\]")
_GONE = re.compile(r"(?:FILE_NOT_EXIST|FileNotFoundException)[^\n]*?(file:\S+)")


@dataclass(frozen=True)
class FilesInput:
    """The landing zone of a source."""

    spark: SparkSession
    settings: Settings
    source: Source

    def lines(self, start: StreamStart) -> DataFrame:
        """The lines of all files, those left out that the lake has of another checkpoint or of the batch.

        A file that breaks off gives the lines before the damage.

        Raises:
            ClickmillError: if the landing zone's path cannot be read as a stream, or the lake does not tell what of it
                has been read.
        """
        files = self.source.files
        assert files is not None
        self._require_same_place(start)
        read = self._files_in_lake(start)
        lines = lines_of_files(self._text(files))
        if not read:
            return lines
        return without_files(lines, self.spark.createDataFrame(read, "log_date DATE, log_hour INT, file STRING"))

    def explained(self, reason: str) -> str | None:
        """A file that was removed after it had been seen."""
        gone = _GONE.search(reason)
        if gone is None:
            return None
        return (
            f"a file was removed from the landing zone before it was read ({gone[1]}): put it back, or start the "
            "stream again to go on without its lines"
        )

    def _text(self, files: LandedFiles) -> DataFrame:
        folder = str(self.settings.landing / self.source.name)
        if _PATTERN_CHARACTERS.search(folder):
            raise ClickmillError(
                f"the landing zone {folder} cannot be streamed: expected a path without {{}}[]*?\\; move CLICKMILL_HOME"
            )
        keep_files_whole(self.spark)
        return (
            self.spark.readStream.schema("value STRING")
            .option("lineSep", "\n")
            .option("maxFilesPerTrigger", files.max_files_per_batch)
            .option("maxFileAge", f"{files.remembered_days}d")
            .option("ignoreCorruptFiles", True)
            .text(f"{folder}/{_FOLDERS}")
        )

    def _require_same_place(self, start: StreamStart) -> None:
        """The checkpoint knows files by their paths: elsewhere, all of them would be new to it."""
        noted = start.checkpoint.folder / "landing_zone"
        if not start.has_checkpoint:
            noted.write_text(f"{self.settings.landing}\n", encoding="utf-8")
            return
        before = noted.read_text(encoding="utf-8").strip() if noted.exists() else "a topic"
        if before != str(self.settings.landing):
            raise ClickmillError(
                f"the checkpoint of {self.source.name} is that of {before}, not of {self.settings.landing}: what it "
                f"has read is not known; bring back what it was made for, or remove {start.checkpoint.folder}: files "
                "that are in the lake are not read again"
            )

    def _files_in_lake(self, start: StreamStart) -> list[tuple[date, int, str | None]]:
        """Log hour and name of the files that are in the lake already; without a name, all of the hour are.

        A log hour that is accounted for and has no micro-batch was ingested by the batch, before the source was
        streamed, and stays as it is.
        """
        batches = start.earlier_batches(lambda row: row["topic"] is None)
        read = {(row["log_date"], row["log_hour"], row["file"]) for row in batches}
        source = [("source", "=", self.source.name)]
        streamed = start.lake.read_rows(STREAM_BATCHES, ["log_date", "log_hour"], source)
        hours_streamed = {(row["log_date"], row["log_hour"]) for row in streamed}
        accounted = start.lake.read_rows(INGEST_ACCOUNTING, ["log_date", "log_hour", "lines"], source)
        ingested = {
            (row["log_date"], row["log_hour"], None)
            for row in accounted
            if row["lines"] and (row["log_date"], row["log_hour"]) not in hours_streamed
        }
        return [*read, *(hour for hour in ingested if self._has_landed(hour[0], hour[1]))]

    def _has_landed(self, day: date, hour: int) -> bool:
        return hour_folder(self.settings.landing, self.source.name, Hour.of(day, hour)).is_dir()
