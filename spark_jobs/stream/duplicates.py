"""A stream drops duplicates: clicks whose event id it knows. In batch: ``spark_jobs/ingest/duplicates.py``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.ingest.columns import as_numpy
from spark_jobs.stream.known_ids import KnownIds

#: Two hashes of a click's event id; null in other rows.
HIGH, LOW = "id_high", "id_low"


def id_hashes(event_id: Column) -> dict[str, Column]:
    """Two 64-bit hashes of an id, with different seeds: no two ids of a stream have both in common."""
    # The hash of what comes before is the seed.
    return {HIGH: F.xxhash64(event_id), LOW: F.xxhash64(F.lit(1), event_id)}


def repartition_by_hash(rows: DataFrame, hash_: Column, partitions: int) -> DataFrame:
    """Rows by this column: one of ``IdPartitions`` has all of the same hash."""
    return rows.repartitionById(partitions, F.pmod(hash_, F.lit(partitions)).cast("int"))


def repartition_by_id(arrivals: DataFrame, partitions: int) -> DataFrame:
    """All rows by their event id, in the order of arrival within a partition, with the hashes for ``FirstArrivals``."""
    is_click = F.col("reason").isNull() & F.col("read").isNull()
    hashes = {name: F.when(is_click, of_id) for name, of_id in id_hashes(F.col("event_id")).items()}
    # What is no click may be in any partition, but should not all be in one.
    place = F.coalesce(F.col(HIGH), F.xxhash64("file", "line", "read.first_line"))
    hashed = repartition_by_hash(arrivals.withColumns(hashes), place, partitions)
    return hashed.sortWithinPartitions("row_id", "file", "line")


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
