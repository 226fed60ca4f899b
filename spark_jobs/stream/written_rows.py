"""What the tasks of a micro-batch do with its rows, in one pass: write clicks and quarantined lines, count, sample.

The rows are arrivals, and what was read, as ``spark_jobs.lines.arrivals`` has them. No row is kept or read again: what
tasks give back is small.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame, Row
from pyspark.sql.pandas.types import from_arrow_schema

from include.sources import Source
from include.tables import CLICKS, QUARANTINED_CLICKS
from spark_jobs.ids.first_arrivals import LEFT, BatchIds, FirstArrivals
from spark_jobs.ingest.decided_files import as_clicks, as_quarantined
from spark_jobs.lake.new_files import WRITTEN, NewFile, TaskFiles
from spark_jobs.lines.columns import as_numpy, in_pieces, table_of
from spark_jobs.lines.cut_lines import PIECE_BYTES
from spark_jobs.lines.kept import is_quarantined
from spark_jobs.lines.sampled_lines import SampledLines, sampled_schema
from spark_jobs.lines.times import HOUR_MICROS

PLACE = ("file", "log_date", "log_hour")

#: Where lines went: of one file, or topic partition, and log hour those that were read (``is_read``, with what was read
#: of it), quarantined or left out (``reason``), or accepted in one ``click_hour``, hours since 1970. ``out_of_order``
#: of the accepted are older than a well-formed line before them in the file and the micro-batch.
OUTCOMES = pa.schema(
    [
        ("file", pa.string()),
        ("log_date", pa.date32()),
        ("log_hour", pa.int32()),
        ("is_read", pa.bool_()),
        ("reason", pa.string()),
        ("click_hour", pa.int32()),
        ("lines", pa.int64()),
        ("bytes", pa.int64()),
        ("first_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("damage", pa.string()),
        ("first_clicked_at", pa.timestamp("us", "UTC")),
        ("last_clicked_at", pa.timestamp("us", "UTC")),
        ("out_of_order", pa.int64()),
    ]
)
_PLACE = pa.schema([OUTCOMES.field(name) for name in PLACE])
#: What a task gives: of these one, the others null.
_RESULT = pa.schema(
    [
        ("clicks", pa.struct(list(WRITTEN))),
        ("quarantined", pa.struct(list(WRITTEN))),
        ("outcome", pa.struct(list(OUTCOMES))),
        ("sampled", pa.struct(list(sampled_schema(_PLACE)))),
        ("ids", pa.struct(list(LEFT))),
    ]
)
#: Of so many log hours a task has files open at the same time.
_MOST_OPEN_HOURS = 100
_GROUPED = ["file", "log_date", "log_hour", "reason", "click_hour"]


@dataclass(frozen=True)
class WrittenRows:
    """What has become of a micro-batch's rows.

    Files that are yet to be committed, rows of ``OUTCOMES``, by ``PLACE`` rows of ``sampled_schema``, and what is left
    of ids: rows of ``LEFT``.
    """

    clicks: list[NewFile] = field(default_factory=list)
    quarantined: list[NewFile] = field(default_factory=list)
    outcomes: list[dict[str, Any]] = field(default_factory=list)
    sampled: list[dict[str, Any]] = field(default_factory=list)
    ids: list[Row] = field(default_factory=list)


def write_rows(rows: DataFrame, source: Source, clicks: Path, quarantined: Path, ids: BatchIds | None) -> WrittenRows:
    """Write the rows into the folders of the two tables; of clicks the first arrivals, where ids are known.

    The rows are computed once.
    """

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = ids.first_arrivals(TaskContext.get().partitionId()) if ids else None  # type: ignore[union-attr]  # in a task
        for name, records in rows_written(batches, source, clicks, quarantined, first):
            yield pa.RecordBatch.from_pylist([{name: record} for record in records], _RESULT)

    written = WrittenRows()
    for row in rows.mapInArrow(write, from_arrow_schema(_RESULT)).collect():
        if row["clicks"] is not None:
            written.clicks.append(NewFile(**row["clicks"].asDict()))
        elif row["quarantined"] is not None:
            written.quarantined.append(NewFile(**row["quarantined"].asDict()))
        elif row["outcome"] is not None:
            written.outcomes.append(row["outcome"].asDict())
        elif row["sampled"] is not None:
            written.sampled.append(row["sampled"].asDict())
        else:
            written.ids.append(row["ids"])
    return written


def rows_written(
    batches: Iterable[pa.RecordBatch],
    source: Source,
    clicks: Path,
    quarantined: Path,
    first: FirstArrivals | None = None,
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """One task's work; what it gives, by the name of a column of ``_RESULT``."""
    of_clicks = TaskFiles(CLICKS, clicks, _MOST_OPEN_HOURS)
    of_quarantined = TaskFiles(QUARANTINED_CLICKS, quarantined, _MOST_OPEN_HOURS)
    sampled = SampledLines(source, PLACE)
    counted: list[pa.Table] = []
    for rows in in_pieces((pa.Table.from_batches([batch]) for batch in batches), PIECE_BYTES):
        is_read = pc.is_valid(rows["read"])
        yield "outcome", _read(rows.filter(is_read))
        arrivals = rows.filter(pc.invert(is_read))
        arrivals = _by_log_hour(first.of(arrivals) if first else arrivals)
        is_click = pc.is_null(arrivals["reason"])
        counted.append(_counted(arrivals, is_click))
        for piece in as_clicks(arrivals.filter(is_click), source.name).to_batches():
            yield "clicks", list(map(vars, of_clicks.add(piece)))
        for piece in as_quarantined(arrivals.filter(is_quarantined(arrivals["reason"])), source.name).to_batches():
            yield "quarantined", list(map(vars, of_quarantined.add(piece)))
        sampled.add(arrivals)
    if first:
        yield "ids", [first.end()]
    yield "clicks", list(map(vars, of_clicks.end()))
    yield "quarantined", list(map(vars, of_quarantined.end()))
    yield "sampled", sampled.rows()
    if counted:
        yield "outcome", _added_up(pa.concat_tables(counted)).to_pylist()


def _by_log_hour(arrivals: pa.Table) -> pa.Table:
    """Sorted, so that there are few pieces to write, though a topic's records have times in any order."""
    hours = as_numpy(arrivals["log_date"].cast(pa.int32())) * 24 + as_numpy(arrivals["log_hour"])
    if (np.diff(hours) >= 0).all():
        return arrivals
    return arrivals.take(pa.array(np.argsort(hours, kind="stable")))


def _read(rows: pa.Table) -> list[dict[str, Any]]:
    return [
        {
            **{name: row[name] for name in PLACE},
            "is_read": True,
            "lines": row["read"]["lines"],
            "bytes": row["read"]["bytes"],
            "first_offset": row["read"]["first_line"],
            "last_offset": row["read"]["last_line"],
            "damage": row["read"]["damage"],
        }
        for row in rows.select([*PLACE, "read"]).to_pylist()
    ]


def _counted(arrivals: pa.Table, is_click: pa.ChunkedArray) -> pa.Table:
    hours = as_numpy(arrivals["clicked_at"].cast(pa.int64()).fill_null(0)) // HOUR_MICROS
    click_hour = pc.if_else(is_click, pa.array(hours.astype(np.int32)), pa.scalar(None, pa.int32()))
    columns = {name: arrivals[name] for name in (*PLACE, "reason")} | {
        "click_hour": click_hour,
        "lines": pa.array(np.ones(len(arrivals), np.int64)),
        "first_clicked_at": arrivals["clicked_at"],
        "last_clicked_at": arrivals["clicked_at"],
        "out_of_order": arrivals["is_out_of_order"].fill_null(False).cast(pa.int64()),
        "is_read": pa.array(np.zeros(len(arrivals), bool)),
    }
    return _added_up(table_of(OUTCOMES, columns, len(arrivals)))


def _added_up(outcomes: pa.Table) -> pa.Table:
    """Rows of ``OUTCOMES`` of arrivals, one for each outcome."""
    how = {"lines": "sum", "out_of_order": "sum", "first_clicked_at": "min", "last_clicked_at": "max"}
    sums = outcomes.group_by(_GROUPED).aggregate(list(how.items()))
    columns = {name: sums[name] for name in _GROUPED} | {name: sums[f"{name}_{by}"] for name, by in how.items()}
    return table_of(OUTCOMES, columns | {"is_read": pa.array([False] * len(sums))}, len(sums))
