"""Keys with few visitors, put together before they are published: neither a row nor a difference of rows shows so few.

Also of a day: it is the sum of its published hours, so that taking them from it leaves nothing.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.tables import OTHER_KEYS
from spark_jobs.aggregate.sums import SKETCH, estimated_visitors, summed_counts

_CLICK_HOUR = ("click_date", "click_hour")
_COUNTS = ("click_count", "bot_click_count", "visitor_count", SKETCH)


def publishable(counts: DataFrame, key: str, smallest: int) -> DataFrame:
    """The counts with keys of fewer than ``smallest`` visitors in a click hour in one row, and without sketches.

    One key alone in that row could be had from any total, and so could one beside a key of the reader's own choice: so
    the row has at least two keys and ``smallest`` visitors, for which the key with the next fewest goes there too. Only
    where all keys of an hour together have fewer, its one row has fewer, and does not say how many. What is published
    already stays as it is.
    """
    is_small = F.coalesce("visitor_count", F.lit(0)) < smallest
    of_hour = (
        counts.groupBy(*_CLICK_HOUR)
        .agg(
            F.count_if(is_small).alias("small_keys"),
            F.hll_union_agg(F.when(is_small, F.col(SKETCH))).alias(SKETCH),
            F.count(F.when(is_small, F.col(SKETCH))).alias("sketches"),
            F.min(F.when(~is_small, F.struct("visitor_count", key))).alias("next"),
        )
        .select(
            *_CLICK_HOUR,
            F.col("next")[key].alias("next_key"),
            ((F.col("small_keys") == 1) | ((F.col("small_keys") > 1) & (_visitors_of_small() < smallest))).alias(
                "takes_next"
            ),
        )
    )
    rows = counts.join(F.broadcast(of_hour), list(_CLICK_HOUR)).withColumn(
        "is_other", is_small | (F.col("takes_next") & (F.col(key) == F.col("next_key")))
    )
    shown = rows.where("NOT is_other").select(*_CLICK_HOUR, key, *_COUNTS)
    others = (
        rows.where("is_other")
        .groupBy(*_CLICK_HOUR)
        .agg(*summed_counts(), F.when(F.count(F.lit(1)) == 1, F.max("visitor_count")).alias("only_count"))
        .withColumn("visitor_count", F.coalesce(estimated_visitors(), "only_count"))
        .select(*_CLICK_HOUR, F.lit(OTHER_KEYS).alias(key), *_COUNTS)
    )
    return without_few(shown.unionAll(others), smallest)


def _visitors_of_small() -> Column:
    """Those of an hour's small keys together; as none where that is not known."""
    is_known = (F.col("sketches") > 0) & (F.col("sketches") == F.col("small_keys"))
    return F.when(is_known, estimated_visitors()).otherwise(0)


def without_few(rows: DataFrame, smallest: int) -> DataFrame:
    """The rows without sketches, and without the visitors of those that have fewer than ``smallest``."""
    return rows.withColumns(
        {
            "visitor_count": F.when(F.col("visitor_count") >= smallest, F.col("visitor_count")),
            SKETCH: F.lit(None).cast("binary"),
        }
    )


def with_counted_sketches(published: DataFrame, counted: DataFrame, key: str) -> DataFrame:
    """The published rows with the sketches of their visitors, from what is counted.

    Null where that is not what is published: the hour has been counted again since.
    """
    by_key = [*_CLICK_HOUR, key]
    shown = published.select(*by_key, F.lit(True).alias("is_shown"))
    now = (
        counted.join(shown, by_key, "left")
        .withColumn(key, F.when(F.col("is_shown"), F.col(key)).otherwise(OTHER_KEYS))
        .groupBy(*by_key)
        .agg(*summed_counts())
        .select(
            *by_key,
            F.struct("click_count", "bot_click_count").alias("now"),
            estimated_visitors().alias("visitors_now"),
            F.col(SKETCH).alias("sketch_now"),
        )
    )
    is_same = (F.struct("click_count", "bot_click_count") == F.col("now")) & F.coalesce(
        F.col("visitor_count") == F.col("visitors_now"), F.lit(True)
    )
    sketch = F.coalesce(SKETCH, F.when(is_same, F.col("sketch_now")))
    return published.join(now, by_key, "left").withColumn(SKETCH, sketch).select(*published.columns)
