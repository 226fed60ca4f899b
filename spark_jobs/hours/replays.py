"""The replays in the journal: which there are, which lines they recovered, and what a later ingest makes of that."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from include.hours import Hour, HourRange
from include.journal import REPLAY, hours_of, journal_row, read_events
from include.stored_rows import log_days
from include.tables import QUARANTINED_CLICKS, REPLAYED_LINES
from spark_jobs.engine.run_ids import new_run_id
from spark_jobs.hours.touched_hours import removed_log_hours
from spark_jobs.lake.data_files import has_log_hours
from spark_jobs.lake.journal import SignedAct
from spark_jobs.lake.lake import Lake
from spark_jobs.lines.repairs import Places, Repairs, Replay

BEGUN, DONE, WITHDRAWING, WITHDRAWN = "begun", "done", "withdrawing", "withdrawn"


@dataclass(frozen=True)
class AskedReplay:
    """A replay that is being done, of the quarantined lines of these ``reasons``; of all if none is named."""

    replay: Replay
    source: str
    log_hours: HourRange
    reasons: tuple[str, ...]

    @classmethod
    def of(
        cls, lake: Lake, source: str, log_hours: HourRange, reasons: tuple[str, ...], rule: str | None
    ) -> AskedReplay:
        """The one that was asked for in the same words and has not ended, as it was killed; or another one."""
        for replay_id, row in open_replays(lake, source).items():
            asked = (hours_of(row), tuple(json.loads(row["details"]["reasons"])), row["details"].get("rule"))
            if asked == (log_hours, reasons, rule):
                return cls(Replay(replay_id, rule), source, log_hours, reasons)
        return cls(Replay(new_run_id(datetime.now(UTC)), rule), source, log_hours, reasons)

    def say(self, signed: SignedAct, event: str, lines: int) -> None:
        """Put the event on record, once."""
        details = {"reasons": list(self.reasons), "rule": self.replay.rule, "lines": lines}
        say(signed, self.replay.id, event, self.source, self.log_hours, details)

    def hours(self, lake: Lake) -> list[Hour]:
        """The log hours that have such lines, or had them until it was killed; without those that are ``removed``."""
        of_days = log_days(self.source, self.log_hours)
        of_reasons = [("reason", "in", self.reasons)] if self.reasons else []
        of_replay = [("replay_id", "=", self.replay.id)]
        stored = lake.log_hours_with(QUARANTINED_CLICKS, [*of_days, *of_reasons])
        stored |= lake.log_hours_with(REPLAYED_LINES, [*of_days, *of_replay])
        return sorted(stored.intersection(self.log_hours).difference(self.removed(lake)))

    def removed(self, lake: Lake) -> list[Hour]:
        """The log hours whose clicks, duplicates and quarantined lines have been removed for their age."""
        return sorted(removed_log_hours(lake).get(self.source, set()).intersection(self.log_hours))


def say(
    signed: SignedAct, replay_id: str, event: str, source: str, log_hours: HourRange, details: Mapping[str, Any]
) -> None:
    """Put an event of a replay on record, once: if it is there, only that this act begins."""
    if replay_id in _events(signed.lake, source).get(event, {}):
        signed.begin()
        return
    act = signed.act
    row = journal_row(
        act, REPLAY, replay_id, event, datetime.now(UTC),
        hours=log_hours, source=source, actor=act.actor, because=act.because, details=details,
    )  # fmt: skip
    signed.decide([row])


def repairs_of(
    lake: Lake, source: str, hours: Sequence[Hour], asked: AskedReplay | None, withdrawn: str | None = None
) -> Repairs:
    """What is recovered of these log hours: by the replays on record, and by the one that is asked for.

    Those that were withdrawn recover nothing, nor does the one of the id ``withdrawn``.
    """
    recorded = lake.data_files(REPLAYED_LINES, has_log_hours(source, hours))
    replays = [row for row in _begun(lake, source) if row["subject"] != withdrawn] if recorded else []
    places = [
        Places(file.path, file.log_hour.number, Replay(row["subject"], row["details"].get("rule")), are_recorded=True)
        for row in sorted(replays, key=lambda row: row["at"], reverse=True)
        for file in recorded
        if file.log_hour in hours_of(row)
    ]
    if asked is not None:
        places = [
            Places(file.path, file.log_hour.number, asked.replay, are_recorded=False, reasons=asked.reasons)
            for file in lake.data_files(QUARANTINED_CLICKS, has_log_hours(source, hours))
        ] + places
    return Repairs(tuple(places))


def _begun(lake: Lake, source: str) -> list[Mapping[str, Any]]:
    """What was asked for by those of a source that have begun, and that nobody has withdrawn."""
    events = _events(lake, source)
    return [row for replay_id, row in events.get(BEGUN, {}).items() if replay_id not in events.get(WITHDRAWING, {})]


def open_replays(lake: Lake, source: str) -> dict[str, Mapping[str, Any]]:
    """By id what was asked for by those of a source that have begun and not ended, as they were killed."""
    done = _events(lake, source).get(DONE, {})
    return {row["subject"]: row for row in _begun(lake, source) if row["subject"] not in done}


def open_withdrawals(lake: Lake, source: str) -> list[str]:
    """The ids of the replays of a source whose withdrawal has begun and not ended, as it was killed."""
    events = _events(lake, source)
    return sorted(events.get(WITHDRAWING, {}).keys() - events.get(WITHDRAWN, {}).keys())


def _events(lake: Lake, source: str) -> dict[str, dict[str, Mapping[str, Any]]]:
    """The rows of ``journal`` on a source's replays, by event and id."""
    events: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in read_events(lake.settings.lake, [("kind", "=", REPLAY), ("source", "=", source)]):
        events.setdefault(row["event"], {})[row["subject"]] = row
    return events
