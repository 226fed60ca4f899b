"""The journal: who did what, when, why and how far."""

from __future__ import annotations

from include.tables.model import Column, Table

JOURNAL = Table(
    name="journal",
    grain="one event: of a click hour, a backfill, a replay, or an act that a person has asked for",
    columns=(
        Column("kind", "STRING", "What the event is about: click_hour, backfill, replay or act."),
        Column("year", "INT", "Year of first_hour; where there is none, of at."),
        Column("act_id", "STRING", "What was being done; begins with when it began, UTC. Of a validation its run_id."),
        Column("act", "STRING", "Its name: the job, such as publish_clicks, decide_held or undo_backfill."),
        Column(
            "subject",
            "STRING",
            "Which one: the click hour, the id of the backfill or replay, or what the act was asked for; never a "
            "visitor or an address.",
        ),
        Column("source", "STRING", "The source of the log hours; null for click hours and acts.", required=False),
        Column(
            "first_hour",
            "STRING",
            "The click hour, such as 2026-03-01T05, or the first log hour; null for acts.",
            required=False,
        ),
        Column("end_hour", "STRING", "The hour after the last one; null for acts.", required=False),
        Column("at", "TIMESTAMP", "When it happened."),
        Column(
            "event",
            "STRING",
            "Of a click hour: held (published as it was before, until the checks pass or a person decides), published "
            "(as it was counted; no critical check failed), published_anyway (though critical checks failed, because a "
            "person decided so), dropped (published as it was before, until it is released or backfilled) or released "
            "(judged again as if nobody had decided). "
            "Of a backfill: begun, chunk_done, publishing, finished; compared, approved, swapping, swapped, dropped; "
            "undoing, undone. "
            "Of a replay of quarantined lines: begun, before it writes; done, once its hours are published; "
            "withdrawing, from when on no ingest recovers its lines; withdrawn, once its hours are published without. "
            "Of an act: begun, before anything is done, where no other event says so; completed, or failed.",
        ),
        Column(
            "actor",
            "STRING",
            "The person who decided or asked for it; null for what a job did, and for the end of an act of which an "
            "earlier event has it.",
            required=False,
        ),
        Column(
            "because",
            "STRING",
            "Why: the person's words, or what a job found; null where nobody said, and where actor is left out so.",
            required=False,
        ),
        Column(
            "details",
            "MAP<STRING, STRING>",
            "The rest, by name; what is no text is JSON. Of a click hour: findings (the failed checks with what was "
            "found; of a decision, what was shown), note (which answer was not carried out, or not yet), answered_at "
            "(when the person decided so, if a run carried it out for counts that came later), backfill (by whose "
            "decision it was dropped). "
            "Of a backfill: chunk_hours, is_staged; of a chunk that is done: chunk (its first log hour), log_hours, "
            "lines, bytes, seconds; counts (the name of those compared or approved); versions (of the published tables "
            "before, without those yet to be made), click_hours (published or undone), table (which has the approved "
            "counts now). "
            "Of a replay: reasons (of quarantine, that it keeps to; none: all), rule (the SQL expression that repairs "
            "a line, which later ingests apply too), lines (recovered, as clicks or duplicates; or quarantined again). "
            "Of an act: error, and stage (of an act in stages, which one failed); or what was done.",
        ),
    ),
    key=("act_id", "kind", "subject", "event", "at"),
    partitioned_by=("kind", "year"),
    statistics=("first_hour",),
)
