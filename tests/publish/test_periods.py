"""The periods in the terminal, and which time zones can be asked for."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from include.documents.terminal import print_document
from include.errors import UsageError
from include.settings import Settings
from spark_jobs.publish.periods import Period, Periods, require_counted
from spark_jobs.publish.report import KeyCount
from spark_jobs.publish.shown_periods import periods_document

SHOWN = Periods(
    "month",
    "Europe/Berlin",
    [
        Period("2026-02", 12_345, 345, 6_789, 672, 672, True),
        Period("2026-03", 1_000, 0, 900, 700, 743, False),
    ],
    [KeyCount("https://a.example/[b]", 1_000, 0, 900)],
    [KeyCount("DE", 1_000, 0, 900)],
)


def printed(shown: Periods) -> list[str]:
    console = Console(file=io.StringIO(), width=80, no_color=True)
    print_document(console, periods_document(shown))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_each_period_has_a_row_and_the_newest_its_busiest_keys() -> None:
    lines = printed(SHOWN)
    assert lines[0] == "Clicks by month, Europe/Berlin"
    rows = [line.split() for line in lines if line.startswith("2026-")]
    assert rows == [
        ["2026-02", "12,345", "345", "6,789", "672/672"],
        ["2026-03", "1,000", "0", "900", "700/743", "not", "final"],
    ]
    assert "Busiest URLs, 2026-03" in lines
    assert any(line.split() == ["https://a.example/[b]", "1,000", "0", "900"] for line in lines)


def test_nothing_published_is_said() -> None:
    assert printed(Periods("day", "UTC", [], [], [])) == ["Nothing published yet."]


def test_only_a_time_zone_whose_days_are_counted_can_be_asked_for(settings: Settings) -> None:
    settings.pipeline_file.write_text('time_zones = ["Europe/Berlin", "UTC"]\n')
    assert require_counted(settings, None) == "Europe/Berlin"
    assert require_counted(settings, "UTC") == "UTC"
    with pytest.raises(UsageError, match=r"'Asia/Tokyo': its days are not counted; expected one of Europe/Berlin, UTC"):
        require_counted(settings, "Asia/Tokyo")
