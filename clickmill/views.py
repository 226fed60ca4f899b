"""What is stored, shown; nothing is written but what an option names, and out_of_order_keys."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clickmill.options import AsJson, End, Grain, LogHour, Page, ScheduledSource, Start, option
from clickmill.work import day_of, print_json, print_lines, ready_job, ready_settings, session
from include.errors import UsageError
from include.tables.arrivals import CountKey

if TYPE_CHECKING:
    from include.documents.model import Document


def results(
    grain: Annotated[Grain | None, typer.Option(help="show clicks by such periods")] = None,
    time_zone: Annotated[
        str | None, option("ZONE", "whose days: one of time_zones in config/pipeline.toml; default: the first")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the busiest URLs and countries, where the lines went, and the quality verdict; or clicks by period.

    Without --grain: the newest published hours, as many as the report shows. With it: the newest 31 hours, days, weeks
    or months that have published clicks, and the busiest URLs and countries of the last. Weeks are those of ISO 8601.
    Visitors of a period are united from its days: who comes again is one visitor.
    """
    if time_zone and not grain:
        raise UsageError(f"--time-zone {time_zone} without --grain: expected --grain hour, day, week or month")
    settings = ready_settings()
    from rich.console import Console

    from include.documents.terminal import print_document, print_line
    from spark_jobs.lake.lake import Lake
    from spark_jobs.publish.periods import Periods, read_periods, require_counted
    from spark_jobs.publish.report_data import read_report_data
    from spark_jobs.publish.shown_periods import periods_document
    from spark_jobs.publish.shown_results import results_document

    zone = require_counted(settings, time_zone)
    with session(settings) as spark:
        lake = Lake(spark, settings)
        shown = read_periods(lake, grain, zone) if grain else read_report_data(lake, settings)
    if as_json:
        print_json(shown)
    elif isinstance(shown, Periods):
        print_document(Console(), periods_document(shown))
    else:
        print_document(Console(), results_document(shown))
        print_line(Console(), f"Report: {settings.report}")


def movers(
    day: Annotated[str, option("DAY", "a day, UTC, such as 2026-03-02")],
    top: Annotated[int, typer.Option(min=1, max=1_000_000, metavar="N", help="how many URLs")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show the URLs whose published clicks of a day, UTC, changed most against the day before."""
    date = day_of(day)
    settings = ready_settings()
    from rich.console import Console

    from include.documents.terminal import print_document
    from spark_jobs.publish.shown_movers import movers_document, read_movers

    with session(settings) as spark:
        urls = read_movers(spark, settings, date, top)
    if as_json:
        print_json(urls)
    else:
        print_document(Console(), movers_document(urls, date))


def out_of_order(
    source: ScheduledSource = "all",
    start: Start = None,
    end: End = None,
    hour: LogHour = None,
    key: Annotated[CountKey, typer.Option(help="the key")] = "url",
) -> None:
    """Find the keys whose clicks arrived out of order in log hours, and log them to out_of_order_keys.

    A click is out of order when a click of the same key before it in the same file, or topic partition, and log hour
    happened later. Replaces what the table says of these log hours and this key.
    """
    settings, arguments = ready_job(source, start, end, hour)
    from spark_jobs.ingest.out_of_order_keys import log_out_of_order_keys

    with session(settings) as spark:
        print_lines(log_out_of_order_keys(spark, settings, arguments, key=key))


Salt = Annotated[
    int | None,
    option(
        "N",
        "split keys over N instances (over all where there are fewer); default: the recommended number. Split are the "
        "hot keys; every key where none is hot",
    ),
]


def advise(
    key: Annotated[CountKey, typer.Option(help="the key to count by")],
    source: ScheduledSource = "all",
    start: Start = None,
    end: End = None,
    hour: LogHour = None,
    instances: Annotated[str, option("N,N…", "how many")] = "1,2,4,8,16",
    groupings: Annotated[
        str | None,
        option("NAME,…", "some of fields, range, salted_fields, custom, shuffle, fifo, global; default: all"),
    ] = None,
    expression: Annotated[str | None, option("SQL", "what grouping custom goes by; without it there is none")] = None,
    salt: Salt = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="count the clicks by each too, four times, and time it")
    ] = False,
    all_clicks: Annotated[bool, typer.Option("--all", help="look at all clicks, however many; none are drawn")] = False,
    as_json: AsJson = False,
    html: Page = None,
) -> None:
    """Advise on how to partition clicks over parallel instances, from the keys of real clicks.

    Partitions the clicks of the log hours by each grouping over each number of instances, and shows: clicks of the
    least and the most loaded instance, skew (largest over mean), idle instances, keys on several instances (whose
    counts must be merged), clicks out of order (those that an instance handles after a later click of the same key, by
    clicked_at, in the order in which the rows reach it) and the expected speed-up (all clicks over the largest
    instance's). Names the hot keys and recommends a grouping, a number of instances and a salt. Nothing is written but
    the page asked for.

    Of a range with more than 1,500,000 clicks whole log hours are drawn, the same ones each time, with at most so many
    together; --all looks at all.

    By default no click moves: tasks count those that they read, and their counts are combined (grouping combine). The
    advice is for counts that need a key's clicks in one place or order.

    With --measure the clicks are counted by each of them too, and what that took is shown beside the expectation. The
    names of the figures of --json are in spark_jobs/grouping/advice_values.py.
    """
    numbers = _counts(instances)
    settings, arguments = ready_job(source, start, end, hour)
    _require_writable(html)
    from rich.console import Console

    from include.documents.terminal import print_document
    from spark_jobs.grouping.advice_document import advice_document
    from spark_jobs.grouping.advice_values import as_json as values
    from spark_jobs.grouping.job import MOST_CLICKS, AdviceRequest, give_advice

    names = tuple(groupings.split(",")) if groupings is not None else ()
    request = AdviceRequest(key, numbers, names, expression, salt, None if all_clicks else MOST_CLICKS)
    with session(settings) as spark, Console(stderr=True).status("partitioning the clicks"):
        advice = give_advice(spark, settings, arguments, request, is_measured=measure)
    document = advice_document(advice)
    if html:
        _write_page(document, html)
    if as_json:
        print_json(values(advice))
    else:
        print_document(Console(), document)
        print_lines([f"Page: {html}"] if html else [])


def _counts(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"--instances {text!r}: expected whole numbers above 0, such as 1,2,4,8,16") from None


def _require_writable(page: Path | None) -> None:
    if page is not None and (page.is_dir() or not page.absolute().parent.is_dir()):
        raise UsageError(f"--html {page}: expected a file in a folder that is there")


def _write_page(document: Document, page: Path) -> None:
    from include.documents.page import render_document
    from include.pages.render import write_page

    write_page(render_document(document), page)


class PipelineJob(StrEnum):
    """A job whose topology can be explained."""

    INGEST = "ingest"
    AGGREGATE = "aggregate"
    VALIDATE = "validate"
    PUBLISH = "publish"


def topology(
    jobs: Annotated[
        list[PipelineJob],
        typer.Argument(metavar="JOB", help="ingest, aggregate, validate or publish"),
    ],
    source: ScheduledSource = "all",
    start: Start = None,
    end: End = None,
    hour: LogHour = None,
    workers: Annotated[int, option("N", "workers that the tasks fall on")] = 2,
    cores: Annotated[int, option("N", "cores of each worker")] = 2,
    as_json: AsJson = False,
    html: Page = None,
) -> None:
    """Run jobs on log hours, and explain what Spark really ran: sub-topologies, shuffles, tasks and where they fall.

    The jobs are the pipeline's own, and run as they always do: running them again gives the same tables. What is
    explained is Spark's final plan of each of their queries, under the name that the job gives it, with the rows and
    bytes that crossed each shuffle. Delta's own small queries, on its logs, are left out.
    """
    settings, arguments = ready_job(source, start, end, hour)
    _require_writable(html)
    from spark_jobs.topology.job import explain
    from spark_jobs.topology.model import as_json as values
    from spark_jobs.topology.model import describe
    from spark_jobs.topology.pipeline_jobs import JOBS
    from spark_jobs.topology.task_assignment import assign, worker_names
    from spark_jobs.topology.topology_page import topology_document

    assign((), worker_names(workers), cores)
    with session(settings) as spark:
        topologies = explain(spark, settings, arguments, {job.value: JOBS[job.value] for job in jobs})
    if as_json:
        print_json([values(ran, workers, cores) for ran in topologies])
    else:
        print_lines(describe(ran, workers=workers, cores=cores) for ran in topologies)
    if html:
        document = topology_document(topologies, f"log hours {arguments.log_hours}", workers, cores)
        _write_page(document, html)


def check_partitioning(
    tables: Annotated[
        list[str] | None, typer.Argument(metavar="TABLE", help="a table; default: all that are co-partitioned")
    ] = None,
) -> None:
    """Check that the aggregate tables are co-partitioned, on what is stored; say what differs and how to fix it.

    They are if their number of buckets and key types agree, every stored bucket is what its key says, and no key of a
    click hour has two.
    """
    settings = ready_settings()
    from spark_jobs.aggregate.co_partitioning_check import check, chosen_tables

    chosen = chosen_tables(settings, tables or ())
    with session(settings) as spark:
        print_lines(check(spark, settings, chosen))
