"""What was found out about data: results of checks, load of instances, clicks out of order."""

from __future__ import annotations

from include.tables.model import BY_LOG_HOUR, LOG_HOUR, SOURCE, Column, Table

QUALITY_RESULTS = Table(
    name="quality_results",
    grain="one run, partition and check",
    columns=(
        Column("run_id", "STRING", "The run that found it; Data Docs use the same name."),
        Column("validated_at", "TIMESTAMP", "When it was judged."),
        Column("suite", "STRING", "clicks, aggregates, layout, reconciliation, volume, schema_drift, live or load."),
        Column("partition", "STRING", "Source and log hour, or click hour, or operator and log hours."),
        Column("source", "STRING", "The source of a log hour; null for what is of all sources.", required=False),
        Column("hour", "STRING", "The log hour or click hour, such as 2026-03-01T05; of a range, the first."),
        Column("checked_table", "STRING", "The table that was looked at."),
        Column("check_id", "STRING", "Short name of the check, unique in its suite; stays when its wording changes."),
        Column("expectation", "STRING", "What was expected, in words."),
        Column("severity", "STRING", "critical or warning."),
        Column("outcome", "STRING", "pass, fail, not_enough_history or not_final."),
        Column("observed", "STRING", "What was found.", required=False),
        Column("observed_value", "DOUBLE", "What was found, as a number; null for what is none.", required=False),
        Column("lowest", "DOUBLE", "The smallest value expected; null for none.", required=False),
        Column("highest", "DOUBLE", "The largest value expected; null for none.", required=False),
        Column("advice", "STRING", "Why the check is there, and what to do when it fails.", required=False),
        Column("examples", "ARRAY<STRING>", "At most 20 of the rows that failed, as text."),
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
            "How long its task ran, with what else the task does: reading the shuffle before it, and writing the one "
            "after it; null without clicks, or where Spark's status API is not there.",
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
        SOURCE,
        *LOG_HOUR,
        Column("key_name", "STRING", "The key's column in clicks, such as url."),
        Column("key", "STRING", "The key; null for the clicks without one.", required=False),
        Column("clicks", "BIGINT", "Clicks of the key."),
        Column("out_of_order", "BIGINT", "Those after a later click of the key in the same file, or topic partition."),
        Column("largest_delay", "DOUBLE", "By how many seconds the later click was ahead, at most."),
    ),
    key=("source", "log_date", "log_hour", "key_name", "key"),
    partitioned_by=BY_LOG_HOUR,
    statistics=("key_name",),
)
