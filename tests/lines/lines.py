"""Lines as the reader gives them, without files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from include.hours import Hour
from include.sources import Source
from spark_jobs.lines.arrivals import LineParser
from spark_jobs.lines.lookups import Lookups
from spark_jobs.lines.read_lines import LINES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The log hour of lines that are of no other.
HOUR = Hour.parse("2026-03-01T12")
TRACKING = ("utm_*", "gclid")


def lines_table(
    raw: Sequence[bytes],
    first_line: int = 2,
    *,
    hour: Hour = HOUR,
    file: str = "a.log",
    numbers: Sequence[int] | None = None,
) -> pa.Table:
    """Lines as they are read of a file, with their ends or without; ``numbers`` are their numbers, and their ids."""
    lengths = [len(value.removesuffix(b"\n").removesuffix(b"\r")) for value in raw]
    columns = {
        "value": raw,
        "bytes": lengths,
        "hour": [hour.number] * len(raw),
        "file": [file] * len(raw),
        "line": numbers or range(first_line, first_line + len(raw)),
        "row_id": numbers or range(len(raw)),
    }
    return pa.table({field.name: pa.array(columns[field.name], field.type) for field in LINES})


def arrivals(source: Source, tables: Sequence[pa.Table], tracking: tuple[str, ...] = TRACKING) -> pa.Table:
    """The arrivals of lines, for a source that logs no client addresses."""
    return pa.concat_tables(LineParser(source, tracking, Lookups()).arrivals(tables))


def arrivals_frame(spark: SparkSession, source: Source, tables: Sequence[pa.Table]) -> DataFrame:
    """The same as a DataFrame."""
    return spark.createDataFrame(arrivals(source, tables))
