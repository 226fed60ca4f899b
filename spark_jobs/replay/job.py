"""Quarantined lines parsed again, and a replay withdrawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
from spark_jobs.lake.journal import SignedAct, signed_act
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.stages import Stage, Stages, evaluate, explain
from spark_jobs.lines.rules import require_rule
from spark_jobs.publish.job import publish
from spark_jobs.quality.job import require_valid
from spark_jobs.replay.recovered_lines import Recovered, recovered_lines
from spark_jobs.replay.streamed_replay import StreamedReplay, StreamedWithdrawal
from spark_jobs.replay.withdrawals import Withdrawal, WithdrawnLines


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


def replay(
    spark: SparkSession, settings: Settings, request: Request, *, by: str, because: str, is_dry_run: bool = False
) -> list[str]:
    """Recover what is a click by now, and count, validate and publish it; returns a few lines on what was done.

    That critical checks fail holds the click hours that they touch, as ever, and is no error. With ``is_dry_run`` it
    only says what it would recover; only that is kept, in ``replay_outcomes``.

    Raises:
        UsageError: if there is no such source, or nobody or no reason is named.
        ClickmillError: if the rule fails on a line, or lines cannot be read: then nothing is changed.
    """
    lake, source = Lake(spark, settings), replayed_source(settings, request.source)
    asked = request.described
    with signed_act(lake, "replay_quarantined", asked, by, because, is_dry_run=is_dry_run) as signed:
        stages = _replay_stages(lake, source, request, signed)
        return explain(stages) if is_dry_run else evaluate(stages, signed.details)


def _replay_stages(lake: Lake, source: Source, request: Request, signed: SignedAct) -> Stages:
    with lake.locked():
        asked = AskedReplay.of(lake, request.source, request.log_hours, request.reasons, request.rule)
        hours, left_out = asked.hours(lake), _left_out(asked.removed(lake))
        if not hours:
            of_reasons = f" of {', '.join(request.reasons)}" if request.reasons else ""
            line = f"{request.described}: no quarantined lines{of_reasons}; nothing to replay"
            yield Stage("recover", [line, *left_out])
            return
        with _recovery(lake, source, asked, hours) as recovery:
            total, recovered, lines = recovery.total, recovery.recovered, [*recovery.lines, *left_out]
            signed.details |= {"replay_id": asked.replay.id, "lines": str(total)}

            def recover() -> list[str]:
                # First what is said: an ingest that comes after a kill recovers the same lines.
                asked.say(signed, BEGUN, total)
                if recovered:
                    recovered.write(lake)
                    recovered.write_outcomes(lake, is_dry_run=False)
                recovery.write()
                return [f"{request.described}: {total:,} quarantined lines recovered, replay {asked.replay.id}", *lines]

            if total:
                line = f"{request.described}: {total:,} quarantined lines would be recovered"
                yield Stage("recover", [line, *lines], recover)
            else:
                line = f"{request.described}: no quarantined line is a click by now"
                yield Stage("recover", [line, *lines], signed.begin)
            if recovered and (signed.is_dry_run or not total):
                recovered.write_outcomes(lake, is_dry_run=True)
    if total:
        yield from _counting(lake, source, hours)
        yield Stage("end", [], partial(asked.say, signed, DONE, total))


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
        row = withdrawal.events[WITHDRAWN]
        by_whom = f"{row['actor']} at {row['at']:%Y-%m-%d %H:%M} UTC: {row['because']}"
        return [f"{withdrawal.described}: was withdrawn by {by_whom}"]
    with signed_act(lake, "withdraw_replay", withdrawal.described, by, because, is_dry_run=is_dry_run) as signed:
        stages = _withdrawal_stages(lake, source, withdrawal, signed)
        return explain(stages) if is_dry_run else evaluate(stages, signed.details)


def _withdrawal_stages(lake: Lake, source: Source, withdrawal: Withdrawal, signed: SignedAct) -> Stages:
    with lake.locked():
        hours = withdrawal.hours(lake)
        with _withdrawn(lake, source, withdrawal, hours) as (withdrawn, write):
            signed.details |= {"replay_id": withdrawal.replay_id, "lines": str(withdrawn.total)}

            def quarantine() -> list[str]:
                # First what is said: an ingest that comes after a kill recovers none of them either.
                withdrawal.say(signed, WITHDRAWING, withdrawn.total)
                write()
                withdrawal.forget_outcomes(lake, hours)
                line = f"{withdrawal.described}: withdrawn, {withdrawn.total:,} lines are quarantined again"
                return [line, *withdrawn.described()]

            line = f"{withdrawal.described}: {withdrawn.total:,} lines would be quarantined again"
            yield Stage("quarantine", [line, *withdrawn.described()], quarantine)
    yield from _counting(lake, source, hours)
    yield Stage("end", [], partial(withdrawal.say, signed, WITHDRAWN, withdrawn.total))


@contextmanager
def _withdrawn(
    lake: Lake, source: Source, withdrawal: Withdrawal, hours: Sequence[Hour]
) -> Iterator[tuple[WithdrawnLines, Callable[[], object]]]:
    """What becomes of the lines of a withdrawn replay, and how that is written."""
    if not hours:
        yield WithdrawnLines({}), list
        return
    lines = withdrawal.lines(lake, hours)
    if source.stream is not None:
        if withdrawal.replay_id in open_replays(lake, source.name):
            raise ClickmillError(
                f"{withdrawal.described} was killed half way: run it again, with the arguments that table journal has "
                "of it, and withdraw it then; nothing is changed"
            )
        streamed = StreamedWithdrawal(lake, source, withdrawal)
        yield WithdrawnLines.of(lines, streamed.planned(hours)), partial(streamed.write, hours)
    else:
        ingest = SourceIngest(lake, lake.settings, source, allow_missing=False, withdrawn=withdrawal.replay_id)
        with ingest.planned(hours) as plan:
            yield WithdrawnLines.of(lines, plan.clicks.arrivals), partial(ingest.write, plan)


@dataclass(frozen=True)
class _Recovery:
    """How many lines are recovered, lines that say so, and how they are written.

    ``recovered`` is to be put on record before; None if that is on record, as a stream's replay was killed after it.
    """

    total: int
    lines: list[str]
    write: Callable[[], object]
    recovered: Recovered | None = None


@contextmanager
def _recovery(lake: Lake, source: Source, asked: AskedReplay, hours: Sequence[Hour]) -> Iterator[_Recovery]:
    """By an ingest of the log hours again; of a source that is streamed, lines are added to what the stream wrote."""
    if source.stream is None:
        ingest = SourceIngest(lake, lake.settings, source, allow_missing=False, asked=asked)
        with ingest.planned(hours) as plan, recovered_lines(lake, asked, plan.clicks, hours) as recovered:
            warnings = [f"  warning: {warning}" for warning in plan.warnings]
            lines = [*recovered.described(), *warnings, *described_closed(plan.accounts.values())]
            yield _Recovery(recovered.total, lines, partial(ingest.write, plan), recovered)
        return
    streamed = StreamedReplay(lake, lake.settings, source, asked)
    write = partial(streamed.write, hours)
    if total := streamed.recorded(hours):
        yield _Recovery(total, ["  as it had begun before it was killed"], write)
        return
    with streamed.planned(hours) as clicks, recovered_lines(lake, asked, clicks, hours) as recovered:
        yield _Recovery(recovered.total, [*recovered.described()], write, recovered)


def _counting(lake: Lake, source: Source, hours: Sequence[Hour]) -> Stages:
    for ours in near_each_other(hours):
        line = f"  {source.name} {ours}: would be counted, validated and published"
        yield Stage(f"count {ours}", [line], partial(_count, lake, source, ours))


def _count(lake: Lake, source: Source, log_hours: HourRange) -> list[str]:
    spark, settings, arguments = lake.spark, lake.settings, JobArguments(source.name, log_hours)
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


def _left_out(removed: Sequence[Hour]) -> list[str]:
    return [f"  left out: {hours_in_words(removed)}, as what they had was removed for its age"] if removed else []
