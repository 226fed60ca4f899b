"""How far the live counts of streamed sources have got: for the checks that compare them with the clicks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from include.counting import key_label, live_count_table
from include.log_hours import Hour
from include.sources import load_sources
from include.tables import STREAM_BATCHES, STREAM_PROGRESS, Table
from spark_jobs.lake.lake import Lake

_PROGRESS = ("query", "batch_id", "began_at", "watermark", "too_late", "too_late_by_hour")


def live_tables(lake: Lake) -> dict[str, Table]:
    """The live tables that there are, by what they are per: ``url``, ``country``, and the further keys."""
    tables = {key_label(key): live_count_table(key) for key in lake.settings.pipeline.counts}
    return {key: table for key, table in tables.items() if lake.exists(table)}


def live_positions(lake: Lake, click_hours: Collection[Hour]) -> list[Mapping[str, Any]]:
    """Facts, one for each streamed source, key and click hour, of sources that are counted live.

    ``state`` is null when the hour's live counts are final, and the words for what is still to come when they are not:
    the watermark has not passed the hour, or clicks of it have come that the live counts have not read. ``too_late``
    are the clicks that came after the watermark had passed; of micro-batches that do not say the hour, all.
    """
    streamed = [name for name, source in load_sources(lake.settings).items() if source.stream is not None]
    if not click_hours or not lake.exists(STREAM_PROGRESS):
        return []
    return [fact for source in streamed for fact in _of_source(lake, source, click_hours)]


def _of_source(lake: Lake, source: str, click_hours: Collection[Hour]) -> Iterator[Mapping[str, Any]]:
    arrived = _last_arrivals(lake, source, click_hours)
    first_end = min(click_hours).end
    for query in lake.settings.pipeline.counts:
        of_query = [("source", "=", source), ("query", "=", query)]
        begun = lake.read_rows(STREAM_PROGRESS, ["began_at"], [*of_query, ("batch_id", "=", 0)])
        if not begun:
            continue
        # A checkpoint that was begun again has counted all once more.
        since = max(row["began_at"] for row in begun)
        batches = lake.read_rows(
            STREAM_PROGRESS, _PROGRESS, [*of_query, ("began_at", ">=", since), ("watermark", ">=", first_end)]
        )
        for hour in sorted(click_hours):
            after = [row for row in batches if row["watermark"] >= hour.end]
            yield {
                "source": source,
                "key": key_label(query),
                "hour": str(hour),
                "state": _state(after, arrived.get(hour)),
                "too_late": sum(_too_late(row, hour) for row in after),
            }


def _state(after: Sequence[Mapping[str, Any]], arrived: datetime | None) -> str | None:
    if not after:
        return "the watermark has not passed the hour"
    if arrived is not None and max(row["began_at"] for row in after) < arrived:
        return "not all of its clicks have been read"
    return None


def _too_late(batch: Mapping[str, Any], hour: Hour) -> int:
    by_hour = batch["too_late_by_hour"]
    count: int = batch["too_late"] if by_hour is None else dict(by_hour).get(str(hour), 0)
    return count


def _last_arrivals(lake: Lake, source: str, click_hours: Collection[Hour]) -> dict[Hour, datetime]:
    """When the last clicks of each of these click hours were in the tables, as far as micro-batches are kept."""
    asked = {str(hour): hour for hour in click_hours}
    # A clock may be ahead, but no day.
    where = [("source", "=", source), ("log_date", ">=", min(click_hours).plus(-24).day)]
    last: dict[Hour, datetime] = {}
    for row in lake.read_rows(STREAM_BATCHES, ["click_hours", "written_at"], where):
        for hour in asked.keys() & set(row["click_hours"]):
            last[asked[hour]] = max(row["written_at"], last.get(asked[hour], row["written_at"]))
    return last
