"""Splitting a log into the landing zone: read back with gzip, against the lines that went in."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest

from include.errors import ClickmillError, UsageError
from include.log_hours import Hour
from include.settings import Settings
from include.sources import Source, load_sources
from spark_jobs.land_logs import land

FIRST, SECOND = Hour.parse("2026-03-01T05"), Hour.parse("2026-03-01T06")


@pytest.fixture
def source(settings: Settings) -> Source:
    return load_sources(settings)["access"]


def _line(minute: str, path: str) -> bytes:
    return f'10.0.0.1 - - [01/Mar/2026:{minute}:00 +0000] "GET /{path} HTTP/1.1" 200 1 "-" "curl"\n'.encode()


def _landed(settings: Settings, hour: Hour) -> Counter[bytes]:
    folder = settings.landing / "access" / f"log_date={hour.day}" / f"log_hour={hour.hour:02d}"
    lines: Counter[bytes] = Counter()
    for file in folder.glob("*.gz"):
        lines.update(gzip.decompress(file.read_bytes()).splitlines(keepends=True))
    assert (folder / "_SUCCESS").exists()
    assert not list(folder.glob(".*"))
    return lines


def _write(file: Path, *lines: bytes) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    content = b"".join(lines)
    file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)
    return file


def test_lines_go_to_the_hour_of_their_click_and_one_without_time_goes_along(
    settings: Settings, source: Source, tmp_path: Path
) -> None:
    lines = [b"early nonsense\n", _line("05:59", "a"), b"nonsense\n", _line("06:00", "b"), b"no end of line"]
    landed = land(source, _write(tmp_path / "access.log", *lines), settings.landing)
    assert landed == {FIRST: 3, SECOND: 2}
    assert _landed(settings, FIRST) == Counter(lines[:3])
    assert _landed(settings, SECOND) == Counter([lines[3], b"no end of line\n"])


def test_a_rotated_log_and_the_next_one_of_the_same_name_share_an_hour(
    settings: Settings, source: Source, tmp_path: Path
) -> None:
    before = [_line("05:10", "a"), _line("06:10", "b")]
    after = [_line("06:11", "c"), _line("06:12", "d")]
    land(source, _write(tmp_path / "access.log", *before), settings.landing)
    land(source, _write(tmp_path / "access.log", *after), settings.landing)
    assert _landed(settings, SECOND) == Counter([before[1], *after])


def test_a_log_landed_again_grown_renamed_and_compressed_replaces_what_it_landed(
    settings: Settings, source: Source, tmp_path: Path
) -> None:
    lines = [_line("05:10", "a"), _line("06:10", "b"), _line("06:10", "b")]
    land(source, _write(tmp_path / "access.log", *lines[:2]), settings.landing)
    land(source, _write(tmp_path / "access.log.1.gz", *lines), settings.landing)
    assert _landed(settings, FIRST) == Counter(lines[:1])
    assert _landed(settings, SECOND) == Counter(lines[1:])


def test_nothing_lands_of_a_file_that_breaks_off_or_fits_no_source(
    settings: Settings, source: Source, tmp_path: Path
) -> None:
    broken = _write(tmp_path / "broken.log.gz", *(_line("05:10", f"page{n}") for n in range(1000)))
    broken.write_bytes(broken.read_bytes()[:-20])
    with pytest.raises(ClickmillError, match="cannot be read to its end"):
        land(source, broken, settings.landing)
    with pytest.raises(ClickmillError, match="in the format of source access"):
        land(source, _write(tmp_path / "other.log", b'{"ts": 1}\n'), settings.landing)
    with pytest.raises(UsageError, match="no file"):
        land(source, tmp_path / "absent.log", settings.landing)
    assert not list(settings.landing.rglob("*.gz"))
    assert not list(settings.landing.rglob("_SUCCESS"))
