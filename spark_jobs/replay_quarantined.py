"""Parse quarantined lines of log hours again, after a mapping, a limit or a rule has been changed.

What is a click then goes to the clicks, or duplicates, of its log hour, with the replay's id, and its click hours are
counted, validated and published. Later ingests of these log hours recover the same lines. With --rule, a file with one
SQL expression over raw, source and reason, lines are repaired before. With --dry-run it only says what would be
recovered. Killed anywhere, run it again with the same arguments.

With --withdraw and the id of a replay, its lines are quarantined again, and counted so; no later ingest recovers them.

Lines are read in the landing zone; where a log hour's files are gone, in the quarantine, if they were kept whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from include.command import described_parser, exit_with
from include.errors import ClickmillError, QualityError, UsageError
from include.job_arguments import LOG_HOURS_EPILOG, JobArguments, add_signature, require_signed
from include.log_hours import Hour, HourRange, hours_in_words, near_each_other
from include.settings import Settings
from include.sources import Source, load_sources
from include.tables import QUARANTINE_REASONS
from spark_jobs import aggregate_clicks, ingest_clicks, publish_clicks, validate_clicks
from spark_jobs.engine.session import spark_session
from spark_jobs.hours.account import described_closed
from spark_jobs.hours.replays import BEGUN, DONE, WITHDRAWING, WITHDRAWN, AskedReplay, open_replays
from spark_jobs.ingest.source_ingest import SourceIngest
from spark_jobs.lake.audit import audited
from spark_jobs.lake.lake import Lake
from spark_jobs.lines.rules import require_rule
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
    source, lake = _source(settings, request.source), Lake(spark, settings)
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


def run(spark: SparkSession, settings: Settings, request: Request, *, by: str, because: str) -> list[str]:
    """Recover what is a click by now, and count, validate and publish it; returns a few lines on what was done.

    That critical checks fail holds the click hours that they touch, as ever, and is no error.

    Raises:
        UsageError: if there is no such source, or nobody or no reason is named.
        ClickmillError: if the rule fails on a line, or lines cannot be read: then nothing is changed.
    """
    source, lake = _source(settings, request.source), Lake(spark, settings)
    with audited(lake, "replay_quarantined", request.described, by, because) as details:
        with lake.locked():
            asked = _asked(lake, request)
            hours, left_out = asked.hours(lake), _left_out(asked.removed(lake))
            if not hours:
                return [_nothing(request), *left_out]
            recover = _recover if source.stream is None else _recover_streamed
            begin = partial(asked.say, lake, BEGUN, by=by, because=because)
            lines, total = recover(lake, settings, source, asked, hours, begin)
            lines += left_out
        details |= {"replay_id": asked.replay.id, "lines": str(total)}
        if not total:
            return [f"{request.described}: no quarantined line is a click by now", *lines]
        for ours in near_each_other(hours):
            lines += _count(spark, settings, source, ours)
        asked.say(lake, DONE, total, by=by, because=because)
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
    source = _source(settings, withdrawal.source)
    if withdrawal.is_over():
        return [_was_withdrawn(withdrawal)]
    if is_dry_run:
        with lake.locked():
            hours = withdrawal.hours(lake)
            found = _withdrawn(lake, settings, source, withdrawal, hours)
        return [f"{withdrawal.described}: {found.total:,} lines would be quarantined again", *found.described()]
    with audited(lake, "withdraw_replay", withdrawal.described, by, because) as details:
        with lake.locked():
            hours = withdrawal.hours(lake)
            begin = partial(withdrawal.say, lake, WITHDRAWING, by=by, because=because)
            found = _withdrawn(lake, settings, source, withdrawal, hours, begin)
            withdrawal.forget_outcomes(lake, hours)
        details |= {"replay_id": replay_id, "lines": str(found.total)}
        lines = [*found.described()]
        for ours in near_each_other(hours):
            lines += _count(spark, settings, source, ours)
        withdrawal.say(lake, WITHDRAWN, found.total, by=by, because=because)
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
                f"{withdrawal.described} was killed half way: run it again, with the arguments that table replays has "
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
        if found.total:
            # First what is said: an ingest that comes after a kill recovers the same lines.
            begin(found.total)
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
    if not total:
        with replay.planned(hours) as clicks:
            found = recovered_lines(lake, asked, clicks, hours)
        lines, total = [*found.described()], found.total
        if total:
            begin(total)
            found.write(lake)
        found.write_outcomes(lake, is_dry_run=not total)
    if total:
        replay.write(hours)
    return lines, total


def _count(spark: SparkSession, settings: Settings, source: Source, log_hours: HourRange) -> list[str]:
    arguments = JobArguments(source.name, log_hours)
    # The account of a streamed source follows from its micro-batches.
    lines = [] if source.stream is None else ingest_clicks.run(spark, settings, arguments)
    lines += aggregate_clicks.run(spark, settings, arguments)
    try:
        lines += validate_clicks.run(spark, settings, arguments)
    except QualityError as error:
        lines.append(str(error))
    return lines + publish_clicks.run(spark, settings, arguments)


def _source(settings: Settings, name: str) -> Source:
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


@dataclass(frozen=True)
class _Given:
    """Either a ``request`` for a replay, or the id of the one that is to be withdrawn."""

    request: Request | None
    withdraw: str | None
    by: str
    because: str
    is_dry_run: bool


def _parse(argv: Sequence[str] | None = None) -> _Given:
    parser = described_parser("spark_jobs.replay_quarantined", __doc__, LOG_HOURS_EPILOG)
    parser.add_argument("--source", help="a source of config/sources.toml")
    parser.add_argument("--from", dest="start", metavar="HOUR", help="first log hour: 2026-03-01T00")
    parser.add_argument("--to", dest="end", metavar="HOUR", help="the log hour after the last one")
    parser.add_argument(
        "--reason",
        action="append",
        default=[],
        help="only lines of this quarantine reason; again for more",
    )
    parser.add_argument("--rule", type=Path, metavar="FILE", help="an SQL expression that repairs a line")
    parser.add_argument("--withdraw", metavar="ID", help="quarantine the lines of this replay again, and nothing else")
    parser.add_argument("--dry-run", action="store_true", help="say what would change, and end")
    add_signature(parser)
    given = parser.parse_args(argv)
    require_signed(given.by, given.because)
    of_replay = {"--source": given.source, "--from": given.start, "--to": given.end}
    if given.withdraw is not None:
        others = {**of_replay, "--reason": given.reason, "--rule": given.rule}
        if beside := [name for name, value in others.items() if value]:
            raise UsageError(f"--withdraw takes a replay as it was: expected no {', '.join(beside)} beside it")
        return _Given(None, given.withdraw, given.by, given.because, given.dry_run)
    if missing := [name for name, value in of_replay.items() if not value]:
        raise UsageError(f"no {', '.join(missing)} given: expected all of {', '.join(of_replay)}; or --withdraw ID")
    log_hours = JobArguments.of(given.source, given.start, given.end).log_hours
    reasons = tuple(sorted(set(given.reason)))
    request = Request(given.source, log_hours, reasons, _read(given.rule))
    return _Given(request, None, given.by, given.because, given.dry_run)


def _read(rule: Path | None) -> str | None:
    try:
        return None if rule is None else rule.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise UsageError(f"the rule cannot be read: {error}") from None


def main() -> None:
    """The job from a shell."""
    given = _parse()
    settings = Settings.from_environment()
    if given.request:
        _source(settings, given.request.source)
    _ = settings.pipeline
    signed = {"by": given.by, "because": given.because}
    with spark_session(settings) as spark:
        if given.request is None:
            lines = withdraw(spark, settings, given.withdraw or "", **signed, is_dry_run=given.is_dry_run)
        elif given.is_dry_run:
            lines = dry_run(spark, settings, given.request)
        else:
            lines = run(spark, settings, given.request, **signed)
        print(*lines, sep="\n")


if __name__ == "__main__":
    exit_with(main)
