"""Suite ``aggregates``: the rows of the tables of counts, for one click hour."""

from __future__ import annotations

from functools import partial

from expectations.checks import CRITICAL, WARNING, Check, RowRule, at_most, between, equal, percent, row_check
from include.counting import counted_tables
from include.days import hours_of_two_days
from include.settings import PipelineSettings
from include.tables import CLICKS_BY_URL_HOURLY, QUARTERS, VISITOR_COUNT_STANDARD_ERROR, Table

_SUITE = "aggregates"
_check, _row_check = partial(Check, suite=_SUITE), partial(row_check, suite=_SUITE)
#: So many standard errors a visitor count may be above its clicks: with more rows than there are, none is.
_SIGMAS = 5


def click_hour_checks(settings: PipelineSettings) -> list[Check]:
    """Of each click hour."""
    tables = counted_tables(settings.counts)
    checks = [check for key, table in tables.items() for check in _of_table(key, table)]
    if hours_of_two_days(settings.time_zones):
        checks += [_quarters_check(key, table) for key, table in tables.items()]
    return checks + at_most(
        settings.thresholds["top_url_share"],
        suite=_SUITE,
        name="top_url_share",
        table=CLICKS_BY_URL_HOURLY.name,
        column="top_url_share",
        holds=lambda bound: f"no URL has more than {percent(bound)} of a click hour's clicks",
        reason="A loop, an attack or a broken redirect may be behind it; and one instance carries that load.",
    )


def _quarters_check(key: str, table: Table) -> Check:
    different = (
        f"aggregate({QUARTERS.name}.{count}, 0L, (sum, of_quarter) -> sum + of_quarter) <> {count}"
        for count in ("click_count", "bot_click_count")
    )
    return _row_check(
        name=f"{key}_quarters_equal_hour",
        table=table.name,
        counted_as=f"other_{key}_quarters",
        broken=" OR ".join(different),
        severity=CRITICAL,
        holds=f"the quarters of an hour, per {key}, come to the hour",
        reason="Days that begin within the hour would be wrong. Aggregate the hour again.",
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
