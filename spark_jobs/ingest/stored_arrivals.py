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
from pyarrow.parquet import read_table
from pyspark.sql import SparkSession

from include.hours import Hour
from include.storage import filesystem_of, key_of, place
from include.stored_rows import arrow_schema
from include.tables import (
    CLICKS,
    DUPLICATE_CLICKS,
    MAX_RAW_CHARACTERS,
    QUARANTINED_CLICKS,
    REPLAYED_LINES,
    Table,
)
from spark_jobs.engine.worker_tasks import run_tasks, write_scratch
from spark_jobs.lines.arrivals import ARRIVALS, LINE_BITS, LineParser, out_of_order
from spark_jobs.lines.columns import table_of
from spark_jobs.lines.read_lines import LINES
from spark_jobs.lines.repairs import are_at

#: In this order: of an ingest or a replay that was killed an arrival may be in several, and is what the first one says.
_TABLES = (CLICKS, DUPLICATE_CLICKS, QUARANTINED_CLICKS)
_STAGED = pa.schema([("staged", pa.string())])


@dataclass(frozen=True)
class StoredHour:
    """The data files of one log hour, by table; ``number`` is unique among what is staged together.

    ``withdrawn`` is the replay that is being withdrawn, if one is.
    """

    hour: Hour
    number: int
    files: dict[str, list[Path]]
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
        yield {"staged": str(write_scratch(folder, ARRIVALS, [stored_arrivals(hour, parser, reasons)]))}

    return [place(row["staged"]) for row in run_tasks(spark, hours, stage, _STAGED)]


def stored_arrivals(hour: StoredHour, parser: LineParser, reasons: Sequence[str]) -> pa.Table:
    """The arrivals of a log hour, in the order of their places."""
    clicks, duplicates, quarantined = (_rows(hour, table) for table in _TABLES)
    well_formed = pa.concat_tables([clicks, _elsewhere(duplicates, clicks)])
    recovered = ARRIVALS.empty_table()
    if hour.withdrawn is not None:
        is_withdrawn = pc.fill_null(pc.equal(well_formed["replay_id"], hour.withdrawn), False)
        lines = _rows(hour, REPLAYED_LINES, [("replay_id", "=", hour.withdrawn)])
        again = lines.filter(pa.array(are_at(lines, well_formed.filter(is_withdrawn))))
        well_formed = _elsewhere(well_formed, again)
        no_replay = pa.nulls(len(again), pa.string())
        again = again.set_column(ARRIVALS.get_field_index("replay_id"), ARRIVALS.field("replay_id"), no_replay)
        quarantined = pa.concat_tables([again, _elsewhere(quarantined, again)])
    quarantined = _elsewhere(quarantined, well_formed)
    if hour.withdrawn is None:
        recovered = _recovered(hour, quarantined, parser, reasons)
    arrivals = pa.concat_tables([well_formed, recovered, _elsewhere(quarantined, recovered)])
    arrivals = arrivals.sort_by([("file", "ascending"), ("line", "ascending")])
    ids = pa.array((hour.number << LINE_BITS) | np.arange(len(arrivals), dtype=np.int64))
    arrivals = arrivals.set_column(ARRIVALS.get_field_index("row_id"), "row_id", ids)
    lines = arrivals.append_column("hour", pa.array(np.full(len(arrivals), hour.hour.number)))
    return arrivals.set_column(
        ARRIVALS.get_field_index("is_out_of_order"), "is_out_of_order", out_of_order(lines, arrivals, {})
    )


def _rows(hour: StoredHour, table: Table, where: list[tuple[str, str, str]] | None = None) -> pa.Table:
    """The rows of a table as ``ARRIVALS``; what arrivals have not is left out, what the files have not is null."""
    names = [name for name in ARRIVALS.names if name in table.column_names]
    tables = [arrow_schema(table, names).empty_table()]
    for path in hour.files[table.name]:
        rows = read_table(key_of(path), filesystem=filesystem_of(path), partitioning=None, filters=where)
        tables.append(rows.select([name for name in names if name in rows.column_names]))
    rows = pa.concat_tables(tables, promote_options="permissive")
    columns = {name: rows[name].cast(ARRIVALS.field(name).type) for name in names}
    day = pa.array([hour.hour.day] * len(rows), pa.date32())
    return table_of(ARRIVALS, columns | {"log_date": day, "log_hour": [hour.hour.hour] * len(rows)}, len(rows))


def _elsewhere(rows: pa.Table, others: pa.Table) -> pa.Table:
    """The rows that are at no place of the others."""
    return rows.filter(pa.array(~are_at(rows, others)))


def _recovered(hour: StoredHour, quarantined: pa.Table, parser: LineParser, reasons: Sequence[str]) -> pa.Table:
    """The quarantined lines that are clicks by now."""
    if not parser.source.keep_raw:
        parser = replace(parser, lookups=replace(parser.lookups, derives_visitors=False))
    values = quarantined["raw"].cast(pa.binary())
    # A text that is masked may have another length; one that was removed for its age has none.
    is_uncut = pc.and_(pc.less_equal(quarantined["bytes"], MAX_RAW_CHARACTERS), pc.not_equal(quarantined["raw"], ""))
    is_uncut = pc.or_(is_uncut, pc.equal(pc.binary_length(values), quarantined["bytes"]))
    # Of a line that is not UTF-8 the text is not what it was.
    is_whole = pc.and_(is_uncut, pc.not_equal(quarantined["reason"], "not_utf8"))
    is_asked = pc.is_in(quarantined["reason"], pa.array(reasons)) if reasons else pa.scalar(True)
    asked = quarantined.append_column("value", values).filter(pc.and_(is_whole, is_asked))
    lines = table_of(
        LINES,
        {name: asked[name] for name in ("value", "bytes", "file", "line")}
        | {
            "hour": pa.array(np.full(len(asked), hour.hour.number, np.int32)),
            "row_id": pa.array(np.zeros(len(asked), np.int64)),
        },
        len(asked),
    )
    tables = [ARRIVALS.empty_table(), *parser.arrivals([lines])]
    parsed = pa.concat_tables(tables)
    return parsed.filter(pc.is_null(parsed["reason"]))
