"""Work on files in Spark's Python workers: each task is given its share, and says in a few rows what it has done."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from pickle import dumps, loads
from typing import Any, TypeVar
from uuid import uuid4

import pyarrow as pa
from pyarrow.parquet import ParquetWriter
from pyspark.sql import Row, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from include.storage import filesystem_of, key_of

Share = TypeVar("Share")
Item = TypeVar("Item")

#: Of tables' files so many bytes are a task's share.
TASK_BYTES = 16 << 20
#: Spark says what Python has raised in many lines, of which the one behind these does.
BEFORE_RAISED = r"Traceback \(most recent call last\):\n(?:\s.*\n)*"
_RAISED = re.compile(rf"{BEFORE_RAISED}(\S.*)")
#: To open a file of a disk, decompress it and name its lines counts as so many bytes more.
_OPEN_BYTES = 1 << 12


def write_scratch(folder: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> Path:
    """Write a Parquet file of a name of its own, as a task leaves rows for others; return where it is.

    It is read whole, and soon: without dictionaries and statistics that takes half of the time.
    """
    path = folder / f"{uuid4()}.parquet"
    plain = {"compression": "lz4", "use_dictionary": False, "write_statistics": False}
    with ParquetWriter(key_of(path), schema, filesystem=filesystem_of(path), **plain) as writer:
        for table in tables:
            writer.write_table(table)
    return path


def run_tasks(
    spark: SparkSession,
    shares: Sequence[Share],
    work: Callable[[Share], Iterable[Mapping[str, Any]]],
    schema: pa.Schema,
) -> list[Row]:
    """Do the work on each share, a task each; the rows that the tasks that count have given, in no order.

    A task may be run twice, and then only one of them counts: a file that it writes needs a name of its own.

    Raises:
        PySparkException: if the work raises something.
    """
    # Each task is sent all shares, and unpickles its own.
    pickled = [dumps(share) for share in shares]

    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch["id"].to_pylist():
                yield pa.RecordBatch.from_pylist(list(work(loads(pickled[number]))), schema)

    count = len(shares)
    return spark.range(0, count, 1, count).mapInArrow(run, from_arrow_schema(schema)).collect() if count else []


def work_on_files(
    spark: SparkSession,
    files: Sequence[Item],
    size_bytes: Callable[[Item], int],
    task_bytes: int,
    work: Callable[[Sequence[Item]], Iterable[Mapping[str, Any]]],
    schema: pa.Schema,
) -> list[Mapping[str, Any]]:
    """As ``run_tasks``, of files shared by their sizes. What is no more than a task's share is done by this process.

    Raises:
        PySparkException: if the work of a task raises something; else what the work raises.
    """
    shares = share_files(files, size_bytes, task_bytes)
    if len(shares) == 1 and sum(map(size_bytes, files)) <= task_bytes:
        return list(work(shares[0]))
    return [row.asDict() for row in run_tasks(spark, shares, work, schema)]


def failure_line(error: Exception) -> str:
    """What went wrong, in one line; if a task's work raised something, what that says."""
    text = str(error).strip()
    raised = _RAISED.findall(text)
    return raised[-1] if raised else text.partition("\n")[0]


def share_files(files: Iterable[Item], size_bytes: Callable[[Item], int], task_bytes: int) -> list[list[Item]]:
    """The files by task, neighbours together: of so many bytes, or one that is larger."""
    return list(parts_by_size(((file, size_bytes(file) + _OPEN_BYTES) for file in files), task_bytes))


def parts_by_size(sizes: Iterable[tuple[Item, int]], most: int) -> Iterator[list[Item]]:
    """What has these sizes, in order, so many at a time that they add up to ``most``; a single one may have more."""
    part: list[Item] = []
    together = 0
    for item, size in sizes:
        if part and together + size > most:
            yield part
            part, together = [], 0
        part.append(item)
        together += size
    if part:
        yield part
