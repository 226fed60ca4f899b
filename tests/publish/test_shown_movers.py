from __future__ import annotations

import io
from datetime import date

from rich.console import Console

from include.documents.terminal import print_document
from spark_jobs.publish.shown_movers import Mover, movers_document

DAY = date(2026, 3, 2)


def shown(*movers: Mover) -> list[str]:
    console = Console(file=io.StringIO(), width=80)
    print_document(console, movers_document(movers, DAY))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_movers_are_a_table_of_the_terminals_width() -> None:
    title, headings, _, first, last = shown(
        Mover("https://www.example.com/", -156, 7_935, 8_091),
        Mover(f"https://www.example.com/{'x' * 300}\x1b[2J", 1_200, 1_200, 0),
    )
    assert title == "URLs whose clicks changed most on 2026-03-02"
    assert headings.split() == ["Change", "Clicks", "Before", "URL"]
    assert first.split() == ["-156", "7,935", "8,091", "https://www.example.com/"]
    assert last.split()[:3] == ["+1,200", "1,200", "0"]
    assert last.endswith("\\x1b[2J")
    assert len(last) <= 80


def test_no_movers_are_a_sentence() -> None:
    assert shown() == ["no URL has other published clicks on 2026-03-02 than on 2026-03-01"]
