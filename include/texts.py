"""Numbers and texts as people read them, on pages and in the terminal."""

from __future__ import annotations

MAX_TEXT_CHARACTERS = 300


def as_count(number: int | None) -> str:
    """``1,234,567``; ``n/a`` of what is not known, or not shown."""
    return "n/a" if number is None else f"{number:,}"


def plural(number: int, noun: str, nouns: str = "") -> str:
    """``1 hour``, ``2,000 hours``; ``nouns`` where an s is not enough."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def as_share(part: int, whole: int) -> str:
    """``12.3%``; a part that is neither nothing nor all is never rounded to either. ``n/a`` of nothing."""
    if not whole:
        return "n/a"
    share = f"{part / whole:.1%}"
    if share == "0.0%" and part > 0:
        return "<0.1%"
    if share == "100.0%" and part < whole:
        return ">99.9%"
    return share


def as_printable(text: str) -> str:
    """The text with what cannot be seen written out: control characters, direction marks, lone surrogates.

    A terminal or a page would obey some of them: an escape sequence in a URL could clear the screen,
    a direction mark make ``gpj.exe`` read as ``exe.jpg``.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def crop_middle(text: str, length: int, mark: str = "…") -> str:
    """At most ``length`` characters; where some are missing in the middle stands the mark."""
    if len(text) <= length:
        return text
    kept = max(length - len(mark), 0)
    tail = kept // 2
    return text[: kept - tail] + mark + text[len(text) - tail :]


def as_size(number: float) -> str:
    """Bytes in decimal units: ``1.5 GB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:,.1f} TB"


def as_literal(text: str) -> str:
    """A text as a literal of Spark's SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
