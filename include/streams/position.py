"""How far a stream has read its source: whether all lines of a log hour are in the lake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from include.landing import LandedHour
from include.log_hours import Hour
from include.settings import Settings
from include.sources import Source

#: So many files are named.
_MOST_NAMES = 5


class StreamPosition(Protocol):
    """What the place that a stream reads knows of the source's log hours.

    ``batches`` are rows of ``stream_batches``.
    """

    def read_hours(self, log_hours: Sequence[Hour], now: datetime) -> set[Hour]:
        """Those of these hours of which no more lines are to come, and those that are there are in the lake."""

    def unread_files(self, log_hour: Hour) -> list[str]:
        """The names of the hour's files that are in the landing zone, and not in the lake; none of a topic."""

    def landed(self, log_hour: Hour, batches: Sequence[Mapping[str, Any]]) -> LandedHour:
        """What was read of the hour; ``is_closed`` is left to ``read_hours``."""


def position_of(settings: Settings, source: Source) -> StreamPosition:
    """The position of a streamed source."""
    # Kafka's client is imported where a topic is streamed only.
    if source.kafka is not None:
        from include.streams.topic_position import TopicPosition

        return TopicPosition(settings, source)
    from include.streams.files_position import FilesPosition

    return FilesPosition(settings, source)


def has_passed(settings: Settings, source: Source, log_hour: Hour, now: datetime) -> bool:
    """Whether the hour is over and the stream has read all of it.

    Raises:
        ClickmillError: if the source's broker does not answer.
    """
    return log_hour in position_of(settings, source).read_hours([log_hour], now)


def waits_for(settings: Settings, source: Source, log_hour: Hour, now: datetime) -> str | None:
    """Why a log hour of a streamed source is not to be counted yet; none if all is read, or its grace time is over.

    The grace time is for what is yet to come: a file that is there is read first, however long that takes.

    Raises:
        ClickmillError: if the source's broker does not answer.
    """
    if has_passed(settings, source, log_hour, now):
        return None
    unread = position_of(settings, source).unread_files(log_hour)
    if unread:
        more = f" and {len(unread) - _MOST_NAMES} more" if len(unread) > _MOST_NAMES else ""
        return f"not read by its stream, does that run? {', '.join(unread[:_MOST_NAMES])}{more}"
    if now >= log_hour.end + timedelta(minutes=source.grace_minutes):
        return None
    return "not read to its end, and its grace time is not over"
