"""Tables and lines of text for a terminal, of whatever width, that does not obey what is in them."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from include.texts import as_printable, crop_middle

MIN_KEY_WIDTH = 20


def plain_table(title: str, show_header: bool = True) -> Table:
    """A table as all of them look."""
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        show_header=show_header,
        show_edge=False,
        pad_edge=False,
    )


def print_line(console: Console, text: str, style: str = "") -> None:
    """One line, however long: a path that is broken in two can be neither copied nor searched for."""
    console.print(Text(spelled(text, console.options), style), soft_wrap=True, highlight=False)


def spelled(text: str, options: ConsoleOptions) -> str:
    """The text in characters that the terminal can show and does not obey."""
    printable = as_printable(text)
    return printable.encode("ascii", "backslashreplace").decode("ascii") if options.ascii_only else printable


class CroppedKey:
    """A URL or country in one line, cropped in the middle to the width that there is."""

    def __init__(self, key: str) -> None:
        self.key = key

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = spelled(self.key, options)
        mark = "..." if options.ascii_only else "…"
        length = options.max_width
        # Some characters are two columns wide.
        while cell_len(cropped := crop_middle(text, length, mark)) > options.max_width and length > 0:
            length -= 1
        yield Text(cropped, no_wrap=True)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        width = cell_len(spelled(self.key, options))
        return Measurement(min(width, MIN_KEY_WIDTH), width).with_maximum(options.max_width)
