"""What must hold of every log hour and click hour, each expectation with its severity and its reason.

Critical: a count is wrong or cannot be trusted, and nothing is published. Warning: published, and shown.
The frames that the suites judge are described in ``expectations/metrics.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import great_expectations.expectations as gxe
from great_expectations.expectations.expectation import Expectation

from include.buckets import NOT_STATED, PARTITIONER
from include.counting import counted_tables
from include.settings import PipelineSettings

CRITICAL, WARNING = "critical", "warning"

_REPARTITION = "Run: python -m spark_jobs.repartition_tables --buckets N; check_co_partitioning says which N."


@dataclass(frozen=True)
class Check:
    """One expectation in words: ``holds`` is what it says, ``reason`` why it is there and what to do.

    ``name`` is unique in its suite and stays when the wording changes; ``table`` is the one that was looked at.
    """

    suite: str
    name: str
    table: str
    expectation: Expectation
    severity: str
    holds: str
    reason: str


def _always(column: str, smallest: float | None, largest: float | None) -> Expectation:
    return gxe.ExpectColumnValuesToBeBetween(column=column, min_value=smallest, max_value=largest)


def _equal(one: str, other: str) -> Expectation:
    return gxe.ExpectColumnPairValuesToBeEqual(column_A=one, column_B=other)


def _one_of(column: str, *values: str) -> Expectation:
    return gxe.ExpectColumnValuesToBeInSet(column=column, value_set=list(values))


def log_hour_checks(settings: PipelineSettings) -> list[Check]:
    """What must hold of each source's log hour."""
    return [
        Check(
            "reconciliation",
            "lines_add_up",
            "clicks",
            _equal("lines", "accounted_lines"),
            CRITICAL,
            "lines = clicks stored + duplicates + lines in quarantine",
            "No line vanishes and none is counted twice. Ingest the log hour again.",
        ),
        Check(
            "reconciliation",
            "accepted_are_stored",
            "clicks",
            _equal("accepted", "stored_clicks"),
            CRITICAL,
            "accepted lines = rows in clicks",
            "The accounting and the table were written by different runs. Ingest the log hour again.",
        ),
        Check(
            "clicks",
            "no_event_id_twice",
            "clicks",
            _always("duplicate_event_ids", 0, 0),
            CRITICAL,
            "no event id is accepted twice within the lateness window",
            "A click would be counted twice. Ingest the log hours again, the earlier one first.",
        ),
        Check(
            "clicks",
            "no_null_keys",
            "clicks",
            _always("null_keys", 0, 0),
            CRITICAL,
            "no required column of clicks is null",
            "Rows without time, URL or country fall out of the counts. See the source's field mapping.",
        ),
        Check(
            "clicks",
            "known_countries",
            "clicks",
            _always("invalid_country_codes", 0, 0),
            CRITICAL,
            "every country code is ISO 3166-1 alpha-2 or 'unknown'",
            "Counts per country would have rows that no country has. Ingest the log hour again.",
        ),
        Check(
            "clicks",
            "quarantined_share",
            "quarantined_clicks",
            _always("quarantined_share", None, settings.max_quarantined_share),
            WARNING,
            f"at most {settings.max_quarantined_share:.0%} of the lines are in quarantine",
            "A source may have changed its format. See quarantined_clicks for the reasons.",
        ),
        Check(
            "clicks",
            "most_lines_quarantined",
            "quarantined_clicks",
            _always("quarantined_share", None, 0.5),
            CRITICAL,
            "at most 50% of the lines are in quarantine",
            "What is left is no picture of the hour. See quarantined_clicks for the reasons; mend the source and land "
            "the hour anew.",
        ),
        Check(
            "clicks",
            "unknown_country_share",
            "clicks",
            _always("unknown_country_share", None, settings.max_unknown_country_share),
            WARNING,
            f"at most {settings.max_unknown_country_share:.0%} of the clicks have an unknown country",
            "The country field or the country database may be out of date.",
        ),
        Check(
            "reconciliation",
            "hour_is_complete",
            "ingest_accounting",
            _always("files_not_closed_or_damaged", 0, 0),
            WARNING,
            "the log hour was closed by _SUCCESS, and no file breaks off",
            "Lines may be missing. When the files are there, ingest the log hour again.",
        ),
    ]


def grouping_checks(settings: PipelineSettings) -> list[Check]:
    """What should hold of the load of each counting operator's instances."""
    return [
        Check(
            "load",
            "skew",
            "grouping_metrics",
            _always("skew", None, settings.max_skew),
            WARNING,
            f"the busiest instance has at most {settings.max_skew:g} times the mean load",
            "The others wait for it, and more cores do not help. See python -m spark_jobs.advise_grouping --help.",
        )
    ]


def click_hour_checks(settings: PipelineSettings) -> list[Check]:
    """What must hold of each click hour's counts."""
    checks = [
        Check(
            "reconciliation",
            "urls_equal_countries",
            "clicks_by_url_hourly",
            _equal("clicks_by_url", "clicks_by_country"),
            CRITICAL,
            "clicks summed over URLs = clicks summed over countries",
            "Each click has one URL and one country, unknown included. Aggregate the hour again.",
        ),
        Check(
            "reconciliation",
            "clicks_equal_urls",
            "clicks_by_url_hourly",
            _equal("clicks", "clicks_by_url"),
            CRITICAL,
            "rows in clicks = clicks summed over URLs",
            "The counts are older than the clicks, or miss some. Aggregate the hour again.",
        ),
    ]
    tables = counted_tables(settings.counts)
    for key, table in tables.items():
        checks += [
            Check(
                "aggregates",
                f"{key}_count_positive",
                table.name,
                _always(f"smallest_{key}_count", 1, None),
                CRITICAL,
                f"every click_count per {key} is at least 1",
                "A row stands for clicks that happened. Aggregate the hour again.",
            ),
            Check(
                "aggregates",
                f"{key}_once",
                table.name,
                _equal(f"{key}_rows", f"{key}_keys"),
                CRITICAL,
                f"no {key} has two rows in a click hour, so none has two buckets",
                "Its clicks would be split over rows. Aggregate the hour again.",
            ),
            Check(
                "layout",
                f"{key}_buckets_are_hashes",
                table.name,
                _always(f"misplaced_{key}_rows", 0, 0),
                CRITICAL,
                f"every bucket is what the {key}'s hash says for the table's number of buckets",
                "Joins that rely on co-partitioning would miss rows. Aggregate the hour again.",
            ),
            Check(
                "layout",
                f"{key}_partitioner",
                table.name,
                _one_of(f"{key}_partitioner", PARTITIONER, NOT_STATED),
                CRITICAL,
                f"the buckets per {key} are of partitioner {PARTITIONER}",
                f"Keys hashed another way are in other buckets. {_REPARTITION}",
            ),
            Check(
                "layout",
                f"{key}_partitioner_stated",
                table.name,
                _one_of(f"{key}_partitioner", PARTITIONER),
                WARNING,
                f"the table per {key} states its partitioner",
                f"One made by an earlier version does not. {_REPARTITION}",
            ),
            Check(
                "layout",
                f"{key}_type",
                table.name,
                _one_of(f"{key}_key_type", str(table.key_type)),
                CRITICAL,
                f"the {key} is stored as {table.key_type}",
                "A key of another type has another hash. Move the table away and aggregate all hours again.",
            ),
            Check(
                "aggregates",
                f"{key}_bots_within_clicks",
                table.name,
                _always(f"bots_above_{key}_clicks", 0, 0),
                CRITICAL,
                f"crawlers' clicks per {key} are at most all clicks",
                "They are a part of them. Aggregate the hour again.",
            ),
        ]
    checks += [
        Check(
            "layout",
            f"{key}_same_buckets",
            table.name,
            _equal("url_buckets", f"{key}_buckets"),
            CRITICAL,
            f"the tables per url and per {key} have the same number of buckets",
            f"Co-partitioned tables share it. {_REPARTITION}",
        )
        for key, table in tables.items()
        if key != "url"
    ]
    checks += [
        Check(
            "aggregates",
            "top_url_share",
            "clicks_by_url_hourly",
            _always("top_url_share", None, settings.max_top_key_share),
            WARNING,
            f"no URL has more than {settings.max_top_key_share:.0%} of a click hour's clicks",
            "A loop, an attack or a broken redirect may be behind it; and one instance carries that load.",
        ),
    ]
    return checks
