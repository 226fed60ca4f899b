"""UTF-16: which bytes are such, and what they are in UTF-8."""

from __future__ import annotations

import codecs

#: The fewest characters by which UTF-16 without a byte order mark is known, and the share of them that are Latin.
_FEWEST_PAIRS = 16
_MOSTLY = 0.6
#: And of these the share that is printed, more than: of lines of one letter, that end like those of Windows, a third.
_LEAST_PRINTED, _LAST_CONTROL = 0.2, 0x1F
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
    latin = {
        "utf-16-le": [first for first, second in pairs if first and not second],
        "utf-16-be": [second for first, second in pairs if second and not first],
    }
    for encoding, codes in latin.items():
        # Line ends among zeros are no text: a file was truncated under its writer, again and again.
        if len(codes) > _MOSTLY * some and sum(code > _LAST_CONTROL for code in codes) > _LEAST_PRINTED * len(codes):
            return encoding
    return None


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
