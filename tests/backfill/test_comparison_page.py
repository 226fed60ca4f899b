"""The comparison as a page: what changes, what is left out, and texts without any power."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from include.backfills import Backfill
from include.documents.page import render_document
from include.hours import Hour, HourRange
from spark_jobs.backfill.compare import Comparison, HourChange, KeyChange, TableChange
from spark_jobs.backfill.comparison_page import MOST_OPEN_HOURS, comparison_document

HOURS = HourRange(Hour.parse("2026-03-01T00"), Hour.parse("2026-03-04T00"))
BEGUN = datetime(2026, 3, 5, 7, 30, tzinfo=UTC)
BACKFILL = Backfill("B1", "web", HOURS, 24, True, "<b>again", BEGUN, "waiting", {}, "c", (), {}, ())
COMPARISON = Comparison(
    counts="c",
    hours=tuple(HourChange(str(hour), 10, 12) for hour in HOURS),
    tables=(
        TableChange("by_url", "url", {"2026-03-01T00": 3}, (KeyChange("http://x/<script>", 5, 2),)),
        TableChange("by_country", "country_code", {}, ()),
    ),
    held={},
    waiting={},
    dropped=(),
    checks=9,
    critical=1,
    warnings=1,
    failed=("critical: <i>",),
)


def page_of(comparison: Comparison) -> str:
    return render_document(comparison_document(BACKFILL, comparison))


def test_page_says_what_changes_and_escapes_all() -> None:
    page = page_of(COMPARISON)
    assert "<script" not in page
    for shown in (
        "1 of 72 click hours change: 3 rows of by_url, 0 rows of by_country",
        "clicks in them: 720 published, 864 counted (+144)",
        "checks: 9, 1 critical failures, 1 warnings",
        "Begun 2026-03-05 07:30 UTC. &lt;b&gt;again",
        "http://x/&lt;script&gt;",
        "by_country: no country_code has other clicks.",
        "critical: &lt;i&gt;",
        "and 1 more: see Data quality in Airflow.",
        f"{72 - MOST_OPEN_HOURS} more rows",
        "clickmill decide-backfill B1 --help",
    ):
        assert shown in page, shown
    assert 'class="verdict good"' in page


def test_what_is_not_published_is_said() -> None:
    left_out = replace(
        COMPARISON, held={"2026-03-01T00": "x"}, waiting={"2026-03-01T02": "y"}, dropped=("2026-03-02T00",)
    )
    page = page_of(left_out)
    assert 'class="verdict warned"' in page
    assert "held, and not published by an approval: 2026-03-01T00" in page
    assert "left out, as a run has yet to count or validate them: 2026-03-01T02" in page
    assert "dropped by a person: 2026-03-02T00" in page
