"""A task of a stream drops duplicates: clicks whose event id is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.ingest.columns import as_numpy
from spark_jobs.stream.duplicates import HIGH, LOW
from spark_jobs.stream.known_ids import KnownIds


@dataclass(frozen=True)
class IdPartitions:
    """Where the ids of a stream are: of each partition of ``repartition_by_hash`` in a folder."""

    folder: Path
    partitions: int
    lateness_hours: int

    def known(self, batch_id: int, hash_: int) -> KnownIds:
        """Those of the partition of an id with this hash, for a micro-batch."""
        return KnownIds(self.folder / str(hash_ % self.partitions), batch_id, self.lateness_hours)


@dataclass
class FirstArrivals:
    """One task's arrivals, in the order of ``repartition_by_id``, less duplicates."""

    ids: IdPartitions
    batch_id: int
    _known: KnownIds | None = field(default=None, init=False)

    def of(self, arrivals: pa.Table) -> pa.Table:
        """These without duplicates, and without the hashes."""
        clicks = np.flatnonzero(as_numpy(pc.is_valid(arrivals[HIGH])))
        is_first = np.ones(len(arrivals), bool)
        if len(clicks):
            rows = arrivals.take(pa.array(clicks)) if len(clicks) < len(arrivals) else arrivals
            high, low = (as_numpy(rows[name]) for name in (HIGH, LOW))
            hours = as_numpy(rows["log_date"].cast(pa.int32())) * 24 + as_numpy(rows["log_hour"])
            self._known = self._known or self.ids.known(self.batch_id, int(high[0]))
            is_first[clicks] = self._known.add(high, low, hours)
        rows = arrivals.drop_columns([HIGH, LOW])
        return rows if is_first.all() else rows.filter(pa.array(is_first))

    def end(self) -> None:
        """Keep the ids of its clicks."""
        if self._known is not None:
            self._known.end()
