"""What a stream reads, a topic's records or landed files, as lines: from there on it goes as in batch."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.column_functions import let

_LOG_HOUR = r"/log_date=(\d{4}-\d\d-\d\d)/log_hour=(\d\d)/[^/]+$"


def lines_of_records(records: DataFrame, most_bytes: int) -> DataFrame:
    """Kafka's records as ``spark_jobs.lines.read_lines.LINES``; a null value is an empty line.

    Of a longer value than ``most_bytes``, which is no click, the beginning is kept: memory has so much room for each.

    The log hour is that of the record's time. It is that of the reading where a clock was ahead, or the record has no
    time (-1, which Spark gives as a moment before 1970): the micro-batch's time, the same when that is run again.
    ``file`` is topic and partition, such as ``clicks/3``; ``line`` is the offset; ``row_id``, not unique here, is the
    time of arrival in microseconds since 1970.
    """
    known = let(F.col("timestamp"), lambda time: F.when(F.unix_micros(time) >= 0, time))
    arrived = F.least(known, F.current_timestamp())  # least leaves out null
    value = F.coalesce(F.col("value"), F.lit(b""))
    length = F.octet_length(value).cast("bigint")
    return records.withColumn("arrived", arrived).select(
        F.when(length > most_bytes, F.substring(value, 1, most_bytes)).otherwise(value).alias("value"),
        length.alias("bytes"),
        F.floor(F.unix_seconds("arrived") / 3600).cast("int").alias("hour"),
        F.concat_ws("/", "topic", "partition").alias("file"),
        F.col("offset").alias("line"),
        F.unix_micros("arrived").alias("row_id"),
    )


def landed_files(listed: DataFrame) -> DataFrame:
    """The log hour and the name of each listed file; ``listed`` has its ``path``.

    What is in a folder that is no log hour's is left out, and names that are not data, such as ``_a=b``, which Spark
    takes for data.
    """
    path = F.col("path")
    files = listed.select(
        "path",
        F.try_to_date(F.regexp_extract(path, _LOG_HOUR, 1)).alias("log_date"),
        F.regexp_extract(path, _LOG_HOUR, 2).try_cast("int").alias("log_hour"),
        F.substring_index(path, "/", -1).alias("file"),
    )
    is_landed = F.col("log_date").isNotNull() & F.col("log_hour").between(0, 23) & ~F.col("file").rlike(r"^[._]")
    return files.where(is_landed)


def without_files(files: DataFrame, read: DataFrame) -> DataFrame:
    """The files less those that are read: ``log_date``, ``log_hour``, ``file``; null for all of an hour."""
    # Not in one join, which would compare each file of an hour with each that is read.
    hours = read.where("file IS NULL")
    files = files.join(F.broadcast(hours), ["log_date", "log_hour"], "left_anti")
    return files.join(F.broadcast(read), ["log_date", "log_hour", "file"], "left_anti")
