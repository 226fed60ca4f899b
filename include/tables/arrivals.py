"""What arrived: clicks, duplicates, quarantined lines, and the account of every log hour."""

from __future__ import annotations

from typing import Literal

from include.tables.model import BY_LOG_HOUR, CLICK_HOUR, LOG_HOUR, SOURCE, Column, Table

#: The longest raw text kept of a quarantined line, in characters; file and line lead to the rest.
MAX_RAW_CHARACTERS = 8192

#: Why a line is quarantined, and what that means. The first that fits, in this order, is given.
QUARANTINE_REASONS = {
    "line_too_long": "more bytes than the source's max_line_bytes",
    "binary_record": "a record that begins with a zero, as Avro and Protobuf do behind the id of a schema registry",
    "not_utf8": "bytes that are not UTF-8",
    "blank": "nothing but white space",
    "part_of_line": "a part of a line, which Docker or Kubernetes has cut because it is long",
    "not_json": "not one JSON object",
    "not_access_log": "not a line of the source's access log format, or its client is no address, host name or -",
    "no_header": "no line before it in its file says what its columns are",
    "broken_quotes": "a quoted column does not end where a column ends, or not on its line",
    "wrong_columns": "not as many columns as its header, or the source, names",
    "not_logfmt": "not names, = and values, with a blank between them",
    "missing_event_id": "the mapped event id is absent, null or empty",
    "missing_time": "the mapped time is absent, null or empty",
    "bad_time": "the time cannot be read in the source's time format, or its header says that it is local",
    "time_out_of_range": "older than oldest_hours before the log hour, or newest_minutes or more after its end",
    "missing_url": "the mapped URL is absent, null or empty, or no request was sent",
    "bad_url": "not an http or https URL with a host, as browsers read it",
}

CLICKS = Table(
    name="clicks",
    grain="one accepted click",
    columns=(
        SOURCE,
        *LOG_HOUR,
        *CLICK_HOUR,
        Column("event_id", "STRING", "The source's id of the click; null when the source maps none.", required=False),
        Column("clicked_at", "TIMESTAMP", "When the click happened."),
        Column("url", "STRING", "URL in normal form: see spark_jobs/lines/urls.py."),
        Column("country_code", "STRING", "ISO 3166-1 alpha-2 code in upper case, XK (Kosovo), or 'unknown'."),
        Column("visitor_id", "STRING", "The source's visitor, or a keyed hash; null when unknown.", required=False),
        Column("referrer", "STRING", "Referring URL as logged; null when absent.", required=False),
        Column("user_agent", "STRING", "User agent as logged; null when absent.", required=False),
        Column(
            "status",
            "INT",
            "HTTP status, 100 to 999; null when absent, or none (-1, 0 and 000 are written without an answer).",
            required=False,
        ),
        Column("is_bot", "BOOLEAN", "Whether the user agent is a known crawler; false without a user agent."),
        Column(
            "file",
            "STRING",
            "Where it was read, as in quarantined_clicks: the landed file's name, or topic/partition.",
        ),
        Column("line", "BIGINT", "Line number from 1 there, or offset."),
        Column("is_out_of_order", "BOOLEAN", "Whether a line before it in its file, or partition, is of a later time."),
        Column("replay_id", "STRING", "The replay that recovered it from the quarantine; else null.", required=False),
    ),
    key=("source", "event_id"),
    partitioned_by=BY_LOG_HOUR,
    statistics=("click_date", "click_hour", "clicked_at"),
    distinct=("event_id", "clicked_at", "line"),
)

#: What clicks can be counted by: these columns of theirs.
CountKey = Literal["url", "country_code", "referrer", "user_agent", "visitor_id", "status", "source"]

DUPLICATE_CLICKS = Table(
    name="duplicate_clicks",
    grain="one click that was dropped, because its event id had arrived before",
    columns=(
        *CLICKS.columns,
        Column("first_log_date", "DATE", "Day, UTC, of the log hour of the click in clicks that has its event id."),
        Column("first_log_hour", "INT", "Hour, UTC, 0 to 23, of that log hour."),
    ),
    key=("source", "log_date", "log_hour", "file", "line"),
    partitioned_by=BY_LOG_HOUR,
    statistics=("click_date", "click_hour"),
    distinct=CLICKS.distinct,
)

QUARANTINED_CLICKS = Table(
    name="quarantined_clicks",
    grain="one rejected line",
    columns=(
        SOURCE,
        *LOG_HOUR,
        Column("file", "STRING", "File name inside the landing partition, or topic/partition."),
        Column("line", "BIGINT", "Line number inside the decompressed file, from 1, or offset."),
        Column("reason", "STRING", "Why: one of the quarantine reasons."),
        Column(
            "raw",
            "STRING",
            f"The line's text, its first {MAX_RAW_CHARACTERS} characters; with addresses masked, the last octet of "
            "IPv4 and all but 48 bits of IPv6, if the source logs client addresses and does not keep them (keep_raw).",
        ),
        Column("bytes", "BIGINT", "The whole line's length, without its end."),
    ),
    key=("source", "log_date", "log_hour", "file", "line"),
    partitioned_by=BY_LOG_HOUR,
    statistics=("reason",),
)

#: Of JSON lines: their fields, by which schema drift is found.
SAMPLED = (
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

LEFT_OUT_BY_RULE = Column(
    "left_out_by_rule",
    "MAP<STRING, BIGINT>",
    "The lines that are left out, by the name of the rule; null before there were rules.",
    required=False,
)

INGEST_ACCOUNTING = Table(
    name="ingest_accounting",
    grain="one source and log hour",
    columns=(
        SOURCE,
        *LOG_HOUR,
        Column("lines", "BIGINT", "Lines of the log hour's files, each counted once whatever became of it."),
        Column("accepted", "BIGINT", "Rows in clicks."),
        Column("duplicates", "BIGINT", "Well-formed lines dropped because their event id had arrived before."),
        Column("duplicates_of", "MAP<STRING, BIGINT>", "The duplicates by the log hour of the first arrival."),
        Column("quarantined", "BIGINT", "Rows in quarantined_clicks."),
        Column("quarantined_by_reason", "MAP<STRING, BIGINT>", "The quarantined lines by reason."),
        Column(
            "left_out",
            "BIGINT",
            "Lines that a rule of the source leaves out (keep, drop, count); null before there were rules.",
            required=False,
        ),
        LEFT_OUT_BY_RULE,
        Column("late", "BIGINT", "Accepted clicks whose click hour is before the log hour."),
        Column("out_of_order", "BIGINT", "Accepted lines older than a well-formed line before them in the same file."),
        Column("first_clicked_at", "TIMESTAMP", "Earliest accepted click; null without clicks.", required=False),
        Column("last_clicked_at", "TIMESTAMP", "Latest accepted click; null without clicks.", required=False),
        Column("files", "INT", "Data files in the landing partition."),
        Column("bytes", "BIGINT", "Their size as stored."),
        Column("damaged_files", "ARRAY<STRING>", "Files that broke off; their lines before the damage count."),
        Column("unread_files", "ARRAY<STRING>", "What else lies in the landing partition and was not read."),
        Column(
            "looked_at",
            "TIMESTAMP",
            "Just before the landing partition was listed; null of a topic. What counts the log hour again without "
            "reading its files does not change it.",
            required=False,
        ),
        Column(
            "landed_files",
            "ARRAY<STRUCT<name: STRING, bytes: BIGINT, changed_ns: BIGINT>>",
            "What was listed then, _SUCCESS too: size, and date in ns since 1970. What lies there in another state has "
            "landed since, and nobody has read it. Null of a topic.",
            required=False,
        ),
        Column("is_closed", "BOOLEAN", "Whether _SUCCESS was there; false: ingested after the grace time."),
        Column("click_hours", "ARRAY<STRING>", "Click hours this log hour touches or, in earlier runs, touched."),
        Column(
            "reopened_log_hours",
            "ARRAY<STRING>",
            "Log hours of the stream that were accounted for again with this one, because records had come since: "
            "this one's run counts their clicks.",
        ),
        *SAMPLED,
        Column("ingested_at", "TIMESTAMP", "When the log hour's lines or clicks were accounted for."),
        Column(
            "clicks_removed_at",
            "TIMESTAMP",
            "When its rows in clicks, duplicate_clicks and quarantined_clicks were removed, being older than "
            "clicks_days of [retention]: the click hours that it touches are not counted again. Null while they are "
            "there.",
            required=False,
        ),
        Column(
            "landing_removed_at",
            "TIMESTAMP",
            "When its landing partition was removed or archived, being older than landing_days of [retention]; null "
            "while it is there.",
            required=False,
        ),
    ),
    key=BY_LOG_HOUR,
    partitioned_by=BY_LOG_HOUR,
    # By which is found, without a file opened, what has been removed.
    statistics=("clicks_removed_at",),
)

UNFINISHED_INGESTS = Table(
    name="unfinished_ingests",
    grain="one source and log hour whose ingest has begun to write, and has not ended",
    columns=(
        SOURCE,
        *LOG_HOUR,
        Column("click_hours", "ARRAY<STRING>", "Click hours that it touches, or that earlier ingests touched."),
        Column(
            "changed_later",
            "ARRAY<STRING>",
            "The later log hours of which clicks become duplicates, or the reverse.",
        ),
        Column("began_at", "TIMESTAMP", "When it began to write."),
    ),
    key=BY_LOG_HOUR,
    statistics=(),
)
