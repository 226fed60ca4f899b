"""The summary in the terminal: right numbers, one clear verdict, and log texts without any power."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from rich.cells import cell_len
from rich.console import Console

from include.documents.terminal import print_document
from spark_jobs.publish.report import AccountingRow, HourOfClicks, KeyCount, ReportData, Verdict
from spark_jobs.publish.shown_results import results_document

DATA = ReportData(
    title="Clicks",
    generated_at=datetime(2026, 3, 1, tzinfo=UTC),
    hours=[HourOfClicks("2026-03-01T05", 12_345, 1_234)],
    urls=[KeyCount("https://a.example/", 12_000, 1_200, 4_321), KeyCount("https://b.example/", 345, 34, 99)],
    countries=[KeyCount("DE", 12_300, 1_234, 4_400), KeyCount("unknown", 45, 0, 20)],
    accounting=[
        AccountingRow("web", "2026-03-01T05", 13_000, 12_345, 255, 400, {"not_json": 400}, 700, 22, 2, 10, True, []),
        AccountingRow("access", "2026-03-01T05", 1_000, 1_000, 0, 0, {}, 0, 0, 2, 10, True, []),
    ],
    verdict=Verdict(passed=True, critical_failures=[], warnings=[]),
)


def printed(data: ReportData, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, no_color=True)
    print_document(console, results_document(data))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def row_of(lines: list[str], name: str) -> list[str]:
    return next(line.removeprefix(name).split() for line in lines if line.startswith(f"{name} "))


def test_numbers_of_the_run() -> None:
    lines = printed(DATA)
    assert row_of(lines, "https://a.example/") == ["12,000", "1,200", "4,321"]
    assert row_of(lines, "unknown") == ["45", "0", "20"]
    assert row_of(lines, "Lines") == ["14,000"]
    assert row_of(lines, "Accepted") == ["13,345", "95.3%", "of", "lines"]
    assert row_of(lines, "Duplicates") == ["255", "1.8%", "of", "lines"]
    assert row_of(lines, "Quarantined") == ["400", "2.9%", "of", "lines"]
    assert row_of(lines, "Late") == ["700", "5.2%", "of", "accepted"]
    assert row_of(lines, "Crawler share") == ["1,234", "10.0%", "of", "published", "clicks"]
    assert lines[-1] == "PASSED"


def test_shares_are_of_the_lines_that_are_to_be_counted() -> None:
    row = replace(DATA.accounting[0], lines=113_000, left_out=100_000, left_out_by_rule={"static_file": 100_000})
    lines = printed(replace(DATA, accounting=[row, DATA.accounting[1]]))
    assert row_of(lines, "Left out") == ["100,000", "87.7%", "of", "lines"]
    assert row_of(lines, "Quarantined") == ["400", "2.9%", "of", "lines", "to", "count"]


def test_the_ten_busiest_are_shown() -> None:
    urls = [KeyCount(f"https://x.example/{n:02d}", n, 0, n) for n in range(1, 31)]
    countries = [KeyCount(f"Z{n:02d}", n, 0, n) for n in range(1, 31)]
    lines = printed(replace(DATA, urls=urls, countries=countries))
    assert [line.split()[0] for line in lines if line.startswith("https:")] == [
        f"https://x.example/{n}" for n in range(30, 20, -1)
    ]
    assert [line.split()[0] for line in lines if line.startswith("Z")] == [f"Z{n}" for n in range(30, 20, -1)]


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (Verdict(True, [], []), ["PASSED"]),
        (Verdict(True, [], ["w"]), ["PASSED with 1 warning", "  warning: w"]),
        (Verdict(True, [], ["v", "w"]), ["PASSED with 2 warnings", "  warning: v", "  warning: w"]),
        (Verdict(False, ["a", "b"], ["w"]), ["FAILED: a; b", "  warning: w"]),
        (Verdict(False, [], []), ["FAILED"]),
        (Verdict(False, ["long " * 30 + "end"], []), ["FAILED: " + "long " * 30 + "end"]),
        (
            Verdict(False, list("abcdefghijkl"), []),
            ["FAILED: a; b; c; d; e; f; g; h; i; j; and 2 more, all in the report"],
        ),
        (
            Verdict(False, ["a"], ["w"], held=["05: a"]),
            ["HELD: 1 click hour, until you decide", "  held: 05: a", "  warning: w"],
        ),
        (Verdict(True, [], ["w"], decided=["05: x"]), ["PASSED with 1 warning", "  decided: 05: x", "  warning: w"]),
        (
            Verdict(True, [], [], held=["05: a", "06: b"]),
            ["HELD: 2 click hours, until you decide", "  held: 05: a", "  held: 06: b"],
        ),
    ],
)
def test_verdict_is_one_line(verdict: Verdict, expected: list[str]) -> None:
    lines = printed(replace(DATA, verdict=verdict))
    first = next(number for number, line in enumerate(lines) if line.startswith(("PASSED", "FAILED", "HELD")))
    assert lines[first:] == expected


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_long_urls_are_cropped_in_the_middle(width: int) -> None:
    url = "https://x.example/" + "segment/" * 40 + "end.html"
    wide = "https://x.example/" + "日本" * 60 + "終"
    lines = printed(replace(DATA, urls=[KeyCount(url, 2, 0, 1), KeyCount(wide, 1, 0, 1)]), width)
    cropped = [line for line in lines if line.startswith("https://")]
    assert len(cropped) == 2
    assert all(cell_len(line) <= width for line in cropped)
    shown = cropped[0].split()[0]
    head, _, tail = shown.partition("…")
    assert head
    assert tail
    assert url.startswith(head)
    assert url.endswith(tail)
    assert cropped[1].split()[0].endswith("日本終")


def test_everything_but_findings_and_paths_fits_80_columns() -> None:
    large = KeyCount("https://x.example/" + "a" * 500, 123_456_789_012, 12_345_678_901, 1_234_567_890)
    assert max(map(cell_len, printed(replace(DATA, urls=[large])))) <= 80


def test_log_texts_are_shown_letter_by_letter() -> None:
    data = replace(
        DATA,
        urls=[KeyCount("http://x/[red]a[/red]\x1b[2J[/]", 1, 0, 1)],
        countries=[KeyCount("[b]", 1, 0, 1)],
        verdict=Verdict(False, ["[bold]f[/nothing]\r\n"], ["w\x07"]),
    )
    lines = printed(data)
    assert row_of(lines, r"http://x/[red]a[/red]\x1b[2J[/]") == ["1", "0", "1"]
    assert row_of(lines, "[b]") == ["1", "0", "1"]
    assert r"FAILED: [bold]f[/nothing]\r\n" in lines
    assert r"  warning: w\x07" in lines


def test_nothing_published_yet_is_said() -> None:
    lines = printed(replace(DATA, hours=[], urls=[], countries=[], accounting=[]))
    assert lines[0] == "Nothing published yet."
    assert row_of(lines, "Lines") == ["0"]
    assert row_of(lines, "Quarantined") == ["0", "n/a", "of", "lines"]


def test_a_terminal_that_only_knows_ascii_gets_ascii() -> None:
    raw = io.BytesIO()
    console = Console(file=io.TextIOWrapper(raw, encoding="ascii", write_through=True), width=80, no_color=True)
    verdict = Verdict(True, [], ["é"])
    data = replace(DATA, urls=[KeyCount("http://x/" + "日本" * 60, 1, 0, 1)], hours=DATA.hours, verdict=verdict)
    print_document(console, results_document(data))
    text = raw.getvalue().decode("ascii")
    assert r"http://x/\u65e5" in text
    assert "..." in text
    assert r"warning: \xe9" in text


def test_colour_is_left_to_the_verdict() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system="standard")
    print_document(console, results_document(replace(DATA, verdict=Verdict(False, ["x"], []))))
    assert isinstance(console.file, io.StringIO)
    assert "\x1b[1;31mFAILED: x\x1b[0m" in console.file.getvalue()
