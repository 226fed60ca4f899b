"""The HTML report: right numbers, nothing from elsewhere, and log texts that stay texts."""

from __future__ import annotations

import random
import re
from base64 import b64encode
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

from include.errors import UsageError
from include.tables import QUARANTINE_REASONS
from include.texts import as_printable, as_share, crop_middle
from spark_jobs.publish.report import (
    MAX_CHART_HOURS,
    MAX_OPEN_COUNTRIES,
    MAX_URLS,
    AccountingRow,
    AccountingTotals,
    HourOfClicks,
    InstanceLoad,
    KeyCount,
    ReportData,
    Verdict,
    render_report,
    write_report,
)

HOSTILE = "\"'><script>alert(1)</script><img src=//evil.example/x onerror=alert(1)>{{ 7*7 }}&amp;"
PASSED = Verdict(passed=True, critical_failures=[], warnings=[])
VOID_ELEMENTS = {"meta", "rect", "path", "br", "img", "link"}


class Page(HTMLParser):
    """What a browser would make of the page: its elements, their texts, and its tables as rows of cells."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self._caption = ""
        self.feed(html)
        self.close()
        assert not self.open, f"elements left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID_ELEMENTS:
            self.open.append(tag)
        if tag == "caption":
            self._caption = ""
        elif tag == "tr":
            self.tables.setdefault(self._caption, []).append([])
        elif tag in ("th", "td"):
            self.tables[self._caption][-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        self.texts.append((inside, data))
        if inside == "caption":
            self._caption += data
        elif {"th", "td"} & set(self.open):
            self.tables[self._caption][-1][-1] += data

    @property
    def text(self) -> str:
        return " ".join(" ".join(text for inside, text in self.texts if inside != "style").split())

    def rows(self, caption: str) -> list[list[str]]:
        return [[cell.strip() for cell in row] for row in self.tables[caption]]

    def with_class(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for _, attributes in self.elements if name in (attributes.get("class") or "").split()]

    def charts(self, kind: str) -> list[dict[str, str | None]]:
        return [attributes for attributes in self.with_class("chart") if kind in (attributes["class"] or "").split()]


def an_accounting_row(**values: object) -> AccountingRow:
    row = AccountingRow(
        source="web",
        log_hour="2026-03-01T05",
        lines=1000,
        accepted=900,
        duplicates=60,
        quarantined=40,
        quarantined_by_reason={"not_json": 30, "bad_time": 10},
        late=7,
        out_of_order=8,
        files=2,
        bytes=123_456,
        is_closed=True,
        damaged_files=[],
    )
    return replace(row, **values)  # type: ignore[arg-type]


def some_data(**values: object) -> ReportData:
    data = ReportData(
        title="Clicks",
        generated_at=datetime(2026, 3, 1, 12, 30, tzinfo=UTC),
        hours=[HourOfClicks("2026-03-01T04", 1_234, 34), HourOfClicks("2026-03-01T05", 2_000, 200)],
        urls=[
            KeyCount("https://a.example/", 3_000, 200, 1_111),
            KeyCount("https://b.example/x?y=1", 234, 34, 99),
        ],
        countries=[KeyCount("DE", 3_234, 234, 1_200)],
        accounting=[an_accounting_row()],
        verdict=PASSED,
    )
    return replace(data, **values)  # type: ignore[arg-type]


def hostile_data() -> ReportData:
    return some_data(
        title=HOSTILE,
        urls=[
            KeyCount(f"http://x.example/{HOSTILE}", 20, 1, 1),
            KeyCount("javascript:alert(1)", 10, 1, 1),
            KeyCount("http://x.example/\u202egpj.exe\x00\x1b[2J\udc80", 5, 0, 1),
        ],
        countries=[KeyCount(HOSTILE, 30, 2, 2), KeyCount("</title></svg><script>", 5, 0, 1)],
        accounting=[
            an_accounting_row(
                source=HOSTILE,
                quarantined_by_reason={HOSTILE: 40},
                damaged_files=[HOSTILE, "bad\udcff.gz"],
                is_closed=False,
            )
        ],
        verdict=Verdict(passed=False, critical_failures=[HOSTILE], warnings=[HOSTILE]),
    )


@pytest.mark.parametrize("data", [some_data(), hostile_data()], ids=["usual", "hostile"])
def test_page_has_no_script_and_nothing_from_elsewhere(data: ReportData) -> None:
    html = render_report(data)
    page = Page(html)
    forbidden = {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "embed",
        "base",
        "form",
        "a",
        "foreignobject",
        "use",
    }
    assert not forbidden & {tag for tag, _ in page.elements}
    for tag, attributes in page.elements:
        reaching = {"src", "href", "xlink:href", "srcset", "action", "style"}
        assert not reaching & set(attributes), f"{tag} has {attributes}"
        assert not [name for name in attributes if name.startswith("on")], f"{tag} has {attributes}"
    style = "".join(text for inside, text in page.texts if inside == "style")
    assert "url(" not in style
    assert "@import" not in style
    assert "pygal" not in html.lower()


def test_content_security_policy_allows_the_pages_own_style_sheet_only() -> None:
    page = Page(render_report(some_data()))
    style = "".join(text for inside, text in page.texts if inside == "style")
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = next(
        attributes["content"] for tag, attributes in page.elements if tag == "meta" and "http-equiv" in attributes
    )
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_texts_from_logs_are_shown_letter_by_letter() -> None:
    page = Page(render_report(hostile_data()))
    urls = [row[0] for row in page.rows("The 3 busiest URLs over all the hours shown")[1:]]
    assert urls == [
        f"http://x.example/{HOSTILE}",
        "javascript:alert(1)",
        r"http://x.example/\u202egpj.exe\x00\x1b[2J\udc80",
    ]
    assert page.rows("Clicks by country over all the hours shown")[1][0] == HOSTILE
    assert page.rows("By source and log hour, newest first")[1][0] == HOSTILE
    assert page.rows("Quarantined lines by reason")[1][0] == HOSTILE
    assert ("title", HOSTILE) in page.texts
    assert f"Critical: {HOSTILE} Warning: {HOSTILE}" in page.text
    assert f"2026-03-01T05/{HOSTILE}, 2026-03-01T05/bad\\udcff.gz" in page.text
    # In the charts too: as a label, and as a tooltip.
    assert ("text", crop_middle(HOSTILE, 12)) in page.texts
    assert ("title", "</title></svg><script>: 5 clicks, 0 by crawlers") in page.texts


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


def test_accounting_totals_are_the_sums() -> None:
    rows = [an_accounting_row(is_closed=n > 3, damaged_files=["x"] * n, lines=n) for n in range(6)]
    totals = AccountingTotals.of(rows)
    assert totals.lines == sum(range(6))
    assert totals.damaged_files == sum(range(6))
    assert totals.not_closed == 4
    assert totals.quarantined_by_reason == {"not_json": 180, "bad_time": 60}
    assert AccountingTotals.of([]) == AccountingTotals()


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
    assert "lines are not accepted + duplicates + quarantined in 2026-03-01T08;" in page.text


def test_many_marks_make_one_short_sentence() -> None:
    rows = [an_accounting_row(log_hour=f"2026-03-01T{hour:02d}", is_closed=False) for hour in range(24)]
    text = Page(render_report(some_data(accounting=rows))).text
    assert "24 of 24 log hours not closed" in text
    assert "2026-03-01T07 and 16 more" in text


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


@pytest.mark.parametrize("number", [1, 2, 9, 24, 25, 47, 168, 743, 744])
def test_axis_has_a_handful_of_labels_for_any_span(number: int) -> None:
    first = datetime(2026, 2, 27, 13, tzinfo=UTC)
    hours = [HourOfClicks(f"{first + timedelta(hours=n):%Y-%m-%dT%H}", 1 + n, 0) for n in range(number)]
    html = render_report(some_data(hours=hours))
    for kind, most in (("wide", 10), ("narrow", 4)):
        chart = re.search(rf'<svg class="chart {kind}".*?</svg>', html, re.DOTALL)
        assert chart
        labels = re.findall(r"<text[^>]*>(\d\d:\d\d|\d+ [A-Z][a-z]{2})</text>", chart[0])
        assert 1 <= len(labels) <= most


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_axis_of_small_counts_has_no_fractions_and_no_doubles(count: int) -> None:
    html = render_report(some_data(hours=[HourOfClicks("2026-03-01T04", count, 0)]))
    chart = re.search(r'<svg class="chart wide".*?</svg>', html, re.DOTALL)
    assert chart
    labels = re.findall(r"<text[^>]*>([\d.,]+)</text>", chart[0])
    assert labels
    assert len(labels) == len(set(labels))
    assert all(label.isdigit() for label in labels)


def test_at_most_25_urls_are_shown_the_busiest_first() -> None:
    urls = [KeyCount(f"http://x.example/{n:02d}", n, 0, 1) for n in range(1, 41)]
    random.Random(1).shuffle(urls)
    page = Page(render_report(some_data(urls=urls)))
    shown = [row[0] for row in page.rows(f"The {MAX_URLS} busiest URLs over all the hours shown")[1:]]
    assert shown == [f"http://x.example/{n:02d}" for n in range(40, 15, -1)]


def test_all_countries_are_in_the_tables() -> None:
    countries = [KeyCount(f"X{letter}", 10, 0, 1) for letter in "ABCDEFGHIJKLMNOPQRST"]
    page = Page(render_report(some_data(countries=countries)))
    first = page.rows("Clicks by country over all the hours shown")[1:]
    rest = page.rows("Clicks by country, continued")[1:]
    assert len(first) == MAX_OPEN_COUNTRIES
    assert [row[0] for row in first + rest] == [country.key for country in countries]


def test_clicks_of_countries_not_listed_are_said() -> None:
    assert "The countries add up to all clicks." in Page(render_report(some_data())).text
    page = Page(render_report(some_data(countries=[KeyCount("DE", 2_000, 0, 1)])))
    assert "Countries not listed hold the other 1,234 clicks." in page.text


def test_nothing_published_yet_is_said() -> None:
    page = Page(render_report(some_data(hours=[], urls=[], countries=[], accounting=[])))
    assert "Nothing published yet" in page.text
    assert "No log hour has been ingested yet." in page.text
    assert not page.with_class("chart")


def test_accounting_is_shown_before_anything_is_published() -> None:
    page = Page(render_report(some_data(hours=[], urls=[], countries=[])))
    assert "Nothing published yet" in page.text
    assert page.rows("By source")[1][0] == "web"


def test_load_of_each_instance_is_shown_with_its_skew() -> None:
    loads = [
        InstanceLoad("count_by_url", "fields(url) over 2", 1, 300, 7, 1500.4, HOSTILE, 0.5),
        InstanceLoad("count_by_url", "fields(url) over 2", 0, 100, 5, None, None, 0.0),
    ]
    page = Page(render_report(some_data(loads=loads)))
    rows = page.rows("count_by_url: fields(url) over 2; skew 1.50")
    assert [row[:4] for row in rows[1:]] == [["0", "100", "5", ""], ["1", "300", "7", "1,500"]]
    assert rows[2][4:] == [HOSTILE, "50.0%"]


@pytest.mark.parametrize(
    ("verdict", "heading"),
    [
        (PASSED, "Passed"),
        (Verdict(True, [], ["a"]), "Passed with 1 warning"),
        (Verdict(True, [], ["a", "b"]), "Passed with 2 warnings"),
        (Verdict(False, ["a"], []), "Failed: 1 critical check"),
        (Verdict(False, [], []), "Failed"),
        (Verdict(True, ["a"], []), "Failed: 1 critical check"),
        (Verdict(False, ["a"], ["b"], held=["c", "d"]), "Held: 2 click hours"),
    ],
)
def test_verdict_is_said_in_words(verdict: Verdict, heading: str) -> None:
    page = Page(render_report(some_data(verdict=verdict)))
    assert ("h2", heading) in page.texts
    for said in (*verdict.critical_failures, *verdict.warnings, *verdict.held):
        assert any(tag == "li" and text.endswith(said) for tag, text in page.texts)


def test_data_docs_are_the_only_link() -> None:
    page = Page(render_report(some_data(verdict=Verdict(True, [], [], "data_docs/index.html"))))
    assert [attributes for tag, attributes in page.elements if tag == "a"] == [{"href": "data_docs/index.html"}]


@pytest.mark.parametrize(
    "link",
    [
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        "java\nscript:alert(1)",
        " javascript:alert(1)",
        "https://evil.example/",
        "//evil.example/",
        "\\\\evil.example/",
        "/etc/passwd",
        "../../secret.html",
        "",
        "#top",
    ],
)
def test_data_docs_elsewhere_are_refused(link: str) -> None:
    with pytest.raises(ValueError, match="relative to the report"):
        Verdict(True, [], [], link)


def test_tables_can_be_read_aloud() -> None:
    page = Page(render_report(some_data()))
    tags = Counter(tag for tag, _ in page.elements)
    assert tags["table"] == tags["caption"] > 0
    assert all("scope" in attributes for tag, attributes in page.elements if tag == "th")
    assert all(
        attributes.get("aria-hidden") == "true" or (attributes.get("role") == "img" and attributes.get("aria-label"))
        for tag, attributes in page.elements
        if tag == "svg"
    )


def test_same_data_in_any_order_gives_the_same_page() -> None:
    data = some_data(accounting=[an_accounting_row(), an_accounting_row(source="access")])
    reversed_data = replace(
        data,
        hours=data.hours[::-1],
        urls=data.urls[::-1],
        countries=data.countries[::-1],
        accounting=data.accounting[::-1],
    )
    assert render_report(data) == render_report(reversed_data)


def test_time_is_shown_in_utc() -> None:
    in_india = datetime(2026, 3, 1, 18, 0, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    assert "Generated 2026-03-01 12:30 UTC" in Page(render_report(some_data(generated_at=in_india))).text
    without_offset = datetime(2026, 3, 1, 18, 0)
    assert "Generated 2026-03-01 18:00 UTC" in Page(render_report(some_data(generated_at=without_offset))).text


def test_a_click_hour_that_is_none_is_an_error() -> None:
    with pytest.raises(UsageError, match="yesterday"):
        render_report(some_data(hours=[HourOfClicks("yesterday", 1, 0)]))


def test_report_replaces_the_one_before_and_leaves_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    write_report(some_data(title="First"), folder)
    report = write_report(hostile_data(), folder)
    assert report == folder / "report.html"
    assert report.read_text(encoding="utf-8") == render_report(hostile_data())
    assert [entry.name for entry in folder.iterdir()] == ["report.html"]
    (folder / "plain").touch()
    assert report.stat().st_mode == (folder / "plain").stat().st_mode, "as readable as any new file"


def test_a_report_that_fails_leaves_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = write_report(some_data(title="First"), tmp_path)

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("include.pages.render.os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(some_data(title="Second"), tmp_path)
    assert "First" in report.read_text(encoding="utf-8")
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize(
    ("part", "whole", "share"),
    [
        (0, 10, "0.0%"),
        (10, 10, "100.0%"),
        (1, 1_000_000, "<0.1%"),
        (999_999, 1_000_000, ">99.9%"),
        (1, 8, "12.5%"),
        (0, 0, "n/a"),
    ],
)
def test_share_is_never_rounded_to_nothing_or_all(part: int, whole: int, share: str) -> None:
    assert as_share(part, whole) == share


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://x.example/é?日本", "https://x.example/é?日本"),
        ("\x1b[2J", r"\x1b[2J"),
        ("a\r\n\tb", r"a\r\n\tb"),
        ("\u202eexe", r"\u202eexe"),
        ("\udc80", r"\udc80"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, shown: str) -> None:
    assert as_printable(text) == shown


@pytest.mark.parametrize("length", range(12))
def test_cropped_text_keeps_both_ends(length: int) -> None:
    cropped = crop_middle("abcdefghij", length)
    assert len(cropped) == (10 if length >= 10 else max(length, 1))
    if 3 <= length < 10:
        assert (cropped[0], cropped[-1]) == ("a", "j")
