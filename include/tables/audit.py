"""What people had done to data: the audit."""

from __future__ import annotations

from include.tables.model import Column, Table

AUDIT = Table(
    name="audit",
    grain="one event of an act that a person has asked for",
    columns=(
        Column("audit_id", "STRING", "The act; begins with when it was asked for, UTC."),
        Column("at", "TIMESTAMP", "When the event happened."),
        Column(
            "event",
            "STRING",
            "begun, before anything is done; completed, or failed. An act that has only begun was killed, or runs.",
        ),
        Column("act", "STRING", "What was done: decide_held, decide_backfill, undo_backfill, or another job's name."),
        Column("subject", "STRING", "To what: a click hour, a backfill, log hours; never a visitor or an address."),
        Column("actor", "STRING", "The person who asked for it."),
        Column("because", "STRING", "Why."),
        Column(
            "details",
            "MAP<STRING, STRING>",
            "Of completed: what was done; of failed: the error. Else empty.",
        ),
    ),
    key=("audit_id", "event"),
)
