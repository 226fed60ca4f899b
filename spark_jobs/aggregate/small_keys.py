"""Keys with few visitors, put together before they are published: neither a row nor a difference of rows shows so few.

Also of a day: it is the sum of its published hours, so that taking them from it leaves nothing. And of an hour that is
published again: which of its keys were put together, and which were shown, is kept (``include.tables.VISIBILITY``).
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.tables import OTHER_KEYS
from spark_jobs.aggregate.sums import SKETCH, estimated_visitors, summed_counts

_CLICK_HOUR = ("click_date", "click_hour")
_COUNTS = ("click_count", "bot_click_count", "visitor_count", SKETCH)


def publishable(counts: DataFrame, key: str, smallest: int, known: DataFrame | None = None) -> DataFrame:
    """The counts with keys of fewer than ``smallest`` visitors in a click hour in one row, and without sketches.

    One key alone in that row could be had from any total, and so could one beside a key of the reader's own choice: so
    the row has at least two keys and ``smallest`` visitors, for which the key with the next fewest goes there too. Only
    where all keys of an hour together have fewer, its one row has fewer, and does not say how many. What is published
    already stays as it is.

    ``known`` is what earlier publications of these hours have hidden and shown, in the columns of ``VISIBILITY``. What
    was hidden stays hidden. What was shown does not make up for what is small: who takes its former count from the row
    has the rest. If nothing else does, the whole hour is one row.
    """
    rows = _marked(counts, key, smallest, known)
    shown = rows.where("NOT is_other").select(*_CLICK_HOUR, key, *_COUNTS)
    others = (
        rows.where("is_other")
        .groupBy(*_CLICK_HOUR)
        .agg(*summed_counts(), F.when(F.count(F.lit(1)) == 1, F.max("visitor_count")).alias("only_count"))
        .withColumn("visitor_count", F.coalesce(estimated_visitors(), "only_count"))
        .select(*_CLICK_HOUR, F.lit(OTHER_KEYS).alias(key), *_COUNTS)
    )
    return without_few(shown.unionAll(others), smallest)


def visibility(counts: DataFrame, key: str, smallest: int, known: DataFrame) -> DataFrame:
    """What will be known when these counts are published after what is ``known``: the same counts are published then.

    A key that has no clicks any more is known as it was.
    """
    by_key = [*_CLICK_HOUR, key]
    now = (
        _marked(counts, key, smallest, known)
        .where(F.col(key) != OTHER_KEYS)
        .select(
            *by_key, F.col("is_other").alias("is_hidden"), (F.col("was_shown") | ~F.col("is_other")).alias("was_shown")
        )
    )
    gone = known.select(*by_key, "is_hidden", "was_shown").join(now.select(*by_key), by_key, "left_anti")
    return now.unionAll(gone)


def _marked(counts: DataFrame, key: str, smallest: int, known: DataFrame | None) -> DataFrame:
    """The counts, with ``is_other`` and ``was_shown``."""
    rows = counts.select(*_CLICK_HOUR, key, *_COUNTS)
    if known is None:
        rows = rows.withColumns({"was_hidden": F.lit(False), "was_shown": F.lit(False)})
    else:
        of_key = known.select(*_CLICK_HOUR, key, F.col("is_hidden").alias("was_hidden"), "was_shown")
        rows = rows.join(of_key, [*_CLICK_HOUR, key], "left").fillna(False, ["was_hidden", "was_shown"])
    is_small = F.coalesce("visitor_count", F.lit(0)) < smallest
    # Rows that were published come again when a backfill is undone.
    were_together = F.col(key) == OTHER_KEYS
    rows = rows.withColumns({"is_small": is_small, "hides": is_small | F.col("was_hidden") | were_together})
    # What it counts is in no earlier publication.
    rows = rows.withColumn("is_unknown", F.col("hides") & (F.col("is_small") | ~F.col("was_shown")))
    is_free = ~F.col("hides") & ~F.col("was_shown")
    of_hour = (
        rows.groupBy(*_CLICK_HOUR)
        .agg(
            F.bool_or("hides").alias("hides_some"),
            F.bool_or(were_together).alias("were_together"),
            F.count_if("is_unknown").alias("unknown_keys"),
            F.hll_union_agg(F.when(F.col("is_unknown"), F.col(SKETCH))).alias(SKETCH),
            F.count(F.when(F.col("is_unknown"), F.col(SKETCH))).alias("sketches"),
            F.min(F.when(is_free, F.struct("visitor_count", key))).alias("next"),
        )
        .withColumn("has_visitors", F.col("sketches") == F.col("unknown_keys"))
        # Visitors are none where they are not known.
        .withColumn("visitors", F.when(F.col("has_visitors") & (F.col("sketches") > 0), estimated_visitors()))
        .withColumn("are_enough", (F.col("unknown_keys") > 1) & (F.coalesce("visitors", F.lit(0)) >= smallest))
        .select(
            *_CLICK_HOUR,
            (F.col("hides_some") & ~F.col("were_together") & ~F.col("are_enough")).alias("takes_more"),
            F.when(F.col("unknown_keys") > 0, F.col("next")[key]).alias("next_key"),
        )
    )
    is_taken = F.col("takes_more") & (F.col("next_key").isNull() | (F.col(key) == F.col("next_key")))
    return rows.join(F.broadcast(of_hour), list(_CLICK_HOUR)).withColumn("is_other", F.col("hides") | is_taken)


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
