"""The tables of the HTML report: right numbers, and what is missing or does not add up is said."""

from __future__ import annotations

import random

from include.tables import QUARANTINE_REASONS
from spark_jobs.publish.report import (
    MAX_URLS,
    InstanceLoad,
    KeyCount,
    render_report,
)
from tests.publish.report_page import HOSTILE, Page, an_accounting_row, some_data


def test_numbers_are_shown_with_thousands_separators() -> None:
    page = Page(render_report(some_data()))
    assert page.rows("The 2 busiest URLs over all the hours shown") == [
        ["URL", "Clicks", "Share", "By crawlers", "Visitors (est.)"],
        ["https://a.example/", "3,000", "92.8%", "200", "1,111"],
        ["https://b.example/x?y=1", "234", "7.2%", "34", "99"],
    ]
    assert page.rows("Clicks by country over all the hours shown")[1:] == [
        ["DE Germany", "3,234", "100.0%", "234", "1,200"]
    ]
    assert page.rows("Clicks per hour, newest first")[1:] == [
        ["2026-03-01T05", "2,000", "200", "10.0%"],
        ["2026-03-01T04", "1,234", "34", "2.8%"],
    ]
    assert "7.2% of the clicks came from crawlers: 234 of 3,234. People made 3,000." in page.text
    assert "the standard error is 1.6%" in page.text


def test_what_rules_leave_out_is_shown_by_rule_and_is_not_quarantined() -> None:
    left_out = {"left_out": 9000, "left_out_by_rule": {"static_file": 8000, "other_status": 1000}}
    rows = [an_accounting_row(lines=10_000, **left_out), an_accounting_row(source="web2")]
    page = Page(render_report(some_data(accounting=rows)))
    head, web, web2, total = page.rows("By source")
    place = head.index("Left out")
    assert [row[place] for row in (web, web2, total)] == ["9,000", "0", "9,000"]
    assert {row[-1] for row in (web, web2, total)} == {""}
    assert page.rows("Lines left out by rule")[1:] == [
        ["static_file", "8,000", "88.9%"], ["other_status", "1,000", "11.1%"],
    ]  # fmt: skip
    assert "11,000 lines = 1,800 accepted + 120 duplicates + 80 quarantined + 9,000 left out." in page.text
    assert "Quarantined 4.0%" in " ".join(page.text.split())


def test_accounting_has_totals_and_the_reasons_with_their_meaning() -> None:
    rows = [
        an_accounting_row(),
        an_accounting_row(source="access", lines=500, accepted=490, duplicates=0, quarantined=10,
                          quarantined_by_reason={"bad_url": 10}),
        an_accounting_row(log_hour="2026-03-01T06"),
    ]  # fmt: skip
    page = Page(render_report(some_data(accounting=rows)))
    head, *by_source, total = page.rows("By source")
    assert head[:6] == ["Source", "Log hours", "Lines", "Accepted", "Duplicates", "Quarantined"]
    assert [row[:6] for row in by_source] == [
        ["access", "1", "500", "490", "0", "10"],
        ["web", "2", "2,000", "1,800", "120", "80"],
    ]
    assert total == ["Total", "3", "2,500", "2,290", "120", "90", "21", "24", "6", "370.4 kB", ""]
    by_hour = page.rows("By source and log hour, newest first")
    assert [row[:3] for row in by_hour[1:-1]] == [
        ["web", "2026-03-01T06", "1,000"],
        ["web", "2026-03-01T05", "1,000"],
        ["access", "2026-03-01T05", "500"],
    ]
    assert by_hour[-1][1:] == total[2:]
    assert page.rows("Quarantined lines by reason")[1:] == [
        ["not_json", "60", "66.7%", QUARANTINE_REASONS["not_json"]],
        ["bad_time", "20", "22.2%", QUARANTINE_REASONS["bad_time"]],
        ["bad_url", "10", "11.1%", QUARANTINE_REASONS["bad_url"]],
    ]
    assert "2,500 lines = 2,290 accepted + 120 duplicates + 90 quarantined." in page.text


def test_open_damaged_and_unbalanced_log_hours_are_marked() -> None:
    rows = [
        an_accounting_row(),
        an_accounting_row(log_hour="2026-03-01T06", is_closed=False),
        an_accounting_row(log_hour="2026-03-01T07", damaged_files=["a.gz", "b.zst"]),
        an_accounting_row(log_hour="2026-03-01T08", lines=1001),
    ]
    page = Page(render_report(some_data(accounting=rows)))
    marks = {row[1]: row[-1] for row in page.rows("By source and log hour, newest first")[1:-1]}
    assert marks == {
        "2026-03-01T05": "",
        "2026-03-01T06": "not closed",
        "2026-03-01T07": "2 damaged files",
        "2026-03-01T08": "does not add up",
    }
    assert "web: 1 of 4 log hours not closed (ingested without _SUCCESS): 2026-03-01T06" in page.text
    assert "2026-03-01T07/a.gz, 2026-03-01T07/b.zst" in page.text
    assert "lines are not accepted + duplicates + quarantined + left out in 2026-03-01T08;" in page.text


def test_at_most_25_urls_are_shown_the_busiest_first() -> None:
    urls = [KeyCount(f"http://x.example/{n:02d}", n, 0, 1) for n in range(1, 41)]
    random.Random(1).shuffle(urls)
    page = Page(render_report(some_data(urls=urls)))
    shown = [row[0] for row in page.rows(f"The {MAX_URLS} busiest URLs over all the hours shown")[1:]]
    assert shown == [f"http://x.example/{n:02d}" for n in range(40, 15, -1)]


def test_clicks_of_countries_not_listed_are_said() -> None:
    assert "The countries add up to all clicks." in Page(render_report(some_data())).text
    page = Page(render_report(some_data(countries=[KeyCount("DE", 2_000, 0, 1)])))
    assert "Countries not listed hold the other 1,234 clicks." in page.text


def test_nothing_published_yet_is_said() -> None:
    page = Page(render_report(some_data(hours=[], urls=[], countries=[], accounting=[])))
    assert "Nothing published yet" in page.text
    assert "No log hour has been ingested yet." in page.text
    assert not page.with_class("chart")


def test_load_of_each_instance_is_shown_with_its_skew() -> None:
    loads = [
        InstanceLoad("count_by_url", "fields(url) over 2", 1, 300, 7, 1500.4, HOSTILE, 0.5),
        InstanceLoad("count_by_url", "fields(url) over 2", 0, 100, 5, None, None, 0.0),
    ]
    page = Page(render_report(some_data(loads=loads)))
    rows = page.rows("count_by_url: fields(url) over 2; skew 1.50")
    assert [row[:4] for row in rows[1:]] == [["0", "100", "5", ""], ["1", "300", "7", "1,500"]]
    assert rows[2][4:] == [HOSTILE, "50.0%"]
