"""A task of a stream drops duplicates: clicks whose event id is known."""

from __future__ import annotations

from dataclasses import dataclass
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

    def first_arrivals(self, batch_id: int, partition: int) -> FirstArrivals:
        """Those of one partition of a micro-batch."""
        known = KnownIds(self.folder / str(partition), batch_id, self.lateness_hours)
        return FirstArrivals(known, partition, self.partitions)


@dataclass(frozen=True)
class FirstArrivals:
    """One task's arrivals, in the order of ``repartition_by_id``, less duplicates."""

    known: KnownIds
    partition: int
    partitions: int

    def of(self, arrivals: pa.Table) -> pa.Table:
        """These without duplicates, and without the hashes.

        Raises:
            ValueError: if one of them is of another partition: its id would not be looked up where it is known.
        """
        clicks = np.flatnonzero(as_numpy(pc.is_valid(arrivals[HIGH])))
        is_first = np.ones(len(arrivals), bool)
        if len(clicks):
            rows = arrivals.take(pa.array(clicks)) if len(clicks) < len(arrivals) else arrivals
            high, low = (as_numpy(rows[name]) for name in (HIGH, LOW))
            hours = as_numpy(rows["log_date"].cast(pa.int32())) * 24 + as_numpy(rows["log_hour"])
            if (high % self.partitions != self.partition).any():
                raise ValueError(f"ids of another partition than {self.partition} of {self.partitions}")
            is_first[clicks] = self.known.add(high, low, hours)
        rows = arrivals.drop_columns([HIGH, LOW])
        return rows if is_first.all() else rows.filter(pa.array(is_first))

    def end(self) -> None:
        """Keep the ids of its clicks."""
        self.known.end()
