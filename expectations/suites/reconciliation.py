"""Suite ``reconciliation``: what one table says against what another says, and whether the hours are all there."""

from __future__ import annotations

from expectations.checks import CRITICAL, WARNING, Check, equal, zero
from include.counting import counted_tables
from include.settings import PipelineSettings
from include.tables import AGGREGATES, CLICKS, CLICKS_BY_URL_HOURLY, DUPLICATE_CLICKS, INGEST_ACCOUNTING, daily_table

_SUITE = "reconciliation"


def log_hour_checks() -> list[Check]:
    """Of each log hour."""
    return [
        Check(
            _SUITE,
            "hour_is_there",
            INGEST_ACCOUNTING.name,
            zero("is_missing"),
            WARNING,
            "the log hour was ingested, and had files or at least _SUCCESS",
            "An hour that is closed without lines is empty; this one is missing. When it lands, ingest it.",
            finding="presence",
        ),
        Check(
            _SUITE,
            "hour_is_complete",
            INGEST_ACCOUNTING.name,
            zero("files_not_closed_or_damaged"),
            WARNING,
            "the log hour was closed by _SUCCESS, and no file breaks off",
            "Lines may be missing. When the files are there, ingest the log hour again.",
            finding="damage",
        ),
        Check(
            _SUITE,
            "files_are_read",
            INGEST_ACCOUNTING.name,
            zero("files_not_read"),
            WARNING,
            "every file of the landing partition was read",
            "Its lines are in no table. Move away what is no file, and give files names in UTF-8; then ingest the log "
            "hour again. A file that the stream has yet to read is counted once it is read.",
            finding="unread",
        ),
        Check(
            _SUITE,
            "lines_add_up",
            CLICKS.name,
            equal("lines", "accounted_lines"),
            CRITICAL,
            "lines = clicks stored + duplicates + lines in quarantine",
            "No line vanishes and none is counted twice. Ingest the log hour again.",
        ),
        Check(
            _SUITE,
            "accepted_are_stored",
            CLICKS.name,
            equal("accepted", "stored_clicks"),
            CRITICAL,
            "accepted lines = rows in clicks",
            "The accounting and the table were written by different runs. Ingest the log hour again.",
        ),
        Check(
            _SUITE,
            "duplicates_are_stored",
            DUPLICATE_CLICKS.name,
            equal("duplicates", "stored_duplicates"),
            WARNING,
            "dropped duplicates = rows in duplicate_clicks",
            "When the first click with an id goes, the duplicate takes its place: it must be there. Ingest the log "
            "hour again. Of a streamed source there is nothing to compare.",
        ),
    ]


def click_hour_checks(settings: PipelineSettings) -> list[Check]:
    """Of each click hour."""
    tables = counted_tables(settings.counts)
    checks = [
        Check(
            _SUITE,
            f"clicks_equal_{_plural(key).lower()}",
            table.name,
            equal("clicks", f"clicks_by_{key}"),
            CRITICAL,
            f"rows in clicks = clicks summed over {_plural(key)}",
            "The counts are older than the clicks, or miss some. Aggregate the hour again.",
        )
        for key, table in tables.items()
    ]
    checks.append(
        Check(
            _SUITE,
            "urls_equal_countries",
            CLICKS_BY_URL_HOURLY.name,
            equal("clicks_by_url", "clicks_by_country"),
            CRITICAL,
            "clicks summed over URLs = clicks summed over countries",
            "Each click has one URL and one country, unknown included. Aggregate the hour again.",
        )
    )
    checks += [
        Check(
            _SUITE,
            f"{key}_days_equal_hours",
            daily_table(table).name,
            zero(f"{key}_days_that_differ"),
            CRITICAL,
            f"the days of the click hour, per {key}, are the sums of their hours",
            "The days are older than the counts of their hours, or one of the tables was changed since. Aggregate the "
            "hour again: that computes its days too.",
            finding=f"{key}_days",
        )
        for key, table in tables.items()
    ]
    return checks + [
        Check(
            _SUITE,
            f"published_{key}_equals_computed",
            AGGREGATES[table].name,
            zero(f"published_{key}_differs"),
            CRITICAL,
            f"the published rows per {key} are the computed ones",
            "The hour was published since it was last counted, so they must be the same; one of the tables was "
            "changed since. Aggregate, validate and publish the hour again.",
            finding=f"published_{key}",
        )
        for key, table in tables.items()
        if table in AGGREGATES
    ]


def _plural(key: str) -> str:
    return {"url": "URLs", "country": "countries"}.get(key, f"{key}s")
