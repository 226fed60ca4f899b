"""How a stream's arrivals are partitioned: a task has all of an event id, in the order of arrival."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

#: Two hashes of a click's event id; null in other rows.
HIGH, LOW = "id_high", "id_low"


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
