"""Headers: lines of a file that say what the columns of those after them are.

W3C's ``#Fields:`` may come again, with other columns; the first line of a CSV may, where files were put together. What
is in force goes on over the pieces of a file, and ends with it. Of W3C it is two lines where another says of which zone
the times are: that one, which holds until the next of its kind, and ``#Fields:``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.delimited import DelimitedLines
from include.sources import Source
from spark_jobs.lines.columns import as_array, as_numpy
from spark_jobs.lines.delimited_lines import columns_of_header, separator_line

#: More columns of ``LINES``: the header in force at a line, null where there is none, and whether the line is one, or
#: a comment: no click, and no broken line.
HEADER, IS_HEADER = "header", "is_header"
_HEADERS = pa.dictionary(pa.int32(), pa.string())
Place = tuple[str, int]

_OF_ZONE = r"#[ \t]*(?:GMT[-_ ]?Offset|Time[-_ ]?Format)[ \t]*:"
_UTC = r"[ \t]*(?:UTC|GMT|Z)?[ \t]*(?:[+-]?0+(?::?0+)?|-)?[ \t\r]*(?:\n|\Z)"
#: The line of a W3C log's header that says that its times are local: of a zone that is not UTC.
LOCAL_TIMES = rf"(?i:{_OF_ZONE}(?!{_UTC}))"
_SAYS_ZONE, _SAYS_LOCAL = re.compile(_OF_ZONE, re.IGNORECASE), re.compile(LOCAL_TIMES)


def with_headers(tables: Iterable[pa.Table], source: Source) -> Iterable[pa.Table]:
    """Tables of ``LINES``, of each file in its order, with their headers; as they are, if the source's have none."""
    headers = Headers.of(source)
    return tables if headers is None else map(headers.added, tables)


def by_header(
    texts: pa.StringArray, lines: pa.Table, take: Callable[[str | None, pa.StringArray], dict[str, pa.Array]]
) -> dict[str, pa.Array]:
    """The columns that ``take`` gives for the texts of lines with the same header in force; in the lines' order."""
    if HEADER not in lines.column_names or not len(lines):
        return take(None, texts)
    headers = as_array(lines[HEADER])
    number = as_numpy(headers.indices.fill_null(-1))
    order = np.argsort(number, kind="stable")
    distinct, starts = np.unique(number[order], return_index=True)
    names = [None if code < 0 else headers.dictionary[code].as_py() for code in distinct.tolist()]
    if len(names) == 1:
        return take(names[0], texts)
    parts = [take(name, texts.take(pa.array(at))) for name, at in zip(names, np.split(order, starts[1:]), strict=True)]
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return {name: pa.concat_arrays([part[name] for part in parts]).take(pa.array(place)) for name in parts[0]}


def says_local_times(lines: pa.Table) -> np.ndarray[Any, Any]:
    """Of which lines the header in force says that their times are local."""
    if HEADER not in lines.column_names:
        return np.zeros(len(lines), bool)
    headers = as_array(lines[HEADER])
    is_local = [_SAYS_LOCAL.match(header) is not None for header in headers.dictionary.to_pylist()]
    of_header: np.ndarray[Any, Any] = np.array([*is_local, False], bool)
    return of_header.take(as_numpy(headers.indices.fill_null(-1)))


class Headers:
    """The header in force at the last line of each file and log hour so far; None where there is none."""

    def __init__(self, settings: DelimitedLines) -> None:
        self._settings = settings
        self._last: dict[Place, str | None] = {}
        self._last_zones: dict[Place, str | None] = {}
        self._lines = 0

    @classmethod
    def of(cls, source: Source) -> Headers | None:
        """None if its lines have no headers."""
        return cls(source.delimited) if source.delimited and source.delimited.has_header else None

    def added(self, lines: pa.Table) -> pa.Table:
        """The next lines, with the columns ``HEADER`` and ``IS_HEADER``."""
        lines = lines.combine_chunks()
        if not len(lines):
            empty = pa.DictionaryArray.from_arrays(pa.array([], pa.int32()), pa.array([], pa.string()))
            return lines.append_column(HEADER, empty).append_column(IS_HEADER, pa.array([], pa.bool_()))
        values = as_array(lines["value"])
        headers, zones, is_comment = self._seen_headers(values, as_numpy(lines["line"]))
        codes, known = _in_force(lines, headers, self._last)
        is_header = is_comment | self._is_repeated(lines, values, codes, known)
        if len(zones.at) or self._last_zones:
            codes, known = _joined(*_in_force(lines, zones, self._last_zones), codes, known)
        header = pa.DictionaryArray.from_arrays(
            pa.array(codes, pa.int32(), mask=codes < 0), pa.array(known, pa.string())
        )
        return lines.append_column(HEADER, header).append_column(IS_HEADER, pa.array(is_header))

    def of_one_file(self, lines: pa.Table) -> pa.Table:
        """The next lines of the only file, of which ``value`` and ``bytes`` are needed; see ``added``."""
        first = self._lines + 1
        self._lines += len(lines)
        places = {
            "hour": pa.array(np.zeros(len(lines), np.int32)),
            "file": pa.array([""] * len(lines)),
            "line": pa.array(np.arange(first, first + len(lines))),
        }
        for name, column in places.items():
            lines = lines.append_column(name, column)
        return self.added(lines)

    def skip(self) -> None:
        """What comes next of the only file is no header, and so not its first line."""
        self._lines += 1

    def _seen_headers(
        self, values: pa.BinaryArray, line: np.ndarray[Any, Any]
    ) -> tuple[_SeenHeaders, _SeenHeaders, np.ndarray[Any, Any]]:
        """The headers among the lines, those that say a zone, and which lines are comments, these included."""
        if self._settings.format == "w3c":
            is_comment = as_numpy(pc.starts_with(values, b"#"))
            at = np.flatnonzero(is_comment)
            # A blank line is one of the header, where it stands in it.
            is_comment = _with_blanks(values, is_comment)
        else:
            at = np.flatnonzero(line == 1)
            is_comment = np.zeros(len(values), bool)
            # Excel's word for the delimiter, before the header.
            says = as_numpy(pc.match_substring_regex(values.take(pa.array(at)), separator_line(self._settings)))
            is_comment[at[says]] = True
            at = np.concatenate([at[~says], np.intersect1d(at[says] + 1, np.flatnonzero(line == 2))])
        encoded = values.take(pa.array(at)).dictionary_encode()
        texts = [value.decode("utf-8", "replace").strip("\r\n") for value in encoded.dictionary.to_pylist()]
        of_text = as_numpy(encoded.indices)

        def seen(are: list[bool]) -> _SeenHeaders:
            is_one = np.array(are, bool)[of_text] if len(at) else np.zeros(0, bool)
            return _SeenHeaders(at[is_one], of_text[is_one], texts)

        headers = seen([columns_of_header(self._settings, text) is not None for text in texts])
        zones = seen([self._settings.format == "w3c" and _SAYS_ZONE.match(text) is not None for text in texts])
        is_comment[headers.at] = True
        return headers, zones, is_comment

    def _is_repeated(
        self, lines: pa.Table, values: pa.BinaryArray, codes: np.ndarray[Any, Any], known: list[str]
    ) -> np.ndarray[Any, Any]:
        """Which lines are the header in force again: in files that were put together."""
        is_header = np.zeros(len(lines), bool)
        if self._settings.format == "w3c":
            return is_header
        length = as_numpy(lines["bytes"])
        for code in np.unique(codes[codes >= 0]).tolist():
            header = known[code].encode()
            at = np.flatnonzero((codes == code) & (length == len(header)))
            if len(at):
                is_header[at] = as_numpy(pc.starts_with(values.take(pa.array(at)), header))
        return is_header


@dataclass(frozen=True)
class _SeenHeaders:
    """Where headers stand, and which of ``texts`` each is."""

    at: np.ndarray[Any, Any]
    of_text: np.ndarray[Any, Any]
    texts: list[str]


def _in_force(
    lines: pa.Table, headers: _SeenHeaders, last_of: dict[Place, str | None]
) -> tuple[np.ndarray[Any, Any], list[str]]:
    """The number of the header in force at each line, below 0 where there is none; and the headers.

    ``last_of`` has the last one of each place, before these lines and after.
    """
    known = dict.fromkeys(headers.texts)
    number = {text: place for place, text in enumerate(known)}
    of_line = np.full(len(lines), -1, np.int64)
    of_line[headers.at] = (
        np.array([number[text] for text in headers.texts], np.int64)[headers.of_text] if len(headers.at) else 0
    )
    file, hour, line = as_array(lines["file"]).dictionary_encode(), as_numpy(lines["hour"]), as_numpy(lines["line"])
    of_file = as_numpy(file.indices)
    starts = np.flatnonzero(np.append(True, (np.diff(of_file) != 0) | (np.diff(hour) != 0)))
    ends = np.append(starts[1:], len(lines))
    names = file.dictionary.to_pylist()
    places: list[Place] = list(zip([names[n] for n in of_file[starts].tolist()], hour[starts].tolist(), strict=True))
    carried = [
        None if first == 1 else last_of.get(place) for place, first in zip(places, line[starts].tolist(), strict=True)
    ]
    for text in carried:
        if text is not None:
            number.setdefault(text, len(number))
    at_start = np.array([-1 if text is None else number[text] for text in carried], np.int64)
    run = np.repeat(np.arange(len(starts)), ends - starts)
    last = np.maximum.accumulate(np.where(of_line >= 0, np.arange(len(lines)), -1))
    codes = np.where(last >= starts[run], of_line[last], at_start[run])
    texts = list(number)
    last_of.update(
        (place, None if code < 0 else texts[code]) for place, code in zip(places, codes[ends - 1].tolist(), strict=True)
    )
    return codes, texts


def _joined(
    zone_codes: np.ndarray[Any, Any], zones: list[str], codes: np.ndarray[Any, Any], headers: list[str]
) -> tuple[np.ndarray[Any, Any], list[str]]:
    """The same of both kinds together: the line of the zone, then the columns'."""
    pairs, joined = np.unique((zone_codes + 1) * (len(headers) + 1) + codes + 1, return_inverse=True)
    both = [divmod(pair, len(headers) + 1) for pair in pairs.tolist()]
    texts = ["\n".join([*zones[zone - 1 : zone], *headers[code - 1 : code]]) for zone, code in both]
    return np.where(np.array(pairs) > 0, np.arange(len(pairs)), -1)[joined], texts


def _with_blanks(values: pa.BinaryArray, is_comment: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    few = as_numpy(pc.less_equal(pc.binary_length(values), 8))
    blank = np.zeros(len(values), bool)
    at = np.flatnonzero(few & ~is_comment)
    if len(at):
        blank[at] = [not value.strip() for value in values.take(pa.array(at)).to_pylist()]
    last = np.maximum.accumulate(np.where(~blank, np.arange(len(values)), -1))
    is_comment |= (last >= 0) & is_comment[last]
    return is_comment
