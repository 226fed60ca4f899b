"""Remove what is past its days, and files that nobody needs any more.

What is past its days, config/pipeline.toml says in [retention], and for a source config/sources.toml: clicks and
quarantined lines by whole log hours, hourly counts, landing partitions, what streams said of themselves. What a held
hour, an open backfill or an ingest that has not ended needs stays, and the reason is printed. Keys for visitors are
destroyed visitor_key_days after they were made.

Then, of each table, files that were replaced more than a week ago, and as old ones that belong to no version, such as
a job leaves that is killed. The published hourly tables are left alone in this: an undone backfill needs their files,
and Delta's log forgets after a week when one was replaced. Waits for jobs that are running.
"""

from __future__ import annotations

from include.command import described_parser, exit_with
from include.settings import Settings
from spark_jobs.retention.job import maintain


def main() -> None:
    """The job from a shell."""
    parser = described_parser("spark_jobs.maintain_lake", __doc__, "exit codes: 0 done, 1 failed, 2 wrong arguments")
    parser.add_argument("--dry-run", action="store_true", help="say what would be removed, and remove nothing")
    given = parser.parse_args()
    print(*maintain(Settings.from_environment(), dry_run=given.dry_run), sep="\n")


if __name__ == "__main__":
    exit_with(main)
