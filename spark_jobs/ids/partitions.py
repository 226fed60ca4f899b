"""How event ids are shared over tasks, by ranges of their hashes: each has all of an id, of a stream in its order."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

Numbers = np.ndarray[Any, np.dtype[Any]]
#: Two hashes of a click's event id; null in other rows.
HIGH, LOW = "id_high", "id_low"


class HashRange(NamedTuple):
    """64-bit hashes, as unsigned numbers, whose upper 32 bits are from the first to the last."""

    first: int
    last: int

    @classmethod
    def of_partition(cls, number: int, partitions: int) -> HashRange:
        """Those of one of so many partitions, as ``partition_of`` has them."""
        first, end = (-(-(place << 32) // partitions) for place in (number, number + 1))
        return cls(first, end - 1)

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest of them."""
        return self.first << 32, (self.last << 32) + 0xFFFFFFFF

    def have(self, hashes: Numbers) -> bool:
        """Whether all of them are in it."""
        upper = hashes.view(np.uint64) >> np.uint64(32)
        return bool(upper.min() >= self.first and upper.max() <= self.last)

    def among(self, hashes: Numbers) -> slice:
        """Where those of the range are among hashes that are in order."""
        least, greatest = map(np.uint64, self.bounds)
        return slice(int(np.searchsorted(hashes, least)), int(np.searchsorted(hashes, greatest, side="right")))


def id_hashes(event_id: Column) -> dict[str, Column]:
    """Two 64-bit hashes of an id, with different seeds: two ids that have both in common are not to be expected."""
    # The hash of what comes before is the seed.
    return {HIGH: F.xxhash64(event_id), LOW: F.xxhash64(F.lit(1), event_id)}


def partition_of(hash_: Column, partitions: int) -> Column:
    """Which of so many partitions, which are ranges of equal width of the hash as an unsigned number, has this one."""
    return F.shiftrightunsigned(F.shiftrightunsigned(hash_, 32) * partitions, 32).cast("int")


def repartition_by_hash(rows: DataFrame, hash_: Column, partitions: int) -> DataFrame:
    """Rows by this column: a partition has all of the same hash."""
    return rows.repartitionById(partitions, partition_of(hash_, partitions))


def repartition_by_id(arrivals: DataFrame, partitions: int) -> DataFrame:
    """All rows by their event id, in the order of arrival within a partition, with the hashes for ``FirstArrivals``."""
    is_click = F.col("reason").isNull() & F.col("read").isNull()
    hashes = {name: F.when(is_click, of_id) for name, of_id in id_hashes(F.col("event_id")).items()}
    # What is no click may be in any partition, but should not all be in one.
    place = F.coalesce(F.col(HIGH), F.xxhash64("file", "line", "read.first_line"))
    hashed = repartition_by_hash(arrivals.withColumns(hashes), place, partitions)
    return hashed.sortWithinPartitions("row_id", "file", "line")
