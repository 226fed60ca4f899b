"""Landing from a shell, landings that are killed, logs that are damaged, and lines of any length."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import signal
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from include.errors import ClickmillError, UsageError
from include.settings import REPOSITORY, Settings
from include.sources import Source, load_sources
from spark_jobs.landing.given_files import given_files
from spark_jobs.landing.landed_logs import landed_logs
from tests.landing.landing_zone import (
    ACCESS,
    FIRST,
    NOW,
    SECOND,
    THIRD,
    home_of,
    land,
    land_log,
    landed_lines,
    log_line,
    write_log,
)

#: More than the process that lands it may have of memory.
HALF_GIB = 1 << 29


@pytest.fixture
def source(settings: Settings) -> Source:
    return load_sources(settings)["access"]


# --- killed, damaged, too long --------------------------------------------------------------------


def _killed_at(event: int, landing: Path, logs: Path, source: Source) -> bool:
    """Land a log in a process of its own that is killed before its n-th access to the file system."""
    child = os.fork()
    if child == 0:
        seen = 0

        def count(name: str, arguments: tuple[object, ...]) -> None:
            nonlocal seen
            if name.partition(".")[0] in {"open", "os", "shutil"} and str(landing) in str(arguments):
                seen += 1
                if seen == event:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        land(source, logs, landing, NOW)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def _kills(tmp_path: Path) -> Iterator[tuple[Path, bytes]]:
    """Landing zones in which a log that moves lines, empties an hour and adds one was killed at each of its steps."""
    before = log_line("05:00", "a") + log_line("06:00", "b" * 300)
    after = before + log_line("05:30", "c") + log_line("07:00", "d")
    shorter = ACCESS.model_copy(update={"max_line_bytes": 256})
    grown = write_log(tmp_path / "access.log.1", after)
    land_log(tmp_path / "landed", tmp_path / "access.log", before)
    for event in range(1, 1000):
        landing = shutil.copytree(tmp_path / "landed", tmp_path / f"landing{event}")
        if not _killed_at(event, landing, grown, shorter):
            assert event > 30
            return
        for file in landing.glob("access/log_date=*/log_hour=*/*.gz"):
            assert gzip.decompress(file.read_bytes())[-1:] in (b"", b"\n")
        yield landing, after
    raise AssertionError("it never ended")


@pytest.mark.slow
def test_killed_anywhere_and_landed_again_it_is_as_if_it_had_not_been_killed(tmp_path: Path) -> None:
    shorter = ACCESS.model_copy(update={"max_line_bytes": 256})
    for landing, after in _kills(tmp_path):
        marks = {file: file.stat().st_mtime_ns for file in landing.rglob("_SUCCESS")}
        land_log(landing, tmp_path / "access.log", after, source=shorter)
        a, b, c, d = after.splitlines(keepends=True)
        assert landed_lines(landing) == {FIRST: Counter([a, b, c]), THIRD: Counter([d])}
        assert not [file for file, moment in marks.items() if file.stat().st_mtime_ns == moment]


@pytest.mark.slow
def test_killed_anywhere_a_log_is_landed_all_or_nothing_when_another_one_is(tmp_path: Path) -> None:
    other = log_line("06:30", "other")
    outcomes = set()
    for landing, after in _kills(tmp_path):
        land_log(landing, tmp_path / "other.log", other)
        a, b, c, d = after.splitlines(keepends=True)
        old = {FIRST: Counter([a]), SECOND: Counter([b, other])}
        new = {FIRST: Counter([a, b, c]), SECOND: Counter([other]), THIRD: Counter([d])}
        landed = landed_lines(landing)
        assert landed in (old, new)
        outcomes.add(landed == new)
    assert outcomes == {False, True}


@pytest.mark.slow
def test_two_logs_of_a_source_are_landed_one_after_the_other(settings: Settings, tmp_path: Path) -> None:
    logs = write_log(tmp_path / "access.log", log_line("05:00", "a"))
    command = [sys.executable, "-m", "clickmill", "land", "--source", "access", str(logs)]
    with landed_logs(settings.landing, "access"):
        other = subprocess.Popen(command, cwd=REPOSITORY, env=os.environ | home_of(settings))
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(3)
        assert not list(settings.landing.rglob("*.gz"))
    assert other.wait(60) == 0
    assert landed_lines(settings.landing) == {FIRST: Counter([log_line("05:00", "a")])}


def test_logs_for_a_source_that_is_a_topic_are_refused(settings: Settings, tmp_path: Path) -> None:
    """Nobody would read them in the landing zone; of a source with sockets or [files] the landing zone is read."""
    logs = write_log(tmp_path / "access.log", log_line("05:00", "a"))
    declared = settings.sources_file.read_text(encoding="utf-8")
    environment = home_of(settings)

    def run(table: str) -> subprocess.CompletedProcess[str]:
        settings.sources_file.write_text(f"{declared}\n[sources.access.{table}\n", encoding="utf-8")
        return subprocess.run(
            [sys.executable, "-m", "clickmill", "land", "--source=access", str(logs)],
            cwd=REPOSITORY, env=os.environ | environment, capture_output=True, text=True,
        )  # fmt: skip

    refused = run('kafka]\ntopic = "clicks"')
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        "wrong arguments: source access is read from topic clicks, and nobody would read what is landed for it: "
        f"expected a source without [sources.access.kafka] in {settings.sources_file}; land the logs for "
        "another one, or send their lines to the topic\n"
    )
    assert not settings.landing.exists()
    for table in ("sockets]", "files]"):
        assert run(table).returncode == 0
    assert landed_lines(settings.landing) == {FIRST: Counter([log_line("05:00", "a")])}


def test_nothing_lands_of_a_file_that_breaks_off_or_fits_no_source(
    settings: Settings, source: Source, tmp_path: Path
) -> None:
    broken = write_log(tmp_path / "broken.log.gz", *(log_line("05:10", f"page{n}") for n in range(1000)))
    broken.write_bytes(broken.read_bytes()[:-20])
    with pytest.raises(ClickmillError, match=r"broken\.log\.gz cannot be read to its end"):
        land(source, broken, settings.landing, NOW)
    for other in (
        b'{"ts": 1}\n',
        log_line("05:00", "a", day="01/Mar/1970"),
        log_line("05:00", "a", day="01/Mar/2027"),
    ):
        with pytest.raises(ClickmillError, match="in the format of source access"):
            land_log(settings.landing, tmp_path / "other.log", other, source=source)
    with pytest.raises(UsageError, match="no file"):
        land(source, tmp_path / "absent.log", settings.landing, NOW)
    assert not list(settings.landing.rglob("*.gz"))
    assert not list(settings.landing.rglob("_SUCCESS"))


#: Lands a log in a process of its own, and says how many MiB that had at most.
_LAND = """
import re, sys
from datetime import UTC, datetime
from pathlib import Path
from include.sources import Source
from tests.landing.landing_zone import land

source = Source(name="access", format="combined", base_url="http://shop.test")
print(land(source, Path(sys.argv[1]), Path(sys.argv[2]), datetime(2026, 3, 1, 9, 30, tzinfo=UTC)).lines.values())
print(int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]) >> 10)
"""


@pytest.mark.slow
@pytest.mark.parametrize("is_first", [False, True])
def test_a_line_of_any_length_lands_whole_in_bounded_memory(tmp_path: Path, is_first: bool) -> None:
    mebibyte = b"[01/Mar/2026:06:00:00 +0000]".rjust(1 << 20, b"x")  # the line's last part has a time, too
    good = [log_line("05:00", "a"), log_line("05:01", "b")]
    compress = zlib.compressobj(1, zlib.DEFLATED, 31)
    with (tmp_path / "access.log.gz").open("wb") as file:
        file.write(compress.compress(b"" if is_first else good[0]))
        for _ in range(512):
            file.write(compress.compress(mebibyte))
        file.write(compress.compress(b"\n" + (b"".join(good) if is_first else good[1])) + compress.flush())
    done = subprocess.run(
        [sys.executable, "-c", _LAND, str(tmp_path / "access.log.gz"), str(tmp_path / "landing")],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    lines, mebibytes = done.stdout.splitlines()
    assert lines == "dict_values([3])"
    assert int(mebibytes) < 400
    (landed,) = (tmp_path / "landing").rglob("*.gz")
    assert landed.parent.name == "log_hour=05"
    lengths, length = [], 0
    with gzip.open(landed) as stream:
        while piece := stream.read(1 << 20):
            first, *others = piece.split(b"\n")
            length += len(first)
            for other in others:
                lengths.append(length)
                length = len(other)
    expected = [HALF_GIB, *map(len, good)] if is_first else [len(good[0]), HALF_GIB, len(good[1])]
    assert lengths == [length - (length != HALF_GIB) for length in expected]


# --- from a shell ---------------------------------------------------------------------------------


def test_a_folder_is_all_logs_in_it(tmp_path: Path) -> None:
    for name in ("b/access.log", "a/access.log", "access.log.1", ".hidden.log", ".git/config", "_temporary/a.log"):
        write_log(tmp_path / "logs" / name, b"x\n")
    (tmp_path / "empty").mkdir()
    named = [tmp_path / "logs" / name for name in ("a/access.log", "access.log.1", "b/access.log")]
    files = given_files([tmp_path / "logs", named[0]])
    assert [(file.path, file.is_named) for file in files] == [*((file, False) for file in named), (named[0], True)]
    with pytest.raises(UsageError, match="no files in"):
        given_files([tmp_path / "empty"])


def test_logs_given_together_land_each_once_and_say_what_is_next(settings: Settings, tmp_path: Path) -> None:
    line = log_line("05:00", "a")
    logs = tmp_path / "logs"
    write_log(logs / "access.log", line, log_line("08:00", "b"))
    write_log(logs / "access.log.gz", line, log_line("08:00", "b"))
    write_log(logs / "copy.log", line)
    write_log(logs / "access.log.1.gz")  # as rotation leaves it on a quiet day
    write_log(logs / "other.log", line, log_line("05:00", "c", day="01/Mar/2025"))
    done = subprocess.run(
        [sys.executable, "-m", "clickmill", "land", "--source=access", str(logs), str(logs / "copy.log")],
        cwd=REPOSITORY, env=os.environ | home_of(settings), capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    landed = landed_lines(settings.landing)
    assert sum(landed.values(), Counter()) == Counter(
        {line: 2, log_line("08:00", "b"): 1, log_line("05:00", "c", day="01/Mar/2025"): 1}
    )
    assert done.stdout.count(f"{logs / 'copy.log'} is the beginning of a log that has been landed") == 2
    assert done.stdout.count("begins with the same 1 lines") == 1
    assert f"{logs / 'access.log.1.gz'} is empty: nothing to do" in done.stdout
    ranges = re.findall("--from (.*) --to (.*) --allow-missing", done.stdout)
    assert ranges == [("2025-03-01T05", "2025-03-01T06"), ("2026-03-01T05", "2026-03-01T09")]
