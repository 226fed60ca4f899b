"""Where the lines are that replays have recovered, when others have gone from their landed files."""

from __future__ import annotations

import pyarrow as pa

from include.hours import Hour
from include.tables import REPLAYED_LINES
from spark_jobs.erasure.certificate import Certificate
from spark_jobs.erasure.kept_rows import are_at, moved, pieces, written
from spark_jobs.lake.data_files import has_log_hours
from spark_jobs.lake.lake import Lake


def move_places(lake: Lake, certificate: Certificate) -> None:
    """Let ``replayed_lines`` name lines by the numbers that they have by now: later ingests recover them by these.

    Each log hour in one commit, which is known by the erasure: a run that was killed before moves none twice.
    """
    for source, hours in certificate.removed_lines.items():
        for hour in map(Hour.parse, hours):
            transaction = certificate.transaction(f"{source} {hour}")
            files = lake.data_files(REPLAYED_LINES, has_log_hours(source, [hour]))
            if not files or transaction.is_in(lake.stored(REPLAYED_LINES)):
                continue
            removed = hours[str(hour)]
            gone = {(file, line) for file, lines in removed.items() for line in lines}
            rows = (rows for file in files for rows in pieces(REPLAYED_LINES, file))
            stay = (moved(part.filter(pa.array(~are_at(part, gone))), removed) for part in rows)
            lake.exchange_files(REPLAYED_LINES, written(lake, REPLAYED_LINES, stay), files, transaction)
