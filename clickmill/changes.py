"""What a person decides: run again, publish, drop, undo, repair."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from clickmill.options import (
    AnySource,
    AsJson,
    BackfillId,
    Because,
    By,
    DryRun,
    End,
    EndHour,
    FirstHour,
    Source,
    Start,
    option,
)
from clickmill.work import announce, print_json, print_lines, ready_job, ready_settings, session, signed_settings
from include.errors import UsageError

if TYPE_CHECKING:
    from include.hours import HourRange


def backfill(
    source: Source,
    start: FirstHour,
    end: EndHour,
    chunk: Annotated[int, option("HOURS", "log hours at a time")] = 168,
    staged: Annotated[bool, typer.Option("--staged", help="publish nothing before a person approves it")] = False,
    because: Annotated[str, typer.Option(metavar="TEXT", help="why; kept on record", show_default=False)] = "",
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Run a range of log hours again, in chunks: plan, ingest, count, validate and publish.

    First the plan is printed; with --dry-run that is all. Killed anywhere and started again with the same arguments, it
    goes on. Log hours of the range that never landed are left out. With --staged nothing is published: the new counts
    are compared with what is published, on a page, and a person decides with decide-backfill. What has been published
    can be undone with undo.
    """
    if as_json and not dry_run:
        raise UsageError("--json is of the plan: expected --dry-run beside it")
    from include.job_arguments import JobArguments

    announce(f"planning the backfill of {source}, {JobArguments.of(source, start, end).log_hours}")
    settings, arguments = ready_job(source, start, end)
    from rich.console import Console

    from spark_jobs.backfill.job import plan, run
    from spark_jobs.backfill.plan import Request
    from spark_jobs.backfill.shown_plan import plan_rows, print_plan

    request = Request(source, arguments.log_hours, chunk, staged)
    console = Console(highlight=False)
    if dry_run:
        planned = plan(settings, request)
        if as_json:
            resumed = planned.resumed and planned.resumed.id
            print_json(vars(planned) | {"resumed": resumed, "in_words": plan_rows(planned)})
        else:
            print_plan(planned, console)
        return
    with session(settings) as spark:
        run(spark, settings, request, because, console)


def decide(
    decision: Annotated[
        Literal["publish", "drop", "release"],
        typer.Option(help="publish anyway, drop the new counts, or release: judge again what was decided"),
    ],
    by: By,
    because: Because,
    hour: Annotated[str | None, option("HOUR", "the click hour, such as 2026-03-01T05")] = None,
    start: Annotated[str | None, option("HOUR", "all that wait for it, from this click hour on", "--from")] = None,
    end: Annotated[str | None, option("HOUR", "the click hour after the last one", "--to")] = None,
    reason: Annotated[
        str,
        typer.Option(
            metavar="TEXT", show_default=False,
            help="of a range, only hours of which each open finding has this text: a source, a check",
        ),
    ] = "",
) -> None:  # fmt: skip
    """Decide on held click hours: publish them as counted, drop the new counts, or release what was dropped.

    A decision is for what the checks have found, and the command says what that is. It stands for counts that come
    later, while the checks find the same or better; for something worse or else, it is asked again. What is dropped
    stays as it was published until it is released, or backfilled. Who decided, when and why is kept in the journal.
    """
    is_range = bool(start or end)
    if bool(hour) == is_range or (is_range and not (start and end)):
        raise UsageError("expected --hour HOUR, or --from HOUR and --to HOUR")
    if reason and not is_range:
        raise UsageError(f"--reason {reason!r} goes with --from and --to")
    from include.hours import Hour, HourRange

    hours = HourRange.single(Hour.parse(hour)) if hour else HourRange(Hour.parse(start or ""), Hour.parse(end or ""))
    settings = signed_settings(by, because)
    from spark_jobs.publish.decide_held import Decision, decide_range
    from spark_jobs.publish.decide_held import decide as run

    with session(settings) as spark:
        if is_range:
            print_lines(decide_range(spark, settings, hours, decision, by, because, reason))
        else:
            print_lines(run(spark, settings, Decision(hours.start, decision, by, because)))


def decide_backfill(
    backfill: BackfillId,
    decision: Annotated[Literal["approve", "drop"], typer.Option(help="publish what it staged, or not")],
    by: By,
    because: Because,
) -> None:
    """Decide on a backfill: publish what it staged, or drop it; or give one up that stands still.

    An approval is for the counts of the newest comparison, reports/backfills/ID.html: if hours were counted again
    since, they are compared again, and you decide again. All of it is published in one commit a table. Dropped, what
    was published before stays, until the hours are counted again. Who decided, when and why is kept on record.
    """
    settings = signed_settings(by, because)
    from spark_jobs.backfill.decide import BackfillDecision
    from spark_jobs.backfill.decide import decide as run

    with session(settings) as spark:
        print_lines(run(spark, settings, BackfillDecision(backfill, decision, by, because)))


def undo(
    backfill: BackfillId,
    by: By,
    because: Because,
    force: Annotated[bool, typer.Option("--force", help="also of hours that others have published since")] = False,
) -> None:
    """Undo a backfill: for exactly the click hours that it published, restore what was published before.

    Tables, exports and report are as they were before; the counts that were published are not published again until the
    hours are counted again. clicks keeps what the backfill ingested: land the right files and backfill the hours again.
    It is possible while the tables' history lasts: 30 days, unless the tables say otherwise or VACUUM is run. Hours
    that others have published since, with other counts, refuse it, unless --force.
    """
    settings = signed_settings(by, because)
    from spark_jobs.backfill.undo import undo as run

    with session(settings) as spark:
        print_lines(run(spark, settings, backfill, by, because, force=force))


def replay(
    by: By,
    because: Because,
    source: AnySource = None,
    start: Start = None,
    end: End = None,
    reason: Annotated[
        list[str] | None, option("REASON", "only lines of this quarantine reason; again for more")
    ] = None,
    rule: Annotated[Path | None, option("FILE", "an SQL expression that repairs a line")] = None,
    withdraw: Annotated[str | None, option("ID", "quarantine the lines of this replay again, and nothing else")] = None,
    dry_run: DryRun = False,
) -> None:
    """Parse quarantined lines of log hours again, after a mapping, a limit or a rule has been changed.

    What is a click then goes to the clicks, or duplicates, of its log hour, with the replay's id, and its click hours
    are counted, validated and published. Later ingests of these log hours recover the same lines. With --rule, a file
    with one SQL expression over raw, source and reason, lines are repaired before. With --dry-run it only says what
    would be recovered. Killed anywhere, run it again with the same arguments.

    With --withdraw and the id of a replay, its lines are quarantined again, and counted so; no later ingest recovers
    them.

    Lines are read in the landing zone; where a log hour's files are gone, in the quarantine, if they were kept whole.
    """
    from include.job_arguments import require_signed

    require_signed(by, because)
    replayed = {"--source": source, "--from": start, "--to": end}
    if withdraw is not None:
        require_alone(replayed | {"--reason": reason, "--rule": rule})
        announce(f"looking for what replay {withdraw} has recovered")
    else:
        hours = replayed_hours(replayed)
        expression = _read(rule)
        announce(f"looking at the quarantined lines of {source}, {hours}")
    settings = ready_settings()
    from spark_jobs.replay import job

    signed = {"by": by, "because": because}
    if withdraw is None:
        request = job.Request(str(source), hours, tuple(sorted(set(reason or ()))), expression)
        job.replayed_source(settings, request.source)
    with session(settings) as spark:
        if withdraw is not None:
            print_lines(job.withdraw(spark, settings, withdraw, **signed, is_dry_run=dry_run))
        else:
            print_lines(job.replay(spark, settings, request, **signed, is_dry_run=dry_run))


def require_alone(others: dict[str, object]) -> None:
    """A replay is withdrawn as it was.

    Raises:
        UsageError: if one of the others has a value.
    """
    if beside := [name for name, value in others.items() if value]:
        raise UsageError(f"--withdraw takes a replay as it was: expected no {', '.join(beside)} beside it")


def replayed_hours(replayed: dict[str, str | None]) -> HourRange:
    """The log hours of a replay.

    Raises:
        UsageError: if the source, the first or the last hour is missing, or there is none between them.
    """
    if missing := [name for name, value in replayed.items() if not value]:
        raise UsageError(f"no {', '.join(missing)} given: expected all of {', '.join(replayed)}; or --withdraw ID")
    from include.job_arguments import JobArguments

    return JobArguments.of(str(replayed["--source"]), replayed["--from"], replayed["--to"]).log_hours


def _read(rule: Path | None) -> str | None:
    try:
        return None if rule is None else rule.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise UsageError(f"the rule cannot be read: {error}") from None
