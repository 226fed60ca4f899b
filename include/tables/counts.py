"""Counts per click hour or day and key: computed, published, and live."""

from __future__ import annotations

from dataclasses import replace

from include.tables.model import BY_CLICK_HOUR, CLICK_HOUR, SOURCE, Column, Table

UNKNOWN_COUNTRY = "unknown"
#: In published tables, in place of a URL or country: those with too few visitors to be shown, together.
OTHER_KEYS = "(other)"

#: lg(k) of the visitor sketches: HLL_8 with 2**12 registers, standard error 1.04 / sqrt(2**12).
#: Source: DataSketches, https://datasketches.apache.org/docs/HLL/HLL.html
SKETCH_LG_K = 12
VISITOR_COUNT_STANDARD_ERROR = 1.04 / 2 ** (SKETCH_LG_K / 2)

#: The contract of the published tables: raised when a column, its type or its meaning changes. See
#: docs/reference/published.json.
PUBLISHED_VERSION = 3


def _label(key: Column) -> str:
    return key.name.removesuffix("_code")


#: Beside an hour's counts in hourly tables.
QUARTERS = Column(
    "quarters",
    "ARRAY<STRUCT<click_count: BIGINT, bot_click_count: BIGINT, visitor_sketch: BINARY>>",
    "The same of each quarter of the hour, in order, those without clicks too. Null but of hours within which days of "
    "a time zone of config/pipeline.toml end, such as Asia/Kolkata, if they have been counted since it is there.",
    required=False,
)


def _counts(relation: str) -> tuple[Column, ...]:
    return (
        Column("click_count", "BIGINT", f"Accepted clicks {relation}, crawlers included; at least 1."),
        Column("bot_click_count", "BIGINT", "Those of them by crawlers."),
        Column(
            "visitor_count",
            "BIGINT",
            "Distinct visitors, crawlers left out, estimated from the sketch "
            f"(standard error {VISITOR_COUNT_STANDARD_ERROR:.1%}).",
        ),
        Column("visitor_sketch", "BINARY", "Mergeable HLL sketch of the visitors; merge with hll_union_agg."),
    )


def hourly_table(name: str, key: Column, relation: str) -> Table:
    """A table of counts per click hour and key."""
    return Table(
        name=name,
        grain=f"one click hour and {key.name}",
        columns=(
            *CLICK_HOUR,
            key,
            *_counts(relation),
            QUARTERS,
            Column("bucket", "INT", f"pmod(hash({key.name}), buckets), by Spark's hash: MurmurHash3 with seed 42."),
            Column("buckets", "INT", "Number of buckets: the same in all rows of co-partitioned tables."),
            Column(
                "counted_at", "TIMESTAMP", "When the click hour was counted; it is published only when validated since."
            ),
        ),
        key=(*BY_CLICK_HOUR, key.name),
        partitioned_by=BY_CLICK_HOUR,
        statistics=("bucket", "buckets"),
        bucket_key=key.name,
    )


def _with_others(key: Column) -> Column:
    """As published."""
    others = f"; or '{OTHER_KEYS}': those with fewer visitors than smallest_visitors of config/pipeline.toml, together."
    return replace(key, comment=key.comment.removesuffix(".") + others)


def _may_be_withheld(column: Column) -> Column:
    """As published: nothing may be said of too few visitors."""
    withheld = {
        "visitor_count": "; null where they are too few to be shown, or unknown.",
        "visitor_sketch": "; null where smallest_visitors is set.",
    }.get(column.name)
    if withheld is None:
        return column
    return replace(column, comment=column.comment.removesuffix(".") + withheld, required=False)


def _published(computed: Table, key: Column, relation: str) -> Table:
    return Table(
        name=f"published_{computed.name}",
        grain=computed.grain,
        columns=(*CLICK_HOUR, _with_others(key), *map(_may_be_withheld, _counts(relation)), QUARTERS),
        key=computed.key,
        partitioned_by=BY_CLICK_HOUR,
        statistics=("click_count",),
    )


_LOCAL_DAY = (
    Column("time_zone", "STRING", "The time zone whose days these are: one of time_zones in config/pipeline.toml."),
    Column("click_date", "DATE", "Day, in this time zone, on which the clicks happened."),
)
_PRESENCE = (
    Column(
        "hours_in_day",
        "INT",
        "Hours, UTC, that the day has in whole or in part: 24, or 23 and 25 where clocks change; one more where it "
        "begins within an hour.",
    ),
    Column(
        "hours_present",
        "INT",
        "Those of them whose log hour has landed and been ingested, of each source that has any in this day, and whose "
        "clicks, if any, are published as they are counted, not held or waiting.",
    ),
    Column(
        "is_final",
        "BOOLEAN",
        "Whether all hours are present. Late clicks may still change the day, within the sources' oldest_hours.",
    ),
)


def daily_table(hourly: Table) -> Table:
    """The table of counts per time zone, day and key that follows from a table of counts per click hour and key."""
    stated = ("click_date", "click_hour", QUARTERS.name, "bucket", "buckets", "counted_at")
    counts = [column for column in hourly.columns if column.name not in stated]
    computed = Column("counted_at", "TIMESTAMP", "When it was computed from the counts of its hours.")
    return Table(
        name=hourly.name.replace("_hourly", "_daily"),
        grain=f"one time zone, day and {hourly.key[-1]}",
        columns=(*_LOCAL_DAY, *counts, *((computed,) if hourly.bucket_key else _PRESENCE)),
        key=("time_zone", "click_date", hourly.key[-1]),
        partitioned_by=("time_zone", "click_date"),
        statistics=("click_count",),
    )


def _visibility(published: Table, key: Column) -> Table:
    return Table(
        name=published.name.replace("published_clicks", "visibility"),
        grain=f"one click hour and {key.name} that has been published since smallest_visitors is set; nobody reads it",
        columns=(
            *CLICK_HOUR,
            key,
            Column("is_hidden", "BOOLEAN", f"Whether it was published in '{OTHER_KEYS}': there it stays in this hour."),
            Column("was_shown", "BOOLEAN", "Whether it has been published by its name."),
        ),
        key=published.key,
        partitioned_by=BY_CLICK_HOUR,
        statistics=(),
    )


def live_table(key: Column) -> Table:
    """A table of counts of streamed clicks per source, window and key, brought up to date within seconds."""
    return Table(
        name=f"clicks_by_{_label(key)}_live",
        grain=f"one source, window and {key.name}",
        columns=(
            SOURCE,
            *CLICK_HOUR,
            Column("window_start", "TIMESTAMP", "When the window begins."),
            Column("window_seconds", "INT", "How long it is: 60 or 3600."),
            key,
            Column("click_count", "BIGINT", "Clicks so far, crawlers included; those too late for live left out."),
            Column("bot_click_count", "BIGINT", "Those of them by crawlers."),
            Column("counted_at", "TIMESTAMP", "When the row was last brought up to date."),
        ),
        key=("source", "window_start", "window_seconds", key.name),
        partitioned_by=BY_CLICK_HOUR,
        statistics=("window_start",),
    )


URL = Column("url", "STRING", "URL in normal form.")
COUNTRY = Column("country_code", "STRING", "ISO 3166-1 alpha-2 code, or 'unknown'.")
#: What counts are published per, each with how clicks relate to it.
_KEYS = {URL: "on the URL", COUNTRY: "from the country"}

_HOURLY = [hourly_table(f"clicks_by_{_label(key)}_hourly", key, relation) for key, relation in _KEYS.items()]
CLICKS_BY_URL_HOURLY, CLICKS_BY_COUNTRY_HOURLY, *_ = _HOURLY
_DAILY = [daily_table(hourly) for hourly in _HOURLY]
CLICKS_BY_URL_DAILY, CLICKS_BY_COUNTRY_DAILY, *_ = _DAILY

#: Aggregate tables that must be co-partitioned, each with what consumers read of it.
AGGREGATES = {hourly: _published(hourly, key, _KEYS[key]) for hourly, key in zip(_HOURLY, _KEYS, strict=True)}
PUBLISHED_CLICKS_BY_URL_HOURLY, PUBLISHED_CLICKS_BY_COUNTRY_HOURLY, *_ = AGGREGATES.values()
#: The published tables of hours, each with that of days.
PUBLISHED = {hourly: daily_table(hourly) for hourly in AGGREGATES.values()}
PUBLISHED_CLICKS_BY_URL_DAILY, PUBLISHED_CLICKS_BY_COUNTRY_DAILY, *_ = PUBLISHED.values()
#: By published table what has been hidden in it, and what has been shown.
VISIBILITY = {published: _visibility(published, key) for published, key in zip(PUBLISHED, _KEYS, strict=True)}

_LIVE = [live_table(key) for key in _KEYS]
CLICKS_BY_URL_LIVE, CLICKS_BY_COUNTRY_LIVE, *_ = _LIVE

#: All that this module declares.
COUNTS = (*_HOURLY, *_DAILY, *PUBLISHED, *PUBLISHED.values(), *VISIBILITY.values(), *_LIVE)
