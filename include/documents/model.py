"""A document before it has a form: lines, tables and charts, with all numbers written as people read them.

Texts may come from logs and are kept as they are; each form shows them letter by letter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

Tone = Literal["plain", "strong", "quiet", "code", "good", "warned", "failed"]

#: A name is never broken, a text is wrapped, a key (a URL, a country) cropped in its middle, a number on the right.
ColumnKind = Literal["name", "text", "key", "number"]


@dataclass(frozen=True)
class Line:
    """A sentence, or a line of code."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True)
class Column:
    """A column by its heading; none of a table needs to have one."""

    heading: str
    kind: ColumnKind = "number"


@dataclass(frozen=True)
class Table:
    """Rows of a text for each column; a row of a single text heads those below it.

    A page folds away what is more than ``open_rows``; None: nothing.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    open_rows: int | None = None


@dataclass(frozen=True)
class Chart:
    """Bars of names and numbers: beside each other, or, where the names are long, one below the other.

    The axis ends at ``highest``, so that charts of the same compare.
    """

    title: str
    bars: tuple[tuple[str, float], ...]
    highest: float
    has_long_names: bool = False


@dataclass(frozen=True)
class Charts:
    """Charts of the same, for pages; the terminal leaves them out."""

    title: str
    charts: tuple[Chart, ...]


@dataclass(frozen=True)
class Drawing:
    """A picture for pages, where ``lines``, the same as text, are folded away."""

    title: str
    svg: Markup
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Document:
    """All there is to say; what is empty is not shown.

    ``verdict`` is what follows from all the rest, its first line in short: a page begins with it, the terminal ends
    with it. ``footer`` is for pages.
    """

    blocks: tuple[Line | Table | Charts | Drawing, ...]
    title: str = ""
    subtitle: str = ""
    verdict: tuple[Line, ...] = ()
    footer: str = ""
