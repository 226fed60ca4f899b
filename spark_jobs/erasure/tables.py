"""Rows of the lake's tables that are to be erased: found file by file, and files written again without them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import ParquetFile

from include.log_hours import Hour
from include.stored_rows import arrow_schema
from include.tables import CLICKS, DUPLICATE_CLICKS, OUT_OF_ORDER_KEYS, QUARANTINED_CLICKS, TABLES, Table
from spark_jobs.erasure.matches import Mask, Matcher
from spark_jobs.erasure.search import texts_of
from spark_jobs.ingest.columns import as_array, table_of
from spark_jobs.lake.data_files import DataFile
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.new_files import NewFile, files_of

#: The tables of arrivals, a row for each.
ARRIVALS = (CLICKS, DUPLICATE_CLICKS, QUARANTINED_CLICKS)
#: What stands in a text's place.
ERASED = "(erased)"
#: Tables whose rows go if they name what is to go.
_ROWS_GO = {OUT_OF_ORDER_KEYS.name}


@dataclass
class FoundRows:
    """What is to go from the tables of arrivals.

    ``rows`` by table, ``files`` that have some, ``log_hours`` by source, and ``click_hours`` of these. ``visitors`` are
    those that follow from addresses. ``by_prefix`` has, of each source, its clicks and those of each URL prefix.
    """

    rows: Counter[str] = field(default_factory=Counter)
    files: dict[str, list[DataFile]] = field(default_factory=dict)
    log_hours: dict[str, set[Hour]] = field(default_factory=dict)
    click_hours: set[Hour] = field(default_factory=set)
    visitors: set[str] = field(default_factory=set)
    by_prefix: dict[str, Counter[str]] = field(default_factory=dict)


def find_rows(lake: Lake, matcher_of: Callable[[str], Matcher]) -> FoundRows:
    """Look at all rows of the tables of arrivals, each file once."""
    found = FoundRows()
    for table in ARRIVALS:
        for file in lake.data_files(table):
            matcher = matcher_of(file.partition["source"])
            rows = _read(table, file)
            mask = _mask(table, rows, matcher)
            if table == CLICKS:
                of_source = found.by_prefix.setdefault(matcher.source.name, Counter())
                of_source[""] += len(rows)
                for prefix in matcher.requests.url_prefixes:
                    of_source[prefix] += int(pc.sum(pc.starts_with(rows["url"], prefix)).as_py() or 0)
            if mask.any():
                _add(found, table, file, rows.filter(pa.array(mask)), matcher)
    return found


def remove_rows(
    lake: Lake, found: FoundRows, matcher_of: Callable[[str], Matcher], is_ours: Mapping[str, set[Hour]]
) -> None:
    """Write the files of these log hours that have such rows without them: one commit a table.

    Clicks come first: where that ends, the other tables are found again by the same requests.
    """
    for table in ARRIVALS:
        ours = [
            file
            for file in found.files.get(table.name, [])
            if file.log_hour in is_ours.get(file.partition["source"], set())
        ]

        def kept(file: DataFile, table: Table = table) -> pa.Table:
            rows = _read(table, file)
            return rows.filter(pa.array(~_mask(table, rows, matcher_of(file.partition["source"]))))

        _exchange(lake, table, ours, kept)


def redact_others(lake: Lake, matcher: Matcher, counted: set[str]) -> Counter[str]:
    """In all other tables but counts: texts that name what is to go are replaced, or their rows go; how many rows."""
    found: Counter[str] = Counter()
    for table in TABLES.values():
        if table in ARRIVALS or table.name in counted:
            continue
        files = [
            (file, int(mask.sum()))
            for file in lake.data_files(table)
            if (mask := _names(_read(table, file), matcher)).any()
        ]
        found[table.name] += sum(number for _, number in files)

        def redacted(file: DataFile, table: Table = table) -> pa.Table:
            rows = _read(table, file)
            mask = pa.array(_names(rows, matcher))
            kept = rows.filter(pc.invert(mask))
            if table.name in _ROWS_GO or table.name.endswith("_live"):
                return kept
            changed = [_redacted(row, matcher) for row in rows.filter(mask).to_pylist()]
            return pa.concat_tables([kept, pa.Table.from_pylist(changed, rows.schema)])

        _exchange(lake, table, [file for file, _ in files], redacted)
    return +found


def _read(table: Table, file: DataFile) -> pa.Table:
    schema = arrow_schema(table, table.column_names)
    with file.path.open("rb") as stream:
        rows = ParquetFile(stream).read()
    columns: dict[str, Any] = {
        name: rows[name].cast(schema.field(name).type) for name in rows.column_names if name in schema.names
    }
    for name, value in file.partition.items():
        columns[name] = pa.array([value] * len(rows), schema.field(name).type)
    return table_of(schema, columns, len(rows))


def _mask(table: Table, rows: pa.Table, matcher: Matcher) -> Mask:
    return matcher.of_quarantined(rows["raw"]) if table == QUARANTINED_CLICKS else matcher.of_clicks(rows)


def _add(found: FoundRows, table: Table, file: DataFile, rows: pa.Table, matcher: Matcher) -> None:
    found.rows[table.name] += len(rows)
    found.files.setdefault(table.name, []).append(file)
    found.log_hours.setdefault(file.partition["source"], set()).add(file.log_hour)
    if table == QUARANTINED_CLICKS:
        return
    hours = rows.group_by(["click_date", "click_hour"]).aggregate([]).to_pylist()
    found.click_hours |= {Hour.of(row["click_date"], row["click_hour"]) for row in hours}
    if matcher.requests.addresses and matcher.parser.lookups.needs_clients:
        found.visitors |= set(pc.unique(rows["visitor_id"].drop_null()).to_pylist())


def _names(rows: pa.Table, matcher: Matcher) -> Mask:
    """Which rows name what is to go, in any text."""
    if not any(matcher.of_texts(text).any() for column in rows.columns for text in texts_of(as_array(column))):
        return np.zeros(len(rows), bool)
    return np.array([_redacted(row, matcher) != row for row in rows.to_pylist()], bool)


def _redacted(value: Any, matcher: Matcher) -> Any:
    if isinstance(value, str):
        return ERASED if matcher.of_texts(pa.array([value])).any() else value
    if isinstance(value, dict):
        return {name: _redacted(one, matcher) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_redacted(one, matcher) for one in value)
    return value


def _exchange(lake: Lake, table: Table, files: list[DataFile], kept: Callable[[DataFile], pa.Table]) -> None:
    """Write each of these files again with what is kept of it, and exchange them in one commit."""
    if not files:
        return
    folder = lake.folder_for_files(table)
    new: list[NewFile] = []
    for file in files:
        new += files_of(kept(file).combine_chunks().to_batches(), table, folder)
    lake.exchange_files(table, new, files)
