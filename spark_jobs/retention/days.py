"""The days of each source, and that they fit together."""

from __future__ import annotations

from datetime import timedelta

from include.errors import UsageError
from include.retention import SourceRetention
from include.settings import Settings
from include.sources import load_sources

#: Log hours and their click hours may be of two days, and a day of a time zone begins in another.
_MARGIN = timedelta(days=2)


def retention_of(settings: Settings) -> dict[str, SourceRetention]:
    """By source for how many days what came of it is kept.

    Raises:
        UsageError: if clicks would go while late ones may still come to their hours or be compared with them, texts of
            quarantined lines after their rows, or counts while their clicks may still be counted again.
    """
    general = settings.pipeline.retention
    retention = {}
    for name, source in load_sources(settings).items():
        days = retention[name] = source.retention.or_of(general)
        if days.clicks_days is None:
            continue
        needed = timedelta(hours=source.oldest_hours + source.lateness_hours) + timedelta(days=1)
        if timedelta(days=days.clicks_days) < needed:
            raise UsageError(
                f"clicks_days of source {name} is {days.clicks_days}; expected at least "
                f"{-(-needed // timedelta(days=1))}: clicks come up to oldest_hours ({source.oldest_hours}) late, and "
                f"duplicates are looked for lateness_hours ({source.lateness_hours}) back"
            )
        if days.quarantined_days is not None and days.quarantined_days > days.clicks_days:
            raise UsageError(
                f"quarantined_days of source {name} is {days.quarantined_days}; expected at most clicks_days, "
                f"{days.clicks_days}: quarantined lines go with the clicks of their log hour"
            )
        least = timedelta(days=days.clicks_days) + _MARGIN
        if general.counts_days is not None and timedelta(days=general.counts_days) < least:
            raise UsageError(
                f"counts_days is {general.counts_days}; expected at least {least.days}, two more than clicks_days of "
                f"source {name}: an hour that can be counted again needs the other hours of its day"
            )
    return retention
