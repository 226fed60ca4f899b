"""Suite ``layout``: where rows are stored: in which bucket, in how many files, and whether the files are there."""

from __future__ import annotations

from expectations.checks import CRITICAL, WARNING, Check, at_most, equal, one_of, zero
from include.buckets import NOT_STATED, PARTITIONER
from include.counting import counted_tables
from include.settings import PipelineSettings
from include.tables import CLICKS, CLICKS_BY_URL_HOURLY, QUARANTINED_CLICKS, Table

_SUITE = "layout"
_REPARTITION = "Run: python -m spark_jobs.repartition_tables --buckets N; check_co_partitioning says which N."


def log_hour_checks(settings: PipelineSettings) -> list[Check]:
    """Of each log hour."""
    return [
        _files_there(CLICKS, "clicks", "Ingest the log hour again."),
        _files_there(QUARANTINED_CLICKS, "quarantined", "Ingest the log hour again."),
        *_few_files(
            settings, CLICKS, "clicks", "log hour", "There is one for each landed file: land fewer, larger ones."
        ),
    ]


def click_hour_checks(settings: PipelineSettings) -> list[Check]:
    """Of each click hour."""
    tables = counted_tables(settings.counts)
    checks = [check for key, table in tables.items() for check in _of_table(settings, key, table)]
    return checks + [
        Check(
            _SUITE,
            f"{key}_same_buckets",
            table.name,
            equal("url_buckets", f"{key}_buckets"),
            CRITICAL,
            f"the tables per url and per {key} have the same number of buckets",
            f"Co-partitioned tables share it. {_REPARTITION}",
        )
        for key, table in tables.items()
        if table != CLICKS_BY_URL_HOURLY
    ]


def _of_table(settings: PipelineSettings, key: str, table: Table) -> list[Check]:
    return [
        Check(
            _SUITE,
            f"{key}_buckets_are_hashes",
            table.name,
            zero(f"misplaced_{key}_rows"),
            CRITICAL,
            f"every bucket is what the {key}'s hash says for the table's number of buckets",
            "Joins that rely on co-partitioning would miss rows. Aggregate the hour again.",
            rows="misplaced",
        ),
        Check(
            _SUITE,
            f"{key}_partitioner",
            table.name,
            one_of(f"{key}_partitioner", PARTITIONER, NOT_STATED),
            CRITICAL,
            f"the buckets per {key} are of partitioner {PARTITIONER}",
            f"Keys hashed another way are in other buckets. {_REPARTITION}",
        ),
        Check(
            _SUITE,
            f"{key}_partitioner_stated",
            table.name,
            one_of(f"{key}_partitioner", PARTITIONER),
            WARNING,
            f"the table per {key} states its partitioner",
            f"Without it nobody knows how a bucket follows from a key. {_REPARTITION}",
        ),
        Check(
            _SUITE,
            f"{key}_type",
            table.name,
            one_of(f"{key}_key_type", str(table.key_type)),
            CRITICAL,
            f"the {key} is stored as {table.key_type}",
            "A key of another type has another hash. Move the table away and aggregate all hours again.",
        ),
        _files_there(table, key, "Aggregate the hour again."),
        *_few_files(settings, table, key, "click hour", "There is one for each instance that counts: have fewer."),
    ]


def _files_there(table: Table, what: str, fix: str) -> Check:
    return Check(
        _SUITE,
        f"{what}_files_are_there",
        table.name,
        zero(f"lost_{what}_files"),
        CRITICAL,
        f"every file of {table.name} is there, as long as it was written",
        f"Its rows are lost, and whoever reads the hour fails. {fix}",
        finding=f"lost_{what}_file_names",
    )


def _few_files(settings: PipelineSettings, table: Table, what: str, partition: str, fix: str) -> list[Check]:
    return at_most(
        settings.thresholds["files_per_partition"],
        _SUITE,
        f"{what}_files",
        table.name,
        f"{what}_files",
        lambda bound: f"a {partition} has at most {bound:g} files of {table.name}",
        f"Many small files are slow to read. {fix}",
    )
