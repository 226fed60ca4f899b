"""What a backfill would do, before it does anything: which log hours and click hours, how long, and what blocks it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from include.backfills import Backfill, history_kept, read_backfills
from include.errors import UsageError
from include.hours import Hour, HourRange, contiguous, log_hour_of
from include.landing import SUCCESS, LandedHour, landed_since, look_at
from include.settings import Settings
from include.sources import Source, choose_sources
from include.stored_rows import log_days
from include.tables import INGEST_ACCOUNTING, PUBLISHED_CLICKS_BY_COUNTRY_HOURLY, STREAM_BATCHES
from spark_jobs.backfill.estimate import estimated_seconds
from spark_jobs.backfill.record import blocked_by
from spark_jobs.hours.held_hours import held_hours
from spark_jobs.hours.touched_hours import UnfinishedIngests
from spark_jobs.lake.lake import Lake

_ACCOUNT = ("log_date", "log_hour", "lines", "files", "landed_files", "click_hours")


@dataclass(frozen=True)
class Request:
    """What was asked for: one source, its log hours, chunks of so many hours, and whether to stage.

    Raises:
        UsageError: if the source is not one by name, or a chunk has no hours.
    """

    source: str
    log_hours: HourRange
    chunk_hours: int = 168
    is_staged: bool = False

    def __post_init__(self) -> None:
        if self.source == "all":
            raise UsageError("source 'all': expected one source by name; a backfill is of one source")
        if self.chunk_hours < 1:
            raise UsageError(f"chunk {self.chunk_hours}: expected a number of hours above 0")

    def chunks(self) -> list[HourRange]:
        """The log hours in pieces."""
        return self.log_hours.chunks(self.chunk_hours)


@dataclass(frozen=True)
class Chunk:
    """Log hours that are run together: those of them that landed or, of a stream, were read; and their size."""

    log_hours: HourRange
    landed: tuple[Hour, ...]
    size_bytes: int

    def ranges(self) -> list[HourRange]:
        """The landed log hours without the gaps."""
        return contiguous(self.landed)


@dataclass(frozen=True)
class Plan:
    """What a backfill would do.

    Of the log hours asked for: ``landed``, ``never_ingested`` (landed, and not in the lake), ``landed_again`` (other
    files than were ingested), ``missing`` (left out). Of the click hours in the range: ``published``, ``held``.
    ``outside`` are click hours that are not in the range, and are counted again too, as far as is known now. ``chunks``
    are those to run. ``seconds`` is how long they take, None if nothing has been measured. ``blocks`` says what must be
    done before. ``undo_days`` is how long it can be undone.
    """

    request: Request
    resumed: Backfill | None
    landed: tuple[Hour, ...]
    never_ingested: tuple[Hour, ...]
    ingested: tuple[Hour, ...]
    landed_again: tuple[Hour, ...]
    missing: tuple[Hour, ...]
    published: tuple[Hour, ...]
    held: tuple[Hour, ...]
    outside: tuple[Hour, ...]
    chunks: tuple[Chunk, ...]
    measured_chunks: int
    seconds: float | None
    blocks: tuple[str, ...]
    undo_days: float

    @property
    def size_bytes(self) -> int:
        """Of the files of the chunks to run."""
        return sum(chunk.size_bytes for chunk in self.chunks)


def make_plan(lake: Lake, settings: Settings, request: Request) -> Plan:
    """The plan for the lake and the landing zone as they are now; changes nothing.

    Raises:
        UsageError: if there is no such source.
    """
    (source,) = choose_sources(settings, request.source)
    accounts = _accounts(lake, request)
    landed = _landed(lake, source, request.log_hours)
    backfills = read_backfills(settings.lake)
    resumed = next(
        (backfill for backfill in backfills.values() if backfill.is_open and _is_same(backfill, request)), None
    )
    pieces = [piece for piece in request.chunks() if not (resumed and piece.start in resumed.done)]
    chunks = [chunk for piece in pieces if (chunk := _chunk(piece, landed)).landed]
    touched = {Hour.parse(hour) for row in accounts.values() for hour in row["click_hours"]}
    return Plan(
        request=request,
        resumed=resumed,
        landed=tuple(landed),
        never_ingested=tuple(hour for hour in landed if hour not in accounts),
        ingested=tuple(accounts),
        landed_again=tuple(
            h for h, landed_hour in landed.items() if h in accounts and _is_new(landed_hour, accounts[h], source)
        ),
        missing=tuple(hour for hour in request.log_hours if hour not in landed),
        published=_published(lake, request.log_hours),
        held=tuple(hour for hour in held_hours(lake, request.log_hours.start) if hour in request.log_hours),
        outside=tuple(sorted(touched.difference(request.log_hours))),
        chunks=tuple(chunks),
        measured_chunks=sum(len(backfill.done) for backfill in backfills.values()),
        seconds=expected_seconds(backfills, chunks),
        blocks=tuple(_blocks(lake, source, request, accounts, landed, list(backfills.values()))),
        undo_days=history_kept(settings.lake).total_seconds() / 86_400,
    )


def expected_seconds(backfills: Mapping[str, Backfill], chunks: Iterable[Chunk]) -> float | None:
    """How long these chunks take, judged by those of the backfills; None if none has been done."""
    measured = [measurement for backfill in backfills.values() for measurement in backfill.done.values()]
    return estimated_seconds(measured, [(len(chunk.landed), chunk.size_bytes) for chunk in chunks])


def chunk_of(lake: Lake, settings: Settings, source: str, log_hours: HourRange) -> Chunk:
    """A chunk with what has landed of it by now."""
    (chosen,) = choose_sources(settings, source)
    return _chunk(log_hours, _landed(lake, chosen, log_hours))


def _chunk(log_hours: HourRange, landed: Mapping[Hour, LandedHour]) -> Chunk:
    hours = tuple(hour for hour in log_hours if hour in landed)
    return Chunk(log_hours, hours, sum(landed[hour].size_bytes for hour in hours))


def _is_same(backfill: Backfill, request: Request) -> bool:
    asked = (request.source, request.log_hours, request.chunk_hours, request.is_staged)
    of_backfill = (backfill.source, backfill.log_hours, backfill.chunk_hours, backfill.is_staged)
    return backfill.state != "undoing" and of_backfill == asked


def _accounts(lake: Lake, request: Request) -> dict[Hour, dict[str, Any]]:
    return lake.row_by_hour(INGEST_ACCOUNTING, request.source, request.log_hours, _ACCOUNT)


def _landed(lake: Lake, source: Source, log_hours: HourRange) -> dict[Hour, LandedHour]:
    """The log hours that have a landing partition; of a streamed source those of which records have been read."""
    looked = {hour: look_at(lake.settings.landing, source.name, hour) for hour in log_hours}
    if source.stream is None:
        return {hour: landed_hour for hour, landed_hour in looked.items() if landed_hour.folder.is_dir()}
    rows = lake.read_rows(STREAM_BATCHES, ["log_date", "log_hour"], log_days(source.name, log_hours))
    read = {log_hour_of(row) for row in rows}
    return {hour: landed_hour for hour, landed_hour in looked.items() if hour in read}


def _is_new(landed: LandedHour, account: Mapping[str, Any], source: Source) -> bool:
    """Whether other files are there than were ingested, as far as their names, sizes and dates say."""
    if source.stream is not None:
        return False
    is_less = len(landed.files) < account["files"]
    return is_less or any(name != SUCCESS for name in landed_since(landed.listed, account))


def _published(lake: Lake, hours: HourRange) -> tuple[Hour, ...]:
    files = lake.data_files(PUBLISHED_CLICKS_BY_COUNTRY_HOURLY)
    published = {file.click_hour for file in files}
    return tuple(sorted(hour for hour in published if hour in hours))


def _blocks(
    lake: Lake,
    source: Source,
    request: Request,
    accounts: Mapping[Hour, Mapping[str, Any]],
    landed: Mapping[Hour, LandedHour],
    backfills: Sequence[Backfill],
) -> list[str]:
    blocks = [
        blocked_by(backfill)
        for backfill in backfills
        if backfill.is_open and backfill.meets(source.name, request.log_hours) and not _is_same(backfill, request)
    ]
    if not landed and not accounts:
        where = lake.settings.landing / source.name
        blocks.append(
            f"none of the {len(request.log_hours)} log hours has landed: expected folders such as "
            f"{look_at(lake.settings.landing, source.name, request.log_hours.start).folder.relative_to(where.parent)} "
            f"in {where.parent}"
        )
    gone = [hour for hour, row in accounts.items() if row["lines"] and hour not in landed and source.stream is None]
    if gone:
        blocks.append(
            f"the landing partitions of {len(gone)} ingested log hours are gone, of {gone[0]} first; put the files "
            "back, or, to empty an hour, an empty folder; or leave these hours out"
        )
    for log_hour in sorted(UnfinishedIngests.of(lake).rows):
        source_name, hour = log_hour.source, log_hour.hour
        if source_name == source.name and hour not in request.log_hours and _is_near(hour, request.log_hours):
            blocks.append(
                f"the ingest of {log_hour} has not ended; run: clickmill ingest --source {source_name} --hour {hour}"
            )
    return blocks


def _is_near(hour: Hour, log_hours: HourRange) -> bool:
    """Whether an ingest of this log hour may touch click hours of the range: it is in the days around it."""
    return log_hours.start.plus(-24) <= hour < log_hours.end.plus(24)
