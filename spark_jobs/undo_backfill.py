"""Undo a backfill: for exactly the click hours that it published, restore what was published before.

Tables, exports and report are as they were before; the counts that were published are not published again until the
hours are counted again. clicks keeps what the backfill ingested: land the right files and backfill the hours again.
It is possible while the tables' history lasts: 30 days, unless the tables say otherwise or VACUUM is run. Hours that
others have published since, with other counts, refuse it, unless --force.
"""

from __future__ import annotations

from include.command import described_parser, exit_with
from include.job_arguments import add_signature, require_signed
from include.settings import Settings
from spark_jobs.backfill.undo import undo
from spark_jobs.engine.session import spark_session


def main() -> None:
    """The job from a shell."""
    parser = described_parser(
        "spark_jobs.undo_backfill", __doc__, "exit codes: 0 done, 1 failed, and nothing undone, 2 wrong arguments"
    )
    parser.add_argument("id", help="the backfill, as backfill_clicks prints it")
    add_signature(parser)
    parser.add_argument("--force", action="store_true", help="also of hours that others have published since")
    given = parser.parse_args()
    require_signed(given.by, given.because)
    settings = Settings.from_environment()
    with spark_session(settings) as spark:
        print(*undo(spark, settings, given.id, given.by, given.because, force=given.force), sep="\n")


if __name__ == "__main__":
    exit_with(main)
