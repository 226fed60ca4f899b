"""Split a log file into the landing zone by hour, as if it had arrived hour by hour.

Every line goes to the log hour in which its click happened; one without a readable time goes with the line before it
(the first ones with the first that has a time), so that it is quarantined there and not lost. Files are gzip, written
under a hidden name and renamed into place; then _SUCCESS closes the hours. Landing a file again replaces what it landed
before, also when it has grown or was renamed by rotation: a file is known by its first line that has a time.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from backports import zstd

from include.click_time import hour_reader
from include.errors import ClickmillError, UsageError
from include.job_arguments import OneLineParser, exit_with
from include.landing import SUCCESS, hour_folder
from include.log_hours import Hour
from include.settings import Settings
from include.sources import Source, load_sources

_OPEN_FILES = 64


def land(source: Source, logs: Path, landing: Path) -> dict[Hour, int]:
    """Split one file; returns the lines landed by log hour.

    Raises:
        UsageError: if the file is absent.
        ClickmillError: if it breaks off or no line has a readable time; nothing has been landed then.
    """
    read_hour = hour_reader(source)
    first = next((line for line in _lines(logs) if read_hour(line)), None)
    if first is None:
        raise ClickmillError(
            f"no line of {logs} has a time in the format of source {source.name} ({source.format}); "
            "name the source that fits with --source, or declare it in config/sources.toml"
        )
    hour = read_hour(first)
    assert hour is not None
    with _HourFiles(landing, source.name, _plain_name(logs), _identity(first)) as files:
        for line in _lines(logs):
            hour = read_hour(line) or hour
            files.write(hour, line)
        return files.close_hours()


class _HourFiles:
    """One unfinished file per log hour; renamed into place all together, or removed."""

    def __init__(self, landing: Path, source: str, name: str, identity: str) -> None:
        self._landing, self._source, self._name, self._identity = landing, source, name, identity
        self._open: OrderedDict[Hour, IO[bytes]] = OrderedDict()
        self._lines: dict[Hour, int] = {}

    def __enter__(self) -> _HourFiles:
        return self

    def write(self, hour: Hour, line: bytes) -> None:
        """Add a line to its hour's file."""
        file = self._open.get(hour) or self._start(hour)
        file.write(line if line.endswith(b"\n") else line + b"\n")
        self._lines[hour] += 1

    def close_hours(self) -> dict[Hour, int]:
        """Rename the files into place and close the hours."""
        self._close_all()
        for hour in self._lines:
            self._unfinished(hour).replace(self._landed_before(hour) or self._folder(hour) / self._file_name)
            (self._folder(hour) / SUCCESS).touch()
        return dict(sorted(self._lines.items()))

    def __exit__(self, *_: object) -> None:
        self._close_all()
        for hour in self._lines:
            self._unfinished(hour).unlink(missing_ok=True)

    def _start(self, hour: Hour) -> IO[bytes]:
        if len(self._open) >= _OPEN_FILES:
            self._open.popitem(last=False)[1].close()
        self._folder(hour).mkdir(parents=True, exist_ok=True)
        # A log is nearly in order, so an hour is seldom opened twice; if so, gzip takes another member.
        mode = "ab" if hour in self._lines else "wb"
        file = cast(IO[bytes], gzip.open(self._unfinished(hour), mode, compresslevel=6))
        self._lines.setdefault(hour, 0)
        self._open[hour] = file
        return file

    def _close_all(self) -> None:
        while self._open:
            self._open.popitem()[1].close()

    def _folder(self, hour: Hour) -> Path:
        return hour_folder(self._landing, self._source, hour)

    @property
    def _file_name(self) -> str:
        return f"{self._name}-{self._identity}.gz"

    def _landed_before(self, hour: Hour) -> Path | None:
        """What the same file landed under the name that it had then."""
        return next(self._folder(hour).glob(f"*-{self._identity}.gz"), None)

    def _unfinished(self, hour: Hour) -> Path:
        return self._folder(hour) / f".{self._file_name}.unfinished"


def _identity(first: bytes) -> str:
    """What stays the same when a log grows, is rotated or compressed, and differs between logs."""
    return hashlib.sha256(first.rstrip(b"\r\n")).hexdigest()[:12]


def _plain_name(logs: Path) -> str:
    return logs.name.removesuffix(".gz").removesuffix(".zst").lstrip("._") or "log"


def _lines(logs: Path) -> Iterator[bytes]:
    try:
        with _opened(logs) as stream:
            yield from stream
    except FileNotFoundError:
        raise UsageError(f"no file {logs}; expected a log file, plain, .gz or .zst") from None
    except (EOFError, OSError, zlib.error, zstd.ZstdError) as error:
        raise ClickmillError(f"{logs} cannot be read to its end ({error}); nothing has been landed") from None


@contextmanager
def _opened(logs: Path) -> Iterator[IO[bytes]]:
    match logs.suffix:
        case ".gz":
            opened = cast(IO[bytes], gzip.open(logs))
        case ".zst":
            opened = cast(IO[bytes], zstd.open(logs))
        case _:
            opened = logs.open("rb")
    with opened as stream:
        yield stream


def main() -> None:
    """The job from a shell."""
    parser = OneLineParser(prog="python -m spark_jobs.land_logs", description=__doc__)
    parser.add_argument("--source", required=True, help="the source in config/sources.toml whose logs these are")
    parser.add_argument("--logs", required=True, type=Path, help="a log file: plain, .gz or .zst")
    given = parser.parse_args()
    settings = Settings.from_environment()
    sources = load_sources(settings)
    if given.source not in sources:
        raise UsageError(f"no source {given.source!r} in {settings.sources_file}: expected one of {', '.join(sources)}")
    landed = land(sources[given.source], given.logs, settings.landing)
    hours = sorted(landed)
    print(f"{given.source}: {sum(landed.values()):,} lines landed in {len(hours)} log hours, {hours[0]} to {hours[-1]}")
    print(
        f"next: python -m spark_jobs.ingest_clicks --source {given.source} --from {hours[0]} --to {hours[-1].plus(1)} "
        "--allow-missing"
    )


if __name__ == "__main__":
    exit_with(main)
