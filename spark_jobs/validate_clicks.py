"""Check what was ingested and aggregated for the given log hours; fail when a critical expectation does not hold.

The click hours that such a failure touches are held: publish_clicks leaves them at their last good version.

One Spark action measures all that the expectations look at; Great Expectations judges the small frames that come of
it. Every outcome is appended to quality_results, and each run writes Data Docs under reports/data_docs/.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from time import perf_counter

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from expectations.judge import Outcome, judge
from expectations.metrics import Facts, click_hour_frame, facts_by_subject, grouping_frame, log_hour_frame
from expectations.suites import click_hour_checks, grouping_checks, log_hour_checks
from include.counting import counted_tables
from include.errors import QualityError
from include.job_arguments import JobArguments, exit_with
from include.log_hours import Hour
from include.settings import Settings
from include.sources import Source, choose_sources
from include.tables import (
    CLICKS,
    GROUPING_METRICS,
    INGEST_ACCOUNTING,
    QUARANTINED_CLICKS,
    Table,
)
from spark_jobs.io import Lake, click_hours_predicate, log_hours_predicate
from spark_jobs.publication import arguments_for, click_hour_states, hold_failing, new_run_id
from spark_jobs.quality_log import append_results
from spark_jobs.shell import run_from_shell
from spark_jobs.steps import step
from spark_jobs.touched_hours import touched_click_hours
from spark_jobs.transforms import measure_quality


def run(spark: SparkSession, settings: Settings, arguments: JobArguments) -> list[str]:
    """Check the log hours and the click hours they touch; returns a few lines on what was found.

    Raises:
        QualityError: if a critical expectation does not hold; the results are written all the same.
    """
    lake = Lake(spark, settings)
    sources = choose_sources(settings, arguments.source)
    # Beside another job some tables would be measured before it and some after.
    with lake.locked():
        now, began = datetime.now(UTC), perf_counter()
        run_id = new_run_id(now)
        touched = touched_click_hours(lake, sources, arguments.log_hours)
        click_hours = touched.own
        tables = counted_tables(settings.pipeline.counts)
        layouts = {key: lake.layout(table) for key, table in tables.items()}
        buckets = {key: layout.buckets or lake.buckets(tables[key]) for key, layout in layouts.items()}
        facts = _measure(lake, sources, arguments, click_hours, tables, buckets)
    docs = settings.reports / "data_docs" / run_id
    checks = settings.pipeline
    outcomes = judge("log_hours", log_hour_frame(facts), log_hour_checks(checks), docs)
    outcomes += judge("click_hours", click_hour_frame(click_hours, facts, layouts), click_hour_checks(checks), docs)
    outcomes += judge("groupings", grouping_frame(facts), grouping_checks(checks), docs)
    seconds = perf_counter() - began
    append_results(lake, [_as_row(outcome, run_id, now, seconds) for outcome in outcomes])
    with lake.locked():
        states = click_hour_states(lake, touched.log_hours_of)
        new = hold_failing(lake, run_id, states.values())
    # Ingesting a log hour may ingest later ones again, whose duplicates are others now. Their clicks are in the counts.
    asked = {f"{source.name} {hour}" for source in sources for hour in arguments.log_hours}
    for others in arguments_for({again for hour in touched.own for again in states[hour].ingested_again} - asked):
        with suppress(QualityError):  # what that holds is said by the click hours' states, not by this run's end
            run(spark, settings, others)
    summary = [*_summary(arguments, outcomes), *(f"  {hour} is held: {state.reasons}" for hour, state in new.items())]
    if any(outcome.is_critical_failure for outcome in outcomes):
        raise QualityError("; ".join(summary) + f"; Data Docs: {docs}")
    return [*summary, *touched.described_left(), f"  Data Docs: {docs}"]


def _measure(
    lake: Lake,
    sources: Sequence[Source],
    arguments: JobArguments,
    click_hours: Sequence[Hour],
    tables: dict[str, Table],
    buckets: dict[str, int],
) -> Facts:
    log_hours = list(arguments.log_hours)
    lateness = max(source.lateness_hours for source in sources)
    earlier = [log_hours[0].plus(-shift) for shift in range(1, lateness + 1)]
    of_log_hours = " OR ".join(f"({log_hours_predicate(source.name, log_hours)})" for source in sources)
    with_earlier = " OR ".join(f"({log_hours_predicate(source.name, [*earlier, *log_hours])})" for source in sources)
    clicks = lake.read(CLICKS)
    # The counts of a click hour are of all sources and log hours, so its clicks are measured whole.
    measured = clicks.where(f"({of_log_hours}) OR {click_hours_predicate(click_hours)}")
    counted = lake.read(GROUPING_METRICS).where(
        (F.col("source") == arguments.source) & (F.col("log_hours") == str(arguments.log_hours))
    )
    facts = measure_quality.together(
        groupings=measure_quality.grouping_facts(counted),
        accounting=lake.read(INGEST_ACCOUNTING).where(of_log_hours),
        clicks=measure_quality.click_facts(measured),
        quarantined=measure_quality.quarantine_facts(lake.read(QUARANTINED_CLICKS).where(of_log_hours)),
        duplicate_ids=measure_quality.duplicate_id_facts(clicks.where(with_earlier), lateness).where(
            F.col("hour_number") >= log_hours[0].number
        ),
        **{
            f"by_{key}": measure_quality.count_facts(lake.read_click_hours(table, click_hours), table, buckets[key])
            for key, table in tables.items()
        },
    )
    with step(lake.spark, "measure quality"):
        return facts_by_subject((row["subject"], row["facts"]) for row in facts.collect())


def _as_row(outcome: Outcome, run_id: str, now: datetime, seconds: float) -> tuple[object, ...]:
    """A row of ``quality_results``, in its columns' order."""
    check = outcome.check
    return (
        run_id,
        now,
        check.suite,
        outcome.partition,
        outcome.source,
        outcome.hour,
        check.table,
        check.name,
        check.holds,
        check.severity,
        "pass" if outcome.success else "fail",
        outcome.observed,
        outcome.observed_value,
        outcome.lowest,
        outcome.highest,
        check.reason,
        [],
        None,
        seconds,
        f"data_docs/{run_id}/{outcome.page}",
    )


def _summary(arguments: JobArguments, outcomes: Sequence[Outcome]) -> list[str]:
    failures = [outcome for outcome in outcomes if not outcome.success]
    critical = [outcome for outcome in failures if outcome.is_critical_failure]
    partitions = len({outcome.partition for outcome in outcomes})
    verdict = "FAILED" if critical else "passed"
    return [
        f"log hours {arguments.log_hours}: {verdict}; {len(outcomes)} checks of {partitions} partitions, "
        f"{len(critical)} critical failures, {len(failures) - len(critical)} warnings",
        *(
            f"  {check.severity}: {outcome.partition}: expected {check.holds}; found {outcome.observed}. {check.reason}"
            for outcome in sorted(failures, key=lambda outcome: outcome.check.severity)
            for check in [outcome.check]
        ),
    ]


if __name__ == "__main__":
    exit_with(lambda: run_from_shell("spark_jobs.validate_clicks", __doc__, run))
