"""Landed files as the input of a stream: each file once, as it appears."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include.errors import ClickmillError
from include.hours import Hour
from include.landing import hour_folder
from include.settings import Settings
from include.sources import LandedFiles, Source
from include.tables import INGEST_ACCOUNTING, STREAM_BATCHES
from spark_jobs.ingest.spark_arrivals import arrivals_of_listed_files
from spark_jobs.lines.arrivals import LineParser
from spark_jobs.stream.lines import landed_files, without_files
from spark_jobs.stream.resume import StreamStart

#: What each micro-batch says of how many lines it has read: Spark itself counts files.
LINES_READ = "lines_read"
#: Spark passes over a file that is dated so long before the newest date that it has seen, be that date of the future.
#: A date says nothing of when a file came, so none is too old: what has been read, Spark knows by name.
_ANY_AGE = "100000000d"
_FOLDERS = "log_date=[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]/log_hour=[0-2][0-9]"
_GONE = re.compile(r"FileNotFoundError: .*?: '([^\n]+)'|(?:FILE_NOT_EXIST|FileNotFoundException)[^\n]*?(file:\S+)")


@dataclass(frozen=True)
class FilesInput:
    """The landing zone of a source."""

    spark: SparkSession
    settings: Settings
    source: Source

    def arrivals(self, start: StreamStart) -> DataFrame:
        """The arrivals of all files, those left out that the lake has of another checkpoint or of the batch.

        A file that breaks off gives the lines before the damage.

        Raises:
            ClickmillError: if the lake does not say what has been read.
        """
        files = self.source.files
        assert files is not None
        self._require_same_place(start)
        read = self._files_in_lake(start)
        landed = landed_files(self._listed(files))
        if read:
            known = self.spark.createDataFrame(read, "log_date DATE, log_hour INT, file STRING")
            landed = without_files(landed, known)
        arrivals = arrivals_of_listed_files(landed, LineParser.of(self.source, self.settings))
        return arrivals.observe(LINES_READ, F.sum("read.lines").alias("lines"))

    def explained(self, reason: str) -> str | None:
        """A file that was removed after it had been seen."""
        gone = _GONE.search(reason)
        if gone is None:
            return None
        return (
            f"a file was removed from the landing zone before it was read ({gone[1] or gone[2]}): put it back, or "
            "start the stream again to go on without its lines"
        )

    def _listed(self, files: LandedFiles) -> DataFrame:
        """The files as they appear, each once; Spark lists them, and reads nothing of what is in them."""
        return (
            self.spark.readStream.format("binaryFile")
            .schema("path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY")
            .option("maxFilesPerTrigger", files.max_files_per_batch)
            .option("maxFileAge", _ANY_AGE)
            .load(f"{self.settings.landing / self.source.name}/{_FOLDERS}")
            .select("path")
            # For each name that could be a pattern, Spark's file source gives all files of the micro-batch once more.
            # What is given twice meets in one task, which reads it once.
            .repartition("path")
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
