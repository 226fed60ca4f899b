"""What a stream reads as lines, and the first arrivals among them: what it adds to the batch's transforms."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.transforms.columns import let
from spark_jobs.transforms.drop_duplicates import log_hour_number
from spark_jobs.transforms.groupings import ROW_IN_PARTITION

_LOG_HOUR = r"/log_date=(\d{4}-\d\d-\d\d)/log_hour=(\d\d)/[^/]+$"


def lines_of_records(records: DataFrame) -> DataFrame:
    """Kafka's records as lines, as ``parse_lines`` takes them; a null value is an empty line.

    The log hour is that of the record's time, or of the reading where a clock was ahead. ``file`` is topic and
    partition, such as ``clicks/3``; ``line`` is the offset; ``row_id``, not unique here, is the time of arrival in
    microseconds since 1970.
    """
    arrived = let(F.col("timestamp"), lambda time: F.least(time, F.current_timestamp()))
    return records.withColumn("arrived", arrived).select(
        F.coalesce(F.col("value").cast("string"), F.lit("")).alias("value"),
        F.to_date("arrived").alias("log_date"),
        F.hour("arrived").alias("log_hour"),
        F.concat_ws("/", "topic", "partition").alias("file"),
        F.col("offset").alias("line"),
        F.unix_micros("arrived").alias("row_id"),
    )


def lines_of_files(text: DataFrame) -> DataFrame:
    """Landed files as lines, as ``parse_lines`` takes them; ``text`` is of Spark's text source, one file a partition.

    Log hour, ``file`` and ``line`` are those of ``io.read_lines``; a folder that is no log hour's has no lines.
    ``row_id``, not unique here, is the beginning of the log hour, in microseconds since 1970: so lines are ordered as
    in the batch.
    """
    path = F.col("_metadata.file_path")
    lines = text.select(
        "value",
        F.try_to_date(F.regexp_extract(path, _LOG_HOUR, 1)).alias("log_date"),
        F.regexp_extract(path, _LOG_HOUR, 2).try_cast("int").alias("log_hour"),
        F.col("_metadata.file_name").alias("file"),
        (F.monotonically_increasing_id().bitwiseAND(F.lit(ROW_IN_PARTITION)) + 1).alias("line"),
    )
    # Spark takes a name such as _a=b for data.
    is_landed = F.col("log_date").isNotNull() & F.col("log_hour").between(0, 23) & ~F.col("file").startswith("_")
    return lines.where(is_landed).withColumn("row_id", log_hour_number().cast("bigint") * 3_600_000_000)


def without_files(lines: DataFrame, read: DataFrame) -> DataFrame:
    """The lines, in their order, less those of some files: ``log_date``, ``log_hour``, ``file``; null for all of it."""
    line, known = lines.alias("line"), F.broadcast(read.alias("known"))
    is_known = (
        (F.col("line.log_date") == F.col("known.log_date"))
        & (F.col("line.log_hour") == F.col("known.log_hour"))
        & (F.col("known.file").isNull() | (F.col("line.file") == F.col("known.file")))
    )
    return line.join(known, is_known, "left_anti")


def first_arrivals(parsed: DataFrame, lateness_hours: int) -> DataFrame:
    """The quarantined lines, and of each event id the line that arrived first within the lateness window.

    The ids are kept as the stream's state for ``lateness_hours`` log hours and longer: until a line arrives more than
    twice that later. No line is ever too late to be looked at: one that says it is older than the window counts as
    from its beginning. See docs/adr/0019.
    """
    window = F.make_dt_interval(hours=F.lit(lateness_hours))
    order = ["row_id", "file", "line"]
    log_hour = F.timestamp_seconds(log_hour_number().cast("bigint") * 3600)
    now = F.current_timestamp()
    # A folder of a log hour that is to come would move the watermark past lines of now.
    seen_at = let(log_hour, lambda hour: F.least(F.greatest(hour, now - window), now))
    is_click = F.col("reason").isNull()
    keys = {
        "state_id": F.when(is_click, F.col("event_id")),
        # A quarantined line is no duplicate of any other.
        "state_place": F.when(~is_click, F.concat_ws("/", "file", "line")),
    }
    return (
        parsed.withColumns({**keys, "seen_at": seen_at})
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
