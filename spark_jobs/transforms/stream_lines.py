"""Records of a stream as lines, and the first arrivals among them: what the stream adds to the batch's transforms."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.transforms.drop_duplicates import log_hour_number


def lines_of_records(records: DataFrame) -> DataFrame:
    """Kafka's records as lines, as ``parse_lines`` takes them; a null value is an empty line.

    The log hour is that of the record's time, or of the reading where a clock was ahead. ``file`` is topic and
    partition, such as ``clicks/3``; ``line`` is the offset; ``row_id``, not unique here, is the time of arrival in
    microseconds since 1970.
    """
    arrived = F.least("timestamp", F.current_timestamp())
    return records.select(
        F.coalesce(F.col("value").cast("string"), F.lit("")).alias("value"),
        F.to_date(arrived).alias("log_date"),
        F.hour(arrived).alias("log_hour"),
        F.concat_ws("/", "topic", "partition").alias("file"),
        F.col("offset").alias("line"),
        F.unix_micros(arrived).alias("row_id"),
    )


def first_arrivals(parsed: DataFrame, lateness_hours: int) -> DataFrame:
    """The quarantined lines, and of each event id the line that arrived first within the lateness window.

    The ids are kept as the stream's state for ``lateness_hours`` log hours and longer: until a line arrives more than
    twice that later. No line is ever too late to be looked at: one that says it is older than the window counts as
    from its beginning. See docs/adr/0019.
    """
    window = F.make_dt_interval(hours=F.lit(lateness_hours))
    order = ["row_id", "file", "line"]
    log_hour = F.timestamp_seconds(log_hour_number().cast("bigint") * 3600)
    is_click = F.col("reason").isNull()
    keys = {
        "state_id": F.when(is_click, F.col("event_id")),
        # A quarantined line is no duplicate of any other.
        "state_place": F.when(~is_click, F.concat_ws("/", "file", "line")),
    }
    return (
        parsed.withColumns({**keys, "seen_at": F.greatest(log_hour, F.current_timestamp() - window)})
        .withWatermark("seen_at", f"{lateness_hours + 1} hours")
        # The state takes the rows as they come. In the order of arrival the first one wins, in every try.
        .repartition(*keys)
        .sortWithinPartitions(*order)
        .dropDuplicatesWithinWatermark(list(keys))
        .drop(*keys, "seen_at")
    )


def with_line_counts(arrivals: DataFrame, lines: DataFrame) -> DataFrame:
    """The arrivals, and beside them a row for every line read, of which only ``bytes`` and its place are set.

    What was dropped as a duplicate is the difference.
    """
    places = ["log_date", "log_hour", "file", "line"]
    counted = lines.select(*places, F.octet_length("value").cast("bigint").alias("bytes"))
    return arrivals.unionByName(counted, allowMissingColumns=True)
