"""Suite ``reconciliation``: what one table says against what another says, and whether the hours are all there."""

from __future__ import annotations

from functools import partial

from expectations.checks import CRITICAL, WARNING, Check, equal, zero
from include.counting import counted_tables
from include.settings import PipelineSettings
from include.tables import AGGREGATES, CLICKS, CLICKS_BY_URL_HOURLY, DUPLICATE_CLICKS, INGEST_ACCOUNTING, daily_table

_check = partial(Check, suite="reconciliation")


def log_hour_checks() -> list[Check]:
    """Of each log hour."""
    return [
        _check(
            name="hour_is_there",
            table=INGEST_ACCOUNTING.name,
            expectation=zero("is_missing"),
            severity=WARNING,
            holds="the log hour was ingested, and had files or at least _SUCCESS",
            reason="An hour that is closed without lines is empty; this one is missing. When it lands, ingest it.",
            finding="presence",
        ),
        _check(
            name="hour_is_complete",
            table=INGEST_ACCOUNTING.name,
            expectation=zero("files_not_closed_or_damaged"),
            severity=WARNING,
            holds="the log hour was closed by _SUCCESS, and no file breaks off",
            reason="Lines may be missing. When the files are there, ingest the log hour again.",
            finding="damage",
        ),
        _check(
            name="files_are_read",
            table=INGEST_ACCOUNTING.name,
            expectation=zero("files_not_read"),
            severity=WARNING,
            holds="every file of the landing partition was read",
            reason="Its lines are in no table. Move away what is no file, and give files names in UTF-8; then ingest "
            "the log hour again. A file that the stream has yet to read is counted once it is read.",
            finding="unread",
        ),
        _check(
            name="lines_add_up",
            table=CLICKS.name,
            expectation=equal("lines", "accounted_lines"),
            severity=CRITICAL,
            holds="lines = clicks stored + duplicates + lines in quarantine + lines left out",
            reason="No line vanishes and none is counted twice. Ingest the log hour again.",
        ),
        _check(
            name="accepted_are_stored",
            table=CLICKS.name,
            expectation=equal("accepted", "stored_clicks"),
            severity=CRITICAL,
            holds="accepted lines = rows in clicks",
            reason="The accounting and the table were written by different runs. Ingest the log hour again.",
        ),
        _check(
            name="duplicates_are_stored",
            table=DUPLICATE_CLICKS.name,
            expectation=equal("duplicates", "stored_duplicates"),
            severity=WARNING,
            holds="dropped duplicates = rows in duplicate_clicks",
            reason="When the first click with an id goes, the duplicate takes its place: it must be there. Ingest the "
            "log hour again. Of a streamed source there is nothing to compare.",
        ),
    ]


def click_hour_checks(settings: PipelineSettings) -> list[Check]:
    """Of each click hour."""
    tables = counted_tables(settings.counts)
    checks = [
        _check(
            name=f"clicks_equal_{_plural(key).lower()}",
            table=table.name,
            expectation=equal("clicks", f"clicks_by_{key}"),
            severity=CRITICAL,
            holds=f"rows in clicks = clicks summed over {_plural(key)}",
            reason="The counts are older than the clicks, or miss some. Aggregate the hour again.",
        )
        for key, table in tables.items()
    ]
    checks.append(
        _check(
            name="urls_equal_countries",
            table=CLICKS_BY_URL_HOURLY.name,
            expectation=equal("clicks_by_url", "clicks_by_country"),
            severity=CRITICAL,
            holds="clicks summed over URLs = clicks summed over countries",
            reason="Each click has one URL and one country, unknown included. Aggregate the hour again.",
        )
    )
    checks += [
        _check(
            name=f"{key}_days_equal_hours",
            table=daily_table(table).name,
            expectation=zero(f"{key}_days_that_differ"),
            severity=CRITICAL,
            holds=f"the days of the click hour, per {key}, are the sums of their hours",
            reason="The days are older than the counts of their hours, or one of the tables was changed since. "
            "Aggregate the hour again: that computes its days too.",
            finding=f"{key}_days",
        )
        for key, table in tables.items()
    ]
    return checks + [
        _check(
            name=f"published_{key}_equals_computed",
            table=AGGREGATES[table].name,
            expectation=zero(f"published_{key}_differs"),
            severity=CRITICAL,
            holds=f"the published rows per {key} are the computed ones",
            reason="The hour was published since it was last counted, so they must be the same; one of the tables, or "
            "smallest_visitors, was changed since. Aggregate, validate and publish the hour again.",
            finding=f"published_{key}",
        )
        for key, table in tables.items()
        if table in AGGREGATES
    ]


def _plural(key: str) -> str:
    return {"url": "URLs", "country": "countries"}.get(key, f"{key}s")
