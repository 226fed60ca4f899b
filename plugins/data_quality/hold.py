"""Since when a click hour is held, and what readers see meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from include.holds import Event, holding_of
from include.quality_index import QualityIndex
from plugins.data_quality.rendering import as_moment


@dataclass(frozen=True)
class Hold:
    """A hold: ``since`` its beginning, and how often the hour was checked again since; None of an hour not held.

    ``seen`` is what was published last, None if nothing ever was; ``refused`` the last answer not carried out.
    """

    since: datetime | None
    checked_again: int
    seen: Event | None
    refused: str | None

    @classmethod
    def of(cls, index: QualityIndex, hour: str) -> Hold:
        """That of a click hour."""
        events = index.events(hour)
        holding = holding_of(events)
        published = [event for event in events if event.outcome in ("published", "published_anyway")]
        since = holding[0].at if holding else None
        runs = {
            run.run_id
            for run in index.runs(hour)
            if since and run.partition == hour and datetime.fromisoformat(run.validated_at) > since
        }
        refused = next((event.note for event in reversed(holding) if event.note), None)
        return cls(since, len(runs), published[-1] if published else None, refused)

    @property
    def readers_see(self) -> str:
        """For people."""
        seen = self.seen
        if seen is None:
            return "nothing of this hour yet"
        by = f", anyway, by {seen.actor}" if seen.outcome == "published_anyway" else ""
        return f"what was published at {as_moment(seen.at)}{by}"

    @property
    def described(self) -> str:
        """For people: how often it was checked again, and what readers see."""
        number = self.checked_again
        again = f"Checked again {number} time{'s' if number != 1 else ''} since. " if number else ""
        return f"{again}Readers see {self.readers_see}.{f' {self.refused}.' if self.refused else ''}"
