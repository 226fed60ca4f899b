"""How far a stream has read its source: whether all lines of a log hour are in the lake."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from include.hours import Hour
from include.settings import Settings
from include.sources import Source
from include.streams.files_position import FilesPosition

if TYPE_CHECKING:
    from include.streams.topic_position import TopicPosition

#: So many files are named.
_MOST_NAMES = 5


def position_of(settings: Settings, source: Source) -> FilesPosition | TopicPosition:
    """The position of a streamed source."""
    if source.kafka is None:
        return FilesPosition(settings, source)
    # Kafka's client is imported where a topic is streamed only.
    from include.streams.topic_position import TopicPosition

    return TopicPosition(settings, source)


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
