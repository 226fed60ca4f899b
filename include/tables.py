"""Every table, declared once: names, grain, types, keys, partitioning and a comment per column.

Writers, checks and docs read them here. Types are Spark SQL types. Hours are UTC, and days too, but in the daily
tables.
"""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN_COUNTRY = "unknown"

#: lg(k) of the visitor sketches: HLL_8 with 2**12 registers, standard error 1.04 / sqrt(2**12).
#: Source: DataSketches, https://datasketches.apache.org/docs/HLL/HLL.html
SKETCH_LG_K = 12
VISITOR_COUNT_STANDARD_ERROR = 1.04 / 2 ** (SKETCH_LG_K / 2)

#: Table property that holds the number of buckets of a co-partitioned table.
BUCKETS_PROPERTY = "clickmill.buckets"
#: And the one that says how a key becomes a bucket: see include/buckets.py.
PARTITIONER_PROPERTY = "clickmill.partitioner"

#: The longest raw text kept of a quarantined line, in characters; file and line lead to the rest.
MAX_RAW_CHARACTERS = 8192

#: Why a line is quarantined, and what that means. The first that fits, in this order, is given.
QUARANTINE_REASONS = {
    "line_too_long": "more bytes than the source's max_line_bytes",
    "not_utf8": "bytes that are not UTF-8",
    "blank": "nothing but white space",
    "not_json": "not one JSON object",
    "not_access_log": "not a line of the source's access log format",
    "missing_event_id": "the mapped event id is absent, null or empty",
    "missing_time": "the mapped time is absent, null or empty",
    "bad_time": "the time cannot be read in the source's time format",
    "time_out_of_range": "older than oldest_hours before the log hour, or newest_minutes or more after its end",
    "missing_url": "the mapped URL is absent, null or empty",
    "bad_url": "not an http or https URL with a host, as browsers read it",
}


@dataclass(frozen=True)
class Column:
    """One column of a table; ``required`` means never null."""

    name: str
    type: str
    comment: str
    required: bool = True


@dataclass(frozen=True)
class Table:
    """One Delta table under ``lake/<name>``.

    ``statistics`` are the columns whose smallest and largest value Delta keeps per file: few, because they cost
    a fifth of a write; ``bucket_key`` is the column whose hash gives ``bucket``.
    """

    name: str
    grain: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    partitioned_by: tuple[str, ...] = ()
    statistics: tuple[str, ...] = ()
    bucket_key: str | None = None

    @property
    def column_names(self) -> list[str]:
        """The columns, in order."""
        return [column.name for column in self.columns]

    @property
    def key_type(self) -> str | None:
        """The type of the bucket key's column."""
        return next((column.type for column in self.columns if column.name == self.bucket_key), None)

    @property
    def required_columns(self) -> list[str]:
        """The columns that are never null."""
        return [column.name for column in self.columns if column.required]


_SOURCE = Column("source", "STRING", "Name of the source, as in config/sources.toml.")
_LOG_HOUR = (
    Column("log_date", "DATE", "Day, UTC, of the landing partition that held the line."),
    Column("log_hour", "INT", "Hour, UTC, 0 to 23, of the landing partition that held the line."),
)
_CLICK_HOUR = (
    Column("click_date", "DATE", "Day, UTC, on which the click happened."),
    Column("click_hour", "INT", "Hour, UTC, 0 to 23, in which the click happened."),
)
_BY_LOG_HOUR = ("source", "log_date", "log_hour")
_BY_CLICK_HOUR = ("click_date", "click_hour")

CLICKS = Table(
    name="clicks",
    grain="one accepted click",
    columns=(
        _SOURCE,
        *_LOG_HOUR,
        *_CLICK_HOUR,
        Column("event_id", "STRING", "The source's id of the click; null when the source maps none.", required=False),
        Column("clicked_at", "TIMESTAMP", "When the click happened."),
        Column("url", "STRING", "URL in normal form: see spark_jobs/ingest/urls.py."),
        Column("country_code", "STRING", "ISO 3166-1 alpha-2 code in upper case, or 'unknown'."),
        Column("visitor_id", "STRING", "The source's visitor, or a keyed hash; null when unknown.", required=False),
        Column("referrer", "STRING", "Referring URL as logged; null when absent.", required=False),
        Column("user_agent", "STRING", "User agent as logged; null when absent.", required=False),
        Column("status", "INT", "HTTP status; null when absent or not a number.", required=False),
        Column("is_bot", "BOOLEAN", "Whether the user agent is a known crawler; false without a user agent."),
        Column(
            "file",
            "STRING",
            "Where it was read, as in quarantined_clicks: the landed file's name, or topic/partition.",
        ),
        Column("line", "BIGINT", "Line number from 1 there, or offset."),
        Column("is_out_of_order", "BOOLEAN", "Whether a line before it in its file, or partition, is of a later time."),
    ),
    key=("source", "event_id"),
    partitioned_by=_BY_LOG_HOUR,
    statistics=("click_date", "click_hour", "clicked_at"),
)

DUPLICATE_CLICKS = Table(
    name="duplicate_clicks",
    grain="one click that was dropped, because its event id had arrived before",
    columns=(
        *CLICKS.columns,
        Column("first_log_date", "DATE", "Day, UTC, of the log hour of the click in clicks that has its event id."),
        Column("first_log_hour", "INT", "Hour, UTC, 0 to 23, of that log hour."),
    ),
    key=("source", "log_date", "log_hour", "file", "line"),
    partitioned_by=_BY_LOG_HOUR,
    statistics=("click_date", "click_hour"),
)

QUARANTINED_CLICKS = Table(
    name="quarantined_clicks",
    grain="one rejected line",
    columns=(
        _SOURCE,
        *_LOG_HOUR,
        Column("file", "STRING", "File name inside the landing partition, or topic/partition."),
        Column("line", "BIGINT", "Line number inside the decompressed file, from 1, or offset."),
        Column("reason", "STRING", "Why: one of the reasons in include/tables.py."),
        Column("raw", "STRING", f"The line's text, its first {MAX_RAW_CHARACTERS} characters."),
        Column("bytes", "BIGINT", "The whole line's length, without its end."),
    ),
    key=("source", "log_date", "log_hour", "file", "line"),
    partitioned_by=_BY_LOG_HOUR,
    statistics=("reason",),
)

_SAMPLED = (
    Column(
        "sampled_lines",
        "BIGINT",
        "JSON lines whose fields were looked at: the first 100 of each file, or topic partition, and every 100th, of a "
        "stream less duplicates; null for access logs, and before it was measured.",
        required=False,
    ),
    Column(
        "sampled_fields",
        "ARRAY<STRUCT<path: STRING, type: STRING, lines: BIGINT, example: STRING>>",
        "Their fields, by dotted path and JSON type, with the lines that have it and one value; null as above.",
        required=False,
    ),
)

INGEST_ACCOUNTING = Table(
    name="ingest_accounting",
    grain="one source and log hour",
    columns=(
        _SOURCE,
        *_LOG_HOUR,
        Column("lines", "BIGINT", "Lines of the log hour's files, each counted once whatever became of it."),
        Column("accepted", "BIGINT", "Rows in clicks."),
        Column("duplicates", "BIGINT", "Well-formed lines dropped because their event id had arrived before."),
        Column("duplicates_of", "MAP<STRING, BIGINT>", "The duplicates by the log hour of the first arrival."),
        Column("quarantined", "BIGINT", "Rows in quarantined_clicks."),
        Column("quarantined_by_reason", "MAP<STRING, BIGINT>", "The quarantined lines by reason."),
        Column("late", "BIGINT", "Accepted clicks whose click hour is before the log hour."),
        Column("out_of_order", "BIGINT", "Accepted lines older than a well-formed line before them in the same file."),
        Column("first_clicked_at", "TIMESTAMP", "Earliest accepted click; null without clicks.", required=False),
        Column("last_clicked_at", "TIMESTAMP", "Latest accepted click; null without clicks.", required=False),
        Column("files", "INT", "Data files in the landing partition."),
        Column("bytes", "BIGINT", "Their size as stored."),
        Column("damaged_files", "ARRAY<STRING>", "Files that broke off; their lines before the damage count."),
        Column("unread_files", "ARRAY<STRING>", "What else lies in the landing partition and was not read."),
        Column("is_closed", "BOOLEAN", "Whether _SUCCESS was there; false: ingested after the grace time."),
        Column("click_hours", "ARRAY<STRING>", "Click hours this log hour touches or, in earlier runs, touched."),
        Column(
            "reopened_log_hours",
            "ARRAY<STRING>",
            "Log hours of the stream that were accounted for again with this one, because records had come since: "
            "this one's run counts their clicks.",
        ),
        *_SAMPLED,
        Column("ingested_at", "TIMESTAMP", "When this row was written."),
    ),
    key=_BY_LOG_HOUR,
    partitioned_by=_BY_LOG_HOUR,
    statistics=(),
)

UNFINISHED_INGESTS = Table(
    name="unfinished_ingests",
    grain="one source and log hour whose ingest has begun to write, and has not ended",
    columns=(
        _SOURCE,
        *_LOG_HOUR,
        Column("click_hours", "ARRAY<STRING>", "Click hours that it touches, or that earlier ingests touched."),
        Column(
            "changed_later",
            "ARRAY<STRING>",
            "The later log hours of which clicks become duplicates, or the reverse.",
        ),
        Column("began_at", "TIMESTAMP", "When it began to write."),
    ),
    key=_BY_LOG_HOUR,
    statistics=(),
)


#: The contract of the published tables: raised when a column, its type or its meaning changes. See
#: docs/reference/published.json.
PUBLISHED_VERSION = 1


def _counts(what: str) -> tuple[Column, ...]:
    return (
        Column("click_count", "BIGINT", f"Accepted clicks {what}, crawlers included; at least 1."),
        Column("bot_click_count", "BIGINT", "Those of them by crawlers."),
        Column(
            "visitor_count",
            "BIGINT",
            "Distinct visitors, crawlers left out, estimated from the sketch "
            f"(standard error {VISITOR_COUNT_STANDARD_ERROR:.1%}).",
        ),
        Column("visitor_sketch", "BINARY", "Mergeable HLL sketch of the visitors; merge with hll_union_agg."),
    )


def hourly_table(name: str, key: Column, what: str) -> Table:
    """A table of counts per click hour and key."""
    return Table(
        name=name,
        grain=f"one click hour and {key.name}",
        columns=(
            *_CLICK_HOUR,
            key,
            *_counts(what),
            Column("bucket", "INT", f"pmod(hash({key.name}), N), N being the table property {BUCKETS_PROPERTY}."),
            Column(
                "counted_at", "TIMESTAMP", "When the click hour was counted; it is published only when validated since."
            ),
        ),
        key=(*_BY_CLICK_HOUR, key.name),
        partitioned_by=_BY_CLICK_HOUR,
        statistics=("bucket",),
        bucket_key=key.name,
    )


def _published(name: str, computed: Table, key: Column, what: str) -> Table:
    return Table(
        name=name,
        grain=computed.grain,
        columns=(*_CLICK_HOUR, key, *_counts(what)),
        key=computed.key,
        partitioned_by=_BY_CLICK_HOUR,
        statistics=("click_count",),
    )


_LOCAL_DAY = (
    Column("time_zone", "STRING", "The time zone whose days these are: one of time_zones in config/pipeline.toml."),
    Column("click_date", "DATE", "Day, in this time zone, on which the clicks happened."),
)
_PRESENCE = (
    Column("hours_in_day", "INT", "Hours that the day has: 24, or 23 and 25 where clocks change."),
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
    stated = ("click_date", "click_hour", "bucket", "counted_at")
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


_URL = Column("url", "STRING", "URL in normal form.")
_COUNTRY = Column("country_code", "STRING", "ISO 3166-1 alpha-2 code, or 'unknown'.")

CLICKS_BY_URL_HOURLY = hourly_table("clicks_by_url_hourly", _URL, "on the URL")
CLICKS_BY_COUNTRY_HOURLY = hourly_table("clicks_by_country_hourly", _COUNTRY, "from the country")
PUBLISHED_CLICKS_BY_URL_HOURLY = _published("published_clicks_by_url_hourly", CLICKS_BY_URL_HOURLY, _URL, "on the URL")
PUBLISHED_CLICKS_BY_COUNTRY_HOURLY = _published(
    "published_clicks_by_country_hourly", CLICKS_BY_COUNTRY_HOURLY, _COUNTRY, "from the country"
)

CLICKS_BY_URL_DAILY, CLICKS_BY_COUNTRY_DAILY = map(daily_table, (CLICKS_BY_URL_HOURLY, CLICKS_BY_COUNTRY_HOURLY))
PUBLISHED_CLICKS_BY_URL_DAILY, PUBLISHED_CLICKS_BY_COUNTRY_DAILY = map(
    daily_table, (PUBLISHED_CLICKS_BY_URL_HOURLY, PUBLISHED_CLICKS_BY_COUNTRY_HOURLY)
)

QUALITY_RESULTS = Table(
    name="quality_results",
    grain="one run, partition and check, or one decision on a click hour",
    columns=(
        Column("run_id", "STRING", "The run that found it; Data Docs use the same name."),
        Column("validated_at", "TIMESTAMP", "When it was judged or decided."),
        Column(
            "suite",
            "STRING",
            "clicks, aggregates, layout, reconciliation, volume, schema_drift or load; "
            "publication for what became of a click hour.",
        ),
        Column("partition", "STRING", "Source and log hour, or click hour, or operator and log hours."),
        Column("source", "STRING", "The source of a log hour; null for what is of all sources.", required=False),
        Column("hour", "STRING", "The log hour or click hour, such as 2026-03-01T05; of a range, the first."),
        Column("checked_table", "STRING", "The table that was looked at."),
        Column("check_id", "STRING", "Short name of the check, unique in its suite; stays when its wording changes."),
        Column("expectation", "STRING", "What was expected, in words."),
        Column("severity", "STRING", "critical, warning, or info for what is no check."),
        Column(
            "outcome",
            "STRING",
            "pass, fail, not_enough_history or not_final; "
            "of publication: held, published, published_anyway or dropped.",
        ),
        Column("observed", "STRING", "What was found, or why it was decided so.", required=False),
        Column("observed_value", "DOUBLE", "What was found, as a number; null for what is none.", required=False),
        Column("lowest", "DOUBLE", "The smallest value expected; null for none.", required=False),
        Column("highest", "DOUBLE", "The largest value expected; null for none.", required=False),
        Column("advice", "STRING", "Why the check is there, and what to do when it fails.", required=False),
        Column(
            "examples",
            "ARRAY<STRING>",
            "At most 20 of the rows that failed, as text; of publication, of the failed checks.",
        ),
        Column("actor", "STRING", "The person who decided; null for what a job found.", required=False),
        Column("duration_seconds", "DOUBLE", "How long the run's measuring and judging took.", required=False),
        Column("link", "STRING", "The page with details, relative to reports/; null for none.", required=False),
    ),
    key=("run_id", "suite", "partition", "check_id"),
    statistics=("hour",),
)

GROUPING_METRICS = Table(
    name="grouping_metrics",
    grain="one run, operator and instance",
    columns=(
        Column("run_id", "STRING", "The run of the job."),
        Column("measured_at", "TIMESTAMP", "When it ran."),
        Column("job", "STRING", "The job, such as aggregate_clicks."),
        Column("operator", "STRING", "The operator, such as count_by_url."),
        Column("source", "STRING", "The source asked for, or 'all'."),
        Column("log_hours", "STRING", "The log hours asked for: from, to (not included)."),
        Column("grouping", "STRING", "The grouping and its parameters, such as fields(url) over 4."),
        Column("instances", "INT", "How many instances it has; those without rows are in the table too."),
        Column("instance_id", "INT", "The instance, from 0."),
        Column("rows", "BIGINT", "Clicks that moved to it; counts, if the grouping is combine."),
        Column("keys", "BIGINT", "Counts that it held: click hours and keys."),
        Column(
            "seconds",
            "DOUBLE",
            "How long its task ran, with what else the task does: reading, and writing where no shuffle comes "
            "between; null without clicks, or where Spark's status API is not there.",
            required=False,
        ),
        Column("rows_per_second", "DOUBLE", "rows / seconds; null without seconds.", required=False),
        Column(
            "busiest_key",
            "STRING",
            "The key with most of its rows in a click hour; null for none, and for combine.",
            required=False,
        ),
        Column("busiest_key_share", "DOUBLE", "Its part of the instance's rows, 0 to 1; 0 without rows."),
    ),
    key=("run_id", "operator", "instance_id"),
    statistics=(),
)

OUT_OF_ORDER_KEYS = Table(
    name="out_of_order_keys",
    grain="one source, log hour and key that has clicks out of order",
    columns=(
        _SOURCE,
        *_LOG_HOUR,
        Column("key_name", "STRING", "The key's column in clicks, such as url."),
        Column("key", "STRING", "The key; null for the clicks without one.", required=False),
        Column("clicks", "BIGINT", "Clicks of the key."),
        Column("out_of_order", "BIGINT", "Those after a later click of the key in the same file, or topic partition."),
        Column("largest_delay", "DOUBLE", "By how many seconds the later click was ahead, at most."),
    ),
    key=("source", "log_date", "log_hour", "key_name", "key"),
    partitioned_by=_BY_LOG_HOUR,
    statistics=("key_name",),
)


def live_table(key: Column) -> Table:
    """A table of counts of streamed clicks per source, window and key, brought up to date within seconds."""
    return Table(
        name=f"clicks_by_{key.name.removesuffix('_code')}_live",
        grain=f"one source, window and {key.name}",
        columns=(
            _SOURCE,
            *_CLICK_HOUR,
            Column("window_start", "TIMESTAMP", "When the window begins."),
            Column("window_seconds", "INT", "How long it is: 60 or 3600."),
            key,
            Column("click_count", "BIGINT", "Clicks so far, crawlers included; those too late for live left out."),
            Column("bot_click_count", "BIGINT", "Those of them by crawlers."),
            Column("counted_at", "TIMESTAMP", "When the row was last brought up to date."),
        ),
        key=("source", "window_start", "window_seconds", key.name),
        partitioned_by=_BY_CLICK_HOUR,
        statistics=("window_start",),
    )


CLICKS_BY_URL_LIVE = live_table(_URL)
CLICKS_BY_COUNTRY_LIVE = live_table(_COUNTRY)

STREAM_PROGRESS = Table(
    name="stream_progress",
    grain="one stream's query, micro-batch and partition of its input",
    columns=(
        _SOURCE,
        Column("query", "STRING", "clicks, or the key that is counted live, such as url."),
        Column("batch_id", "BIGINT", "Number of the query's micro-batch, from 0."),
        Column("began_at", "TIMESTAMP", "When the micro-batch began."),
        Column("partition", "INT", "Partition of the topic; null where the input is none.", required=False),
        Column("first_offset", "BIGINT", "Offset of its first record; null as above.", required=False),
        Column("next_offset", "BIGINT", "Offset after its last record; null as above.", required=False),
        Column("lag", "BIGINT", "Records of the partition not yet read; null as above.", required=False),
        Column("rows", "BIGINT", "Records, lines or clicks read."),
        Column("rows_per_second", "DOUBLE", "Of the whole micro-batch."),
        Column("milliseconds", "MAP<STRING, BIGINT>", "Of the whole micro-batch, by phase, as Spark names them."),
        Column("watermark", "TIMESTAMP", "No older event is waited for; null before there is one.", required=False),
        Column("watermark_delay", "DOUBLE", "Seconds from the watermark to began_at; null as above.", required=False),
        Column("state_rows", "BIGINT", "Keys in the query's state."),
        Column("state_bytes", "BIGINT", "Memory that the state takes."),
        Column("too_late", "BIGINT", "Clicks of the micro-batch that came too late to be counted live."),
        Column(
            "rows_per_instance",
            "ARRAY<BIGINT>",
            "Clicks of the micro-batch by the instance, from 0, that counted them: to which the key's grouping in "
            "config/pipeline.toml sent them; null without clicks, and for the query clicks.",
            required=False,
        ),
        Column(
            "too_late_by_hour",
            "MAP<STRING, BIGINT>",
            "Those by their click hour; null for the query clicks.",
            required=False,
        ),
    ),
    key=("source", "query", "batch_id", "partition"),
    statistics=("began_at",),
)

STREAM_BATCHES = Table(
    name="stream_batches",
    grain="one stream, log hour, file or topic partition, and micro-batch (after a week, all micro-batches)",
    columns=(
        _SOURCE,
        Column("stream_id", "STRING", "The stream: another one when its checkpoint was begun again."),
        Column("batch_id", "BIGINT", "Number of the micro-batch, from 0; of several that are one row, the largest."),
        Column(
            "file",
            "STRING",
            "The landed file's name, or topic/partition, as in quarantined_clicks; null for several files that are one "
            "row.",
            required=False,
        ),
        Column("topic", "STRING", "The topic; null for landed files.", required=False),
        Column("partition", "INT", "Partition of the topic; null for landed files.", required=False),
        Column("log_date", "DATE", "Day, UTC, on which the lines arrived."),
        Column("log_hour", "INT", "Hour, UTC, 0 to 23, in which the lines arrived."),
        Column(
            "first_offset",
            "BIGINT",
            "Smallest offset among the records; of a landed file, line number; null for an empty file.",
            required=False,
        ),
        Column("last_offset", "BIGINT", "Largest offset, or line number; null as above.", required=False),
        Column("lines", "BIGINT", "Lines, each counted once whatever became of it."),
        Column("bytes", "BIGINT", "Their size without line ends, or without keys and headers."),
        Column("damage", "STRING", "Why a file breaks off; null for whole files and records.", required=False),
        Column("accepted", "BIGINT", "Rows in clicks."),
        Column("quarantined_by_reason", "MAP<STRING, BIGINT>", "Rows in quarantined_clicks, by reason."),
        Column("late", "BIGINT", "Accepted clicks whose click hour is before the log hour."),
        Column(
            "out_of_order",
            "BIGINT",
            "Accepted lines older than a well-formed one before them in file or partition, and batch.",
        ),
        Column("first_clicked_at", "TIMESTAMP", "Earliest accepted click; null without clicks.", required=False),
        Column("last_clicked_at", "TIMESTAMP", "Latest accepted click; null without clicks.", required=False),
        Column("click_hours", "ARRAY<STRING>", "Click hours that the accepted clicks touch."),
        *_SAMPLED,
        Column("written_at", "TIMESTAMP", "When the batch's rows were in the tables; of several batches, the last."),
    ),
    key=("stream_id", "batch_id", "file", "log_date", "log_hour"),
    statistics=("log_date", "log_hour"),
)

BACKFILLS = Table(
    name="backfills",
    grain="one event of a backfill",
    columns=(
        Column("backfill_id", "STRING", "The backfill; begins with when it began, UTC."),
        Column("at", "TIMESTAMP", "When it happened."),
        Column(
            "event",
            "STRING",
            "begun, chunk_done, publishing, finished; compared, approved, swapping, swapped, dropped; undoing, undone.",
        ),
        _SOURCE,
        Column("first_log_hour", "STRING", "The backfill's first log hour, such as 2026-03-01T05."),
        Column("end_log_hour", "STRING", "The log hour after its last one."),
        Column("chunk_hours", "INT", "Log hours of a chunk, at most."),
        Column("is_staged", "BOOLEAN", "Whether nothing is published before a person has approved it."),
        Column("chunk", "STRING", "First log hour of the chunk that is done; null for other events.", required=False),
        Column("log_hours", "BIGINT", "Log hours that the chunk ingested; null as above.", required=False),
        Column("lines", "BIGINT", "Their lines; null as above.", required=False),
        Column("bytes", "BIGINT", "The size of their files as stored; null as above.", required=False),
        Column("seconds", "DOUBLE", "How long the chunk took; null as above.", required=False),
        Column(
            "counts", "STRING", "Name of the counts that were compared or approved; null otherwise.", required=False
        ),
        Column(
            "versions",
            "MAP<STRING, BIGINT>",
            "Of publishing: versions of the published tables before, without tables yet to be made; null otherwise.",
            required=False,
        ),
        Column(
            "click_hours",
            "ARRAY<STRING>",
            "Click hours that are published or undone; null for other events.",
            required=False,
        ),
        Column(
            "tables",
            "ARRAY<STRING>",
            "Of swapping: the published table that has the approved counts from now on; null otherwise.",
            required=False,
        ),
        Column("actor", "STRING", "The person who decided; null for what a job did.", required=False),
        Column("because", "STRING", "Why; null where nobody said.", required=False),
    ),
    key=("backfill_id", "at", "event"),
    statistics=(),
)

#: Aggregate tables that must be co-partitioned, each with what consumers read of it.
AGGREGATES = {
    CLICKS_BY_URL_HOURLY: PUBLISHED_CLICKS_BY_URL_HOURLY,
    CLICKS_BY_COUNTRY_HOURLY: PUBLISHED_CLICKS_BY_COUNTRY_HOURLY,
}

#: The published tables of hours, each with that of days.
PUBLISHED = {
    PUBLISHED_CLICKS_BY_URL_HOURLY: PUBLISHED_CLICKS_BY_URL_DAILY,
    PUBLISHED_CLICKS_BY_COUNTRY_HOURLY: PUBLISHED_CLICKS_BY_COUNTRY_DAILY,
}

TABLES = {
    table.name: table
    for table in (
        CLICKS,
        DUPLICATE_CLICKS,
        QUARANTINED_CLICKS,
        INGEST_ACCOUNTING,
        UNFINISHED_INGESTS,
        *AGGREGATES,
        CLICKS_BY_URL_DAILY,
        CLICKS_BY_COUNTRY_DAILY,
        *PUBLISHED,
        *PUBLISHED.values(),
        QUALITY_RESULTS,
        GROUPING_METRICS,
        OUT_OF_ORDER_KEYS,
        CLICKS_BY_URL_LIVE,
        CLICKS_BY_COUNTRY_LIVE,
        STREAM_BATCHES,
        STREAM_PROGRESS,
        BACKFILLS,
    )
}
