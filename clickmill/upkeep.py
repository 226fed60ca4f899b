"""What keeps the data small, lawful and in order."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from clickmill.options import Because, By, DryRun, option
from clickmill.work import announce, day_of, print_lines, ready_settings, session
from include.buckets import MAX_BUCKETS
from include.errors import ClickmillError, FinalError, UsageError

#: What a person types to be sure.
SURE = "erase"


def maintain(
    dry_run: DryRun = False,
) -> None:
    """Remove what is past its days, and files that nobody needs any more.

    What is past its days, config/pipeline.toml says in [retention], and for a source config/sources.toml: clicks and
    quarantined lines by whole log hours, hourly counts, landing partitions, what streams said of themselves. What a
    held hour, an open backfill or an ingest that has not ended needs stays, and the reason is printed. Keys for
    visitors are destroyed visitor_key_days after they were made.

    Then, of each table, files that were replaced more than a week ago, and as old ones that belong to no version, such
    as a job leaves that is killed. The published hourly tables are left alone in this: an undone backfill needs their
    files, and Delta's log forgets after a week when one was replaced. Waits for jobs that are running.
    """
    announce("looking for what is past its days")
    settings = ready_settings()
    from spark_jobs.retention.job import maintain as run

    print_lines(run(settings, dry_run=dry_run))


def erase(
    by: By,
    because: Because,
    visitor: Annotated[list[str] | None, option("ID", "visitor_id in the table clicks; again for more")] = None,
    address: Annotated[list[str] | None, option("IP", "a client's address; again for more")] = None,
    url_prefix: Annotated[
        list[str] | None, option("URL", "the beginning of URLs in the table clicks; again for more")
    ] = None,
    requests: Annotated[Path | None, option("FILE", "a request a line, JSON or TOML; not seen by ps")] = None,
    dry_run: DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", help="erase without asking")] = False,
) -> None:
    """Erase visitors from everything that Clickmill keeps, and leave a certificate that names nobody.

    Finds the clicks of a visitor, of a client address, or with a URL that begins so: in landed files, tables, exports
    and pages. Lines and rows go; their hours are counted, validated and published again; former versions of the tables
    go too, so that an earlier backfill cannot be undone any more. It cannot be undone itself: first it says what would
    go, and asks on a terminal; with --yes it does not ask. In the end all files are searched. Killed, it is finished by
    the same arguments again. The certificate is in reports/erasures/, the act in the table journal.
    """
    if not (dry_run or yes or sys.stdin.isatty()):
        raise UsageError("nothing is erased: expected --yes, as it cannot be undone; --dry-run says what would go")
    if dry_run:
        announce("looking for what would be erased")
    settings = ready_settings()
    from spark_jobs.erasure.erase import erase as run
    from spark_jobs.erasure.erase import plan
    from spark_jobs.erasure.requests import KINDS, Requests

    asked = dict(zip(KINDS, (list(values or ()) for values in (visitor, address, url_prefix)), strict=True))
    for kind, value in Requests.read(requests) if requests else ():
        asked[kind].append(value)
    wanted = Requests.of(*asked.values())
    with session(settings) as spark:
        shown = None if yes and not dry_run else plan(spark, settings, wanted, by, because)
        if shown:
            print_lines(shown.lines)
        if dry_run:
            return
        if shown and not _is_confirmed():
            raise FinalError("nothing is erased: it was not confirmed")
        print_lines(run(spark, settings, wanted, by, because, shown=shown))


def _is_confirmed() -> bool:
    try:
        return input(f"to erase it for good, type {SURE}: ").strip() == SURE
    except EOFError:
        return False


def release_counts(
    first: Annotated[str, option("DAY", "the first day, UTC, such as 2026-03-01", "--from")],
    end: Annotated[str, option("DAY", "the day after the last one", "--to")],
    dry_run: DryRun = False,
) -> None:
    """Release daily clicks per country and URL, and per country, with noise: for readers who get nothing else.

    As [publication.noise] of config/pipeline.toml says. A day is released when all its hours are there and published,
    and its late clicks have had time to come. What was drawn is on record, in count_releases: again the same day gives
    the same rows while its counts before noise are the same. If they have changed, noise is drawn again only while the
    day's budget lasts; else the earlier release stays.
    """
    first_day, end_day = day_of(first), day_of(end)
    announce(f"looking at the days from {first_day} to {end_day}")
    settings = ready_settings()
    from spark_jobs.publish.release_counts import release, require_noise

    require_noise(settings)
    with session(settings) as spark:
        print_lines(release(spark, settings, first_day, end_day, dry_run=dry_run))


def repartition(
    buckets: Annotated[int, typer.Option(min=1, max=MAX_BUCKETS, metavar="N", help="their number")],
) -> None:
    """Give all co-partitioned tables a new number of buckets, together.

    Each table changes in one commit. If this is killed in between, some tables have the new number and some the old
    one: the jobs that need them equal say so and refuse, and running this again finishes. Counts stay as they are;
    older versions of the tables can be read as before.
    """
    settings = ready_settings()
    from spark_jobs.aggregate.repartition import repartition as run

    with session(settings) as spark:
        print_lines(run(spark, settings, buckets))


def submit_settings() -> None:
    """Write Spark's settings for jobs that spark-submit runs, each with a driver of its own; print the file's path.

    As in spark-submit --properties-file "$(clickmill submit-settings)" clickmill/__main__.py ingest --hour ...
    """
    from ops.home import find_home
    from ops.submit_settings import write_settings

    print(write_settings(find_home()))


def clean() -> None:
    """End the services and remove the data of the home; the set-up and the configuration stay."""
    from ops.clean import clean as run

    try:
        print(run())
    except OSError as error:
        raise ClickmillError(f"cannot remove {error.filename}: {error.strerror}") from None
