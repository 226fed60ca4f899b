"""A file's content as UTF-8 whose lines end with line feeds, whatever it was written as; in memory of one size."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from include.utf_16 import MARKS, ToUtf8, encoding_of

#: The encoding is known by so much of what comes first.
_HEAD_BYTES = 1 << 12
#: A file without a line feed in so many bytes, longer than any line of a click, has carriage returns for line ends.
_LINE_BYTES = 1 << 22
#: So many zeros, and more, are no part of a line: a file was truncated under its writer, or a crash left a hole.
_HOLE_BYTES = 16
_HOLE = re.compile(rb"\n?\0{%d,}" % _HOLE_BYTES)


def plain_text(content: Iterable[bytes]) -> Iterator[bytes]:
    """The content in UTF-8: UTF-16 is decoded, with a byte order mark or without.

    Carriage returns are line ends where there are no line feeds. A hole of zeros ends the line that it is in, and is
    left out. Half a character of UTF-16 becomes bytes that are not UTF-8, so that its line is known by them.
    """
    return _without_holes(_with_line_feeds(_as_utf8(content)))


def _as_utf8(content: Iterable[bytes]) -> Iterator[bytes]:
    pieces = iter(content)
    head, zeros = bytearray(), 0
    for piece in pieces:
        text = piece if head else piece.lstrip(b"\0")
        zeros += len(piece) - len(text)
        head += text
        if len(head) >= _HEAD_BYTES:
            break
    text = bytes(head)
    encoding = encoding_of(text[:_HEAD_BYTES])
    if encoding == "utf-16-le" and zeros % 2 and text[:2] not in MARKS:
        # The first half of its first character is among the zeros.
        encoding, text = "utf-16-be", b"\0" + text
    whole = chain([text], pieces)
    yield from _decoded(whole, encoding) if encoding else whole


def _decoded(content: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    text = ToUtf8(encoding)
    yield from map(text.feed, content)
    yield text.end()


def _with_line_feeds(content: Iterable[bytes]) -> Iterator[bytes]:
    pieces = iter(content)
    head = bytearray()
    for piece in pieces:
        head += piece
        if b"\n" in piece or len(head) >= _LINE_BYTES:
            break
    whole = chain([bytes(head)], pieces)
    # What ends so may have been cut within a line end of two characters.
    if b"\n" in head or b"\r" not in head.removesuffix(b"\r"):
        yield from whole
        return
    is_held = False
    for piece in whole:
        text = b"\r" * is_held + piece
        is_held = text.endswith(b"\r")  # a line feed may follow
        yield text[: len(text) - is_held].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if is_held:
        yield b"\n"


def _without_holes(content: Iterable[bytes]) -> Iterator[bytes]:
    """The same, each hole in a line as a line feed, and those between lines left out; some zeros are no hole."""
    zeros, is_at_start = 0, True
    for piece in content:
        text = piece
        if zeros or b"\0" in piece:
            text = piece.lstrip(b"\0")
            zeros = min(zeros + len(piece) - len(text), _HOLE_BYTES)
            if not text:
                continue
            before = b"\0" * zeros if zeros < _HOLE_BYTES else b"" if is_at_start else b"\n"
            inner = text.rstrip(b"\0")
            zeros = len(text) - len(inner)
            text = before + _HOLE.sub(b"\n", inner)
        if text:
            is_at_start = text.endswith(b"\n")
            yield text
    if zeros < _HOLE_BYTES:
        yield b"\0" * zeros
