"""Replays that are withdrawn: their lines are quarantined again, as if nobody had asked for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, GroupedData
from pyspark.sql import functions as F

from include.errors import UsageError
from include.hours import Hour, HourRange, log_hour_of, log_hours_predicate
from include.journal import REPLAY, hours_of, read_events
from include.stored_rows import log_days
from include.tables import REPLAY_OUTCOMES, REPLAYED_LINES
from spark_jobs.hours.replays import BEGUN, WITHDRAWN, say
from spark_jobs.hours.touched_hours import removed_log_hours
from spark_jobs.ingest.decided_clicks import PLACE
from spark_jobs.lake.journal import SignedAct
from spark_jobs.lake.lake import Lake

_QUARANTINED, _CLICKS, _GONE = "quarantined again", "stay clicks", "gone"


@dataclass(frozen=True)
class Withdrawal:
    """That of one replay; ``events`` are its rows of ``journal``, by event."""

    replay_id: str
    events: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, lake: Lake, replay_id: str) -> Withdrawal:
        """That of the replay of this id.

        Raises:
            UsageError: if there is none.
        """
        rows = read_events(lake.settings.lake, [("kind", "=", REPLAY)])
        events = {row["event"]: row for row in rows if row["subject"] == replay_id}
        if BEGUN not in events:
            ids = sorted({row["subject"] for row in rows}, reverse=True)[:5]
            raise UsageError(
                f"no replay {replay_id!r}: expected the id of one in table journal, such as "
                f"{', '.join(ids) or 'none yet'}"
            )
        return cls(replay_id, events)

    @property
    def source(self) -> str:
        """Whose lines it has recovered."""
        return str(self.events[BEGUN]["source"])

    @property
    def described(self) -> str:
        """The replay, its source and log hours."""
        return f"replay {self.replay_id} of {self.source} {self._log_hours}"

    @property
    def _log_hours(self) -> HourRange:
        return hours_of(self.events[BEGUN])

    def is_over(self) -> bool:
        """Whether it was withdrawn, and all that follows from that was done."""
        return WITHDRAWN in self.events

    def say(self, signed: SignedAct, event: str, lines: int) -> None:
        """Put the event on record, once."""
        say(signed, self.replay_id, event, self.source, self._log_hours, {"lines": lines})

    def hours(self, lake: Lake) -> list[Hour]:
        """The log hours of which it has lines, but for those whose clicks have been removed for their age."""
        where = [*log_days(self.source, self._log_hours), ("replay_id", "=", self.replay_id)]
        return sorted(lake.log_hours_with(REPLAYED_LINES, where) - removed_log_hours(lake).get(self.source, set()))

    def lines(self, lake: Lake, hours: Sequence[Hour]) -> DataFrame:
        """Its rows of ``replayed_lines``."""
        return lake.read_log_hours(REPLAYED_LINES, self.source, hours).where(F.col("replay_id") == self.replay_id)

    def forget_outcomes(self, lake: Lake, hours: Sequence[Hour]) -> None:
        """Let no page say any more what it has recovered."""
        predicate = f"{log_hours_predicate(self.source, hours)} AND replay_id = '{self.replay_id}'"
        lake.replace_rows(REPLAY_OUTCOMES, [], predicate)


def counted_by_outcome(lines: GroupedData) -> dict[tuple[Hour, str], Counter[str]]:
    """How many lines of each outcome, by log hour and reason; of lines that are grouped by these."""
    counts: dict[tuple[Hour, str], Counter[str]] = {}
    for row in sorted(lines.count().collect()):
        key = log_hour_of(row), row["reason"]
        counts.setdefault(key, Counter())[row["outcome"]] = row["count"]
    return counts


@dataclass(frozen=True)
class WithdrawnLines:
    """What becomes of a replay's lines, by log hour, reason, and outcome."""

    counts: Mapping[tuple[Hour, str], Counter[str]]

    @classmethod
    def of(cls, lines: DataFrame, arrivals: DataFrame) -> WithdrawnLines:
        """By the arrivals as they would be without the replay."""
        now = arrivals.select(*PLACE, F.when(F.col("reason").isNull(), _CLICKS).otherwise(_QUARANTINED).alias("now"))
        outcome = F.coalesce("now", F.lit(_GONE)).alias("outcome")
        by_outcome = lines.join(now, PLACE, "left").groupBy("log_date", "log_hour", lines["reason"], outcome)
        return cls(counted_by_outcome(by_outcome))

    @property
    def total(self) -> int:
        """How many are quarantined again."""
        return sum(counts[_QUARANTINED] for counts in self.counts.values())

    def described(self) -> Iterator[str]:
        """A line for each log hour and reason."""
        for (hour, reason), counts in self.counts.items():
            stay = f", stay clicks by today's mapping or another replay {counts[_CLICKS]:,}" if counts[_CLICKS] else ""
            gone = f", not there any more {counts[_GONE]:,}" if counts[_GONE] else ""
            yield f"  {hour} {reason}: quarantined again {counts[_QUARANTINED]:,}{stay}{gone}"
