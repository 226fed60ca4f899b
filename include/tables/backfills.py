"""The events of backfills."""

from __future__ import annotations

from include.tables.model import SOURCE, Column, Table

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
        SOURCE,
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
