"""Suite ``load``: how evenly the instances of each counting operator were loaded."""

from __future__ import annotations

from expectations.checks import Check, at_most
from include.settings import PipelineSettings
from include.tables import GROUPING_METRICS


def grouping_checks(settings: PipelineSettings) -> list[Check]:
    """Of each counting operator."""
    return at_most(
        settings.thresholds["skew"],
        "load",
        "skew",
        GROUPING_METRICS.name,
        "skew",
        lambda bound: f"the busiest instance has at most {bound:g} times the mean load",
        "The others wait for it, and more cores do not help. See python -m spark_jobs.advise_grouping --help.",
        finding="uneven_load",
    )
