"""What a stream is doing now, read from its tables without Spark: for a terminal, a heartbeat, a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from include.counting import CountKey, live_count_table
from include.hours import Hour
from include.settings import Settings
from include.stored_rows import StoredLake, of_click_hour
from include.tables import STREAM_PROGRESS

#: Progress older than that says nothing about now.
RECENT = timedelta(minutes=2)


@dataclass(frozen=True)
class QueryState:
    """The newest micro-batch of one query; ``lag`` is null where its input is no topic."""

    query: str
    batch_id: int
    seconds: float
    rows: int
    rows_per_second: float
    lag: int | None
    watermark: datetime | None
    state_rows: int
    too_late: int


@dataclass
class StreamState:
    """What a source's stream does: its queries, and the busiest keys of the newest hour that is counted live."""

    queries: list[QueryState] = field(default_factory=list)
    hour: Hour | None = None
    busiest: dict[CountKey, list[tuple[str | None, int]]] = field(default_factory=dict)

    @property
    def lag(self) -> int | None:
        """Records not yet read; none while nothing is known."""
        lags = [query.lag for query in self.queries if query.lag is not None]
        return sum(lags) if lags else None


def stream_state(
    settings: Settings, source: str, keys: Sequence[CountKey], now: datetime, *, most: int = 8
) -> StreamState:
    """The state of a source's stream, of its micro-batches of the last minutes."""
    state, lake = StreamState(), StoredLake(settings.lake)
    of_source = [("source", "=", source), ("began_at", ">=", now - RECENT)]
    recent = lake.read_rows(STREAM_PROGRESS, STREAM_PROGRESS.column_names, of_source)
    for query in ("clicks", *keys):
        rows = [row for row in recent if row["query"] == query]
        if rows:
            state.queries.append(_newest(query, rows))
    this_hour = Hour.containing(now)
    for hour in (this_hour, this_hour.plus(-1)):
        where = [*of_click_hour(hour), ("source", "=", source), ("window_seconds", "=", 3600)]
        for key in keys:
            counts = lake.read_rows(live_count_table(key), [key, "click_count"], where)
            if counts:
                counts.sort(key=lambda row: (-row["click_count"], str(row[key])))
                state.busiest[key] = [(row[key], row["click_count"]) for row in counts[:most]]
        if state.busiest:
            state.hour = hour
            break
    return state


def _newest(query: str, rows: Sequence[dict[str, Any]]) -> QueryState:
    last = max(row["batch_id"] for row in rows)
    of_last = [row for row in rows if row["batch_id"] == last]
    lags = [row["lag"] for row in of_last if row["lag"] is not None]
    took = dict(of_last[0]["milliseconds"]).get("triggerExecution", 0) / 1000
    return QueryState(
        query=query,
        batch_id=last,
        seconds=took,
        rows=sum(row["rows"] for row in of_last),
        rows_per_second=of_last[0]["rows_per_second"],
        lag=sum(lags) if lags else None,
        watermark=of_last[0]["watermark"],
        state_rows=of_last[0]["state_rows"],
        too_late=sum(row["too_late"] for row in rows),
    )
