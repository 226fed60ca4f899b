"""Where the lines are that replays have recovered, when others have gone from their landed files."""

from __future__ import annotations

from bisect import bisect_left

from include.hours import Hour, log_hours_predicate
from include.stored_rows import of_log_hour
from include.tables import REPLAYED_LINES
from spark_jobs.erasure.certificate import Certificate
from spark_jobs.lake.data_files import has_log_hours
from spark_jobs.lake.lake import Lake


def move_places(lake: Lake, certificate: Certificate) -> None:
    """Let ``replayed_lines`` name lines by the numbers that they have by now: later ingests recover them by these.

    Each log hour in one commit, which is known by the erasure: a run that was killed before moves none twice.
    """
    for source, hours in certificate.removed_lines.items():
        for hour in map(Hour.parse, hours):
            transaction = certificate.transaction(f"{source} {hour}")
            if not lake.data_files(REPLAYED_LINES, has_log_hours(source, [hour])):
                continue
            if transaction.is_in(lake.stored(REPLAYED_LINES)):
                continue
            where = of_log_hour(hour, source)
            moved = [
                row | {"line": row["line"] - bisect_left(removed, row["line"])}
                for row in lake.read_rows(REPLAYED_LINES, REPLAYED_LINES.column_names, where)
                if row["line"] not in (removed := hours[str(hour)].get(row["file"], []))
            ]
            lake.replace_rows(REPLAYED_LINES, moved, log_hours_predicate(source, [hour]), transaction=transaction)
