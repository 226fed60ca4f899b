"""Rows and the landed lines that they come from: by their place in the log hour, so that each finds the other.

A place is a file and a line of it. The file may have been written again since, or under another name: so what they say
is compared too, and what is at another place of the hour is found by that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from secrets import token_bytes
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.erasure.landing import pieces_of
from spark_jobs.erasure.matches import Mask, Matcher
from spark_jobs.lines.columns import as_numpy
from spark_jobs.lines.parse_lines import parse_lines
from spark_jobs.lines.read_lines import LandedFile

_COMPARED = {"clicked_at": pa.int64(), "event_id": pa.string(), "user_agent": pa.string()}


#: Gives some rows, bit by bit and the same each time, with what is marked of them.
Part = Callable[[], Iterable[tuple[pa.Table, Mask]]]


@dataclass
class _Arrival:
    """A row or a line, ``number`` in its part, from 0.

    ``compared`` are moment, event id and user agent of a click; null for what is no click, or was none before a replay
    recovered it. ``text`` is the URL, or the line that is no click; null if it is not known. ``is_asked``: of an
    address that is asked for, from which its visitor follows.
    """

    part: int
    number: int
    file: str
    line: int
    compared: tuple[Any, ...]
    text: str | None
    is_marked: bool
    is_asked: bool = False


@dataclass
class JoinedHour:
    """What is to go of a log hour: the lines of its files, and the numbers of each part's rows, from 0.

    ``asked`` are those of these that are ``is_asked``.
    ``is_whole`` unless it cannot be said which line is that of a row that goes, or the other way round.
    """

    lines: dict[LandedFile, set[int]]
    rows: list[list[int]]
    asked: list[list[int]]
    is_whole: bool


def join_hour(rows: Sequence[Part], files: Mapping[LandedFile, set[int]], matcher: Matcher) -> JoinedHour:
    """Join rows, in parts with what is marked of each, with all files of their log hour and the marked lines of each.

    In memory are those that are marked, and those of the same moments.

    Raises:
        OSError: if a file cannot be read.
    """
    marked, numbers = _Marked(), list(files)
    for part in rows:
        for piece, mask in part():
            marked.add(_of_rows(piece).filter(pa.array(mask)))
    for file, of_file in files.items():
        for lines in _lines(file, matcher) if of_file else ():
            marked.add(lines.filter(pc.is_in(lines["line"], pa.array(of_file, pa.int64()))))
    of_rows: list[_Arrival] = []
    for part_number, part in enumerate(rows):
        first = 0
        for piece, mask in part():
            of_rows += marked.alike(part_number, _of_rows(piece), mask, first)
            first += len(piece)
    of_lines = [
        arrival
        for number, file in enumerate(numbers)
        for lines in _lines(file, matcher)
        for arrival in marked.alike(number, lines, as_numpy(pc.is_in(lines["line"], pa.array(files[file], pa.int64()))))
    ]
    is_whole = _mark_alike(of_lines, of_rows)
    lines_of_file: dict[LandedFile, set[int]] = defaultdict(set)
    for arrival in of_lines:
        if arrival.is_marked:
            lines_of_file[numbers[arrival.part]].add(arrival.line)
    joined = JoinedHour(dict(lines_of_file), [[] for _ in rows], [[] for _ in rows], is_whole)
    for arrival in of_rows:
        if arrival.is_marked:
            joined.rows[arrival.part].append(arrival.number)
        if arrival.is_asked:
            joined.asked[arrival.part].append(arrival.number)
    return joined


def have_the_same(rows: Iterable[pa.Table], files: Iterable[LandedFile], matcher: Matcher) -> bool:
    """Whether the files of a log hour have the clicks that the rows are, each as often: no line of one that went."""
    # Nobody who writes lines knows it, and so none whose digests add up to the same.
    key = token_bytes(32)

    def digest(arrivals: Iterable[pa.Table]) -> int:
        compared = (part.filter(pc.is_valid(part["clicked_at"])).select([*_COMPARED, "text"]) for part in arrivals)
        clicks = (repr(click) for part in compared for click in zip(*part.to_pydict().values(), strict=True))
        return sum(int.from_bytes(blake2b(click.encode(), digest_size=32, key=key).digest()) for click in clicks)

    of_files = (lines for file in files for lines in _lines(file, matcher, are_counted=True))
    return digest(map(_of_rows, rows)) == digest(of_files)


def _mark_alike(lines: list[_Arrival], rows: list[_Arrival]) -> bool:
    """Mark the rows of marked lines, and the lines of marked rows; whether it can be said which these are."""
    is_whole = True
    by: tuple[Callable[[_Arrival], Hashable], ...] = (
        lambda arrival: (arrival.file, arrival.line, arrival.compared, arrival.text),
        lambda arrival: (arrival.file, arrival.line, arrival.compared),
        lambda arrival: (arrival.compared, arrival.text),
    )
    for same in by:
        together: dict[Hashable, tuple[list[_Arrival], list[_Arrival]]] = defaultdict(lambda: ([], []))
        for arrival in lines:
            together[same(arrival)][0].append(arrival)
        for arrival in rows:
            together[same(arrival)][1].append(arrival)
        lines, rows = [], []
        for of_lines, of_rows in together.values():
            if not of_lines or not of_rows:
                lines += of_lines
                rows += of_rows
            elif len(of_lines) >= len(of_rows) and all(arrival.is_marked for arrival in of_lines):
                for arrival in of_rows:
                    arrival.is_marked, arrival.is_asked = True, all(line.is_asked for line in of_lines)
            elif len(of_rows) >= len(of_lines) and all(arrival.is_marked for arrival in of_rows):
                for arrival in of_lines:
                    arrival.is_marked = True
            else:
                is_whole &= sum(arrival.is_marked for arrival in of_lines) == sum(
                    arrival.is_marked for arrival in of_rows
                )
    # The same click by another URL, as settings have changed, in another file.
    clicks = [{arrival.compared for arrival in side if any(arrival.compared)} for side in (lines, rows)]
    return is_whole and not any(
        arrival.is_marked and arrival.compared in clicks[0] & clicks[1] for arrival in (*lines, *rows)
    )


@dataclass
class _Marked:
    """By what arrivals are alike those that are marked: moments of clicks; lines and texts of what is none."""

    moments: set[Any] = field(default_factory=set)
    lines: set[int] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)

    def add(self, arrivals: pa.Table) -> None:
        others = arrivals.filter(pc.is_null(arrivals["clicked_at"]))
        self.moments.update(arrivals["clicked_at"].drop_null().to_pylist())
        self.lines.update(others["line"].to_pylist())
        self.texts.update(others["text"].drop_null().to_pylist())

    def alike(self, part: int, arrivals: pa.Table, is_marked: Mask, first: int = 0) -> Iterable[_Arrival]:
        is_click = as_numpy(pc.is_valid(arrivals["clicked_at"]))
        chosen = as_numpy(pc.is_in(arrivals["clicked_at"], pa.array(self.moments, pa.int64()))) & is_click
        for name, values, kind in (("line", self.lines, pa.int64()), ("text", self.texts, pa.string())):
            chosen = chosen | (as_numpy(pc.is_in(arrivals[name], pa.array(values, kind))) & ~is_click)
        numbers = np.flatnonzero(chosen)
        for number, row in zip(numbers.tolist(), arrivals.take(pa.array(numbers)).to_pylist(), strict=True):
            compared = (row["clicked_at"], row["event_id"], row["user_agent"])
            yield _Arrival(
                part, first + number, row["file"], row["line"], compared, row["text"], bool(is_marked[number]),
                row["is_asked"],
            )  # fmt: skip


def _lines(file: LandedFile, matcher: Matcher, *, are_counted: bool = False) -> Iterable[pa.Table]:
    """All lines of a file, or those that the source's rules count."""
    source = matcher.source if are_counted else matcher.source.without_rules()
    for piece in pieces_of(file, source):
        parsed = parse_lines(piece, source, matcher.parser.tracking_parameters)
        yield _comparable(parsed, as_numpy(pc.is_null(parsed["reason"])), matcher.gives_visitor(parsed))


def _of_rows(rows: pa.Table) -> pa.Table:
    nothing = np.zeros(len(rows), bool)
    return _comparable(
        rows, as_numpy(pc.is_null(rows["replay_id"])) if "url" in rows.column_names else nothing, nothing
    )


def _comparable(arrivals: pa.Table, is_click: Mask, is_asked: Mask) -> pa.Table:
    """Clicks by what they say, others by their text: of the columns of clicks, quarantined lines or both."""

    def column(name: str, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
        return arrivals[name].cast(kind) if name in arrivals.column_names else pa.nulls(len(arrivals), kind)

    return pa.table(
        {
            "file": arrivals["file"],
            "line": arrivals["line"],
            "is_asked": pa.array(is_asked),
            "text": pc.if_else(pa.array(is_click), column("url", pa.string()), column("raw", pa.string())),
            **{name: pc.if_else(pa.array(is_click), column(name, kind), None) for name, kind in _COMPARED.items()},
        }
    )
