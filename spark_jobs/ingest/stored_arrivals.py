"""The arrivals of log hours whose files are gone: those that the lake has, and quarantined lines parsed again.

A quarantined line is parsed again if its text was not cut; what is no click then stays as it is stored. Where addresses
are masked, a click has its country and no visitor. If a replay is withdrawn, none is parsed again: what it had
recovered is quarantined, by the text that is kept of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from include.hours import Hour
from include.storage import place
from include.tables import (
    CLICKS,
    DUPLICATE_CLICKS,
    MAX_RAW_CHARACTERS,
    QUARANTINED_CLICKS,
    REPLAYED_LINES,
    Table,
)
from spark_jobs.engine.worker_tasks import run_tasks, write_scratch
from spark_jobs.hours.arrivals_once import arrivals_once
from spark_jobs.lake.copied_files import rows_of
from spark_jobs.lake.data_files import DataFile
from spark_jobs.lines.arrivals import ARRIVALS, LINE_BITS, LineParser, out_of_order
from spark_jobs.lines.columns import in_pieces, table_of
from spark_jobs.lines.cut_lines import PIECE_BYTES
from spark_jobs.lines.read_lines import LINES

_STAGED = pa.schema([("staged", pa.string())])


@dataclass(frozen=True)
class StoredHour:
    """The data files of one log hour, by table; ``number`` is unique among what is staged together.

    ``withdrawn`` is the replay that is being withdrawn, if one is.
    """

    hour: Hour
    number: int
    files: dict[str, list[DataFile]]
    withdrawn: str | None = None


def stage_stored(
    spark: SparkSession, hours: Sequence[StoredHour], parser: LineParser, reasons: Sequence[str], folder: Path
) -> list[Path]:
    """Keep the arrivals of these log hours in Parquet files of ``ARRIVALS``, one for each.

    Quarantined lines of these ``reasons``, of all if none is named, are parsed again.

    Raises:
        PySparkException: if a file cannot be read.
    """

    def stage(hour: StoredHour) -> Iterator[dict[str, Any]]:
        arrivals = stored_arrivals(hour, parser, reasons, folder)
        yield {"staged": str(write_scratch(folder, ARRIVALS, in_pieces(arrivals, PIECE_BYTES)))}

    return [place(row["staged"]) for row in run_tasks(spark, hours, stage, _STAGED)]


def stored_arrivals(hour: StoredHour, parser: LineParser, reasons: Sequence[str], scratch: Path) -> Iterator[pa.Table]:
    """The arrivals of a log hour, in the order of their places, in tables of ``ARRIVALS``; some wait in ``scratch``.

    A place has what the first of ``clicks``, ``duplicate_clicks``, the lines that are clicks by now, and
    ``quarantined_clicks`` says of it.
    """
    clicks, duplicates, quarantined = (_rows(hour, table) for table in (CLICKS, DUPLICATE_CLICKS, QUARANTINED_CLICKS))
    if hour.withdrawn is None:
        stored = arrivals_once([clicks, duplicates, _recovered(hour, parser, reasons), quarantined], scratch)
    else:
        again = _lines_of(hour, hour.withdrawn)
        stored = arrivals_once([clicks, duplicates, quarantined], scratch, again, hour.withdrawn)
    latest: dict[tuple[str, int], int] = {}
    row_id = hour.number << LINE_BITS
    for rows in stored:
        arrivals = rows.select(ARRIVALS.names)
        lines = arrivals.append_column("hour", pa.array(np.full(len(rows), hour.hour.number)))
        columns = dict(zip(arrivals.column_names, arrivals.columns, strict=True))
        columns["row_id"] = pa.array(np.arange(row_id, row_id + len(rows)))
        columns["is_out_of_order"] = out_of_order(lines, arrivals, latest)
        row_id += len(rows)
        yield table_of(ARRIVALS, columns, len(rows))


def _rows(hour: StoredHour, table: Table) -> Iterator[pa.RecordBatch]:
    """The rows of a table as ``ARRIVALS``; columns that arrivals have not are left out."""
    return (batch for file in hour.files[table.name] for batch in rows_of(file, ARRIVALS))


def _lines_of(hour: StoredHour, replay_id: str) -> Iterator[pa.RecordBatch]:
    """The lines that a replay has recovered, as if it had not."""
    number = ARRIVALS.get_field_index("replay_id")
    for batch in _rows(hour, REPLAYED_LINES):
        its = batch.filter(pc.equal(batch["replay_id"], replay_id))
        yield its.set_column(number, ARRIVALS.field(number), pa.nulls(len(its), pa.string()))


def _recovered(hour: StoredHour, parser: LineParser, reasons: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The quarantined lines that are clicks by now."""
    if not parser.source.keep_raw:
        parser = replace(parser, lookups=replace(parser.lookups, derives_visitors=False))
    quarantined = map(pa.Table.from_batches, ([batch] for batch in _rows(hour, QUARANTINED_CLICKS)))
    for parsed in parser.arrivals(_whole_lines(rows, hour.hour, reasons) for rows in quarantined):
        yield from parsed.filter(pc.is_null(parsed["reason"])).to_batches()


def _whole_lines(quarantined: pa.Table, hour: Hour, reasons: Sequence[str]) -> pa.Table:
    """The lines of these reasons whose texts are what they were, as ``LINES``."""
    values = quarantined["raw"].cast(pa.binary())
    # A text that is masked may have another length; one that was removed for its age has none.
    is_uncut = pc.and_(pc.less_equal(quarantined["bytes"], MAX_RAW_CHARACTERS), pc.not_equal(quarantined["raw"], ""))
    is_uncut = pc.or_(is_uncut, pc.equal(pc.binary_length(values), quarantined["bytes"]))
    # Of a line that is not UTF-8 the text is not what it was.
    is_whole = pc.and_(is_uncut, pc.not_equal(quarantined["reason"], "not_utf8"))
    is_asked = pc.is_in(quarantined["reason"], pa.array(reasons)) if reasons else pa.scalar(True)
    asked = quarantined.append_column("value", values).filter(pc.and_(is_whole, is_asked))
    columns = {name: asked[name] for name in ("value", "bytes", "file", "line")}
    columns["hour"] = pa.array(np.full(len(asked), hour.number, np.int32))
    columns["row_id"] = pa.array(np.zeros(len(asked), np.int64))
    return table_of(LINES, columns, len(asked))
