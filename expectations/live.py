"""Judge the live counts of streamed clicks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from expectations.findings import judge_findings
from expectations.frames import Facts
from expectations.judge import Outcome
from expectations.suites import live
from include.counting import CountKey, CountSettings
from include.log_hours import Hour


def judge_live(
    click_hours: Collection[Hour], facts: Facts, counts: Mapping[CountKey, CountSettings], docs_folder: Path
) -> list[Outcome]:
    """The outcomes for these click hours; none where nothing is counted live."""
    findings = live.live_findings(click_hours, facts, counts)
    return judge_findings("live", findings, live.click_hour_checks(counts), docs_folder)
