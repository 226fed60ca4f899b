"""Parse quarantined lines of log hours again, after a mapping, a limit or a rule has been changed.

What is a click then goes to the clicks, or duplicates, of its log hour, with the replay's id, and its click hours are
counted, validated and published. Later ingests of these log hours recover the same lines. With --rule, a file with one
SQL expression over raw, source and reason, lines are repaired before. With --dry-run it only says what would be
recovered. Killed anywhere, run it again with the same arguments.

With --withdraw and the id of a replay, its lines are quarantined again, and counted so; no later ingest recovers them.

Lines are read in the landing zone; where a log hour's files are gone, in the quarantine, if they were kept whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from include.command import described_parser, exit_with
from include.errors import UsageError
from include.job_arguments import LOG_HOURS_EPILOG, JobArguments, add_signature, require_signed
from include.settings import Settings
from spark_jobs.engine.session import spark_session
from spark_jobs.replay.job import Request, dry_run, replay, replayed_source, withdraw


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
        replayed_source(settings, given.request.source)
    _ = settings.pipeline
    signed = {"by": given.by, "because": given.because}
    with spark_session(settings) as spark:
        if given.request is None:
            lines = withdraw(spark, settings, given.withdraw or "", **signed, is_dry_run=given.is_dry_run)
        elif given.is_dry_run:
            lines = dry_run(spark, settings, given.request)
        else:
            lines = replay(spark, settings, given.request, **signed)
        print(*lines, sep="\n")


if __name__ == "__main__":
    exit_with(main)
