"""Rows of the lake's tables that are to be erased: found file by file, and files written again without them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.hours import Hour, click_hour_of
from include.journal import REPLAY
from include.tables import (
    CLICKS,
    CLICKS_BY_URL_LIVE,
    DRAWN_COUNTS,
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
from spark_jobs.erasure.kept_rows import Order, Place, are_at, moved, pieces, written
from spark_jobs.erasure.matches import CLICK_TEXTS, Mask, Matcher
from spark_jobs.erasure.search import texts_of
from spark_jobs.lake.data_files import DataFile, has_log_hours
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.new_files import NewFile
from spark_jobs.lines.columns import as_array
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
        DRAWN_COUNTS,
        RELEASED_CLICKS_BY_COUNTRY_AND_URL_DAILY,
    )
}


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
            for rows in pieces(table, file, _LOOKED_AT[table]):
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
    places = frozenset(selected.places.get(source, {}).get(hour, set()))
    stored = _stored(lake, source, hour)
    joined = join_hour([partial(_with_marks, *part, places) for part in stored], files, matcher)
    for (table, file), numbers, asked in zip(stored, joined.rows, joined.asked, strict=True):
        first = 0
        for rows, known in _with_marks(table, file, places) if numbers else ():
            number = first + np.arange(len(rows))
            first += len(rows)
            _add(selected, table, file, rows.filter(pa.array(np.isin(number, numbers) & ~known)))
            if table != QUARANTINED_CLICKS:
                of_asked = rows.filter(pa.array(np.isin(number, asked)))
                selected.visitors |= set(of_asked["visitor_id"].drop_null().to_pylist())
    return joined.lines, joined.is_whole


def has_landed_clicks(lake: Lake, source: str, hour: Hour, files: Iterable[LandedFile], matcher: Matcher) -> bool:
    """Whether the rows of a log hour are the clicks that its files have."""
    rows = (piece for table, file in _stored(lake, source, hour) for piece in pieces(table, file, _LOOKED_AT[table]))
    return have_the_same(rows, files, matcher)


def _stored(lake: Lake, source: str, hour: Hour) -> list[tuple[Table, DataFile]]:
    return [(table, file) for table in ARRIVALS for file in lake.data_files(table, has_log_hours(source, [hour]))]


def _with_marks(table: Table, file: DataFile, places: Collection[Place]) -> Iterator[tuple[pa.Table, Mask]]:
    for rows in pieces(table, file, _LOOKED_AT[table]):
        yield rows, are_at(rows, places)


def remove_rows(
    lake: Lake, source: str, hours: Collection[Hour], matcher: Matcher, certificate: Certificate, *, is_streamed: bool
) -> None:
    """Write the files of these log hours that have such rows without them: one commit a table.

    What is out of order is found again, as if the lines had never come; of a stream it stays as its micro-batch saw it.
    Those that stay have the numbers that their lines have by now. Killed between two commits, the same again finishes
    it: a commit is known by the erasure, and moves none twice.
    """
    changed: dict[Table, list[tuple[DataFile, list[NewFile]]]] = {table: [] for table in ARRIVALS}
    transaction = certificate.transaction(source)
    done = {table for table in ARRIVALS if transaction.is_in(lake.stored(table))}
    for hour in hours:
        kept = _KeptRows(matcher, *certificate.places_of(source, hour), done)
        files = _stored(lake, source, hour)
        well_formed = [part for part in files if part[0] != QUARANTINED_CLICKS]
        order = None if is_streamed else Order(rows for part in well_formed for _, rows in kept.of(*part))
        for table, file in files:
            kept_of_file = partial(kept.of, table, file, order if table != QUARANTINED_CLICKS else None)
            if any(not rows.equals(former) for former, rows in kept_of_file()):
                changed[table].append((file, written(lake, table, (rows for _, rows in kept_of_file()))))
    for table, files_of_table in changed.items():
        if files_of_table:
            new = [each for _, of_file in files_of_table for each in of_file]
            lake.exchange_files(table, new, [file for file, _ in files_of_table], transaction)


@dataclass(frozen=True)
class _KeptRows:
    """The rows of a log hour that stay: those at ``gone`` go, and ``lines`` of its landed files.

    Of tables in ``done`` both have gone.
    """

    matcher: Matcher
    gone: Collection[Place]
    lines: Mapping[str, Sequence[int]]
    done: Collection[Table]

    def of(self, table: Table, file: DataFile, order: Order | None = None) -> Iterator[tuple[pa.Table, pa.Table]]:
        """The rows of a file as they are, and as they stay."""
        for rows in pieces(table, file):
            mask = _mask(table, rows, self.matcher)
            if table in self.done:
                stay = rows.filter(pa.array(~mask))
            else:
                stay = moved(rows.filter(pa.array(~mask & ~are_at(rows, self.gone))), self.lines)
            yield rows, order.flagged(stay) if order else stay


def redact_others(lake: Lake, matcher: Matcher, counted: set[str]) -> Counter[str]:
    """In all other tables but counts: texts that name what is to go are replaced, or their rows go; how many rows."""
    rows_of_table: Counter[str] = Counter()
    for table in TABLES.values():
        if table in ARRIVALS or table.name in counted:
            continue
        files = [
            (file, rows)
            for file in lake.data_files(table)
            if (rows := sum(int(_names(piece, matcher).sum()) for piece in pieces(table, file)))
        ]
        rows_of_table[table.name] += sum(rows for _, rows in files)
        new = [each for file, _ in files for each in written(lake, table, _redacted_rows(table, file, matcher))]
        if files:
            lake.exchange_files(table, new, [file for file, _ in files])
    return +rows_of_table


def _redacted_rows(table: Table, file: DataFile, matcher: Matcher) -> Iterator[pa.Table]:
    """What is kept of a file."""
    for rows in pieces(table, file):
        mask = pa.array(_names(rows, matcher))
        yield rows.filter(pc.invert(mask))
        if table.name not in _ROWS_GO:
            changed = [_without_rule(_redacted(row, matcher)) for row in rows.filter(mask).to_pylist()]
            yield pa.Table.from_pylist(changed, rows.schema)


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
