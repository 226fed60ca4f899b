"""The charts of the HTML report: bars as high as their counts, gaps, and labels for any span."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from spark_jobs.publish.report import MAX_CHART_HOURS, HourOfClicks, render_report
from tests.publish.report_page import Page, some_data


def test_a_missing_hour_is_a_gap() -> None:
    hours = [HourOfClicks("2026-03-01T04", 100, 0), HourOfClicks("2026-03-01T07", 50, 0)]
    page = Page(render_report(some_data(hours=hours)))
    assert "2 hours of the span have no published clicks and are left blank." in page.text
    assert page.rows("Clicks per hour, newest first")[1:] == [
        ["2026-03-01T07", "50", "0", "0.0%"],
        ["2026-03-01T06", "no published clicks"],
        ["2026-03-01T05", "no published clicks"],
        ["2026-03-01T04", "100", "0", "0.0%"],
    ]
    tips = [text for inside, text in page.texts if inside == "title" and text.startswith("2026-")]
    # Two bars, drawn for a wide and for a narrow page; nothing is drawn for the hours between.
    assert tips == ["2026-03-01T04: 100 clicks, 0 by crawlers", "2026-03-01T07: 50 clicks, 0 by crawlers"] * 2
    assert len(page.charts("wide")) == len(page.charts("narrow")) == 1


def test_bars_are_as_high_as_their_counts() -> None:
    hours = [HourOfClicks("2026-03-01T04", 100, 25), HourOfClicks("2026-03-01T05", 50, 0)]
    wide = re.search(r'<svg class="chart wide".*?</svg>', render_report(some_data(hours=hours)), re.DOTALL)
    assert wide
    heights = [float(height) for height in re.findall(r'<rect [^>]*height="([0-9.]+)"', wide[0])]
    of_people, less_people, of_crawlers = heights
    assert of_people == pytest.approx(3 * of_crawlers, abs=0.2)
    assert less_people == pytest.approx(2 * of_crawlers, abs=0.2)


@pytest.mark.parametrize(
    ("hours", "grain", "name", "bars"),
    [(14 * 24, "hour", "2026-03-14T23", 336), (15 * 24, "day", "2026-03-15", 15), (121 * 24, "week", "2026-W27", 19)],
)
def test_a_bar_is_an_hour_a_day_or_a_week_by_the_span(hours: int, grain: str, name: str, bars: int) -> None:
    first = datetime(2026, 3, 1, tzinfo=UTC)
    every = [HourOfClicks(f"{first + timedelta(hours=n):%Y-%m-%dT%H}", 3, 1) for n in range(hours)]
    page = Page(render_report(some_data(hours=every)))
    rows = page.tables[f"Clicks per {grain}, newest first"][1:]
    assert (rows[0][0], len(rows)) == (name, bars)
    assert sum(int(row[1].replace(",", "")) for row in rows) == 3 * hours
    assert page.charts("wide")


def test_a_stray_old_hour_does_not_make_an_endless_chart() -> None:
    hours = [HourOfClicks("2019-01-01T00", 1, 0), HourOfClicks("2026-03-01T05", 3_233, 234)]
    page = Page(render_report(some_data(hours=hours)))
    weeks = page.tables["Clicks per week, newest first"]
    assert len(weeks) == 1 + 1 + MAX_CHART_HOURS // (7 * 24)
    assert weeks[1][:3] == ["2026-W09", "3,233", "234"]
    assert f"1 older hour before {weeks[-1][0]} is counted but not drawn." in page.text
    assert "234 of 3,234" in page.text
