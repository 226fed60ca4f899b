"""A log's lines on their way into the landing zone, and read back from there with gzip."""

from __future__ import annotations

import gzip
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from backports import zstd

from include.hours import Hour
from include.settings import Settings
from include.sources import Source
from spark_jobs.landing.land import land as land_beside
from spark_jobs.landing.landed_logs import Landed, landed_logs

FIRST, SECOND, THIRD = (Hour.parse("2026-03-01T05").plus(hours) for hours in range(3))
NOW = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
ACCESS = Source(name="access", format="combined", base_url="http://shop.test")


def log_line(minute: str, path: str, day: str = "01/Mar/2026") -> bytes:
    return f'10.0.0.1 - - [{day}:{minute}:00 +0000] "GET /{path} HTTP/1.1" 200 1 "-" "curl"\n'.encode()


def landed_lines(landing: Path, source: str = "access") -> dict[Hour, Counter[bytes]]:
    """The lines of each log hour that has any; each hour is closed, and nothing unfinished is left."""
    hours = {}
    for folder in (landing / source).glob("log_date=*/log_hour=*"):
        assert (folder / "_SUCCESS").exists()
        assert not list(folder.glob(".*"))
        hour = Hour.parse(f"{folder.parent.name[9:]}T{folder.name[9:]}")
        contents = [gzip.decompress(file.read_bytes()) for file in folder.glob("*.gz")]
        assert all(content[-1:] in (b"", b"\n") for content in contents)
        hours[hour] = Counter(line for content in contents for line in content.splitlines(keepends=True))
    assert not [folder for folder in (landing / source / ".logs").iterdir() if folder.is_dir()]
    return {hour: lines for hour, lines in hours.items() if lines}


def write_log(file: Path, *lines: bytes) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    content = b"".join(lines)
    compress = {".gz": gzip.compress, ".zst": zstd.compress}.get(file.suffix, bytes)
    file.write_bytes(compress(content))
    return file


def land(source: Source, logs: Path, landing: Path, now: datetime = NOW) -> Landed | None:
    """Land one log, by a command of its own."""
    with landed_logs(landing, source.name) as landed:
        return land_beside(source, logs, landed, now)


def land_log(landing: Path, file: Path, *lines: bytes, source: Source = ACCESS) -> Landed:
    landed = land(source, write_log(file, *lines), landing, NOW)
    assert landed is not None
    return landed


def home_of(settings: Settings) -> dict[str, str]:
    """The variables by which a command finds the home and its sources."""
    return {"CLICKMILL_HOME": str(settings.home), "CLICKMILL_SOURCES": str(settings.sources_file)}
