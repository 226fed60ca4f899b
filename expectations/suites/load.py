"""Suite ``load``: how evenly the instances of each counting operator were loaded."""

from __future__ import annotations

from expectations.checks import Check, at_most
from include.settings import PipelineSettings
from include.tables import GROUPING_METRICS


def grouping_checks(settings: PipelineSettings) -> list[Check]:
    """Of each counting operator."""
    return at_most(
        settings.thresholds["skew"],
        suite="load",
        name="skew",
        table=GROUPING_METRICS.name,
        column="skew",
        holds=lambda bound: f"the busiest instance has at most {bound:g} times the mean load",
        reason="The others wait for it, and more cores do not help. See clickmill advise --help.",
        finding="uneven_load",
    )
