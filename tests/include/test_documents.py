"""A document in a terminal and as a page: the same content, and texts without any power."""

from __future__ import annotations

import io

from rich.console import Console

from include.documents.model import Chart, Charts, Column, Document, Line, Table
from include.documents.page import render_document
from include.documents.terminal import print_document

HOSTILE = "http://x/[bold]\x1b[2J<script>alert(1)</script>"
TABLE = Table(
    "Clicks",
    (Column("URL", "key"), Column("By crawlers")),
    (("8 instances",), (HOSTILE, "1,234"), ("http://y/" + "long/" * 40, "5")),
    open_rows=2,
)
DOCUMENT = Document(
    (Line("a note", "quiet"), TABLE, Charts("Bars", (Chart("of <b>", (("x", 2.5), ("y", 0)), 4),))),
    title="Title <i>",
    subtitle="below it",
    verdict=(Line("FAILED: [red]x", "failed"), Line("because")),
    footer="at the foot",
)


def printed(document: Document, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, no_color=True)
    print_document(console, document)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_terminal_ends_with_the_verdict_and_leaves_out_charts() -> None:
    lines = printed(DOCUMENT)
    assert lines[:5] == ["Title <i>", "below it", "a note", "", "Clicks"]
    assert lines[-3:] == ["", "FAILED: [red]x", "  because"]
    assert "8 instances" in lines
    assert any(line.startswith("http://x/[bold]\\x1b[2J<script>") and line.endswith("1,234") for line in lines)
    assert not any("Bars" in line or "at the foot" in line for line in lines)
    assert max(map(len, lines)) <= 80


def test_verdict_alone_is_all_there_is() -> None:
    assert printed(Document((), verdict=(Line("PASSED", "good"),))) == ["PASSED"]


def test_names_and_numbers_are_whole_in_a_narrow_terminal() -> None:
    table = Table("Loads", (Column("Grouping", "name"), Column("Out of order")), (("salted_fields by 8", "1,482,946"),))
    lines = printed(Document((table,)), width=20)
    assert lines[-1].split("  ") == ["salted_fields by 8", "1,482,946"]
    assert [line.split() for line in lines[1:3]] == [["Out", "of"], ["Grouping", "order"]]


def test_page_begins_with_the_verdict_and_escapes_all() -> None:
    page = render_document(DOCUMENT)
    assert page == render_document(DOCUMENT)
    assert "<script" not in page
    assert "\x1b" not in page
    for shown in ("Title &lt;i&gt;", "1,234", "at the foot", "of &lt;b&gt;", "x: 2.5</title>", "1 more row"):
        assert shown in page, shown
    assert page.index("FAILED: [red]x") < page.index("a note") < page.index("1,234")
    assert page.index("<details>") < page.index("http://y/long/")
