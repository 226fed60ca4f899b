"""Split log files into the landing zone by hour, as if they had arrived hour by hour.

Every line goes to the log hour in which its click happened, by the time that it has as a click there; one without a
plausible time goes with the line before it (the first ones with the first that has one), so that it is quarantined
there and not lost. Files are gzip. A log is landed all or nothing, and once: landed again, it replaces what was landed
of it before, also when it has grown or was renamed by rotation, for it is known by what it begins with. Other logs
stand beside it.
"""

from __future__ import annotations

import gzip
import re
import shlex
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from io import BytesIO
from itertools import chain, islice, repeat
from pathlib import Path
from typing import IO, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.errors import ClickmillError, LeftOutError, NotALogError, UsageError
from include.hours import MOST_HOURS_BETWEEN, Hour, contiguous
from include.locks import locks_of
from include.settings import Settings
from include.sources import Source, load_sources
from include.texts import plural
from spark_jobs.landing.file_kinds import BEGINNING_BYTES, LOCAL_TIMES_LOG, json_shape, kind_of, look_of, no_file
from spark_jobs.landing.given_files import given_files, printed
from spark_jobs.landing.landed_logs import DIGESTS, Landed, LandedLogs, landed_logs
from spark_jobs.landing.log_digests import DigestWriter
from spark_jobs.lines.columns import as_numpy
from spark_jobs.lines.cut_lines import cut_at_lines
from spark_jobs.lines.decompress import SUFFIXES, DamagedFileError, compression_of, decompressed
from spark_jobs.lines.headers import HEADER, IS_HEADER, Headers
from spark_jobs.lines.parse_lines import click_times
from spark_jobs.lines.read_lines import lines_of
from spark_jobs.lines.times import HOUR_MICROS, UTC_BY_DEFAULT

#: No click is older than the web. Clocks that were never set say 1601, 1900, 1970, 1980 or the year 1.
FIRST_HOUR = Hour.parse("1990-01-01T00")

_OPEN_FILES = 64
_READERS = {".gz": "zcat", ".zst": "zstdcat", ".bz2": "bzcat", ".xz": "xzcat"}
#: A line of so many has a time in nearly all logs; each may be a part of a long one, of some MiB.
_FIRST_LINES = 16
#: So many lines at a time are read: short ones need a multiple of their bytes.
_LINES_AT_ONCE = 1 << 16


def land(source: Source, logs: Path, landed: LandedLogs, now: datetime) -> Landed | None:
    """Land one log file beside those of its source that have been; none if it is empty.

    Raises:
        UsageError: if there is no such file.
        NotALogError: if it cannot be read to its end, is no file of lines, no line has a plausible time, or it has
            grown since a stream may have read it; nothing of it is landed then.
        ClickmillError: if the landing zone cannot be written.
    """
    if not logs.is_file():
        kind = no_file(logs.stat().st_mode) if logs.exists() else None
        problem = f"{printed(logs)} is {kind}" if kind else f"no file {printed(logs)}"
        raise UsageError(f"{problem}; expected a log file, plain, {', '.join(SUFFIXES)}")
    last = Hour.containing(now)
    require_lines(logs, are_times_local=UTC_BY_DEFAULT not in source.time_formats)
    first, lines = _with_first_hour(logs, source, last)
    if first is None and _is_empty(logs, source):
        return None
    if first is None:
        look = look_of(_beginning(logs))
        raise NotALogError(
            f"no line of {printed(logs)} has a time from {FIRST_HOUR} until now in the format of source {source.name} "
            f"({source.format})" + (f": it looks like {look}" if look else "") + "; clickmill inspect says "
            "what it is; name the source that fits with --source, or declare it in config/sources.toml"
        )
    try:
        with landed.splitting() as folder:
            of_hours = _split(lines, first, folder)
            return landed.land(of_hours, _plain_name(logs), is_streamed=source.files is not None)
    except OSError as error:
        raise ClickmillError(f"{printed(logs)} cannot be landed: {error}; land it again when that is fixed") from None


def require_lines(logs: Path, *, are_times_local: bool = False) -> None:
    """Refuse what is not lines of text, JSON that is not an object a line, and local times that are not read as such.

    Raises:
        NotALogError: naming what the file is.
        OSError, DamagedFileError: if it cannot be read.
    """
    content = bytearray()
    for piece in _content(logs):
        content += piece
        if len(content) >= BEGINNING_BYTES:
            break
    kind = kind_of(bytes(content))
    if kind and not (are_times_local and kind == LOCAL_TIMES_LOG):
        raise NotALogError(f"{printed(logs)} is {kind}; expected lines of text, plain, {', '.join(SUFFIXES)}")
    if shape := json_shape(_beginning(logs)):
        kind, command = shape
        raise NotALogError(
            f"{printed(logs)} is {kind}; expected one JSON object a line, such as {_piped(logs, command)} writes it"
        )


def _piped(logs: Path, command: str) -> str:
    """A shell's command that reads the log, compressed or not."""
    with logs.open("rb") as file:
        compression = compression_of(file.read(BEGINNING_BYTES))
    file_name = shlex.quote(printed(logs))
    return f"{_READERS[compression]} {file_name} | {command}" if compression else f"{command} {file_name}"


def _beginning(logs: Path) -> bytes:
    """The first lines, as they are read."""
    return next((piece[:BEGINNING_BYTES] for piece, _ in _pieces(logs)), b"")


def _is_empty(logs: Path, source: Source) -> bool:
    """Whether it has no lines, or none but headers."""
    headers = Headers.of(source)
    if headers is None:
        return not any(_pieces(logs))
    return all(
        is_whole and pc.all(table[IS_HEADER]).as_py()
        for piece, is_whole in _pieces(logs)
        for table in _tables(piece, headers)
    )


def _with_first_hour(
    logs: Path, source: Source, last: Hour
) -> tuple[Hour | None, Iterable[tuple[bytes, Hour | None, str | None]]]:
    """The hour of the first line that has one, and ``_lines``: nearly all logs are read once."""
    lines, beginning = _lines(logs, source, last), []
    for line, hour, header in islice(lines, _FIRST_LINES):
        beginning.append((line, hour, header))
        if hour is not None:
            return hour, chain(beginning, lines)
    return next((hour for _, hour, _ in lines if hour is not None), None), _lines(logs, source, last)


def _split(lines: Iterable[tuple[bytes, Hour | None, str | None]], first: Hour, folder: Path) -> dict[Hour, int]:
    """Write the lines into a file an hour, and their digests; return how many there are by hour."""
    hour = first
    with _HourFiles(folder) as files, (folder / DIGESTS).open("wb") as digests:
        writer = DigestWriter(digests)
        for line, click_hour, header in lines:
            hour = click_hour or hour
            if header is not None:
                files.write_header(hour, header, line)
            files.write(hour, line)
            writer.add(line)
        if writer.is_in_line:
            files.write(hour, b"\n")
        writer.finish()
    return dict(sorted(files.lines.items()))


def _lines(logs: Path, source: Source, last: Hour) -> Iterator[tuple[bytes, Hour | None, str | None]]:
    """The log's lines, each with its click hour and the header in force, or parts of a line too long to be a click.

    No hour for a line without a time, or with one before ``FIRST_HOUR`` or after ``last``; no header where the source's
    files have none, or none comes before.
    """
    headers = Headers.of(source)
    header = None
    for piece, is_whole in _pieces(logs):
        if not is_whole:
            if headers:
                headers.skip()
            yield piece, None, header
            continue
        content = BytesIO(piece)
        for table in _tables(piece, headers):
            hours = _click_hours(table, source, last)
            in_force = table[HEADER].to_pylist() if headers else repeat(None, len(table))
            for line, hour, header in zip(islice(content, len(table)), hours, in_force, strict=True):
                yield line, hour, header


def _tables(piece: bytes, headers: Headers | None) -> Iterator[pa.Table]:
    """The lines of a piece as ``LINES``, without their places, not too many at a time; with their headers."""
    values, lengths = lines_of(piece)
    lines = pa.table({"value": values, "bytes": lengths})
    for start in range(0, len(lines), _LINES_AT_ONCE):
        table = lines.slice(start, _LINES_AT_ONCE)
        yield table if headers is None else headers.of_one_file(table)


def _click_hours(lines: pa.Table, source: Source, last: Hour) -> Iterator[Hour | None]:
    times = click_times(lines, source)
    numbers = as_numpy(times.fill_null(0)) // HOUR_MICROS
    is_plausible = (numbers >= FIRST_HOUR.number) & (numbers <= last.number)
    hours = {number: Hour.of_number(number) for number in np.unique(numbers[is_plausible]).tolist()}
    return map(hours.get, numbers.tolist())


def _pieces(logs: Path) -> Iterator[tuple[bytes, bool]]:
    yield from cut_at_lines(_content(logs))


def _content(logs: Path) -> Iterator[bytes]:
    try:
        with logs.open("rb") as file:
            yield from decompressed(file, logs.name)
    except DamagedFileError as error:
        raise NotALogError(
            f"{printed(logs)} cannot be read to its end ({error}); nothing of it has been landed: get the whole file, "
            "or land what can be decompressed of it as a plain file"
        ) from None
    except OSError as error:
        raise NotALogError(f"{printed(logs)} cannot be landed: {error}; land it again when that is fixed") from None


class _HourFiles:
    """A gzip file for each log hour, of which not too many are open at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: OrderedDict[Hour, IO[bytes]] = OrderedDict()
        #: Line ends of the log by hour.
        self.lines: Counter[Hour] = Counter()
        #: The header in force at the end of each hour's file.
        self._headers: dict[Hour, str] = {}

    def __enter__(self) -> _HourFiles:
        return self

    def write(self, hour: Hour, data: bytes) -> None:
        """Add a line, or a part of one, to its hour's file."""
        self._file(hour).write(data)
        self.lines[hour] += data.endswith(b"\n")

    def write_header(self, hour: Hour, header: str, line: bytes) -> None:
        """See that this header is in force in the hour's file, for a line that may be the header itself.

        Each file can be read alone. The copy is no line of the log.
        """
        if self._headers.get(hour) != header:
            self._headers[hour] = header
            copy = header.encode()
            if line.strip() != copy.strip():
                self._file(hour).write(copy + b"\n")

    def __exit__(self, *_: object) -> None:
        while self._open:
            self._open.popitem()[1].close()

    def _file(self, hour: Hour) -> IO[bytes]:
        return self._open.get(hour) or self._start(hour)

    def _start(self, hour: Hour) -> IO[bytes]:
        if len(self._open) >= _OPEN_FILES:
            self._open.popitem(last=False)[1].close()
        # A log is nearly in order, so an hour is seldom opened twice; if so, gzip takes another member.
        file = self._open[hour] = cast(IO[bytes], gzip.open(self._folder / f"{hour}.gz", "ab", compresslevel=6))
        return file


def _plain_name(logs: Path) -> str:
    """The name without what is not safe everywhere: the landed files have it, and more after it."""
    name = logs.name.removesuffix(logs.suffix) if logs.suffix in SUFFIXES else logs.name
    return re.sub(r"[^\w.-]", "_", name)[:50].lstrip("._") or "log"


def landed_source(settings: Settings, name: str) -> Source:
    """The source of this name, whose lines are read from the landing zone.

    Raises:
        UsageError: if there is none, or it is a topic: what is landed for it would be read by nobody.
    """
    sources = load_sources(settings)
    if name not in sources:
        raise UsageError(f"no source {name!r} in {settings.sources_file}: expected one of {', '.join(sources)}")
    source = sources[name]
    if source.kafka is not None:
        raise UsageError(
            f"source {name} is read from topic {source.kafka.topic}, and nobody would read what is landed for it: "
            f"expected a source without [sources.{name}.kafka] in {settings.sources_file}; land the logs for another "
            "one, or send their lines to the topic"
        )
    return source


def land_all(settings: Settings, name: str, paths: Iterable[Path]) -> Iterator[str]:
    """Land log files, and those in folders, as the source of this name; lines on each, and on what is to do next.

    Raises:
        UsageError: if there is no such source, no such file, or nothing in a folder.
        LeftOutError: after the last line, if some files of folders were left out; the others are landed.
        ClickmillError: if a file that was named cannot be landed, or none of a folder; those before it are.
    """
    source = landed_source(settings, name)
    hours: set[Hour] = set()
    left_out = landed_files = 0
    files = given_files(paths)
    with (
        locks_of(settings).held(f"land-{name}") as lock,
        landed_logs(settings.landing, name, lock.require) as landed_before,
    ):
        for file in files:
            if file.same_as is not None:
                yield f"{name}: {printed(file.path)} is {printed(file.same_as)} by another name: nothing to do"
                continue
            try:
                if file.left_out is not None:
                    raise NotALogError(f"{printed(file.path)} cannot be read: {file.left_out}")
                landed = land(source, file.path, landed_before, datetime.now(UTC))
            except (NotALogError, UsageError) as error:  # the latter of a file that rotation has taken away meanwhile
                if file.is_named:
                    raise
                left_out += 1
                yield f"{name}: left out: {error}"
                continue
            landed_files += 1
            hours.update(landed.lines if landed else ())
            yield from _summary(name, file.path, landed)
    for log_hours in contiguous(hours, MOST_HOURS_BETWEEN):
        yield (f"next: clickmill ingest --source {name} --from {log_hours.start} --to {log_hours.end} --allow-missing")
    if left_out:
        of_all = f"{left_out:,} of {plural(len(files), 'file')} left out, as the lines above say"
        raise LeftOutError(of_all) if landed_files else ClickmillError(f"{of_all}: nothing has been landed")


def _summary(source: str, logs: Path, landed: Landed | None) -> list[str]:
    path = printed(logs)
    if landed is None:
        return [f"{source}: {path} is empty: nothing to do"]
    if not landed.lines:
        return [f"{source}: {path} is the beginning of a log that has been landed as {landed.name}: nothing to do"]
    first, last = min(landed.lines), max(landed.lines)
    return [
        f"{source}: {sum(landed.lines.values()):,} lines of {path} landed in {len(landed.lines)} log hours, "
        f"{first} to {last}, as {landed.name}",
        *(
            f"  begins with the same {lines:,} lines as {other}, then differs: both count. If it is that log, edited, "
            f"remove its files: landing/{source}/*/*/{other}.gz"
            for other, lines in landed.begins_as.items()
        ),
    ]
