"""What streams have done: micro-batches by log hour, and the progress of their queries."""

from __future__ import annotations

from include.tables.arrivals import LEFT_OUT_BY_RULE, SAMPLED
from include.tables.model import SOURCE, Column, Table

STREAM_PROGRESS = Table(
    name="stream_progress",
    grain="one stream's query, micro-batch and partition of its input",
    columns=(
        SOURCE,
        Column("query", "STRING", "clicks, or the key that is counted live, such as url."),
        Column("batch_id", "BIGINT", "Number of the query's micro-batch, from 0."),
        Column("began_at", "TIMESTAMP", "When the micro-batch began."),
        Column("partition", "INT", "Partition of the topic; null where the input is none.", required=False),
        Column("first_offset", "BIGINT", "Offset of its first record; null as above.", required=False),
        Column("next_offset", "BIGINT", "Offset after its last record; null as above.", required=False),
        Column("lag", "BIGINT", "Records of the partition not yet read; null as above.", required=False),
        Column("rows", "BIGINT", "Records, lines or clicks read; of a topic, markers of transactions count."),
        Column("rows_per_second", "DOUBLE", "Of the whole micro-batch."),
        Column("milliseconds", "MAP<STRING, BIGINT>", "Of the whole micro-batch, by phase, as Spark names them."),
        Column(
            "watermark",
            "TIMESTAMP",
            "Clicks of hours that it has passed are not counted live; null before it is known, and for clicks.",
            required=False,
        ),
        Column("watermark_delay", "DOUBLE", "Seconds from the watermark to began_at; null as above.", required=False),
        Column("state_rows", "BIGINT", "Event ids that the query knows, or keys that it counts."),
        Column("state_bytes", "BIGINT", "Of them: bytes of their files, or memory."),
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
        SOURCE,
        Column("stream_id", "STRING", "The stream: another one when its checkpoint was begun again; or a replay's id."),
        Column("batch_id", "BIGINT", "Number of the micro-batch, from 0; of several that are one row, the largest."),
        Column(
            "file",
            "STRING",
            "The landed file's name, or topic/partition, as in quarantined_clicks; null for several files that are one "
            "row.",
            required=False,
        ),
        Column("topic", "STRING", "The topic; null for landed files.", required=False),
        Column(
            "topic_id",
            "STRING",
            "Kafka's id of the topic: another topic of the same name has another one. Empty where the broker has none; "
            "null for landed files and replays.",
            required=False,
        ),
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
        Column(
            "quarantined_by_reason",
            "MAP<STRING, BIGINT>",
            "Rows in quarantined_clicks, by reason; of a replay, which recovers them, below 0.",
        ),
        LEFT_OUT_BY_RULE,
        Column("late", "BIGINT", "Accepted clicks whose click hour is before the log hour."),
        Column(
            "out_of_order",
            "BIGINT",
            "Accepted lines older than a well-formed one before them in file or partition, and batch.",
        ),
        Column("first_clicked_at", "TIMESTAMP", "Earliest accepted click; null without clicks.", required=False),
        Column("last_clicked_at", "TIMESTAMP", "Latest accepted click; null without clicks.", required=False),
        Column("click_hours", "ARRAY<STRING>", "Click hours that the accepted clicks touch."),
        *SAMPLED,
        Column("written_at", "TIMESTAMP", "When the batch's rows were in the tables; of several batches, the last."),
    ),
    key=("stream_id", "batch_id", "file", "log_date", "log_hour"),
    statistics=("log_date", "log_hour"),
)
