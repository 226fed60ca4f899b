"""A file's content cut at line ends, in memory that does not grow with the length of a line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from spark_jobs.lines.plain_text import plain_text

#: Lines are cut in pieces of about so many bytes, which a line that is kept fits into.
PIECE_BYTES = 1 << 23
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MARKS = re.compile(rb"^(?:\0|\xef\xbb\xbf)+", re.MULTILINE)
#: A line with carriage returns, but for those before its line feed.
_WITH_RETURNS = re.compile(rb"^[^\r\n]*+\r(?!\r*(?:\n|\Z))[^\n]*", re.MULTILINE)
#: What no line of a log is without, in one form or another.
_TIME = re.compile(rb"\d\d:\d\d:\d\d|\d{4}-\d\d-\d\d|\d{10}")


def cut_at_lines(content: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Pieces of the content as ``plain_text``, each with whether it is whole lines; only the last may lack its end.

    One that is not is a part of a line longer than ``PIECE_BYTES``; the line's last part has the line end. Byte order
    marks and zeros with which lines begin are left out: files are put together, and truncated under their writers.
    For the same reason a carriage return between two lines that are shorter than a piece is a line feed.
    """
    buffer = bytearray()
    is_in_line = False
    for piece in plain_text(content):
        if is_in_line:
            end = piece.find(b"\n") + 1
            is_in_line = not end
            yield piece[: end or None], False
            if is_in_line:
                continue
            piece = piece[end:]
        buffer += piece
        if len(buffer) < PIECE_BYTES:
            continue
        end = buffer.rfind(b"\n") + 1
        if len(buffer) - end >= PIECE_BYTES:
            buffer[end:] = _cut_at_returns(bytes(buffer[end:]))
            end = buffer.rfind(b"\n") + 1
        if end:
            yield _whole_lines(bytes(buffer[:end])), True
            del buffer[:end]
        if len(buffer) >= PIECE_BYTES:
            buffer = bytearray(without_marks(bytes(buffer)))
        if len(buffer) >= PIECE_BYTES:
            yield bytes(buffer), False
            buffer, is_in_line = bytearray(), True
    if rest := _whole_lines(bytes(buffer)):
        yield rest, True


def _whole_lines(lines: bytes) -> bytes:
    return without_marks(_cut_at_returns(lines))


def _cut_at_returns(lines: bytes) -> bytes:
    """Lines cut at carriage returns too that stand alone, where there is a line on both sides.

    Files are put together of those of several systems. A carriage return within a line, as in a text of it, ends none.
    """
    # To count them before line feeds takes three times as long; a line that is missed is quarantined as two in one.
    if b"\r" not in lines or lines.count(b"\r") == lines.count(b"\n"):
        return lines
    return _WITH_RETURNS.sub(_cut_line, lines)


def _cut_line(match: re.Match[bytes]) -> bytes:
    cut, before = bytearray(), b""
    for part in match[0].split(b"\r"):
        is_line = _TIME.search(part) is not None
        cut += b"\n" if is_line and _may_end(before, part) else b"\r"
        cut += part
        before = part if is_line else before
    return bytes(cut[1:])


def _may_end(before: bytes, part: bytes) -> bool:
    """Whether a line may end with what is before this part: in JSON there may be line ends between any two fields."""
    if before.startswith(b"{"):
        return before.endswith((b"}", b"} ")) and part.startswith((b"{", b" {"))
    return bool(before)


def without_marks(lines: bytes) -> bytes:
    """Lines without the byte order marks and zeros that they begin with."""
    # To look for one byte is ten times as fast as for three.
    has_some = b"\0" in lines or (_BYTE_ORDER_MARK[:1] in lines and _BYTE_ORDER_MARK in lines)
    return _MARKS.sub(b"", lines) if has_some else lines
