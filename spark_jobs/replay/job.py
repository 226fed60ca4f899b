"""Quarantined lines parsed again, and a replay withdrawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession

from include.errors import ClickmillError, QualityError, UsageError
from include.hours import Hour, HourRange, hours_in_words, near_each_other
from include.job_arguments import JobArguments
from include.settings import Settings
from include.sources import Source, load_sources
from include.tables import QUARANTINE_REASONS
from spark_jobs.grouping.load import aggregate_measured
from spark_jobs.hours.account import described_closed
from spark_jobs.hours.replays import BEGUN, DONE, WITHDRAWING, WITHDRAWN, AskedReplay, open_replays
from spark_jobs.ingest.job import ingest
from spark_jobs.ingest.source_ingest import SourceIngest
from spark_jobs.lake.journal import signed_act
from spark_jobs.lake.lake import Lake
from spark_jobs.lines.rules import require_rule
from spark_jobs.publish.job import publish
from spark_jobs.quality.job import require_valid
from spark_jobs.replay.recovered_lines import recovered_lines
from spark_jobs.replay.streamed_replay import StreamedReplay, StreamedWithdrawal
from spark_jobs.replay.withdrawals import Withdrawal, WithdrawnLines

#: Says how many lines are recovered, or quarantined again, before anything is written.
_Say = Callable[[int], None]


@dataclass(frozen=True)
class Request:
    """Which quarantined lines are to be parsed again: of these ``reasons``, of all if none is named.

    Raises:
        UsageError: if a reason is unknown, or the rule cannot be one.
    """

    source: str
    log_hours: HourRange
    reasons: tuple[str, ...] = ()
    rule: str | None = None

    def __post_init__(self) -> None:
        for reason in self.reasons:
            if reason not in QUARANTINE_REASONS:
                raise UsageError(f"no quarantine reason {reason!r}: expected one of {', '.join(QUARANTINE_REASONS)}")
        if self.rule is not None:
            require_rule(self.rule)

    @property
    def described(self) -> str:
        """Its source and log hours."""
        return f"{self.source} {self.log_hours}"


def dry_run(spark: SparkSession, settings: Settings, request: Request) -> list[str]:
    """What the replay would recover, in a few lines; only that is kept, in ``replay_outcomes``.

    Raises:
        UsageError: if there is no such source.
        ClickmillError: if the rule fails on a line, or lines cannot be read.
    """
    source, lake = replayed_source(settings, request.source), Lake(spark, settings)
    with lake.locked():
        asked = _asked(lake, request)
        hours, left_out = asked.hours(lake), _left_out(asked.removed(lake))
        if not hours:
            return [_nothing(request), *left_out]
        if source.stream is not None:
            with StreamedReplay(lake, settings, source, asked).planned(hours) as clicks:
                found = recovered_lines(lake, asked, clicks, hours)
        else:
            with SourceIngest(lake, settings, source, allow_missing=False, asked=asked).planned(hours) as plan:
                found = recovered_lines(lake, asked, plan.clicks, hours)
        found.write_outcomes(lake, is_dry_run=True)
    return [f"{request.described}: {found.total:,} quarantined lines would be recovered", *found.described(), *left_out]


def replay(spark: SparkSession, settings: Settings, request: Request, *, by: str, because: str) -> list[str]:
    """Recover what is a click by now, and count, validate and publish it; returns a few lines on what was done.

    That critical checks fail holds the click hours that they touch, as ever, and is no error.

    Raises:
        UsageError: if there is no such source, or nobody or no reason is named.
        ClickmillError: if the rule fails on a line, or lines cannot be read: then nothing is changed.
    """
    source, lake = replayed_source(settings, request.source), Lake(spark, settings)
    with signed_act(lake, "replay_quarantined", request.described, by, because) as signed:
        with lake.locked():
            asked = _asked(lake, request)
            hours, left_out = asked.hours(lake), _left_out(asked.removed(lake))
            if not hours:
                return [_nothing(request), *left_out]
            recover = _recover if source.stream is None else _recover_streamed

            def begin(total: int) -> None:
                if total:
                    asked.say(signed, BEGUN, total)
                else:
                    signed.begin()

            lines, total = recover(lake, settings, source, asked, hours, begin)
            lines += left_out
        signed.details |= {"replay_id": asked.replay.id, "lines": str(total)}
        if not total:
            return [f"{request.described}: no quarantined line is a click by now", *lines]
        for ours in near_each_other(hours):
            lines += _count(spark, settings, source, ours)
        asked.say(signed, DONE, total)
    return [f"{request.described}: {total:,} quarantined lines recovered, replay {asked.replay.id}", *lines]


def withdraw(
    spark: SparkSession, settings: Settings, replay_id: str, *, by: str, because: str, is_dry_run: bool = False
) -> list[str]:
    """Let a replay's lines be quarantined again, and count, validate and publish it; a few lines on what was done.

    Killed, the same again goes on. With ``is_dry_run`` it only says what would change. A click hour that is held then,
    as for its share of quarantined lines, stays as it was published, with the replay's clicks, until a person decides.

    Raises:
        UsageError: if there is no such replay, or nobody or no reason is named.
        ClickmillError: if the replay itself was killed half way, or lines cannot be read: then nothing is changed.
    """
    lake = Lake(spark, settings)
    withdrawal = Withdrawal.of(lake, replay_id)
    source = replayed_source(settings, withdrawal.source)
    if withdrawal.is_over():
        return [_was_withdrawn(withdrawal)]
    if is_dry_run:
        with lake.locked():
            hours = withdrawal.hours(lake)
            found = _withdrawn(lake, settings, source, withdrawal, hours)
        return [f"{withdrawal.described}: {found.total:,} lines would be quarantined again", *found.described()]
    with signed_act(lake, "withdraw_replay", withdrawal.described, by, because) as signed:
        with lake.locked():
            hours = withdrawal.hours(lake)
            begin = partial(withdrawal.say, signed, WITHDRAWING)
            found = _withdrawn(lake, settings, source, withdrawal, hours, begin)
            withdrawal.forget_outcomes(lake, hours)
        signed.details |= {"replay_id": replay_id, "lines": str(found.total)}
        lines = [*found.described()]
        for ours in near_each_other(hours):
            lines += _count(spark, settings, source, ours)
        withdrawal.say(signed, WITHDRAWN, found.total)
    return [f"{withdrawal.described}: withdrawn, {found.total:,} lines are quarantined again", *lines]


def _withdrawn(
    lake: Lake,
    settings: Settings,
    source: Source,
    withdrawal: Withdrawal,
    hours: Sequence[Hour],
    begin: _Say | None = None,
) -> WithdrawnLines:
    """What becomes of the lines of a withdrawn replay; it is written if there is somebody to say ``begin`` to."""
    if not hours:
        if begin:
            begin(0)
        return WithdrawnLines({})
    lines = withdrawal.lines(lake, hours)
    if source.stream is not None:
        if withdrawal.replay_id in open_replays(lake, source.name):
            raise ClickmillError(
                f"{withdrawal.described} was killed half way: run it again, with the arguments that table journal has "
                "of it, and withdraw it then; nothing is changed"
            )
        streamed = StreamedWithdrawal(lake, source, withdrawal)
        found = WithdrawnLines.of(lines, streamed.planned(hours))
        if begin:
            begin(found.total)
            streamed.write(hours)
        return found
    ingest = SourceIngest(lake, settings, source, allow_missing=False, withdrawn=withdrawal.replay_id)
    with ingest.planned(hours) as plan:
        found = WithdrawnLines.of(lines, plan.clicks.arrivals)
        if begin:
            # First what is said: an ingest that comes after a kill recovers none of them either.
            begin(found.total)
            ingest.write(plan)
    return found


def _was_withdrawn(withdrawal: Withdrawal) -> str:
    row = withdrawal.events[WITHDRAWN]
    return (
        f"{withdrawal.described}: was withdrawn by {row['actor']} at {row['at']:%Y-%m-%d %H:%M} UTC: {row['because']}"
    )


def _recover(
    lake: Lake, settings: Settings, source: Source, asked: AskedReplay, hours: Sequence[Hour], begin: _Say
) -> tuple[list[str], int]:
    """Ingest the log hours again, if lines are recovered by that; a few lines on them, and how many they are."""
    ingest = SourceIngest(lake, settings, source, allow_missing=False, asked=asked)
    with ingest.planned(hours) as plan:
        found = recovered_lines(lake, asked, plan.clicks, hours)
        # First what is said: an ingest that comes after a kill recovers the same lines.
        begin(found.total)
        if found.total:
            found.write(lake)
            ingest.write(plan)
        found.write_outcomes(lake, is_dry_run=not found.total)
    warnings = [f"  warning: {said}" for said in plan.warnings]
    return [*found.described(), *warnings, *described_closed(plan.accounts.values())], found.total


def _recover_streamed(
    lake: Lake, settings: Settings, source: Source, asked: AskedReplay, hours: Sequence[Hour], begin: _Say
) -> tuple[list[str], int]:
    """The same of a source that is streamed: the lines are added to what the stream has written."""
    replay = StreamedReplay(lake, settings, source, asked)
    lines, total = ["  as it had begun before it was killed"], replay.recorded(hours)
    if total:
        begin(total)
    else:
        with replay.planned(hours) as clicks:
            found = recovered_lines(lake, asked, clicks, hours)
        lines, total = [*found.described()], found.total
        begin(total)
        if total:
            found.write(lake)
        found.write_outcomes(lake, is_dry_run=not total)
    if total:
        replay.write(hours)
    return lines, total


def _count(spark: SparkSession, settings: Settings, source: Source, log_hours: HourRange) -> list[str]:
    arguments = JobArguments(source.name, log_hours)
    # The account of a streamed source follows from its micro-batches.
    lines = [] if source.stream is None else ingest(spark, settings, arguments)
    lines += aggregate_measured(spark, settings, arguments)
    try:
        lines += require_valid(spark, settings, arguments)
    except QualityError as error:
        lines.append(str(error))
    return lines + publish(spark, settings, arguments).lines


def replayed_source(settings: Settings, name: str) -> Source:
    """The source of this name.

    Raises:
        UsageError: if there is none.
    """
    sources = load_sources(settings)
    if name not in sources:
        raise UsageError(f"no source {name!r} in {settings.sources_file}: expected one of {', '.join(sorted(sources))}")
    return sources[name]


def _asked(lake: Lake, request: Request) -> AskedReplay:
    return AskedReplay.of(lake, request.source, request.log_hours, request.reasons, request.rule)


def _nothing(request: Request) -> str:
    of_reasons = f" of {', '.join(request.reasons)}" if request.reasons else ""
    return f"{request.described}: no quarantined lines{of_reasons}; nothing to replay"


def _left_out(removed: Sequence[Hour]) -> list[str]:
    return [f"  left out: {hours_in_words(removed)}, as what they had was removed for its age"] if removed else []
