"""Documents and lines in a terminal, of whatever width, that does not obey what is in them."""

from __future__ import annotations

import textwrap

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from include.documents.model import Charts, Document, Drawing, Line, Table, Tone
from include.texts import as_printable, crop_middle

MIN_KEY_WIDTH = 20
_STYLES: dict[Tone, str] = {
    "plain": "",
    "strong": "bold",
    "quiet": "dim",
    "code": "",
    "good": "bold green",
    "warned": "bold yellow",
    "failed": "bold red",
}


def print_document(console: Console, document: Document) -> None:
    """Title, blocks, and the verdict last, where a person looks first; tables and verdict stand apart."""
    heading = [line for line in (Line(document.title, "strong"), Line(document.subtitle)) if line.text]
    verdict = [*document.verdict[:1], *(Line(f"  {line.text}", line.tone) for line in document.verdict[1:])]
    before: Line | Table | None = None
    for block in (*heading, *document.blocks, *verdict):
        if isinstance(block, Charts | Drawing):
            continue
        if before and (isinstance(block, Table) or isinstance(before, Table) or block in verdict[:1]):
            console.print()
        if isinstance(block, Table):
            _print_table(console, block)
        else:
            print_line(console, block.text, _STYLES[block.tone])
        before = block


def print_line(console: Console, text: str, style: str = "") -> None:
    """One line, however long: a path that is broken in two can be neither copied nor searched for."""
    console.print(Text(_spelled(text, console.options), style), soft_wrap=True, highlight=False)


def _print_table(console: Console, table: Table) -> None:
    """Keys give way where the terminal is narrow; without them the table is as wide as its names and numbers are."""
    shown = RichTable(
        title=table.title,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        show_header=any(column.heading for column in table.columns),
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    full_rows = [row for row in table.rows if len(row) == len(table.columns)]
    for number, column in enumerate(table.columns):
        is_whole = column.kind in ("name", "number")
        longest = max((cell_len(_spelled(row[number], console.options)) for row in full_rows), default=0)
        shown.add_column(
            "\n".join(textwrap.wrap(column.heading, max(longest, 1), break_long_words=False)),
            justify="right" if column.kind == "number" else "left",
            no_wrap=is_whole,
            min_width=longest if is_whole else None,
        )
    for row in table.rows:
        cells = [
            CroppedKey(text) if column.kind == "key" else Text(_spelled(text, console.options))
            for column, text in zip(table.columns, row, strict=False)
        ]
        shown.add_row(*cells, style="bold" if len(row) < len(table.columns) else None)
    if all(column.kind != "key" for column in table.columns):
        least = console.measure(shown, options=console.options.update(max_width=1000)).minimum
        shown.width = least if least > console.width else None
    console.print(shown, crop=False, overflow="ignore")


def _spelled(text: str, options: ConsoleOptions) -> str:
    """The text in characters that the terminal can show and does not obey."""
    printable = as_printable(text)
    return printable.encode("ascii", "backslashreplace").decode("ascii") if options.ascii_only else printable


class CroppedKey:
    """A URL or country in one line, cropped in the middle to the width that there is."""

    def __init__(self, key: str) -> None:
        self.key = key

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = _spelled(self.key, options)
        mark = "..." if options.ascii_only else "…"
        length = options.max_width
        # Some characters are two columns wide.
        while cell_len(cropped := crop_middle(text, length, mark)) > options.max_width and length > 0:
            length -= 1
        yield Text(cropped, no_wrap=True)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        width = cell_len(_spelled(self.key, options))
        return Measurement(min(width, MIN_KEY_WIDTH), width).with_maximum(options.max_width)
