"""From landed logs to published counts, step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clickmill.options import AsJson, End, LogHour, ScheduledSource, Source, Start
from clickmill.work import print_json, print_lines, ready_job, ready_settings, session
from include.errors import QualityError


def land(
    source: Source,
    logs: Annotated[
        list[Path], typer.Argument(metavar="LOGS", help="log files, plain, gzip, zstd, bzip2 or xz; or folders")
    ],
) -> None:
    """Split log files into the landing zone by hour, as if they had arrived hour by hour.

    Every line goes to the log hour in which its click happened, by the time that it has as a click there; one without
    a plausible time goes with the line before it (the first ones with the first that has one), so that it is
    quarantined there and not lost. Files are gzip. A log is landed all or nothing, and once: landed again, it replaces
    what was landed of it before, also when it has grown or was renamed by rotation, for it is known by what it begins
    with. Other logs stand beside it. What cannot be landed of a folder is left out and named; the exit code is 4 then.
    """
    settings = ready_settings()
    from spark_jobs.landing.land import land_all

    print_lines(land_all(settings, source, logs))


def ingest(
    source: ScheduledSource = "all",
    start: Start = None,
    end: End = None,
    hour: LogHour = None,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="count a log hour that never landed as empty")
    ] = False,
) -> None:
    """Ingest landed log hours: accepted clicks, quarantined lines, and an account of every line.

    The log hours of a streamed source are in the lake already: they are only accounted for. Replaces exactly the log
    hours' partitions of clicks, duplicate_clicks, quarantined_clicks and ingest_accounting, so that running it again
    gives the same tables; and those of later log hours in which clicks become duplicates by that, or the reverse. While
    it writes, unfinished_ingests names the log hours; if it is killed, run it again.
    """
    settings, arguments = ready_job(source, start, end, hour)
    from spark_jobs.ingest.job import ingest as run

    with session(settings) as spark:
        print_lines(run(spark, settings, arguments, allow_missing=allow_missing))


def aggregate(source: ScheduledSource = "all", start: Start = None, end: End = None, hour: LogHour = None) -> None:
    """Count the clicks of every click hour that log hours touch, or touched in an earlier run.

    All counts (per URL, per country, and per any further key of config/pipeline.toml) are fed from one read of the
    clicks, each by the instances of its own grouping. Replaces exactly these click hours in the aggregate tables, and
    their days in the daily tables, which are sums of the hours; says in grouping_metrics what load each instance had.
    """
    settings, arguments = ready_job(source, start, end, hour)
    from spark_jobs.grouping.load import aggregate_measured as run

    with session(settings) as spark:
        print_lines(run(spark, settings, arguments))


def validate(
    source: ScheduledSource = "all",
    start: Start = None,
    end: End = None,
    hour: LogHour = None,
    as_json: AsJson = False,
) -> None:
    """Check what was ingested and counted for log hours; exit code 3 when a critical check does not hold.

    The click hours that such a failure touches are held: publish leaves them at their last good version. Every outcome
    is appended to quality_results, with examples of the rows that failed, and each run writes Data Docs under
    reports/data_docs/. Results and pages that are older than config/pipeline.toml says are removed.
    """
    settings, arguments = ready_job(source, start, end, hour)
    from rich.console import Console

    from include.documents.terminal import print_document
    from spark_jobs.quality.job import validate as run
    from spark_jobs.quality.summary import as_json as values
    from spark_jobs.quality.summary import validation_document

    with session(settings) as spark:
        validation = run(spark, settings, arguments)
    if as_json:
        print_json(values(validation))
    else:
        print_document(Console(), validation_document(validation))
    if validation.critical_failures:
        number = len(validation.critical_failures)
        raise QualityError(f"{number} critical check failures, as shown; the hours are not published")


def publish(source: ScheduledSource = "all", start: Start = None, end: End = None, hour: LogHour = None) -> None:
    """Publish the validated click hours that log hours touch: tables, files and the report.

    A click hour is published when it was validated since it was counted, and so were the log hours that touch it since
    they were ingested. If one of them failed a critical check the click hour is held: it stays as it was last
    published, until the checks pass or a person decides (see decide); the others are published all the same. A decision
    stands for counts that come later, while the checks find nothing worse. Replaces exactly these click hours in the
    published tables, and their days. Writes both as Parquet and CSV under reports/exports/, and reports/report.html.
    Copies them to the results database, if there is one.
    """
    settings, arguments = ready_job(source, start, end, hour)
    from spark_jobs.publish.job import publish as run

    with session(settings) as spark:
        print_lines(run(spark, settings, arguments).lines)
