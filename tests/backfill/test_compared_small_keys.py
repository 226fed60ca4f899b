"""A staged backfill is compared as it would be published: nobody sees there what nobody is to see afterwards."""

from __future__ import annotations

import orjson
import pytest

from include.backfills import read_backfills
from include.hours import Hour, HourRange
from include.tables import OTHER_KEYS
from spark_jobs.backfill.plan import Request
from tests.support.temporary_lake import TemporaryLake, click

pytestmark = pytest.mark.spark

HOUR = "2026-03-01T05"
SHOP, TERMS, CLINIC = "http://shop.test/", "http://shop.test/terms", "http://shop.test/clinic"


def visits(**visitors: int) -> bytes:
    """A click of each visitor of the pages that are named so."""
    urls = {"shop": SHOP, "terms": TERMS, "clinic": CLINIC}
    return b"".join(
        click(f"{page}{n}", f"{HOUR}:{n:02}:00Z", urls[page], visitor_id=f"{page}{n}")
        for page, count in visitors.items()
        for n in range(count)
    )


def test_keys_of_few_visitors_are_compared_together(lake: TemporaryLake) -> None:
    with lake.settings.pipeline_file.open("a") as file:
        file.write("[publication]\nsmallest_visitors = 3\n")
    lake.land(HOUR, {"a.json": visits(shop=5, terms=2, clinic=1)})
    lake.run_all(HOUR)
    lake.land(HOUR, {"a.json": visits(shop=6, terms=2, clinic=2)})
    lake.backfill(Request("web", HourRange.single(Hour.parse(HOUR)), 1, is_staged=True))
    (staged,) = read_backfills(lake.settings.lake).values()
    assert staged.state == "waiting"
    page = lake.settings.reports / "backfills" / f"{staged.id}.json"
    comparison = orjson.loads(page.read_bytes())
    by_url, by_country = comparison["tables"]
    assert {of["key"]: (of["old_clicks"], of["new_clicks"]) for of in by_url["largest"]} == {
        SHOP: (5, 6),
        OTHER_KEYS: (3, 4),
    }
    assert (by_url["rows_changed"], by_country["rows_changed"]) == ({HOUR: 2}, {HOUR: 1})
    for file in (page, page.with_suffix(".html")):
        assert CLINIC not in file.read_text(encoding="utf-8")
