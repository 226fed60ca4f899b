"""A stream drops duplicates: clicks whose event id is in its state. In batch: ``spark_jobs/ingest/duplicates.py``."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.column_functions import let
from spark_jobs.ingest.duplicates import log_hour_number


def first_arrivals(arrivals: DataFrame, lateness_hours: int) -> DataFrame:
    """Of each event id the click that arrived first within the lateness window, and all other rows.

    The state keeps an id until the watermark passes it, about twice ``lateness_hours``. No line is ever too late to be
    looked at: an older one is treated as being at the window's start. See docs/adr/0019.
    """
    window = F.make_dt_interval(hours=F.lit(lateness_hours))
    order = ["row_id", "file", "line"]
    log_hour = F.timestamp_seconds(log_hour_number().cast("bigint") * 3600)
    now = F.current_timestamp()
    # A landing folder dated in the future would move the watermark past current lines.
    seen_at = let(log_hour, lambda hour: F.least(F.greatest(hour, now - window), now))
    is_click = F.col("reason").isNull() & F.col("read").isNull()
    keys = {
        "state_id": F.when(is_click, F.col("event_id")),
        # A quarantined line, or what was read of a file, is no duplicate of any other.
        "state_place": F.when(
            ~is_click, F.concat_ws("/", "log_date", "log_hour", "file", "line", "read.first_line", "read.last_line")
        ),
    }
    return (
        arrivals.withColumns({**keys, "seen_at": seen_at})
        .withWatermark("seen_at", f"{lateness_hours + 1} hours")
        # The state takes the rows as they come. In the order of arrival the first one wins, in every try.
        .repartition(*keys)
        .sortWithinPartitions(*order)
        .dropDuplicatesWithinWatermark(list(keys))
        .drop(*keys, "seen_at")
    )
