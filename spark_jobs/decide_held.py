"""Decide on held click hours: publish them as they are counted, drop the new counts, or release what was dropped.

A decision is for what the checks have found, and the command says what that is. It stands for counts that come later,
while the checks find the same or better; for something worse or else, it is asked again. What is dropped stays as it
was published until it is released, or backfilled. Who decided, when and why is kept in quality_results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from include.command import described_parser, exit_with
from include.errors import UsageError
from include.job_arguments import add_signature, require_signed
from include.log_hours import Hour, HourRange
from include.settings import Settings
from spark_jobs.engine.session import spark_session
from spark_jobs.publish.decide_held import OUTCOMES, Decision, decide, decide_range


@dataclass(frozen=True)
class _Given:
    hours: HourRange
    is_range: bool
    decision: str
    by: str
    because: str
    reason: str


def _parse(argv: Sequence[str] | None = None) -> _Given:
    parser = described_parser(
        "spark_jobs.decide_held",
        __doc__,
        "hours are UTC. exit codes: 0 done, 1 failed, or there is nothing to decide, 2 wrong arguments",
    )
    parser.add_argument("--hour", metavar="HOUR", help="the click hour, such as 2026-03-01T05")
    parser.add_argument("--from", dest="start", metavar="HOUR", help="all that wait for it, from this click hour on")
    parser.add_argument("--to", dest="end", metavar="HOUR", help="the click hour after the last one")
    parser.add_argument(
        "--reason",
        default="",
        metavar="TEXT",
        help="of a range, only hours of which each open finding has this text: a source, a check",
    )
    parser.add_argument(
        "--decision",
        required=True,
        choices=OUTCOMES,
        help="publish anyway, drop the new counts, or release: judge again what was decided",
    )
    add_signature(parser)
    given = parser.parse_args(argv)
    is_range = bool(given.start or given.end)
    if bool(given.hour) == is_range or (is_range and not (given.start and given.end)):
        raise UsageError("expected --hour HOUR, or --from HOUR and --to HOUR")
    if given.reason and not is_range:
        raise UsageError(f"--reason {given.reason!r} goes with --from and --to")
    if given.hour:
        hours = HourRange.single(Hour.parse(given.hour))
    else:
        hours = HourRange(Hour.parse(given.start), Hour.parse(given.end))
    require_signed(given.by, given.because)
    return _Given(hours, is_range, given.decision, given.by, given.because, given.reason)


def main() -> None:
    """The job from a shell."""
    given = _parse()
    settings = Settings.from_environment()
    with spark_session(settings) as spark:
        if given.is_range:
            lines = decide_range(spark, settings, given.hours, given.decision, given.by, given.because, given.reason)
        else:
            lines = decide(spark, settings, Decision(given.hours.start, given.decision, given.by, given.because))
        print(*lines, sep="\n")


if __name__ == "__main__":
    exit_with(main)
