"""UTF-16: which bytes are such, and what they are in UTF-8."""

from __future__ import annotations

import codecs

#: The fewest characters by which UTF-16 without a byte order mark is known, and the share of them that are Latin.
_FEWEST_PAIRS = 16
_MOSTLY = 0.6
MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
#: By so many bytes it is known.
ENOUGH_BYTES = 2 * _FEWEST_PAIRS


def encoding_of(beginning: bytes) -> str | None:
    """``utf-16-le`` or ``utf-16-be`` if a text is so that begins with these bytes, zeros before it left out."""
    if marked := MARKS.get(beginning[:2]):
        return marked
    if b"\0" not in beginning:
        return None
    pairs = [*zip(beginning[::2], beginning[1::2], strict=False)]
    some = sum(first != 0 or second != 0 for first, second in pairs)
    if some < _FEWEST_PAIRS:
        return None
    if sum(first != 0 == second for first, second in pairs) > _MOSTLY * some:
        return "utf-16-le"
    return "utf-16-be" if sum(first == 0 != second for first, second in pairs) > _MOSTLY * some else None


class ToUtf8:
    """A text that comes in pieces, as UTF-8; half a character becomes bytes that are not UTF-8."""

    def __init__(self, encoding: str) -> None:
        self._decoder = codecs.getincrementaldecoder(encoding)("surrogatepass")

    def feed(self, piece: bytes) -> bytes:
        """What these bytes mean, with those that came before them."""
        return self._decoder.decode(piece).encode("utf-8", "surrogatepass")

    def end(self) -> bytes:
        """What is left when no more comes."""
        try:
            return self._decoder.decode(b"", True).encode("utf-8", "surrogatepass")
        except UnicodeDecodeError:  # it breaks off within a character
            return b"\xff"
