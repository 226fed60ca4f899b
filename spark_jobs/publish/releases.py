"""Days whose counts are released with noise: what is counted of them, what was drawn, and the tables for readers."""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from include.days import Day
from include.hours import Hour
from include.publication import NoiseSettings
from include.tables import (
    CLICKS,
    COUNT_RELEASES,
    DRAWN_COUNTS,
    INGEST_ACCOUNTING,
    PUBLISHED_CLICKS_BY_COUNTRY_HOURLY,
    RELEASED_CLICKS_BY_COUNTRY_AND_URL_DAILY,
    RELEASED_CLICKS_BY_COUNTRY_DAILY,
)
from spark_jobs.aggregate.bounded_counts import bounded_counts
from spark_jobs.engine.steps import step
from spark_jobs.lake import declared
from spark_jobs.lake.data_files import may_have_click_hours
from spark_jobs.lake.lake import Lake
from spark_jobs.publish.noise import Noise
from spark_jobs.publish.publish_days import presence_of

#: What a task says of the counts that it has read: the clicks of a country, and the digests of its counts, added up.
SUMS = pa.schema([("country_code", pa.string()), ("click_count", pa.int64()), ("digests", pa.binary())])
#: Counts by country and URL.
_COUNTS = pa.schema([("country_code", pa.string()), ("url", pa.string()), ("click_count", pa.int64())])
#: Between country and URL, which have none.
_SEPARATOR = "\t"
#: So much more than the budget is not more: sums of floating-point numbers are not exact.
_ROUNDING = 1 + 1e-9


@dataclass(frozen=True)
class BoundedDay:
    """What one day's visitors clicked, so many clicks of each at most.

    ``counts`` are those by country and URL, as tasks read them; ``digest`` is of all of them.
    """

    counts: DataFrame
    by_country: Mapping[str, int]
    digest: str


def why_not_yet(lake: Lake, noise: NoiseSettings, day: date, now: datetime) -> str | None:
    """Why a day must not be released now; None if it may be."""
    if noise.first_day and day < noise.first_day:
        return f"it is before first_day, {noise.first_day}"
    since = datetime.combine(day, time(), UTC) + timedelta(days=1 + noise.wait_days)
    if now < since:
        return f"late clicks may still come: from {since:%Y-%m-%d %H:%M} UTC on, by wait_days = {noise.wait_days}"
    of_day = Day("UTC", day)
    presence = presence_of(lake, [of_day])[of_day]
    if not presence["is_final"]:
        return f"{presence['hours_present']} of its {presence['hours_in_day']} hours are there and published"
    clicks, published = _clicks_per_hour(lake, day), _published_per_hour(lake, day)
    # Such as of an hour whose counts were dropped.
    if other := sorted(hour for hour in {*clicks, *published} if clicks[hour] != published[hour]):
        return f"in its hours {', '.join(map(str, other))} other clicks are published than there are"
    if not clicks and _had_clicks(lake, day):
        return "its clicks have been removed, by [retention]"
    return None


def bounded_day(lake: Lake, noise: NoiseSettings, day: date) -> BoundedDay:
    """Count the day's clicks, as many of each visitor as may be."""
    key = lake.settings.release_key()
    salt = hmac.digest(key, f"which clicks of {day}".encode(), "sha256").hex()
    counts = bounded_counts(_clicks(lake, day), noise.clicks_per_visitor_per_day, salt)
    # Without the key, who guesses the counts could see that they are right.
    of_day = hmac.digest(key, f"counts of {day}".encode(), "sha256")
    with step(lake.spark, f"count at most {noise.clicks_per_visitor_per_day} clicks a visitor"):
        parts = counts.mapInArrow(lambda batches: sums(batches, of_day), from_arrow_schema(SUMS)).toArrow()
    by_country = parts.group_by("country_code").aggregate([("click_count", "sum")])
    return BoundedDay(
        counts,
        {row["country_code"]: row["click_count_sum"] for row in by_country.to_pylist()},
        _modulo(sum(map(int.from_bytes, parts["digests"].to_pylist()))).hex(),
    )


def sums(batches: Iterable[pa.RecordBatch], key: bytes) -> Iterator[pa.RecordBatch]:
    """``SUMS`` of a task's counts by country and URL, whatever their order.

    Of equal digests the counts are equal: HMAC-SHA256 of each, added modulo 2^256 (Bellare, Micciancio: A new paradigm
    for collision-free hashing, 1997).
    """
    clicks, digests = Counter[str](), Counter[str]()
    for batch in batches:
        for country, url, count in zip(*(batch[name].to_pylist() for name in _COUNTS.names), strict=True):
            text = f"{country}{_SEPARATOR}{url}{_SEPARATOR}{count}"
            clicks[country] += count
            digests[country] += int.from_bytes(hmac.digest(key, text.encode(), "sha256"))
    columns = [[*clicks], [*clicks.values()], map(_modulo, digests.values())]
    yield pa.RecordBatch.from_arrays([pa.array(c, t) for c, t in zip(columns, SUMS.types, strict=True)], schema=SUMS)


def _modulo(digests: int) -> bytes:
    return (digests % (1 << 256)).to_bytes(32)


def drawings(lake: Lake, day: date) -> list[dict[str, Any]]:
    """What has been drawn for a day, oldest first."""
    rows = lake.read_rows(COUNT_RELEASES, COUNT_RELEASES.column_names, [("click_date", "=", day)])
    return sorted(rows, key=lambda row: row["released_at"])


def has_budget(noise: NoiseSettings, drawn: Sequence[Mapping[str, Any]]) -> bool:
    """Whether noise may be drawn once more for a day."""
    return all(
        (sum(drawing[name] for drawing in drawn) + once) <= noise.releases_per_day * once * _ROUNDING
        for name, once in (("epsilon", noise.epsilon), ("delta", noise.delta))
    )


def noise_of(noise: NoiseSettings) -> Noise:
    """For either table, which has half of epsilon and delta."""
    return Noise(noise.clicks_per_visitor_per_day, noise.epsilon / 2, noise.delta / 2)


def draw(lake: Lake, noise: NoiseSettings, day: date, counted: BoundedDay, now: datetime) -> dict[str, Any]:
    """Draw noise for a day, and put on record that it was drawn: from then on it is spent.

    Tasks write what was drawn, in one commit before that of the record: without it, it was not shown to anybody.
    """
    drawn = noise_of(noise)
    by_country = drawn.add_to(counted.by_country)

    def with_noise(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            countries, urls, counts = (batch[name].to_pylist() for name in _COUNTS.names)
            keys = map(_SEPARATOR.join, zip(countries, urls, strict=True))
            shown = drawn.add_to(dict(zip(keys, counts, strict=True)))
            rows = [(*key.split(_SEPARATOR), count) for key, count in shown.items()]
            yield pa.RecordBatch.from_pylist([dict(zip(_COUNTS.names, row, strict=True)) for row in rows], _COUNTS)

    of_countries = [{"country_code": key, "click_count": count} for key, count in by_country.items()]
    shown = counted.counts.mapInArrow(with_noise, from_arrow_schema(_COUNTS)).unionByName(
        lake.spark.createDataFrame(pa.Table.from_pylist(of_countries, _COUNTS), from_arrow_schema(_COUNTS))
    )
    with step(lake.spark, "draw noise"):
        files = lake.write_files(DRAWN_COUNTS, shown.withColumns({"click_date": F.lit(day), "released_at": F.lit(now)}))
    lake.exchange_files(DRAWN_COUNTS, files, [])
    drawing = {
        "click_date": day,
        "released_at": now,
        "epsilon": noise.epsilon,
        "delta": noise.delta,
        "clicks_per_visitor_per_day": noise.clicks_per_visitor_per_day,
        "noise_scale": drawn.scale,
        "threshold": drawn.threshold,
        "input_digest": counted.digest,
    }
    lake.require_locks()
    lake.append_rows(COUNT_RELEASES, [drawing])
    return drawing


def show(lake: Lake, drawing: Mapping[str, Any]) -> list[int]:
    """Replace a day in the tables for readers by what was drawn for it, unless they have that.

    Returns how many counts there are per country and URL, and per country.
    """
    of_day = pc.field("partition.click_date") == drawing["click_date"]
    drawn = lake.read_files(DRAWN_COUNTS, of_day).where(F.col("released_at") == F.lit(drawing["released_at"]))
    names = ("click_date", "epsilon", "delta", "clicks_per_visitor_per_day", "noise_scale", "threshold")
    parameters = {name: F.lit(drawing[name]) for name in names}
    for table, rows in (
        (RELEASED_CLICKS_BY_COUNTRY_AND_URL_DAILY, drawn.where(F.col("url").isNotNull())),
        (RELEASED_CLICKS_BY_COUNTRY_DAILY, drawn.where(F.col("url").isNull()).drop("url")),
    ):
        there = lake.read_files(table, of_day)
        wanted = declared.as_declared(rows.withColumns(parameters), table)
        with step(lake.spark, f"compare {table.name}"):
            is_shown = not wanted.exceptAll(there).unionAll(there.exceptAll(wanted)).limit(1).count()
        if not is_shown:
            lake.replace(table, wanted, of_day)
    return [
        sum(file.rows for file in lake.data_files(table, of_day))
        for table in (RELEASED_CLICKS_BY_COUNTRY_AND_URL_DAILY, RELEASED_CLICKS_BY_COUNTRY_DAILY)
    ]


def _clicks(lake: Lake, day: date) -> DataFrame:
    choice = may_have_click_hours(CLICKS, Day("UTC", day).hours)
    return lake.read_files(CLICKS, choice).where(F.col("click_date") == F.lit(day))


def _clicks_per_hour(lake: Lake, day: date) -> Counter[int]:
    with step(lake.spark, f"count the clicks of {day}"):
        rows = _clicks(lake, day).groupBy("click_hour").agg(F.count(F.lit(1)).alias("clicks")).collect()
    return Counter({row["click_hour"]: row["clicks"] for row in rows})


def _had_clicks(lake: Lake, day: date) -> bool:
    """Whether clicks of that day were ingested, by the accounting, which stays."""
    later = [("log_date", ">=", day - timedelta(days=1))]
    hours = (hour for row in lake.read_rows(INGEST_ACCOUNTING, ["click_hours"], later) for hour in row["click_hours"])
    return any(Hour.parse(hour).day == day for hour in hours)


def _published_per_hour(lake: Lake, day: date) -> Counter[int]:
    table, columns = PUBLISHED_CLICKS_BY_COUNTRY_HOURLY, ["click_hour", "click_count"]
    clicks: Counter[int] = Counter()
    for row in lake.read_rows(table, columns, [("click_date", "=", day)]):
        clicks[row["click_hour"]] += row["click_count"]
    return clicks
