"""Replays of quarantined lines: who asked for one, or withdrew it, which lines it recovered, and what one would."""

from __future__ import annotations

from include.tables.model import BY_LOG_HOUR, LOG_HOUR, SOURCE, Column, Table

REPLAYS = Table(
    name="replays",
    grain="one event of a replay of quarantined lines",
    columns=(
        Column("replay_id", "STRING", "The replay; begins with when it began, UTC."),
        Column("at", "TIMESTAMP", "When the event happened."),
        Column(
            "event",
            "STRING",
            "begun, before it writes; done, once its hours are published; withdrawing, from when on no ingest recovers "
            "its lines; or withdrawn, once its hours are published without them.",
        ),
        SOURCE,
        Column("first_log_hour", "STRING", "First log hour, such as 2026-03-01T05."),
        Column("end_log_hour", "STRING", "The log hour after its last one."),
        Column("reasons", "ARRAY<STRING>", "The quarantine reasons that it keeps to; empty: all."),
        Column(
            "rule",
            "STRING",
            "The SQL expression that repairs a line, which later ingests apply too; null: none.",
            required=False,
        ),
        Column("lines", "BIGINT", "Lines that it recovered, as clicks or duplicates; or that are quarantined again."),
        Column("actor", "STRING", "The person who asked for it."),
        Column("because", "STRING", "Why."),
    ),
    key=("replay_id", "event"),
)

REPLAYED_LINES = Table(
    name="replayed_lines",
    grain="one quarantined line that a replay has recovered",
    columns=(
        SOURCE,
        *LOG_HOUR,
        Column("file", "STRING", "Where the line is, as in quarantined_clicks."),
        Column("line", "BIGINT", "Its number there, from 1, or offset."),
        Column("replay_id", "STRING", "The replay, as in replays."),
        Column("reason", "STRING", "Why it was quarantined until then."),
        Column("raw", "STRING", "Its text, as it was kept in quarantined_clicks: there it is again if withdrawn."),
        Column("bytes", "BIGINT", "The whole line's length, without its end."),
        Column("digest", "BIGINT", "Of the line, addresses in it masked: of another one at its place it is none."),
    ),
    key=("source", "log_date", "log_hour", "file", "line", "replay_id"),
    partitioned_by=BY_LOG_HOUR,
)

REPLAY_OUTCOMES = Table(
    name="replay_outcomes",
    grain="one source, log hour and quarantine reason of the last replay, or dry run of one, that looked at it",
    columns=(
        SOURCE,
        *LOG_HOUR,
        Column("reason", "STRING", "Why the lines were quarantined."),
        Column("clicks", "BIGINT", "Of these lines, those that became clicks, or would."),
        Column("duplicates", "BIGINT", "Those that became duplicates, or would."),
        Column("stay", "BIGINT", "Those that stay quarantined."),
        Column("replay_id", "STRING", "The replay; null for a dry run.", required=False),
        Column("at", "TIMESTAMP", "When it was found."),
    ),
    key=("source", "log_date", "log_hour", "reason"),
    statistics=(),
)
