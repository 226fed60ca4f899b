"""Landed log hours of every chosen source into the lake; those of a stream are accounted for."""

from __future__ import annotations

from collections import Counter

from pyspark.sql import SparkSession

from include.job_arguments import JobArguments
from include.settings import Settings
from include.sources import Source, choose_sources
from spark_jobs.hours.account import described_closed
from spark_jobs.hours.finalise import described, finalise
from spark_jobs.ingest.source_ingest import Ingested, SourceIngest
from spark_jobs.lake.lake import Lake


def ingest(
    spark: SparkSession, settings: Settings, arguments: JobArguments, *, allow_missing: bool = False
) -> list[str]:
    """Ingest the log hours of every chosen source; returns a few lines on what was done.

    With ``allow_missing`` a log hour that never landed is accounted for as one without lines.

    Raises:
        MissingLandingError: if a log hour has no landing partition, and was ingested before or must not be missing.
        ClickmillError: if files cannot be read.
    """
    lake = Lake(spark, settings)
    report = []
    for source in choose_sources(settings, arguments.source):
        # Whether a line is a duplicate depends on the log hours around it, and may change those after it.
        with lake.locked():
            if source.stream is not None:
                hours = list(arguments.log_hours)
                finalised = finalise(lake, source, hours)
                report += [*described(source, hours, finalised), *described_closed(finalised.values())]
                continue
            ingested = SourceIngest(lake, settings, source, allow_missing).run(list(arguments.log_hours))
        report += _summary(source, arguments, ingested)
    return report


def _summary(source: Source, arguments: JobArguments, ingested: Ingested) -> list[str]:
    accounts = ingested.accounts

    def total(name: str) -> int:
        return sum(getattr(account, name) for account in accounts.values())

    duplicates = sum(account.duplicates_of.total() for account in accounts.values())
    quarantined, left_out = Counter[str](), Counter[str]()
    for account in accounts.values():
        quarantined.update(account.quarantined)
        left_out.update(account.left_out)
    click_hours = {hour for account in accounts.values() for hour in account.click_hours}
    return [
        f"{source.name} {arguments.log_hours}: {total('lines'):,} lines = {total('accepted'):,} accepted "
        f"+ {duplicates:,} duplicates + {quarantined.total():,} quarantined + {left_out.total():,} left out",
        *([f"  left out: {_listed(left_out)}"] if left_out else []),
        f"  quarantined: {_listed(quarantined)}; late {total('late'):,}; out of order {total('out_of_order'):,}; "
        f"click hours touched: {len(click_hours)}",
        *described_closed(accounts.values()),
        *(
            f"  of later log hours, clicks have become duplicates or the reverse: {hour}"
            for hour in ingested.changed_later
        ),
        *(
            f"  breaks off, the lines before the damage count: {hour} {file}"
            for hour, account in accounts.items()
            for file in sorted(account.damaged_files)
        ),
        *(f"  warning: {warning}" for warning in ingested.warnings),
    ]


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items())) or "none"
