"""What must hold, by suite; here put together by the frame that is judged (``expectations/frames.py``)."""

from __future__ import annotations

from expectations.checks import Check
from expectations.suites import aggregates, clicks, layout, load, reconciliation
from include.settings import PipelineSettings
from include.sources import Source


def log_hour_checks(settings: PipelineSettings, source: Source) -> list[Check]:
    """What must hold of each of the source's log hours."""
    return [
        *reconciliation.log_hour_checks(),
        *clicks.log_hour_checks(settings, source),
        *layout.log_hour_checks(settings),
    ]


def click_hour_checks(settings: PipelineSettings) -> list[Check]:
    """What must hold of each click hour's counts."""
    return [
        *reconciliation.click_hour_checks(settings),
        *aggregates.click_hour_checks(settings),
        *layout.click_hour_checks(settings),
    ]


def grouping_checks(settings: PipelineSettings) -> list[Check]:
    """What should hold of the load of each counting operator's instances."""
    return load.grouping_checks(settings)
