"""How rows are dealt to the parallel instances of an operator."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


@dataclass(frozen=True)
class FieldsGrouping:
    """Rows of one key go to one instance, chosen by the key's hash.

    ``bucket`` is the instance's number. It is Spark's own hash partitioning (Murmur3 with seed 42, modulo the number
    of instances), so it says where ``repartition(instances, key)`` puts the row. A null key has a bucket too.
    """

    key: str
    instances: int

    def bucket(self) -> Column:
        """The number of the instance, 0 to ``instances`` - 1."""
        return F.pmod(F.hash(self.key), F.lit(self.instances))

    def deal(self, rows: DataFrame) -> DataFrame:
        """The rows in ``instances`` partitions, with their ``bucket``."""
        return rows.repartition(self.instances, self.key).withColumn("bucket", self.bucket())
