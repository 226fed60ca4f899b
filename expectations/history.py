"""Judge hours by what came before them: suites ``volume`` and ``schema_drift``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from expectations.findings import judge_findings
from expectations.frames import Facts
from expectations.judge import Outcome
from expectations.suites import schema_drift, volume
from include.log_hours import Hour
from include.settings import PipelineSettings
from include.sources import Source


def judge_history(
    sources: Sequence[Source],
    log_hours: Collection[Hour],
    click_hours: Iterable[Hour],
    facts: Facts,
    settings: PipelineSettings,
    docs_folder: Path,
) -> list[Outcome]:
    """The outcomes for these log hours of these sources, and for these click hours.

    ``facts`` are those of ``spark_jobs.quality.earlier_hours``: of these hours and of the earlier ones that they are
    compared with.
    """
    findings = {
        **volume.volume_findings(click_hours, log_hours, [source.name for source in sources], facts, settings.volume),
        **schema_drift.schema_drift_findings(log_hours, sources, facts, settings.schema_drift),
    }
    checks = [
        *volume.click_hour_checks(settings.volume),
        *volume.log_hour_checks(settings.volume),
        *schema_drift.log_hour_checks(settings.schema_drift),
    ]
    return judge_findings("history", findings, checks, docs_folder)
