"""Accepted arrivals as data files of ``clicks``, written by the workers from what they have staged.

No row passes through Spark on the way: to write a click as Spark's row takes four times as long as all of this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import ParquetFile, read_table
from pyspark.sql import SparkSession

from include.stored_rows import arrow_schema
from include.tables import CLICKS
from spark_jobs.engine.worker_tasks import run_tasks
from spark_jobs.lake.new_files import WRITTEN, NewFile, files_of
from spark_jobs.lines.columns import as_numpy, is_among, table_of
from spark_jobs.lines.times import HOUR_MICROS

_CLICKS = arrow_schema(CLICKS, CLICKS.column_names)
#: Of them those of arrivals; the others are the source's name, or follow from the time.
_STAGED = [name for name in CLICKS.column_names if name not in ("source", "click_date", "click_hour")]


def write_accepted(
    spark: SparkSession, staged: Sequence[Path], decided: Sequence[Path], source: str, folder: Path
) -> list[NewFile]:
    """Write the accepted arrivals of these staged files into the folder of ``clicks``, a task for each.

    ``decided`` are files of ``DECIDED``.
    """

    def write(file: Path) -> Iterator[Mapping[str, Any]]:
        batches = (batch for table in accepted_clicks(file, decided, source) for batch in table.to_batches())
        return map(vars, files_of(batches, CLICKS, folder))

    return [NewFile(**row.asDict()) for row in run_tasks(spark, staged, write, WRITTEN)]


def accepted_clicks(staged: Path, decided: Sequence[Path], source: str) -> Iterator[pa.Table]:
    """The accepted arrivals of a staged file, in its order, as ``clicks`` declares them."""
    with staged.open("rb") as stream:
        file = ParquetFile(stream)
        duplicates = _duplicates(decided, pc.min_max(file.read(["row_id"])["row_id"]).as_py())
        for batch in file.iter_batches(columns=[*_STAGED, "row_id", "reason"]):
            arrivals = pa.Table.from_batches([batch])
            is_click = as_numpy(pc.is_null(arrivals["reason"]))
            is_accepted = is_click & ~is_among(as_numpy(arrivals["row_id"]), duplicates)
            yield as_clicks(arrivals.filter(pa.array(is_accepted)), source)


def as_clicks(arrivals: pa.Table, source: str) -> pa.Table:
    """One row per well-formed line, as ``clicks`` declares it, in their order."""
    micros = as_numpy(arrivals["clicked_at"].cast(pa.int64()))
    added = {
        "source": pa.array([source] * len(arrivals), pa.string()),
        "click_date": pa.array((micros // (24 * HOUR_MICROS)).astype(np.int32)).cast(pa.date32()),
        "click_hour": pa.array((micros // HOUR_MICROS % 24).astype(np.int32)),
    }
    return table_of(_CLICKS, {name: arrivals[name] for name in _STAGED} | added, len(arrivals))


def _duplicates(decided: Sequence[Path], bounds: Mapping[str, int | None]) -> np.ndarray[Any, Any]:
    """Of what is decided the ids of duplicates between these bounds, sorted; none if there are no bounds."""
    row_ids = [np.empty(0, np.int64)]
    for path in decided if bounds["min"] is not None else ():
        with path.open("rb") as stream:
            of_these = [("row_id", ">=", bounds["min"]), ("row_id", "<=", bounds["max"])]
            row_ids.append(as_numpy(read_table(stream, columns=["row_id"], filters=of_these)["row_id"]))
    return np.sort(np.concatenate(row_ids))
