"""A file's content cut at line ends, in memory that does not grow with the length of a line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from spark_jobs.lines.plain_text import plain_text

#: Lines are cut in pieces of about so many bytes, which a line that is kept fits into.
PIECE_BYTES = 1 << 23
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MARKS = re.compile(rb"^(?:\0|\xef\xbb\xbf)+", re.MULTILINE)


def cut_at_lines(content: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Pieces of the content as ``plain_text``, each with whether it is whole lines; only the last may lack its end.

    One that is not is a part of a line longer than ``PIECE_BYTES``; the line's last part has the line end. Byte order
    marks and zeros with which lines begin are left out: files are put together, and truncated under their writers.
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
        if end:
            yield without_marks(bytes(buffer[:end])), True
            del buffer[:end]
        if len(buffer) >= PIECE_BYTES:
            buffer = bytearray(without_marks(bytes(buffer)))
        if len(buffer) >= PIECE_BYTES:
            yield bytes(buffer), False
            buffer, is_in_line = bytearray(), True
    if rest := without_marks(bytes(buffer)):
        yield rest, True


def without_marks(lines: bytes) -> bytes:
    """Lines without the byte order marks and zeros that they begin with."""
    # To look for one byte is ten times as fast as for three.
    has_some = b"\0" in lines or (_BYTE_ORDER_MARK[:1] in lines and _BYTE_ORDER_MARK in lines)
    return _MARKS.sub(b"", lines) if has_some else lines
