"""Suite ``layout``: where rows are stored: in which bucket, in how many files, and whether the files are there."""

from __future__ import annotations

from functools import partial

from expectations.checks import CRITICAL, Check, at_most, equal, one_of, row_check, zero
from include.buckets import is_misplaced
from include.counting import counted_tables
from include.settings import PipelineSettings
from include.tables import CLICKS, CLICKS_BY_URL_HOURLY, INGEST_ACCOUNTING, QUARANTINED_CLICKS, Table

_SUITE = "layout"
_check, _row_check = partial(Check, suite=_SUITE), partial(row_check, suite=_SUITE)
_REPARTITION = "Run: clickmill repartition --buckets N; clickmill check-partitioning says which N."


def log_hour_checks(settings: PipelineSettings) -> list[Check]:
    """Of each log hour."""
    return [
        _files_there(CLICKS, "clicks", "Ingest the log hour again."),
        _files_there(QUARANTINED_CLICKS, "quarantined", "Ingest the log hour again."),
        *_few_files(
            settings,
            CLICKS,
            "clicks",
            "log hour",
            "There is one for each 16 MiB that landed: if so much does each "
            "hour, raise files_per_partition in config/pipeline.toml.",
        ),
        *at_most(
            settings.thresholds["landed_files"],
            suite=_SUITE,
            name="landed_files",
            table=INGEST_ACCOUNTING.name,
            column="files",
            holds=lambda bound: f"a log hour has at most {bound:g} landed files",
            reason="Each is listed, opened and noted by itself, which takes longer than to parse its lines. Have the "
            "uploader collect clicks for some minutes: land fewer, larger files.",
        ),
    ]


def click_hour_checks(settings: PipelineSettings) -> list[Check]:
    """Of each click hour."""
    tables = counted_tables(settings.counts)
    checks = [check for key, table in tables.items() for check in _of_table(settings, key, table)]
    return checks + [
        _check(
            name=f"{key}_same_buckets",
            table=table.name,
            expectation=equal("url_fewest_buckets", f"{key}_fewest_buckets"),
            severity=CRITICAL,
            holds=f"the tables per url and per {key} have the same number of buckets",
            reason=f"Co-partitioned tables share it. {_REPARTITION}",
        )
        for key, table in tables.items()
        if table != CLICKS_BY_URL_HOURLY
    ]


def _of_table(settings: PipelineSettings, key: str, table: Table) -> list[Check]:
    return [
        _row_check(
            name=f"{key}_buckets_are_hashes",
            table=table.name,
            counted_as=f"misplaced_{key}_rows",
            broken=is_misplaced(str(table.bucket_key)),
            severity=CRITICAL,
            holds=f"every bucket is what the {key}'s hash says for the row's number of buckets",
            reason="Joins that rely on co-partitioning would miss rows. Aggregate the hour again.",
        ),
        _check(
            name=f"{key}_one_number_of_buckets",
            table=table.name,
            expectation=equal(f"{key}_fewest_buckets", f"{key}_most_buckets"),
            severity=CRITICAL,
            holds=f"all rows of the table per {key} have the same number of buckets",
            reason=f"A key would be in several buckets, by the hour. {_REPARTITION}",
        ),
        _check(
            name=f"{key}_type",
            table=table.name,
            expectation=one_of(f"{key}_key_type", str(table.key_type)),
            severity=CRITICAL,
            holds=f"the {key} is stored as {table.key_type}",
            reason="A key of another type has another hash. Move the table away and aggregate all hours again.",
        ),
        _files_there(table, key, "Aggregate the hour again."),
        *_few_files(settings, table, key, "click hour", "There is one for each instance that counts: have fewer."),
    ]


def _files_there(table: Table, kind: str, fix: str) -> Check:
    return _check(
        name=f"{kind}_files_are_there",
        table=table.name,
        expectation=zero(f"lost_{kind}_files"),
        severity=CRITICAL,
        holds=f"every file of {table.name} is there, as long as it was written",
        reason=f"Its rows are lost, and whoever reads the hour fails. {fix}",
        finding=f"lost_{kind}_file_names",
    )


def _few_files(settings: PipelineSettings, table: Table, kind: str, partition: str, fix: str) -> list[Check]:
    return at_most(
        settings.thresholds["files_per_partition"],
        suite=_SUITE,
        name=f"{kind}_files",
        table=table.name,
        column=f"{kind}_files",
        holds=lambda bound: f"a {partition} has at most {bound:g} files of {table.name}",
        reason=f"Many small files are slow to read. {fix}",
    )
