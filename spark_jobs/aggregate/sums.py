"""Counts added up: clicks as numbers, visitors as united sketches (Apache DataSketches HLL)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from include.tables import QUARTERS

SKETCH = "visitor_sketch"


def summed_counts() -> Sequence[Column]:
    """``click_count``, ``bot_click_count`` and ``visitor_sketch`` of rows of counts together.

    The sketch is null if one of them has none, as published ones may.
    """
    return (
        F.sum("click_count").alias("click_count"),
        F.sum("bot_click_count").alias("bot_click_count"),
        F.when(F.count_if(F.col(SKETCH).isNull()) == 0, F.hll_union_agg(SKETCH)).alias(SKETCH),
    )


def summed_quarters() -> Column:
    """``quarters`` of rows of counts of one hour together, each by itself; null if they have none."""
    quarters = (F.col(QUARTERS.name)[number] for number in range(4))
    sums = (
        F.struct(
            F.sum(quarter["click_count"]).alias("click_count"),
            F.sum(quarter["bot_click_count"]).alias("bot_click_count"),
            F.hll_union_agg(quarter[SKETCH]).alias(SKETCH),
        )
        for quarter in quarters
    )
    return F.when(F.count(QUARTERS.name) > 0, F.array(*sums)).alias(QUARTERS.name)


def estimated_visitors() -> Column:
    """How many visitors ``visitor_sketch`` has: as many for the same visitors, in whatever order they came into it.

    Of some 400 visitors on, a sketch that was filled in one go is estimated by what happened while it was (HIP): in
    another order, by other tasks, it is another number. One that was united in that state is estimated by what it
    holds. So it is united with itself. Source: ``isOutOfOrder`` in ``HllArray`` of datasketches-java.
    """
    return F.hll_sketch_estimate(F.hll_union(SKETCH, SKETCH))
