"""The URLs whose published clicks of a day, UTC, changed most against the day before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include.documents.model import Column, Document, Line, Table
from include.settings import Settings
from include.tables import CLICKS_BY_URL_HOURLY, PUBLISHED_CLICKS_BY_URL_HOURLY
from include.texts import as_count
from spark_jobs.aggregate.co_partitioning import co_partitioned_tables, require_co_partitioned
from spark_jobs.aggregate.groupings import FieldsGrouping
from spark_jobs.aggregate.movers import biggest, clicks_per_url, movers
from spark_jobs.engine.steps import step
from spark_jobs.lake.lake import Lake

ONE_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Mover:
    """A URL, its published clicks of a day, and of the day before."""

    url: str
    change: int
    clicks: int
    clicks_before: int


def read_movers(spark: SparkSession, settings: Settings, day: date, most: int = 20) -> list[Mover]:
    """Those whose clicks changed most, biggest first.

    Raises:
        QualityError: if the tables are not co-partitioned: both days are repartitioned by their number of buckets.
    """
    lake = Lake(spark, settings)
    require_co_partitioned(lake, co_partitioned_tables(settings))
    grouping = FieldsGrouping(lake.buckets(CLICKS_BY_URL_HOURLY), ("url",))
    published = lake.read(PUBLISHED_CLICKS_BY_URL_HOURLY)

    def of(day: date) -> DataFrame:
        return clicks_per_url(published.where(F.col("click_date") == F.lit(day)), grouping)

    with step(spark, "find movers"):
        rows = biggest(movers(of(day), of(day - ONE_DAY)), most).collect()
    return [Mover(row["url"], row["change"], row["clicks"], row["clicks_before"]) for row in rows]


def movers_document(urls: Sequence[Mover], day: date) -> Document:
    """A table of them."""
    if not urls:
        return Document((Line(f"no URL has other published clicks on {day} than on {day - ONE_DAY}"),))
    rows = ((f"{mover.change:+,}", as_count(mover.clicks), as_count(mover.clicks_before), mover.url) for mover in urls)
    columns = (Column("Change"), Column("Clicks"), Column("Before"), Column("URL", "key"))
    return Document((Table(f"URLs whose clicks changed most on {day}", columns, tuple(rows)),))
