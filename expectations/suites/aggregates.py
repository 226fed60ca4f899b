"""Suite ``aggregates``: the rows of the tables of counts, for one click hour."""

from __future__ import annotations

from functools import partial

from expectations.checks import CRITICAL, WARNING, Check, RowRule, at_most, between, equal, percent, row_check
from include.counting import counted_tables
from include.settings import PipelineSettings
from include.tables import CLICKS_BY_URL_HOURLY, VISITOR_COUNT_STANDARD_ERROR, Table

_SUITE = "aggregates"
_check, _row_check = partial(Check, suite=_SUITE), partial(row_check, suite=_SUITE)
#: So many standard errors a visitor count may be above its clicks: with more rows than there are, none is.
_SIGMAS = 5


def click_hour_checks(settings: PipelineSettings) -> list[Check]:
    """Of each click hour."""
    checks = [check for key, table in counted_tables(settings.counts).items() for check in _of_table(key, table)]
    return checks + at_most(
        settings.thresholds["top_url_share"],
        suite=_SUITE,
        name="top_url_share",
        table=CLICKS_BY_URL_HOURLY.name,
        column="top_url_share",
        holds=lambda bound: f"no URL has more than {percent(bound)} of a click hour's clicks",
        reason="A loop, an attack or a broken redirect may be behind it; and one instance carries that load.",
    )


def _of_table(key: str, table: Table) -> list[Check]:
    return [
        _check(
            name=f"{key}_count_positive",
            table=table.name,
            expectation=between(f"smallest_{key}_count", 1, None),
            severity=CRITICAL,
            holds=f"every click_count per {key} is at least 1",
            reason="A row stands for clicks that happened. Aggregate the hour again.",
            rows=RowRule("counts_below_1", shown="click_count < 1"),
        ),
        _check(
            name=f"{key}_once",
            table=table.name,
            expectation=equal(f"{key}_rows", f"{key}_keys"),
            severity=CRITICAL,
            holds=f"no {key} has two rows in a click hour, so none has two buckets",
            reason="Its clicks would be split over rows. Aggregate the hour again.",
            rows=RowRule("keys_twice", same=("click_date", "click_hour", str(table.bucket_key))),
        ),
        _row_check(
            name=f"{key}_bots_within_clicks",
            table=table.name,
            counted_as=f"bots_above_{key}_clicks",
            broken="bot_click_count > click_count",
            severity=CRITICAL,
            holds=f"crawlers' clicks per {key} are at most all clicks",
            reason="They are a part of them. Aggregate the hour again.",
        ),
        _row_check(
            name=f"{key}_visitors_within_clicks",
            table=table.name,
            counted_as=f"visitors_above_{key}_clicks",
            broken=f"visitor_count > click_count * {1 + _SIGMAS * VISITOR_COUNT_STANDARD_ERROR}",
            # Who knows the sketch's hash can choose ids by which it says twice as many as there are.
            severity=WARNING,
            holds=f"visitors per {key} are at most the clicks, but for the estimate's error",
            reason="A visitor has clicked. Where a source maps visitor, its clients choose the ids, and can choose "
            "some that make the estimate too high; the clicks are right all the same. Else the sketches may have been "
            "merged wrongly: aggregate the hour again.",
        ),
    ]
