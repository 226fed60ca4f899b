"""Arrivals as Spark's DataFrames: which task reads which files, and records of a topic."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from include.hours import Hour, log_hour_of
from include.storage import Entry, place
from spark_jobs.engine.worker_tasks import run_tasks, share_files, write_scratch
from spark_jobs.lines.arrivals import (
    ARRIVALS,
    LineParser,
    hour_of_arrival,
    read_files,
    read_records,
    rows_of_files,
    unique_ids,
)
from spark_jobs.lines.json_fields import SampledFields
from spark_jobs.lines.read_lines import LINES, LandedFile, ReadFile
from spark_jobs.lines.sampled_lines import SampledLines, fields_of, sampled_schema

#: ``ARRIVALS`` as Spark has it.
ARRIVALS_OF_SPARK = from_arrow_schema(ARRIVALS)
#: A task reads landed files of so many bytes, as they are stored.
_TASK_BYTES = 16 << 20
#: What a task says of each file that it has read.
_READ = pa.schema([("number", pa.int64()), ("lines", pa.int64()), ("bytes", pa.int64()), ("damage", pa.string())])
_LOG_HOUR = ("log_date", "log_hour")
#: What a task gives: where its arrivals are; and of the others one, null else. ``warning`` says which rule fails.
_STAGED = pa.schema(
    [
        ("staged", pa.string()),
        ("read", pa.struct(list(_READ))),
        ("sampled", pa.struct(list(sampled_schema(pa.schema([ARRIVALS.field(name) for name in _LOG_HOUR]))))),
        ("warning", pa.string()),
    ]
)

Batches = Iterator[pa.RecordBatch]
_RAISED = re.compile(r"[A-Z]\w*(?:Error|Exception): .*\Z")


@dataclass(frozen=True)
class StagedArrivals:
    """The arrivals of landed files, kept for several passes in these Parquet ``files``.

    ``read`` says what was read of each landed file, in their order; ``sampled`` what fields sampled lines have, by log
    hour and task; ``warnings`` which rules of replays on record fail.
    """

    arrivals: DataFrame
    files: list[Path]
    read: list[ReadFile]
    sampled: list[tuple[Hour, SampledFields]]
    warnings: list[str] = field(default_factory=list)

    def with_more(self, spark: SparkSession, files: Sequence[Path]) -> StagedArrivals:
        """The same, and the arrivals of further files."""
        together = [*self.files, *files]
        return replace(self, arrivals=arrivals_in(spark, together), files=together)


def stage_arrivals(
    spark: SparkSession, files: Sequence[tuple[Entry, Hour]], parser: LineParser, folder: Path
) -> StagedArrivals:
    """Read and parse landed files, and keep the arrivals in a folder; ``row_id`` is unique among them.

    The workers write them by themselves, as Parquet: to hand each row to Spark takes longer than to parse it.

    Raises:
        PySparkException: if a file cannot be read.
    """
    if not files:
        return StagedArrivals(spark.createDataFrame([], ARRIVALS_OF_SPARK), [], [], [])
    landed = [LandedFile(entry.path, hour, number) for number, (entry, hour) in enumerate(files)]
    # As they were listed: to ask for each size is a request for each file of an object store.
    shares = share_files(landed, lambda file: files[file.number][0].size, _TASK_BYTES)

    def stage(mine: list[LandedFile]) -> Iterator[dict[str, Any]]:
        done: list[ReadFile] = []
        sampled = SampledLines(parser.source, _LOG_HOUR)

        def arrivals() -> Iterator[pa.Table]:
            for table in read_files(mine, parser, unique_ids, done):
                sampled.add(table)
                yield table

        staged = str(write_scratch(folder, ARRIVALS, arrivals()))
        for file in done:
            of_file = {"number": file.file.number, "lines": file.lines, "bytes": file.bytes, "damage": file.damage}
            yield {"staged": staged, "read": of_file}
        yield from ({"staged": staged, "sampled": row} for row in sampled.rows())
        yield from ({"staged": staged, "warning": warning} for warning in parser.repairs.warnings)

    results = run_tasks(spark, shares, stage, _STAGED)
    read = sorted((row["read"] for row in results if row["read"] is not None), key=lambda file: file["number"])
    sampled = [row["sampled"] for row in results if row["sampled"] is not None]
    staged = list(map(place, sorted({row["staged"] for row in results})))
    return StagedArrivals(
        arrivals_in(spark, staged),
        staged,
        [ReadFile(landed[file["number"]], file["lines"], file["bytes"], file["damage"]) for file in read],
        [(log_hour_of(row), fields_of(row)) for row in sampled],
        sorted({row["warning"] for row in results if row["warning"] is not None}),
    )


def arrivals_in(spark: SparkSession, files: Iterable[Path]) -> DataFrame:
    """The arrivals that are staged in these files."""
    return spark.read.schema(ARRIVALS_OF_SPARK).parquet(*map(str, files))


def arrivals_of_listed_files(listed: DataFrame, parser: LineParser) -> DataFrame:
    """The arrivals of landed files that are listed by ``path``, ``log_date`` and ``log_hour``.

    A file that is listed more than once in a partition is read once.
    ``row_id`` is not unique: it is the beginning of the log hour, in microseconds since 1970.
    """

    def read(batches: Batches) -> Batches:
        done: list[ReadFile] = []
        yield from _batches(read_files(_listed(batches), parser, hour_of_arrival, done))
        yield from rows_of_files(done).to_batches()

    return listed.select("path", "log_date", "log_hour").mapInArrow(read, ARRIVALS_OF_SPARK)


def arrivals_of_records(records: DataFrame, parser: LineParser) -> DataFrame:
    """The arrivals of records, which have ``LINES``' columns; ``row_id`` is theirs."""

    def parse(batches: Batches) -> Batches:
        return _batches(read_records((pa.Table.from_batches([batch]).cast(LINES) for batch in batches), parser))

    return records.select(*LINES.names).mapInArrow(parse, ARRIVALS_OF_SPARK)


def _listed(batches: Batches) -> list[LandedFile]:
    rows = {tuple(row.values()) for batch in batches for row in batch.to_pylist()}
    return [LandedFile(place(path.removeprefix("file:")), Hour.of(day, hour)) for path, day, hour in sorted(rows)]


def _batches(tables: Iterable[pa.Table]) -> Batches:
    return (batch for table in tables for batch in table.to_batches())


def reason_of(error: Exception) -> str:
    """In a line, why a task could not read: what it raised, such as ``OSError: [Errno 5] Input/output error``."""
    raised = [line.strip() for line in str(error).splitlines() if _RAISED.match(line.strip())]
    return raised[-1] if raised else [*filter(None, str(error).splitlines()), repr(error)][0]
