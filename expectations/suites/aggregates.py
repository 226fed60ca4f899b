"""Suite ``aggregates``: the rows of the tables of counts, for one click hour."""

from __future__ import annotations

from expectations.checks import CRITICAL, WARNING, Check, at_most, between, equal, percent, zero
from include.counting import counted_tables
from include.settings import PipelineSettings
from include.tables import CLICKS_BY_URL_HOURLY, Table

_SUITE = "aggregates"


def click_hour_checks(settings: PipelineSettings) -> list[Check]:
    """Of each click hour."""
    checks = [check for key, table in counted_tables(settings.counts).items() for check in _of_table(key, table)]
    return checks + at_most(
        settings.thresholds["top_url_share"],
        _SUITE,
        "top_url_share",
        CLICKS_BY_URL_HOURLY.name,
        "top_url_share",
        lambda bound: f"no URL has more than {percent(bound)} of a click hour's clicks",
        "A loop, an attack or a broken redirect may be behind it; and one instance carries that load.",
    )


def _of_table(key: str, table: Table) -> list[Check]:
    return [
        Check(
            _SUITE,
            f"{key}_count_positive",
            table.name,
            between(f"smallest_{key}_count", 1, None),
            CRITICAL,
            f"every click_count per {key} is at least 1",
            "A row stands for clicks that happened. Aggregate the hour again.",
            rows="counts_below_1",
        ),
        Check(
            _SUITE,
            f"{key}_once",
            table.name,
            equal(f"{key}_rows", f"{key}_keys"),
            CRITICAL,
            f"no {key} has two rows in a click hour, so none has two buckets",
            "Its clicks would be split over rows. Aggregate the hour again.",
            rows="keys_twice",
        ),
        Check(
            _SUITE,
            f"{key}_bots_within_clicks",
            table.name,
            zero(f"bots_above_{key}_clicks"),
            CRITICAL,
            f"crawlers' clicks per {key} are at most all clicks",
            "They are a part of them. Aggregate the hour again.",
            rows="bots_above_clicks",
        ),
        Check(
            _SUITE,
            f"{key}_visitors_within_clicks",
            table.name,
            zero(f"visitors_above_{key}_clicks"),
            # Who knows the sketch's hash can choose ids by which it says twice as many as there are.
            WARNING,
            f"visitors per {key} are at most the clicks, but for the estimate's error",
            "A visitor has clicked. Where a source maps visitor, its clients choose the ids, and can choose some that "
            "make the estimate too high; the clicks are right all the same. Else the sketches may have been merged "
            "wrongly: aggregate the hour again.",
            rows="visitors_above_clicks",
        ),
    ]
