"""Landed files as tables of lines, in memory that does not grow with a file's size or a line's length."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.hours import Hour
from include.landing import printed_name
from include.tables import MAX_RAW_CHARACTERS
from spark_jobs.lines.columns import as_array
from spark_jobs.lines.cut_lines import PIECE_BYTES, cut_at_lines, without_marks
from spark_jobs.lines.decompress import DamagedFileError, decompressed
from spark_jobs.lines.plain_text import plain_text

#: Lines as ``parse_lines`` takes them. ``value`` has the line's bytes, its end included or not; of a line longer than
#: a piece only the first. ``bytes`` is its length without the end. ``hour`` is the log hour since 1970.
LINES = pa.schema(
    [
        ("value", pa.binary()),
        ("bytes", pa.int64()),
        ("hour", pa.int32()),
        ("file", pa.string()),
        ("line", pa.int64()),
        ("row_id", pa.int64()),
    ]
)

#: So much of a line that is longer than a piece is kept: all that quarantine shows, at four bytes a character.
_KEPT_BYTES = 4 * MAX_RAW_CHARACTERS
_NEW_LINE, _CARRIAGE_RETURN = 10, 13
#: A character of no text; records in Avro and Protobuf have some, behind the id of a schema.
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")


@dataclass(frozen=True)
class LandedFile:
    """A file of the landing zone; ``number`` is unique among those that are read together."""

    path: Path
    hour: Hour
    number: int = 0

    @property
    def name(self) -> str:
        """The file's name as tables have it."""
        return printed_name(self.path)


@dataclass
class ReadFile:
    """What was read of a file: its lines, and their bytes without the line ends. ``damage`` says why it breaks off."""

    file: LandedFile
    lines: int = 0
    bytes: int = 0
    damage: str | None = None


#: Numbers for lines of a file, given those that they have in it.
RowIds = Callable[[LandedFile, np.ndarray], np.ndarray]


def read_lines(read: ReadFile) -> Iterator[pa.Table]:
    """The lines of a file, ``LINES``' columns but for ``row_id``; fills in ``read`` meanwhile.

    Of a damaged file the lines before the damage, the one that breaks off included.

    Raises:
        OSError: if the file cannot be read.
    """
    return (lines.drop_columns("row_id") for lines in read_together([read], lambda _, numbers: numbers))


def read_together(reads: Iterable[ReadFile], row_ids: RowIds) -> Iterator[pa.Table]:
    """The lines of files, as ``LINES``, of each file in its order; fills in ``reads`` as it gives the lines.

    Many small files are one table: to make one for each takes longer than to parse its lines.

    Raises:
        OSError: if one cannot be read; of a damaged one what comes before the damage is read.
    """
    waiting = _Waiting(row_ids)
    for read in reads:
        too_long: _TooLong | None = None
        for piece, is_whole in cut_at_lines(_content(read)):
            if is_whole:
                waiting.add(read, piece)
                if waiting.size_bytes >= PIECE_BYTES:
                    yield waiting.taken()
                continue
            too_long = too_long or _TooLong(piece[:_KEPT_BYTES])
            too_long.add(piece.removesuffix(b"\n"))
            if piece.endswith(b"\n"):
                yield from waiting.with_line(read, too_long)
                too_long = None
        if too_long is not None:
            yield from waiting.with_line(read, too_long)
    if waiting.size_bytes:
        yield waiting.taken()


class _Waiting:
    """Whole lines of one file or several, which become one table."""

    def __init__(self, row_ids: RowIds) -> None:
        self._row_ids = row_ids
        self._parts: list[tuple[ReadFile, bytes]] = []
        self.size_bytes = 0

    def add(self, read: ReadFile, lines: bytes) -> None:
        """The next lines of a file."""
        if self._parts and not self._parts[-1][1].endswith(b"\n"):
            self._parts[-1] = (self._parts[-1][0], self._parts[-1][1] + b"\n")
        self._parts.append((read, lines))
        self.size_bytes += len(lines)

    def with_line(self, read: ReadFile, line: _TooLong) -> Iterator[pa.Table]:
        """What waits, and then the line after it."""
        if self.size_bytes:
            yield self.taken()
        yield self._table(*line.as_line(), [read], np.array([0]))

    def taken(self) -> pa.Table:
        """What waits; nothing does any more."""
        value, lengths = lines_of(b"".join(lines for _, lines in self._parts))
        ends = np.cumsum([0, *(len(lines) for _, lines in self._parts)])
        starts = np.searchsorted(np.frombuffer(value.buffers()[1], np.int32), ends[:-1])
        reads = [read for read, _ in self._parts]
        self._parts, self.size_bytes = [], 0
        return self._table(value, lengths, reads, starts)

    def _table(self, value: pa.Array, lengths: np.ndarray, reads: Sequence[ReadFile], starts: np.ndarray) -> pa.Table:
        """The lines, of which those of each file, at least one, begin at its start; they count as read."""
        counts = np.diff(np.append(starts, len(lengths)))
        numbers, row_ids = [], []
        for read, count, size in zip(reads, counts.tolist(), np.add.reduceat(lengths, starts).tolist(), strict=True):
            numbers.append(np.arange(read.lines + 1, read.lines + 1 + count, dtype=np.int64))
            row_ids.append(self._row_ids(read.file, numbers[-1]))
            read.lines += count
            read.bytes += size
        of_file = np.repeat(np.arange(len(reads), dtype=np.int32), counts)
        names = pa.DictionaryArray.from_arrays(of_file, pa.array([read.file.name for read in reads]))
        hours = np.array([read.file.hour.number for read in reads], np.int32)
        columns = [value, lengths, hours[of_file], names.dictionary_decode(), np.concatenate(numbers)]
        return pa.table([*map(pa.array, columns), pa.array(np.concatenate(row_ids))], schema=LINES)


def _content(read: ReadFile) -> Iterator[bytes]:
    with read.file.path.open("rb") as file:
        try:
            yield from decompressed(file, read.file.path.name)
        except DamagedFileError as error:
            read.damage = str(error)


@dataclass
class _TooLong:
    """A line that is longer than a piece: its first bytes, and how many there are."""

    first: bytes
    length: int = 0
    last: int = 0

    def add(self, more: bytes) -> None:
        if more:
            self.length += len(more)
            self.last = more[-1]

    def as_line(self) -> tuple[pa.Array, np.ndarray]:
        length = self.length - (self.last == _CARRIAGE_RETURN)
        return pa.array([self.first], pa.binary()), np.array([length], np.int64)


def lines_of(data: bytes) -> tuple[pa.Array, np.ndarray]:
    """Whole lines' bytes, ends included, and their lengths without them; the bytes are not copied."""
    content = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(content == _NEW_LINE) + 1
    has_end = np.ones(len(ends), np.int64)
    if not len(ends) or ends[-1] < len(content):  # the last line of a file may have no end
        ends, has_end = np.append(ends, len(content)), np.append(has_end, 0)
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends
    lengths = np.diff(offsets).astype(np.int64) - has_end
    last = content[np.maximum(offsets[:-1] + lengths - 1, 0)]
    lengths -= (lengths > 0) & (last == _CARRIAGE_RETURN)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(lengths), buffers), lengths


def plain_records(records: pa.Table) -> pa.Table:
    """``LINES`` that were not cut from a file, as they would be read of one.

    Byte order marks, and zeros around a text, are left out, and UTF-16 becomes UTF-8. What has a zero and the id of a
    schema before it stays as it is.
    """
    value = as_array(records["value"])
    text = _without_marks(_without_zeros(value) if _has_zero(value) else value)
    if text is value:
        return records
    length = as_array(records["bytes"])
    is_whole = pc.equal(length, pc.binary_length(value))
    columns = {"value": text, "bytes": pc.if_else(is_whole, pc.binary_length(text), length).cast(pa.int64())}
    return pa.table({name: columns.get(name, records[name]) for name in LINES.names}, schema=LINES)


def _without_marks(value: pa.BinaryArray) -> pa.BinaryArray:
    if not pc.any(pc.starts_with(value, b"\xef\xbb\xbf")).as_py():
        return value
    return pc.replace_substring_regex(value, r"\A(?:\xef\xbb\xbf)+", "")


def _has_zero(value: pa.BinaryArray) -> bool:
    """Whether there may be one; UTF-16 has some, but for a text of no Latin character at all."""
    data = value.buffers()[2]
    return data is not None and not np.frombuffer(data, np.uint8).all()


def _without_zeros(value: pa.BinaryArray) -> pa.BinaryArray:
    is_odd = pc.match_substring(value, b"\0").fill_null(False)
    odd = map(_as_text, value.filter(is_odd).to_pylist())  # nearly always none
    return pc.replace_with_mask(value, is_odd, pa.array(odd, pa.binary()))


def _as_text(record: bytes) -> bytes:
    text = without_marks(b"".join(plain_text([record]))).rstrip(b"\0")
    has_schema_id = record.startswith(b"\0") and (record[5:6] == b"{" or _CONTROL.search(text) is not None)
    return record if has_schema_id else text
