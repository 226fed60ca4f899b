"""Rows of the lake's tables that are to be erased: found file by file, and files written again without them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.hours import Hour, click_hour_of
from include.journal import REPLAY
from include.stored_rows import arrow_schema
from include.tables import (
    CLICKS,
    CLICKS_BY_URL_LIVE,
    DUPLICATE_CLICKS,
    OUT_OF_ORDER_KEYS,
    QUARANTINED_CLICKS,
    RELEASED_CLICKS_BY_COUNTRY_AND_URL_DAILY,
    REPLAYED_LINES,
    TABLES,
    VISIBILITY,
    Table,
)
from spark_jobs.erasure.certificate import Certificate
from spark_jobs.erasure.joined import have_the_same, join_hour
from spark_jobs.erasure.matches import CLICK_TEXTS, Mask, Matcher
from spark_jobs.erasure.search import texts_of
from spark_jobs.lake.copied_files import rows_of
from spark_jobs.lake.data_files import DataFile, has_log_hours
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.new_files import NewFile, files_of
from spark_jobs.lines.columns import as_array, as_numpy
from spark_jobs.lines.read_lines import LandedFile

#: The tables of arrivals, a row for each.
ARRIVALS = (CLICKS, DUPLICATE_CLICKS, QUARANTINED_CLICKS)
#: What of their rows says whether they are to go, and what else is to be known of these.
_OF_CLICKS = (*CLICK_TEXTS, "clicked_at", "click_date", "click_hour", "file", "line", "replay_id")
_LOOKED_AT = {CLICKS: _OF_CLICKS, DUPLICATE_CLICKS: _OF_CLICKS, QUARANTINED_CLICKS: ("raw", "file", "line")}
#: What stands in a text's place.
ERASED = "(erased)"
#: Tables whose rows go if they name what is to go.
_ROWS_GO = {
    table.name
    for table in (
        OUT_OF_ORDER_KEYS,
        CLICKS_BY_URL_LIVE,
        *VISIBILITY.values(),
        # Else they would be quarantined again, without their texts, when the replay is withdrawn.
        REPLAYED_LINES,
        RELEASED_CLICKS_BY_COUNTRY_AND_URL_DAILY,
    )
}


#: A file and a line of it.
Place = tuple[str, int]


@dataclass
class SelectedRows:
    """What is to go from the tables of arrivals.

    ``rows`` by table, ``places`` by source and log hour, and ``click_hours`` of these. ``visitors`` are those that
    follow from addresses, ``event_ids`` those of the clicks, by which other tables may show them. ``by_prefix`` has, of
    each source, its clicks and those of each URL prefix.
    """

    rows: Counter[str] = field(default_factory=Counter)
    places: dict[str, dict[Hour, set[Place]]] = field(default_factory=dict)
    click_hours: set[Hour] = field(default_factory=set)
    visitors: set[str] = field(default_factory=set)
    event_ids: set[str] = field(default_factory=set)
    by_prefix: dict[str, Counter[str]] = field(default_factory=dict)


def find_rows(lake: Lake, matcher_of: Callable[[str], Matcher]) -> SelectedRows:
    """Look at all rows of the tables of arrivals, each file once."""
    selected = SelectedRows()
    for table in ARRIVALS:
        for file in lake.data_files(table):
            for rows in _pieces(table, file, _LOOKED_AT[table]):
                _select(selected, table, file, rows, matcher_of(file.partition["source"]))
    return selected


def _select(selected: SelectedRows, table: Table, file: DataFile, rows: pa.Table, matcher: Matcher) -> None:
    mask = _mask(table, rows, matcher)
    if table == CLICKS:
        of_source = selected.by_prefix.setdefault(matcher.source.name, Counter())
        of_source[""] += len(rows)
        for prefix in matcher.requests.url_prefixes:
            of_source[prefix] += int(pc.sum(pc.starts_with(rows["url"], prefix)).as_py() or 0)
    if mask.any():
        selected_rows = rows.filter(pa.array(mask))
        _add(selected, table, file, selected_rows)
        if table != QUARANTINED_CLICKS and matcher.requests.addresses and matcher.source.has_client_address:
            of_visitors = selected_rows.filter(pa.array(matcher.is_derived(selected_rows)))
            selected.visitors |= set(of_visitors["visitor_id"].to_pylist())


def find_joined(
    lake: Lake,
    selected: SelectedRows,
    source: str,
    hour: Hour,
    files: Mapping[LandedFile, set[int]],
    matcher: Matcher,
) -> tuple[dict[LandedFile, set[int]], bool]:
    """Find what else is to go of a log hour, rows by the landed lines that are and lines by the rows.

    Returns all lines that are to go, and whether it can be said which are. Raises OSError if a file cannot be read.
    """
    places = selected.places.get(source, {}).get(hour, set())
    stored, rows = _stored(lake, source, hour)
    known = [_are_at(part, places) for part in rows]
    joined = join_hour(list(zip(rows, known, strict=True)), files, matcher)
    for (table, file), part, mask, before, asked in zip(stored, rows, joined.rows, known, joined.asked, strict=True):
        _add(selected, table, file, part.filter(pa.array(mask & ~before)))
        if table != QUARANTINED_CLICKS:
            selected.visitors |= set(part.filter(pa.array(asked))["visitor_id"].drop_null().to_pylist())
    return joined.lines, joined.is_whole


def has_landed_clicks(lake: Lake, source: str, hour: Hour, files: Iterable[LandedFile], matcher: Matcher) -> bool:
    """Whether the rows of a log hour are the clicks that its files have."""
    return have_the_same(_stored(lake, source, hour)[1], files, matcher)


def _stored(lake: Lake, source: str, hour: Hour) -> tuple[list[tuple[Table, DataFile]], list[pa.Table]]:
    stored = [(table, file) for table in ARRIVALS for file in lake.data_files(table, has_log_hours(source, [hour]))]
    return stored, [_read(table, file, _LOOKED_AT[table]) for table, file in stored]


def remove_rows(
    lake: Lake, source: str, hours: Collection[Hour], matcher: Matcher, certificate: Certificate, *, is_streamed: bool
) -> None:
    """Write the files of these log hours that have such rows without them: one commit a table.

    What is out of order is found again, as if the lines had never come; of a stream it stays as its micro-batch saw it.
    Those that stay have the numbers that their lines have by now. Killed between two commits, the same again finishes
    it: a commit is known by the erasure, and moves none twice.
    """
    changed: dict[Table, list[_Rewritten]] = {table: [] for table in ARRIVALS}
    transaction = certificate.transaction(source)
    moved = {table for table in ARRIVALS if transaction.is_in(lake.stored(table))}
    for hour in hours:
        files = [(table, file) for table in ARRIVALS for file in lake.data_files(table, has_log_hours(source, [hour]))]
        before = [_read(table, file) for table, file in files]
        gone, lines = certificate.places_of(source, hour)
        after = []
        for (table, _), rows in zip(files, before, strict=True):
            mask = _mask(table, rows, matcher)
            if table in moved:
                after.append(rows.filter(pa.array(~mask)))
            else:
                after.append(_moved(rows.filter(pa.array(~mask & ~_are_at(rows, gone))), lines))
        if not is_streamed:
            well_formed = sum(table != QUARANTINED_CLICKS for table, _ in files)
            after[:well_formed] = _in_order_again(after[:well_formed])
        for (table, file), former, rows in zip(files, before, after, strict=True):
            if not rows.equals(former):
                changed[table].append(_Rewritten(file, _written(lake, table, [rows])))
    for table, of_table in changed.items():
        if of_table:
            new, removed = (
                [new for rewritten in of_table for new in rewritten.new],
                [rewritten.file for rewritten in of_table],
            )
            lake.exchange_files(table, new, removed, transaction)


def _are_at(rows: pa.Table, places: Collection[Place]) -> Mask:
    """Which rows are at one of these places."""
    mask = as_numpy(pc.is_in(rows["line"], pa.array({line for _, line in places}, pa.int64()))).copy()
    at = np.flatnonzero(mask)
    some = rows.select(["file", "line"]).take(pa.array(at))
    pairs = zip(some["file"].to_pylist(), some["line"].to_pylist(), strict=True)
    mask[at] = [place in places for place in pairs]
    return mask


def _moved(rows: pa.Table, removed: Mapping[str, Sequence[int]]) -> pa.Table:
    """Rows by the numbers that their lines have, when these have gone from their files."""
    if not removed:
        return rows
    lines = as_numpy(rows["line"]).copy()
    for file, numbers in removed.items():
        of_file = as_numpy(pc.equal(rows["file"], file))
        lines[of_file] -= np.searchsorted(np.array(numbers), lines[of_file])
    return _with_column(rows, "line", pa.array(lines))


class _Rewritten(NamedTuple):
    file: DataFile
    new: list[NewFile]


def _in_order_again(parts: Sequence[pa.Table]) -> list[pa.Table]:
    """The well-formed lines of a log hour, in their parts: whether one before it in its file is of a later time."""
    if not parts:
        return []
    rows = pa.concat_tables(part.select(["file", "line", "clicked_at"]) for part in parts)
    order = as_numpy(pc.sort_indices(rows, [("file", "ascending"), ("line", "ascending")]))
    moment = as_numpy(rows["clicked_at"].cast(pa.int64()))[order]
    file = as_numpy(as_array(rows["file"]).dictionary_encode().indices)[order]
    flags = np.zeros(len(rows), bool)
    for of_file in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(file)) + 1):
        latest = np.maximum.accumulate(moment[of_file])
        flags[order[of_file[1:]]] = moment[of_file][1:] < latest[:-1]
    ends = np.cumsum([len(part) for part in parts])[:-1]
    return [
        _with_column(part, "is_out_of_order", pa.array(of_part))
        for part, of_part in zip(parts, np.split(flags, ends), strict=True)
    ]


def _with_column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    number = table.schema.get_field_index(name)
    return table.set_column(number, table.schema.field(name), values)


def redact_others(lake: Lake, matcher: Matcher, counted: set[str]) -> Counter[str]:
    """In all other tables but counts: texts that name what is to go are replaced, or their rows go; how many rows."""
    rows_of_table: Counter[str] = Counter()
    for table in TABLES.values():
        if table in ARRIVALS or table.name in counted:
            continue
        files = [
            (file, rows)
            for file in lake.data_files(table)
            if (rows := sum(int(_names(piece, matcher).sum()) for piece in _pieces(table, file)))
        ]
        rows_of_table[table.name] += sum(rows for _, rows in files)
        new = [each for file, _ in files for each in _written(lake, table, _redacted_rows(table, file, matcher))]
        if files:
            lake.exchange_files(table, new, [file for file, _ in files])
    return +rows_of_table


def _redacted_rows(table: Table, file: DataFile, matcher: Matcher) -> Iterator[pa.Table]:
    """What is kept of a file."""
    for rows in _pieces(table, file):
        mask = pa.array(_names(rows, matcher))
        yield rows.filter(pc.invert(mask))
        if table.name not in _ROWS_GO:
            changed = [_without_rule(_redacted(row, matcher)) for row in rows.filter(mask).to_pylist()]
            yield pa.Table.from_pylist(changed, rows.schema)


def _pieces(table: Table, file: DataFile, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The rows of a data file, as its table is declared, few at a time."""
    for batch in rows_of(file, arrow_schema(table, columns or table.column_names)):
        yield pa.Table.from_batches([batch])


def _read(table: Table, file: DataFile, columns: Sequence[str] | None = None) -> pa.Table:
    """All rows of a data file, as its table is declared."""
    none = arrow_schema(table, columns or table.column_names).empty_table()
    return pa.concat_tables([none, *_pieces(table, file, columns)]).combine_chunks()


def _mask(table: Table, rows: pa.Table, matcher: Matcher) -> Mask:
    return matcher.of_quarantined(rows["raw"]) if table == QUARANTINED_CLICKS else matcher.of_clicks(rows)


def _add(selected: SelectedRows, table: Table, file: DataFile, rows: pa.Table) -> None:
    if not len(rows):
        return
    selected.rows[table.name] += len(rows)
    places = selected.places.setdefault(file.partition["source"], {}).setdefault(file.log_hour, set())
    places.update(zip(rows["file"].to_pylist(), rows["line"].to_pylist(), strict=True))
    if table == QUARANTINED_CLICKS:
        return
    hours = rows.group_by(["click_date", "click_hour"]).aggregate([]).to_pylist()
    selected.click_hours |= {click_hour_of(row) for row in hours}
    selected.event_ids |= set(rows["event_id"].drop_null().to_pylist())


def _names(rows: pa.Table, matcher: Matcher) -> Mask:
    """Which rows name what is to go, in any text."""
    if not any(matcher.of_texts(text).any() for column in rows.columns for text in texts_of(as_array(column))):
        return np.zeros(len(rows), bool)
    return np.array([_redacted(row, matcher) != row for row in rows.to_pylist()], bool)


def _redacted(value: Any, matcher: Matcher) -> Any:
    if isinstance(value, str):
        return ERASED if matcher.of_texts(pa.array([value])).any() else value
    if isinstance(value, dict):
        return {name: _redacted(part, matcher) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_redacted(part, matcher) for part in value)
    return value


def _without_rule(row: dict[str, Any]) -> dict[str, Any]:
    """Of a replay whose rule names somebody: it repairs nothing any more, where no ingest could apply what is left."""
    if row.get("kind") != REPLAY:
        return row
    return row | {"details": [detail for detail in row["details"] if detail != ("rule", ERASED)]}


def _written(lake: Lake, table: Table, rows: Iterable[pa.Table]) -> list[NewFile]:
    """The new files of these rows of a partition: none of no rows."""
    batches = (batch for part in rows for batch in part.to_batches() if batch.num_rows)
    return list(files_of(batches, table, lake.folder_for_files(table)))
