"""Decide on a backfill: publish what it staged, or drop it; or give one up that stands still.

An approval is for the counts of the newest comparison, reports/backfills/ID.html: if hours were counted again since,
they are compared again, and you decide again. All of it is published in one commit a table. Dropped, what was
published before stays, until the hours are counted again. Who decided, when and why is kept on record.
"""

from __future__ import annotations

from collections.abc import Sequence

from include.command import described_parser, exit_with
from include.job_arguments import add_signature
from include.settings import Settings
from spark_jobs.backfill.decide import APPROVE, DROP, BackfillDecision, decide
from spark_jobs.engine.session import spark_session


def _parse(argv: Sequence[str] | None = None) -> BackfillDecision:
    parser = described_parser(
        "spark_jobs.decide_backfill",
        __doc__,
        "exit codes: 0 done, 1 failed, or there is nothing to decide, 2 wrong arguments",
    )
    parser.add_argument("id", help="the backfill, as backfill_clicks prints it")
    parser.add_argument("--decision", required=True, choices=[APPROVE, DROP], help="publish what it staged, or not")
    add_signature(parser)
    given = parser.parse_args(argv)
    return BackfillDecision(given.id, given.decision, given.by, given.because)


def main() -> None:
    """The job from a shell."""
    decision = _parse()
    settings = Settings.from_environment()
    with spark_session(settings) as spark:
        print(*decide(spark, settings, decision), sep="\n")


if __name__ == "__main__":
    exit_with(main)
