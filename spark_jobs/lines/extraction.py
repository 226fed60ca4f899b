"""How lines of a format are taken apart: what each module of a format gives, and ``formats`` chooses by the source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.duckdb_sql import quoted, run_on_lines
from spark_jobs.lines.columns import as_array, as_numpy

#: Beside the roles, boolean: whether a value is not found where it may be elsewhere in the line.
LESS = "has_less"
#: A text that says nothing: spaces of any kind, control characters, and what has no width.
ONLY_BLANKS = r"^[\p{Z}\p{Cc}\p{Cf}]*$"
#: Which lines are to be looked at again: a function of them and of what was found.
Selection = Callable[[pa.StringArray, Mapping[str, pa.Array]], np.ndarray]


def _as_they_are(texts: pa.StringArray) -> pa.StringArray:
    return texts


@dataclass(frozen=True)
class Extraction:
    """SQL for DuckDB that takes lines apart.

    ``table`` makes a table of ``lines``, whose column ``text`` has a line each, null for those that cannot be read; its
    rows are in the lines' order. ``is_formed`` and ``values`` are expressions of its columns: whether it is a line of
    this format, and the text of each role, null where the line does not have it. A line that is not of the format is
    quarantined as ``not_formed``. ``prepared`` gives the lines as the SQL takes them. ``is_escaped``: bytes in the
    texts may be written with a backslash, as servers do. ``otherwise`` takes apart what this one does not; its roles
    may be more. ``faults`` are more exact reasons than ``not_formed``, each with its expression: the first that holds.
    ``more_care`` are the same for some of the prepared lines, those that each selects and none before it does;
    ``if_error`` for all of them where ``table`` raises an error, as it does where it takes for granted what nearly all
    lines are.

    Roles: ``time``; of the URL ``url`` (a whole one, or a path), or ``path``, or ``request`` (a request line), with
    ``scheme``, ``host`` and ``query``; ``status``, ``client_address``, ``event_id``, ``country``, ``visitor``,
    ``referrer``, ``user_agent``. See ``targets`` for how a URL is made of them.
    """

    not_formed: str
    table: str
    is_formed: str
    values: Mapping[str, str]
    prepared: Callable[[pa.StringArray], pa.StringArray] = _as_they_are
    is_escaped: bool = False
    otherwise: Extraction | None = None
    faults: Mapping[str, str] | None = None
    more_care: tuple[tuple[Selection, Extraction], ...] = ()
    if_error: Extraction | None = None

    @property
    def fault(self) -> str | None:
        """The expression of why a line is not of the format, null for one that is; None if it is ``not_formed``."""
        if self.faults is None:
            return None
        cases = "".join(f" WHEN {condition} THEN {quoted(reason)}" for reason, condition in self.faults.items())
        return f"CASE WHEN {self.is_formed} THEN NULL{cases} ELSE {quoted(self.not_formed)} END"


def first_text(texts: Sequence[str]) -> str:
    """The SQL of the first of several that has a value: one of nothing but blanks is none."""
    if len(texts) == 1:
        return texts[0]
    values = (
        f"CASE WHEN {text} >= '!' AND {text} < chr(127) THEN {text} "
        f"WHEN NOT regexp_matches({text}, {quoted(ONLY_BLANKS)}) THEN {text} END"
        for text in texts
    )
    return f"coalesce({', '.join(values)})"


def take_apart(
    texts: pa.StringArray, extraction: Extraction, select: Callable[[Extraction], str]
) -> dict[str, pa.Array]:
    """What a query finds in lines: its columns, and ``is_formed``, in the lines' order.

    ``select`` gives the query, of a table ``taken`` that has the rows and columns of the extraction's. What is not of
    the format is taken apart ``otherwise``; a column that only that has is null elsewhere.
    """
    lines = extraction.prepared(texts)
    try:
        taken = _taken(lines, extraction, select)
    except duckdb.InvalidInputException:
        if extraction.if_error is None:
            raise
        taken = _taken(lines, extraction.if_error, select)
    columns = {name: as_array(taken[name]) for name in taken.column_names}
    columns["is_formed"] = columns["is_formed"].fill_null(False)
    is_done = np.zeros(len(lines), bool)
    for selection, careful in [(selects(lines, columns), careful) for selects, careful in extraction.more_care]:
        columns = _with_others(columns, selection & ~is_done, lines, careful, select)
        is_done |= selection
    columns.pop(LESS, None)
    if extraction.otherwise is not None:
        is_other = ~as_numpy(columns["is_formed"]) & as_numpy(pc.is_valid(texts))
        columns = _with_others(columns, is_other, texts, extraction.otherwise, select)
    return columns


def _taken(lines: pa.StringArray, extraction: Extraction, select: Callable[[Extraction], str]) -> pa.Table:
    sql = f"WITH taken AS ({extraction.table}) {select(extraction)}"
    return run_on_lines(sql, pa.table({"text": lines}))


def _with_others(
    columns: dict[str, pa.Array],
    are_others: np.ndarray,
    texts: pa.StringArray,
    extraction: Extraction,
    select: Callable[[Extraction], str],
) -> dict[str, pa.Array]:
    """The columns with what another extraction finds in some of the lines in its place."""
    if not are_others.any():
        return columns
    mask = pa.array(are_others)
    for name, values in take_apart(texts.filter(mask), extraction, select).items():
        column = columns[name] if name in columns else pa.nulls(len(texts), values.type)
        if name in columns or np.any(as_numpy(pc.is_valid(values))):
            columns[name] = pc.replace_with_mask(column, mask, values)
    return columns
