"""What an exchange of a plan says: how it partitions rows, how many crossed it, and how they are read behind it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from spark_jobs.topology.plan import Operator, entries

_PARTITIONERS = {
    "hashpartitioning": "hash",
    "rangepartitioning": "range",
    "roundrobinpartitioning": "round-robin",
    "singlepartition": "single",
}


@dataclass(frozen=True)
class Partitioning:
    """How an exchange partitions rows, keys with Spark's expression ids; ``origin`` is why, in Spark's words."""

    partitioner: str
    keys: tuple[str, ...]
    count: int
    origin: str

    @classmethod
    def of(cls, exchange: Operator) -> Partitioning:
        """As the exchange's arguments say: ``hashpartitioning(url#1, 4), REPARTITION_BY_NUM, [plan_id=7]``."""
        how, *rest = [*exchange.detail_list("Arguments"), ""]
        name, _, inside = how.removesuffix(")").partition("(")
        partitioner = _PARTITIONERS.get(name.lower(), name.lower())
        *keys, count = entries(inside) or ["1"]
        return cls(partitioner, tuple(keys), int(count) if count.isdigit() else 1, rest[0])

    @property
    def is_asked_for(self) -> bool:
        """Whether the job asked for it, and not an operator."""
        return self.origin.startswith(("REPARTITION", "REBALANCE"))

    @property
    def has_own_count(self) -> bool:
        """Whether the number of partitions is its own: ``repartition(4, key)``. Else it is Spark's default.

        Spark does not say where a rebalance has its number from. Ours all ask for one.
        """
        return self.origin.startswith(("REPARTITION_BY_NUM", "REBALANCE")) or self.partitioner == "single"


def read_as(above: Sequence[Operator]) -> list[str]:
    """What adaptive execution made of the partitions of a shuffle: ``1 partition, coalesced``."""
    for operator in above:
        if operator.name == "AQEShuffleRead":
            how = operator.details.get("Arguments", "").strip() or "again"
            count = operator.metrics.get("number of partitions")
            return [f"{how} to {count}" if count and how == "coalesced" else how]
        if not operator.name.endswith("QueryStage"):
            break
    return []


def crossed(exchange: Operator) -> tuple[int | None, int | None]:
    """Rows and bytes, from the exchange's metrics."""
    is_broadcast = exchange.name == "BroadcastExchange"
    rows = exchange.metrics.get("number of output rows" if is_broadcast else "shuffle records written", "")
    size = exchange.metrics.get("data size" if is_broadcast else "shuffle bytes written", "")
    return (int(rows.replace(",", "")) if rows.replace(",", "").isdigit() else None), _bytes_of(size)


_SIZE = re.compile(r"(?P<number>[\d,.]+) (?P<unit>[KMGTPE]?i?B)\b")
_UNITS = {unit: 1024**power for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))}


def _bytes_of(metric: str) -> int | None:
    """The total of a size as Spark writes it: ``431.5 KiB``, or with a line above and a spread behind."""
    size = _SIZE.search(metric)
    if not size or size["unit"] not in _UNITS:
        return None
    return round(float(size["number"].replace(",", "")) * int(_UNITS[size["unit"]]))
