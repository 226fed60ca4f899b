"""Hours whose clicks are nearly all on URLs of their own: a warning that says why, and what ends it."""

from __future__ import annotations

import pytest

from include.hours import Hour
from include.tables import QUALITY_RESULTS
from tests.support.temporary_lake import TemporaryLake, click

pytestmark = pytest.mark.spark

FEW, MANY, PAGES = "2026-03-01T04", "2026-03-01T05", "2026-03-01T06"
END = str(Hour.parse(PAGES).plus(1))


def lines(hour: str, clicks: int, query: str = "") -> bytes:
    urls = (f"http://shop.test/p{number % 7}{query.format(number)}" for number in range(clicks))
    return b"".join(click(f"{hour}-{number}", f"{hour}:{number % 60:02d}:00Z", url) for number, url in enumerate(urls))


def judged(lake: TemporaryLake, source: str) -> dict[str, tuple[str, str]]:
    rows = [row for row in lake.rows(QUALITY_RESULTS) if row["check_id"] == "distinct_url_share"]
    return {row["hour"]: (row["outcome"], row["observed"]) for row in rows if row["source"] == source}


def test_a_parameter_that_makes_urls_many_is_named(lake: TemporaryLake) -> None:
    lake.land(FEW, {"a.json": lines(FEW, 900, "?session=s{}")})
    lake.land(MANY, {"a.json": lines(MANY, 1100, "?session=s{}")})
    lake.land(PAGES, {"a.json": lines(PAGES, 1100)})
    lake.run_jobs(FEW, END, "ingest", "validate")
    results = judged(lake, "web")
    assert results.keys() == {MANY, PAGES}, "of few clicks nothing is said"
    assert results[PAGES] == ("pass", "distinct_url_share = 0.00636364")
    outcome, observed = results[MANY]
    assert outcome == "fail"
    assert observed.startswith("distinct_url_share = ")
    assert observed.endswith(
        "; because of the parameter session (1,000 values in 1,000 lines): "
        '[sources.web.pages] drop_parameters = ["session"]'
    )


def test_what_is_no_page_view_is_not_counted_and_a_bound_of_the_source_ends_it(lake: TemporaryLake) -> None:
    """Of 1,100 requests of a page view's own URL as many are of one picture."""
    settings = lake.settings.sources_file
    text = settings.read_text(encoding="utf-8")
    settings.write_text(text.replace('format = "combined"', 'format = "combined"\ncount = "page_views"'))
    agent = "Mozilla/5.0 (X11; Linux x86_64; rv:137.0) Gecko/20100101 Firefox/137.0"
    requests = [
        f'8.8.8.8 - - [01/Mar/2026:05:{number % 60:02}:00 +0000] "GET {path} HTTP/1.1" 200 512 "-" "{agent}"\n'
        for number in range(1100)
        for path in (f"/user/{number}/orders", "/logo.png")
    ]
    lake.land(MANY, {"a.log": "".join(requests).encode()}, source="access")
    lake.run_jobs(MANY, PAGES, "ingest", "validate", source="access")
    outcome, observed = judged(lake, "access")[MANY]
    assert outcome == "fail"
    assert observed.endswith('(1,000 values in 1,000 lines): [sources.access.pages] paths = ["/user/{id:number}/*"]')
    settings.write_text(text + "[sources.access.thresholds]\ndistinct_url_share = { warning = 1 }\n")
    lake.run_jobs(MANY, PAGES, "validate", source="access")
    assert ("pass",) in {
        (row["outcome"],) for row in lake.rows(QUALITY_RESULTS) if row["check_id"] == "distinct_url_share"
    }
