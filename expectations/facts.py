"""What the checks look at: a small Arrow table for each subject, declared as ``include.tables`` declares stored ones.

Jobs measure facts (``spark_jobs/quality/facts.py``), SQL joins them to frames (``expectations/frames.py``). Moments are
in microseconds since 1970. ``key`` is what counts are per: ``url``, ``country``, and the further keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from include.stored_rows import arrow_schema
from include.tables import GROUPING_METRICS, INGEST_ACCOUNTING, STREAM_BATCHES, STREAM_PROGRESS, Column, Table
from include.tables.model import BY_CLICK_HOUR, BY_LOG_HOUR, CLICK_HOUR, LOG_HOUR, SOURCE

#: The facts by subject; all subjects are there, those without facts as tables without rows.
Facts = Mapping[str, pa.Table]

_OF_LOG_HOUR = (SOURCE, *LOG_HOUR)
#: Null where a fault has left rows without one: no frame has those.
_MAYBE_CLICK_HOUR = tuple(replace(column, required=False) for column in CLICK_HOUR)
_KEY = Column("key", "STRING", "What is counted per.")
_CLICKS = Column("clicks", "BIGINT", "Clicks; null where no row says how many.", required=False)
_COUNTED = Column("counted", "MAP<STRING, BIGINT>", "By RowRule, the rows that it counts; one that is not there: none.")


def _some_of(table: Table, *names: str) -> tuple[Column, ...]:
    return tuple(column for column in table.columns if column.name in names)


def _log_hours(name: str, whose: str) -> Table:
    return Table(name, f"one source and log hour {whose}", _OF_LOG_HOUR, BY_LOG_HOUR)


_CONTENTS = (
    _CLICKS,
    Column("rows", "BIGINT", "Rows of the table."),
    Column("rows_hash", "BIGINT", "A sum of hashes of key and counts: the rows' order is no matter, other rows show."),
)
_CONTENTS_BY_KEY = (_KEY, *_MAYBE_CLICK_HOUR, *_CONTENTS)

ACCOUNTING = Table(
    "accounting",
    "one source and log hour that was asked for, and ingested to the end",
    _some_of(
        INGEST_ACCOUNTING, *BY_LOG_HOUR, "lines", "accepted", "duplicates", "left_out", "out_of_order", "files",
        "bytes", "is_closed", "damaged_files", "unread_files",
    ),
    BY_LOG_HOUR,
)  # fmt: skip
ACCOUNTING_HISTORY = Table(
    "accounting_history",
    "one source and log hour: those asked for, and earlier ones that they are compared with",
    _some_of(
        INGEST_ACCOUNTING, *BY_LOG_HOUR, "lines", "quarantined", "left_out", "files", "is_closed", "sampled_lines",
        "sampled_fields",
    ),
    BY_LOG_HOUR,
)  # fmt: skip
UNFINISHED = _log_hours("unfinished", "whose ingest has not ended")
OPEN_LOG_HOURS = _log_hours("open_log_hours", "of a stream that is not finalised: only live counts have its clicks")
CLICKS = Table(
    "clicks",
    "one source, log hour and click hour that has rows in clicks",
    (
        *_OF_LOG_HOUR,
        *_MAYBE_CLICK_HOUR,
        _CLICKS,
        _COUNTED,
        Column("first_clicked_micros", "BIGINT", "The earliest click; null if no row has a time.", required=False),
        Column("last_clicked_micros", "BIGINT", "The latest; null as well.", required=False),
    ),
    (*BY_LOG_HOUR, *BY_CLICK_HOUR),
)
URLS = Table(
    "urls",
    "one source and log hour that has enough clicks to say how many of them are on URLs of their own",
    (
        *_OF_LOG_HOUR,
        Column("distinct_urls", "BIGINT", "Different URLs of its click hours, about."),
        Column(
            "because", "STRING", "If they are many: what makes them so, and what to set; null else.", required=False
        ),
    ),
    BY_LOG_HOUR,
)
QUARANTINED = Table(
    "quarantined",
    "one source, log hour and reason of lines in quarantine",
    (*_OF_LOG_HOUR, Column("reason", "STRING", "Why."), Column("quarantined_lines", "BIGINT", "Lines.")),
    (*BY_LOG_HOUR, "reason"),
)
DUPLICATES = Table(
    "duplicates",
    "one source and log hour that has rows in duplicate_clicks",
    (*_OF_LOG_HOUR, Column("duplicates", "BIGINT", "Rows.")),
    BY_LOG_HOUR,
)
DUPLICATE_IDS = Table(
    "duplicate_ids",
    "one source and log hour that has event ids accepted before, within the lateness",
    (
        SOURCE,
        Column("hour_number", "BIGINT", "The log hour, in hours since 1970."),
        Column("duplicate_event_ids", "BIGINT", "Such ids, each as often as it comes again."),
    ),
    ("source", "hour_number"),
)
COUNTS = Table(
    "counts",
    "one key and click hour that has rows in the key's hourly table",
    (
        *_CONTENTS_BY_KEY,
        Column("keys", "BIGINT", "Different keys."),
        Column("smallest_count", "BIGINT", "The fewest clicks of a row; null if no row says them.", required=False),
        Column("largest_count", "BIGINT", "The most clicks of a row; null as well.", required=False),
        _COUNTED,
        Column("counted_micros", "BIGINT", "When the hour was counted; null if no row says it.", required=False),
    ),
    ("key", *BY_CLICK_HOUR),
)
PUBLISHED = Table(
    "published",
    "one key and click hour that has rows in the key's published table",
    _CONTENTS_BY_KEY,
    ("key", *BY_CLICK_HOUR),
)
PUBLISHABLE = replace(
    PUBLISHED,
    name="publishable",
    grain="one key and click hour, as it is to be published; none of a key that is published as it is counted",
)
PUBLICATIONS = Table(
    "publications",
    "one click hour that is published",
    (*CLICK_HOUR, Column("published_micros", "BIGINT", "When it was published last.")),
    BY_CLICK_HOUR,
)
DAYS = Table(
    "days",
    "one key, time zone and day",
    (
        _KEY,
        Column("time_zone", "STRING", "Of the day."),
        Column("day", "DATE", "The day there."),
        Column("keys_that_differ", "BIGINT", "Keys with other clicks, or crawlers' clicks, than in the day's hours."),
        Column("hour_clicks", "BIGINT", "Clicks of its hours."),
        Column("day_clicks", "BIGINT", "Clicks of its row in the daily table."),
        Column("hours_counted_micros", "BIGINT", "When the newest hour was counted; null without.", required=False),
        Column("day_counted_micros", "BIGINT", "When the day was computed; null if it never was.", required=False),
    ),
    ("key", "time_zone", "day"),
)
FILES = Table(
    "files",
    "one table and partition: a log hour of a source, or a click hour",
    (
        Column("table_name", "STRING", "The table."),
        *(replace(column, required=False) for column in (*_OF_LOG_HOUR, *CLICK_HOUR)),
        Column("files", "BIGINT", "Files as Delta's log has them."),
        Column("lost", "ARRAY<STRING>", "The names of those that are not there, or cut short."),
    ),
    ("table_name", *BY_LOG_HOUR, *BY_CLICK_HOUR),
)
OTHER_TYPES = Table(
    "other_types",
    "one column of clicks that is stored with another type than the declared one",
    (Column("column_name", "STRING", "The column."), Column("stored_type", "STRING", "As what it is stored.")),
    ("column_name",),
)
GROUPINGS = Table(
    "groupings",
    "one run over these log hours, counting operator and instance",
    _some_of(
        GROUPING_METRICS, "measured_at", "operator", "log_hours", "grouping", "instances", "instance_id", "rows",
        "busiest_key", "busiest_key_share",
    ),
    ("measured_at", "operator", "instance_id"),
)  # fmt: skip
LIVE_COUNTS = Table(
    "live_counts",
    "one key, source and click hour that has rows in the key's live table",
    (_KEY, SOURCE, *_MAYBE_CLICK_HOUR, _CLICKS),
    ("key", "source", *BY_CLICK_HOUR),
)
LIVE_PROGRESS = Table(
    "live_progress",
    "one micro-batch of live counts: each query's first ones, and those by whose watermark a click hour had passed",
    _some_of(
        STREAM_PROGRESS, "source", "query", "batch_id", "began_at", "watermark", "too_late", "too_late_by_hour",
    ),
    ("source", "query", "batch_id", "began_at"),
)  # fmt: skip
MICRO_BATCHES = Table(
    "micro_batches",
    "one row of stream_batches, of streamed sources, that may have clicks of the click hours",
    _some_of(STREAM_BATCHES, "source", "click_hours", "written_at"),
    ("source", "written_at"),
)
CLICK_HISTORY = Table(
    "click_history",
    "one click hour that was counted: those that are judged, and the same ones of the days before",
    (*_MAYBE_CLICK_HOUR, _CLICKS, Column("visitors", "BIGINT", "Summed over countries; null as well.", required=False)),
    BY_CLICK_HOUR,
)

SUBJECTS = {
    table.name: table
    for table in (
        ACCOUNTING, ACCOUNTING_HISTORY, UNFINISHED, OPEN_LOG_HOURS, CLICKS, URLS, QUARANTINED, DUPLICATES,
        DUPLICATE_IDS, COUNTS, PUBLISHED, PUBLISHABLE, PUBLICATIONS, DAYS, FILES, OTHER_TYPES, GROUPINGS, LIVE_COUNTS,
        LIVE_PROGRESS, MICRO_BATCHES, CLICK_HISTORY,
    )
}  # fmt: skip


def as_facts(measured: Mapping[str, pa.Table | Sequence[Mapping[str, Any]]]) -> Facts:
    """All subjects' facts in their declared columns and types, from tables and rows; a column that is left out is null.

    Raises:
        KeyError: if a subject is not declared.
        ValueError: if a column is not.
    """
    none: list[Mapping[str, Any]] = []
    if unknown := sorted(measured.keys() - SUBJECTS.keys()):
        raise KeyError(f"no facts are declared as {', '.join(unknown)}: see expectations/facts.py")
    return {name: _as_declared(subject, measured.get(name, none)) for name, subject in SUBJECTS.items()}


def _as_declared(subject: Table, facts: pa.Table | Sequence[Mapping[str, Any]]) -> pa.Table:
    declared = arrow_schema(subject, subject.column_names)
    names = set(facts.column_names) if isinstance(facts, pa.Table) else {name for fact in facts for name in fact}
    if unknown := sorted(names - set(declared.names)):
        raise ValueError(f"facts of {subject.name} have no column {', '.join(unknown)}: see expectations/facts.py")
    if isinstance(facts, pa.Table):
        return facts.select(declared.names).cast(declared)
    return pa.Table.from_pylist(facts, declared)
