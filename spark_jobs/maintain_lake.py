"""Remove files from the lake's tables that nobody needs any more.

Of each table: files that were replaced more than a week ago, and as old ones that belong to no version, such as a job
leaves that is killed. Rows stay. The published hourly tables are left alone: an undone backfill needs their files, and
Delta's log forgets after a week when one was replaced. Waits for jobs that are running, table by table.
"""

from __future__ import annotations

from datetime import timedelta

from deltalake import DeltaTable

from include.command import described_parser, exit_with
from include.locks import locks_of
from include.settings import Settings
from include.storage import names
from include.tables import AGGREGATES
from spark_jobs.lake.unneeded_files import remove_unneeded_files, unneeded_files

#: As long as Delta's log says which files were replaced, unless a table's property says otherwise.
#: Source: https://docs.delta.io/latest/table-properties.html, delta.deletedFileRetentionDuration
KEPT = timedelta(days=7)
_LEFT_ALONE = {table.name for table in AGGREGATES.values()}


def run(settings: Settings, *, dry_run: bool, kept: timedelta = KEPT) -> list[str]:
    """Maintain the tables of the lake; returns a line for each that has something to remove, and one for all."""
    locks, report, files, size = locks_of(settings), [], 0, 0
    for name in sorted(names(settings.lake)):
        table = settings.lake / name
        if name in _LEFT_ALONE or not DeltaTable.is_deltatable(str(table)):
            continue
        # No job is between looking at a version and reading its files, nor between writing files and their commit.
        with locks.held("lake"), locks.held(f"write-{name}"):
            found = unneeded_files(table, kept)
            if found and not dry_run:
                remove_unneeded_files(table, kept)
        if found:
            bytes_ = sum(file.size_bytes for file in found)
            report.append(f"{name}: {len(found):,} files, {bytes_ / 1e6:,.1f} MB")
            files, size = files + len(found), size + bytes_
    what = "would be removed" if dry_run else "removed"
    return [*report, f"{what}: {files:,} files, {size / 1e6:,.1f} MB"]


def main() -> None:
    """The job from a shell."""
    parser = described_parser("spark_jobs.maintain_lake", __doc__, "exit codes: 0 done, 1 failed, 2 wrong arguments")
    parser.add_argument("--dry-run", action="store_true", help="say what would be removed, and remove nothing")
    given = parser.parse_args()
    print(*run(Settings.from_environment(), dry_run=given.dry_run), sep="\n")


if __name__ == "__main__":
    exit_with(main)
