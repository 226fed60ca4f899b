"""Replays of quarantined lines: which lines one recovered, and what one would."""

from __future__ import annotations

from include.tables.model import BY_LOG_HOUR, LOG_HOUR, SOURCE, Column, Table

REPLAYED_LINES = Table(
    name="replayed_lines",
    grain="one quarantined line that a replay has recovered",
    columns=(
        SOURCE,
        *LOG_HOUR,
        Column("file", "STRING", "Where the line is, as in quarantined_clicks."),
        Column("line", "BIGINT", "Its number there, from 1, or offset."),
        Column("replay_id", "STRING", "The replay, as in journal."),
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
