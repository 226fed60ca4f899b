"""A file's content as UTF-8 whose lines end with line feeds, whatever it was written as; in memory of one size."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

#: The encoding is known by so much of what comes first.
_HEAD_BYTES = 1 << 12
#: The fewest characters by which UTF-16 without a byte order mark is known, and the share of them that are Latin.
_FEWEST_PAIRS = 16
_MOSTLY = 0.6
#: A file without a line feed in so many bytes, longer than any line of a click, has carriage returns for line ends.
_LINE_BYTES = 1 << 22
#: So many zeros, and more, are no part of a line: a file was truncated under its writer, or a crash left a hole.
_HOLE_BYTES = 16
_HOLE = re.compile(rb"\n?\0{%d,}" % _HOLE_BYTES)
_UTF16_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def plain_text(content: Iterable[bytes]) -> Iterator[bytes]:
    """The content in UTF-8: UTF-16 is decoded, with a byte order mark or without.

    Carriage returns are line ends where there are no line feeds. A hole of zeros ends the line that it is in, and is
    left out. Half a character of UTF-16 becomes bytes that are not UTF-8, so that its line is known by them.
    """
    return _without_holes(_with_line_feeds(_as_utf8(content)))


def encoding_of(beginning: bytes) -> str | None:
    """``utf-16-le`` or ``utf-16-be`` if a file is so that begins with these bytes, zeros before it left out."""
    if marked := _UTF16_MARKS.get(beginning[:2]):
        return marked
    if b"\0" not in beginning:
        return None
    pairs = np.frombuffer(beginning[: len(beginning) // 2 * 2], np.uint8).reshape(-1, 2)
    first, second = (pairs != 0).T
    some = np.count_nonzero(first | second)
    if some < _FEWEST_PAIRS:
        return None
    if np.count_nonzero(first & ~second) > _MOSTLY * some:
        return "utf-16-le"
    return "utf-16-be" if np.count_nonzero(second & ~first) > _MOSTLY * some else None


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
    if encoding == "utf-16-le" and zeros % 2 and text[:2] not in _UTF16_MARKS:
        # The first half of its first character is among the zeros.
        encoding, text = "utf-16-be", b"\0" + text
    whole = chain([text], pieces)
    yield from _decoded(whole, encoding) if encoding else whole


def _decoded(content: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("surrogatepass")
    for piece in content:
        yield decoder.decode(piece).encode("utf-8", "surrogatepass")
    try:
        yield decoder.decode(b"", True).encode("utf-8", "surrogatepass")
    except UnicodeDecodeError:  # it breaks off within a character
        yield b"\xff"


def _with_line_feeds(content: Iterable[bytes]) -> Iterator[bytes]:
    pieces = iter(content)
    head = bytearray()
    for piece in pieces:
        head += piece
        if b"\n" in piece or len(head) >= _LINE_BYTES:
            break
    whole = chain([bytes(head)], pieces)
    if b"\n" in head or b"\r" not in head:
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
