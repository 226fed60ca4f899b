"""The keys whose clicks arrived out of order in log hours, logged to out_of_order_keys.

A click is out of order when a click of the same key before it in the same file, or topic partition, and log hour
happened later. Replaces what the table says of these log hours and this key.
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from include.job_arguments import JobArguments
from include.settings import Settings
from include.sources import choose_sources
from include.tables import CLICKS, OUT_OF_ORDER_KEYS
from include.texts import as_printable
from spark_jobs.ingest.out_of_order import find_out_of_order
from spark_jobs.lake.data_files import has_log_hours
from spark_jobs.lake.lake import Lake

_LISTED = 10


def log_out_of_order_keys(spark: SparkSession, settings: Settings, arguments: JobArguments, *, key: str) -> list[str]:
    """Log the keys with clicks out of order; returns a few lines on the worst of them."""
    lake = Lake(spark, settings)
    report = []
    for source in choose_sources(settings, arguments.source):
        hours = list(arguments.log_hours)
        with lake.locked():
            clicks = lake.read_log_hours(CLICKS, source.name, hours)
            of_others = lake.read_log_hours(OUT_OF_ORDER_KEYS, source.name, hours).where(F.col("key_name") != key)
            keys_out_of_order = find_out_of_order(clicks, key).unionByName(of_others)
            lake.replace(OUT_OF_ORDER_KEYS, keys_out_of_order, has_log_hours(source.name, hours))
            logged = lake.read_log_hours(OUT_OF_ORDER_KEYS, source.name, hours).where(F.col("key_name") == key)
            keys, late = logged.agg(F.count_distinct(F.struct("key")), F.sum("out_of_order")).collect()[0]
            worst = logged.groupBy("key").agg(
                F.sum("out_of_order").alias("out_of_order"), F.max("largest_delay").alias("largest_delay")
            )
            rows = worst.orderBy(F.desc("out_of_order"), "key").limit(_LISTED).collect()
        report.append(f"{source.name} {arguments.log_hours}: {late or 0:,} clicks of {keys:,} {key}s out of order")
        report += [
            f"  {row['out_of_order']:>9,} by up to {row['largest_delay']:,.3f} s: {as_printable(row['key'] or 'null')}"
            for row in rows
        ]
    return report
