"""Lines as the reader gives them, without files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from include.log_hours import Hour
from include.sources import Source
from spark_jobs.ingest.arrivals import LineParser
from spark_jobs.ingest.lookups import Lookups
from spark_jobs.ingest.read_lines import LINES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOON = Hour.parse("2026-03-01T12")


def lines_table(
    raw: Sequence[bytes], *, hour: Hour = NOON, file: str = "a.log", numbers: Sequence[int] | None = None
) -> pa.Table:
    """A table of lines of one file and log hour, numbered from 1 unless told; ``row_id`` is the number."""
    line = list(numbers or range(1, len(raw) + 1))
    columns = {"value": raw, "bytes": [len(value) for value in raw], "hour": [hour.number] * len(raw)}
    return pa.table(columns | {"file": [file] * len(raw), "line": line, "row_id": line}, schema=LINES)


def arrivals(source: Source, tables: Sequence[pa.Table], tracking: tuple[str, ...] = ("utm_*", "gclid")) -> pa.Table:
    """The arrivals of lines, for a source that logs no client addresses."""
    return pa.concat_tables(LineParser(source, tracking, Lookups(needs_clients=False)).arrivals(tables))


def arrivals_frame(spark: SparkSession, source: Source, tables: Sequence[pa.Table]) -> DataFrame:
    """The same as a DataFrame."""
    return spark.createDataFrame(arrivals(source, tables))
