"""Checks of log hours and of the click hours that they touch: measured, judged, stored."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from pyspark.sql import SparkSession

from expectations.facts import Facts
from expectations.frames import click_hour_frame, grouping_frame, log_hour_frame
from expectations.judge import Outcome, Partition, judge, judge_findings
from expectations.suites import click_hour_checks, grouping_checks, live, log_hour_checks, schema_drift, volume
from include.buckets import Layout
from include.counting import counted_tables
from include.errors import QualityError
from include.holds import failure_text
from include.hours import Hour, LogHour
from include.job_arguments import JobArguments
from include.journal import Act
from include.settings import Settings
from include.sources import Source, choose_sources, streamed_sources
from include.tables import Table
from spark_jobs.engine.run_ids import new_run_id
from spark_jobs.hours.held_hours import arguments_for, click_hour_states, hold_failing
from spark_jobs.hours.quality_results import append_results, remove_old_results
from spark_jobs.hours.touched_hours import TouchedHours, touched_click_hours
from spark_jobs.lake.lake import Lake
from spark_jobs.quality.examples import with_examples
from spark_jobs.quality.facts import measure
from spark_jobs.quality.validation import Validation

#: A task's log, and an error, name so many failures; all are in ``quality_results``.
MOST_FAILURES = 200


def require_valid(spark: SparkSession, settings: Settings, arguments: JobArguments) -> list[str]:
    """Check the log hours and the click hours they touch; returns a few lines on what was found.

    Raises:
        QualityError: if a critical expectation does not hold; the results are written all the same.
    """
    validation = validate(spark, settings, arguments)
    lines = [line for _, line in described(validation)]
    if validation.critical_failures:
        raise QualityError("; ".join(lines))
    return lines


def validate(spark: SparkSession, settings: Settings, arguments: JobArguments) -> Validation:
    """Check the log hours and the click hours they touch, and append what was found to ``quality_results``.

    Raises:
        ClickmillError: if none of the log hours has been ingested.
    """
    lake = Lake(spark, settings)
    sources = choose_sources(settings, arguments.source)
    # Beside another job some tables would be measured before it and some after.
    with lake.locked():
        now, began = datetime.now(UTC), perf_counter()
        run_id = new_run_id(now)
        touched = touched_click_hours(lake, sources, arguments.log_hours, allow_absent=True)
        layouts = {key: (table, lake.layout(table)) for key, table in counted_tables(settings.pipeline.counts).items()}
        facts = measure(lake, sources, streamed_sources(settings), arguments, touched, layouts)
    data_docs = settings.reports / "data_docs" / run_id
    judged = _judge(settings, sources, arguments, touched, facts, layouts, data_docs)
    outcomes = with_examples(lake, sources, judged, layouts)
    seconds = perf_counter() - began
    validation = Validation(run_id, now, arguments, touched, outcomes, seconds, data_docs)
    of_run = {"run_id": run_id, "validated_at": now, "duration_seconds": seconds}
    append_results(
        lake, [row_of(outcome) | of_run | {"link": f"data_docs/{run_id}/{outcome.page}"} for outcome in outcomes]
    )
    with lake.locked():
        states = click_hour_states(lake, touched.log_hours_of)
        held = hold_failing(lake, Act(run_id, "validate_clicks"), states.values())
    # Ingesting a log hour may have changed which arrivals of later ones are duplicates: their clicks are counted too.
    again = {log_hour for hour in touched.own for log_hour in states[hour].ingested_again}
    # Of a stream it may have taken along earlier ones that nobody had run.
    along = {LogHour(row["source"], Hour.parse(hour)) for row in touched.accounts for hour in row["reopened_log_hours"]}
    again |= along & {log_hour for hour in touched.own for log_hour in states[hour].never_validated}
    asked = {LogHour(source.name, hour) for source in sources for hour in arguments.log_hours}
    for others in arguments_for(again - asked):
        validate(spark, settings, others)
    remove_old_results(lake, settings, now)
    return replace(validation, newly_held=held)


def _judge(
    settings: Settings,
    sources: Sequence[Source],
    arguments: JobArguments,
    touched: TouchedHours,
    facts: Facts,
    layouts: Mapping[str, tuple[Table, Layout]],
    data_docs: Path,
) -> list[Outcome]:
    pipeline = settings.pipeline
    outcomes: list[Outcome] = []
    for source in sources:
        checks = log_hour_checks(pipeline, source)
        frame = log_hour_frame(source, arguments.log_hours, facts, checks)
        outcomes += judge(f"log_hours_{source.name}", frame, checks, data_docs)
    checks = click_hour_checks(pipeline)
    frame = click_hour_frame(touched.own, facts, layouts, checks)
    outcomes += judge("click_hours", frame, checks, data_docs)
    outcomes += judge("groupings", grouping_frame(facts), grouping_checks(pipeline), data_docs)
    of_live = live.live_findings(touched.own, facts, pipeline.counts)
    outcomes += judge_findings("live", of_live, live.click_hour_checks(pipeline.counts), data_docs)
    log_hours = arguments.log_hours
    judged = {*map(Partition, touched.own), *(Partition(hour, source.name) for source in sources for hour in log_hours)}
    of_history = {
        **volume.volume_findings(judged, facts, pipeline.volume),
        **schema_drift.schema_drift_findings(log_hours, sources, facts, pipeline.schema_drift),
    }
    checks = [
        *volume.click_hour_checks(pipeline.volume),
        *volume.log_hour_checks(pipeline.volume),
        *schema_drift.log_hour_checks(pipeline.schema_drift),
    ]
    return outcomes + judge_findings("history", of_history, checks, data_docs)


def row_of(outcome: Outcome) -> dict[str, Any]:
    """A row of ``quality_results``, but for what is of its run."""
    check, finding = outcome.check, outcome.finding
    return {
        "suite": check.suite,
        "partition": outcome.partition,
        "source": outcome.source,
        "hour": outcome.hour,
        "checked_table": check.table,
        "check_id": check.name,
        "expectation": check.holds,
        "severity": check.severity,
        "outcome": outcome.outcome,
        "observed": finding.observed,
        "observed_value": finding.value,
        "lowest": finding.lowest,
        "highest": finding.highest,
        "advice": check.reason,
        "examples": list(finding.examples),
    }


def described(validation: Validation) -> list[tuple[int, str]]:
    """What was found, in lines, each with its level of logging: a critical failure is an error."""
    critical, warnings = validation.critical_failures, validation.warnings
    failures = [(logging.ERROR, failure) for failure in critical] + [(logging.WARNING, failure) for failure in warnings]
    partitions = len({outcome.partition for outcome in validation.outcomes})
    verdict = "FAILED" if critical else "passed"
    others = [
        *([f"  and {len(failures) - MOST_FAILURES} more"] if len(failures) > MOST_FAILURES else []),
        *(f"  {hour} is held: {state.reasons}" for hour, state in validation.newly_held.items()),
        *validation.touched.described_left(),
        f"  Data Docs: {validation.data_docs}",
    ]
    return [
        (
            logging.INFO,
            f"log hours {validation.arguments.log_hours}: {verdict}; {len(validation.outcomes)} checks of {partitions} "
            f"partitions, {len(critical)} critical failures, {len(warnings)} warnings",
        ),
        *(
            (
                level,
                f"  {failure.check.severity}: "
                f"{failure_text(failure.partition, failure.check.holds, failure.finding.observed)}. "
                f"{failure.check.reason}",
            )
            for level, failure in failures[:MOST_FAILURES]
        ),
        *((logging.INFO, line) for line in others),
    ]
