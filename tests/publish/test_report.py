"""The HTML report: nothing from elsewhere, log texts that stay texts, a verdict in words, replaced as a whole."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from pathlib import Path

import pytest

from include.errors import UsageError
from include.texts import as_share, crop_middle
from spark_jobs.publish.report import HourOfClicks, ReportData, Verdict, render_report, write_report
from tests.publish.report_page import HOSTILE, PASSED, Page, an_accounting_row, hostile_data, some_data


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
        (Verdict(True, [], [], decided=["05: dropped by Ada"]), "Passed"),
    ],
)
def test_verdict_is_said_in_words(verdict: Verdict, heading: str) -> None:
    page = Page(render_report(some_data(verdict=verdict)))
    assert ("h2", heading) in page.texts
    for item in (*verdict.critical_failures, *verdict.warnings, *verdict.held, *verdict.decided):
        assert any(tag == "li" and text.endswith(item) for tag, text in page.texts)


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

    monkeypatch.setattr("include.storage.os.replace", fail)
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
