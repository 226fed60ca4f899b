"""How rows are sent to the parallel instances of an operator.

A grouping is a value: its name, its parameters, and ``repartition``, which gives one partition per instance.
``with_instance`` writes into each row which instance has it. Rows with a null key go to one instance, the same
every time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from typing_extensions import override

from include.counting import COMBINE, CountSettings
from include.errors import UsageError

INSTANCE = "instance_id"


@dataclass(frozen=True)
class Grouping(ABC):
    """How rows are sent to instances."""

    name: ClassVar[str]
    #: Whether rows are counted where they are read, before they move.
    combines: ClassVar[bool] = False

    @abstractmethod
    def repartition(self, rows: DataFrame) -> DataFrame:
        """The rows, one partition per instance."""

    def keeps_whole(self, keys: Iterable[str]) -> bool:
        """Whether all rows that are equal in ``keys`` go to one instance, so that its count of them is complete."""
        return False

    @property
    def least_instances(self) -> int:
        """How many instances there are, with rows or without; 0 if that depends on the rows."""
        return 0

    def require_columns(self, rows: DataFrame) -> None:  # noqa: B027 - most groupings go by nothing
        """Refuse rows that lack what the grouping goes by; by default it goes by nothing.

        Raises:
            UsageError: naming what is missing.
        """

    def described(self) -> str:
        """Name and parameters, such as ``fields(url) over 4``."""
        return self.name


def with_instance(partitioned: DataFrame) -> DataFrame:
    """Partitioned rows with ``instance_id``, the number from 0 of the instance that handles the row."""
    return partitioned.withColumn(INSTANCE, F.spark_partition_id())


def instances_of(grouping: Grouping, rows: DataFrame) -> int:
    """How many instances the grouping sends these rows to."""
    # One file, one partition: see spark_jobs/lake/lake.py.
    return grouping.least_instances or max(1, len(rows.inputFiles()))


def require_whole(grouping: Grouping, keys: Iterable[str], operator: str) -> None:
    """Refuse a grouping that splits a key's rows where nothing merges them again.

    Raises:
        UsageError: if the grouping splits keys.
    """
    if not grouping.keeps_whole(keys):
        raise UsageError(
            f"{operator}: grouping {grouping.described()} puts rows of one {' and '.join(keys)} on several instances, "
            "and nothing merges their parts; expected a grouping that keeps a key whole (fields, range, global), "
            "or a merge step"
        )


@dataclass(frozen=True)
class FifoGrouping(Grouping):
    """The input's partitions, each row and each order as they are: no row crosses from one instance to another."""

    name: ClassVar[str] = "fifo"

    @override
    def repartition(self, rows: DataFrame) -> DataFrame:
        return rows


@dataclass(frozen=True)
class _OverInstances(Grouping):
    """A grouping over a number of instances that is given."""

    instances: int

    def __post_init__(self) -> None:
        if self.instances < 1:
            raise UsageError(f"grouping {self.name}: instances = {self.instances}; expected a whole number above 0")

    @property
    @override
    def least_instances(self) -> int:
        return self.instances

    @override
    def described(self) -> str:
        return f"{self.name} over {self.instances}"


@dataclass(frozen=True)
class ShuffleGrouping(_OverInstances):
    """Round-robin: every instance has as many rows as the others, whatever their keys."""

    name: ClassVar[str] = "shuffle"

    @override
    def repartition(self, rows: DataFrame) -> DataFrame:
        return rows.repartition(self.instances)


@dataclass(frozen=True)
class _Keyed(_OverInstances):
    keys: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.keys or not all(self.keys):
            raise UsageError(f"grouping {self.name}: keys = {list(self.keys)}; expected one column name or more")

    @override
    def keeps_whole(self, keys: Iterable[str]) -> bool:
        return set(self.keys) <= set(keys)

    @override
    def described(self) -> str:
        return f"{self.name}({', '.join(self.keys)}) over {self.instances}"

    @override
    def require_columns(self, rows: DataFrame) -> None:
        missing = [key for key in self.keys if key not in rows.columns]
        if missing:
            raise UsageError(
                f"grouping {self.described()}: no column {missing[0]!r}; expected one of {', '.join(rows.columns)}"
            )


@dataclass(frozen=True)
class FieldsGrouping(_Keyed):
    """Rows of one key go to one instance, chosen by the key's hash.

    ``bucket`` is the instance's number. It is Spark's own hash partitioning (Murmur3 with seed 42, modulo the number
    of instances), so it says where ``repartition(instances, key)`` puts the row.
    """

    name: ClassVar[str] = "fields"

    def bucket(self) -> Column:
        """The number of the instance, 0 to ``instances`` - 1."""
        return F.pmod(F.hash(*self.keys), F.lit(self.instances))

    def placement(self) -> dict[str, Column]:
        """What a stored row says of where it is: its ``bucket``, and how many ``buckets`` there are."""
        return {"bucket": self.bucket(), "buckets": F.lit(self.instances)}

    @override
    def repartition(self, rows: DataFrame) -> DataFrame:
        self.require_columns(rows)
        return rows.repartition(self.instances, *self.keys)


@dataclass(frozen=True)
class CombinedGrouping(FieldsGrouping):
    """Each task counts the rows that it has read; only these counts go to their key's instance, to be added up there.

    So a key that is busy sends a row a task, and nothing has to be evened out.
    """

    name: ClassVar[str] = COMBINE
    combines: ClassVar[bool] = True


@dataclass(frozen=True)
class RangeGrouping(_Keyed):
    """Neighbouring keys go to one instance; the bounds are drawn so that instances have about as many rows."""

    name: ClassVar[str] = "range"

    @override
    def repartition(self, rows: DataFrame) -> DataFrame:
        self.require_columns(rows)
        return rows.repartitionByRange(self.instances, *self.keys)


@dataclass(frozen=True)
class CustomGrouping(_OverInstances):
    """Rows for which a SQL expression has one value go to one instance, chosen by the value's hash.

    Such as ``substring(try_parse_url(url, 'PATH'), 2, 1)``, the first character of the path.
    """

    name: ClassVar[str] = "custom"
    expression: str

    @override
    def require_columns(self, rows: DataFrame) -> None:
        try:
            rows.select(self._instance()).schema  # noqa: B018 - asks Spark whether it understands the expression
        except PySparkException as error:
            raise UsageError(
                f"grouping {self.described()}: {str(error).splitlines()[0]}; expected a SQL expression over "
                f"{', '.join(rows.columns)}"
            ) from None

    @override
    def repartition(self, rows: DataFrame) -> DataFrame:
        return rows.repartitionById(self.instances, self._instance())

    def _instance(self) -> Column:
        return F.pmod(F.hash(F.expr(self.expression)), F.lit(self.instances))

    @override
    def described(self) -> str:
        return f"{self.name}({self.expression}) over {self.instances}"


@dataclass(frozen=True)
class SaltedFieldsGrouping(_Keyed):
    """Fields grouping, but a key's rows are split over ``salts`` neighbouring instances; its parts must be merged.

    Which of them has a row is a hash of the whole row, so that running it again sends the same. With ``hot_keys``,
    values of a single key column, only those are split.
    """

    name: ClassVar[str] = "salted_fields"
    salts: int
    hot_keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.salts <= self.instances:
            raise UsageError(
                f"grouping {self.name}: salts = {self.salts}; expected 1 to {self.instances}, the number of instances"
            )
        if self.hot_keys and len(self.keys) != 1:
            raise UsageError(f"grouping {self.name}: hot_keys need one key column; got {', '.join(self.keys)}")

    @override
    def keeps_whole(self, keys: Iterable[str]) -> bool:
        return self.salts == 1 and super().keeps_whole(keys)

    @override
    def repartition(self, rows: DataFrame) -> DataFrame:
        self.require_columns(rows)
        return rows.repartitionById(self.instances, self._instance(rows.columns))

    def _instance(self, columns: Sequence[str]) -> Column:
        salt = F.pmod(F.xxhash64(*columns), F.lit(self.salts)).cast("int")
        if self.hot_keys:
            salt = F.when(F.col(self.keys[0]).isin(*self.hot_keys), salt).otherwise(0)
        first = F.pmod(F.hash(*self.keys), F.lit(self.instances))
        return F.pmod(first + salt, F.lit(self.instances))

    @override
    def described(self) -> str:
        return f"{self.name}({', '.join(self.keys)}) over {self.instances}, {self.salts} salts"


@dataclass(frozen=True)
class GlobalGrouping(Grouping):
    """One instance has all rows: for totals."""

    name: ClassVar[str] = "global"

    @override
    def repartition(self, rows: DataFrame) -> DataFrame:
        return rows.repartition(1)

    @property
    @override
    def least_instances(self) -> int:
        return 1

    @override
    def keeps_whole(self, keys: Iterable[str]) -> bool:
        return True


def grouping_of(settings: CountSettings, key: str, buckets: int) -> Grouping:
    """The grouping that the configuration asks for, over ``buckets`` instances where it names no number.

    Raises:
        UsageError: if its parameters do not fit together.
    """
    instances = settings.instances or buckets
    match settings.grouping:
        case "combine":
            return CombinedGrouping(instances, (key,))
        case "fifo":
            return FifoGrouping()
        case "shuffle":
            return ShuffleGrouping(instances)
        case "fields":
            return FieldsGrouping(instances, (key,))
        case "range":
            return RangeGrouping(instances, (key,))
        case "custom":
            assert settings.expression is not None
            return CustomGrouping(instances, settings.expression)
        case "salted_fields":
            assert settings.salts is not None
            return SaltedFieldsGrouping(instances, (key,), settings.salts, settings.hot_keys)
        case "global":
            return GlobalGrouping()
