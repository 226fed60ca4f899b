"""A file's content cut at line ends, in memory that does not grow with the length of a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

#: Lines are cut in pieces of about so many bytes, which a line that is kept fits into.
PIECE_BYTES = 1 << 23
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def cut_at_lines(content: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Pieces of the content, each with whether it is whole lines; only the last of all may be without its end.

    One that is not is a part of a line longer than ``PIECE_BYTES``; the line's last part has the line end. A byte order
    mark at the beginning is left out.
    """
    buffer = bytearray()
    is_in_line = False
    for piece in _without_mark(content):
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
            yield bytes(buffer[:end]), True
            del buffer[:end]
        if len(buffer) >= PIECE_BYTES:
            yield bytes(buffer), False
            buffer, is_in_line = bytearray(), True
    if buffer:
        yield bytes(buffer), True


def _without_mark(content: Iterable[bytes]) -> Iterator[bytes]:
    is_first = True
    for piece in content:
        yield piece.removeprefix(_BYTE_ORDER_MARK) if is_first else piece
        is_first = False
