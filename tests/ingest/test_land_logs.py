"""Splitting logs into the landing zone: read back with gzip, against the lines that went in."""

from __future__ import annotations

import gzip
import os
import re
import signal
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from backports import zstd
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from include.errors import ClickmillError, UsageError
from include.log_hours import Hour
from include.settings import REPOSITORY, Settings
from include.sources import JsonFields, Source, load_sources
from spark_jobs.ingest.arrivals import LineParser, read_files, unique_ids
from spark_jobs.ingest.landed_logs import Landed, landed_logs
from spark_jobs.ingest.lookups import Lookups
from spark_jobs.ingest.read_lines import LandedFile, ReadFile
from spark_jobs.land_logs import files_of, land

FIRST, SECOND, THIRD = (Hour.parse("2026-03-01T05").plus(hours) for hours in range(3))
NOW = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
ACCESS = Source(name="access", format="combined", base_url="http://shop.test")
GIB = 1 << 30


@pytest.fixture
def source(settings: Settings) -> Source:
    return load_sources(settings)["access"]


def _line(minute: str, path: str, day: str = "01/Mar/2026") -> bytes:
    return f'10.0.0.1 - - [{day}:{minute}:00 +0000] "GET /{path} HTTP/1.1" 200 1 "-" "curl"\n'.encode()


def _landed(landing: Path, source: str = "access") -> dict[Hour, Counter[bytes]]:
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


def _write(file: Path, *lines: bytes) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    content = b"".join(lines)
    compress = {".gz": gzip.compress, ".zst": zstd.compress}.get(file.suffix, bytes)
    file.write_bytes(compress(content))
    return file


def _land(landing: Path, file: Path, *lines: bytes, source: Source = ACCESS) -> Landed:
    landed = land(source, _write(file, *lines), landing, NOW)
    assert landed is not None
    return landed


# --- which line goes where ------------------------------------------------------------------------


def test_lines_go_to_the_hour_of_their_click_and_one_without_time_goes_along(tmp_path: Path) -> None:
    lines = [b"early nonsense\n", _line("05:59", "a"), b"nonsense\n", _line("06:00", "b"), b"no end of line"]
    landed = _land(tmp_path, tmp_path / "access.log", *lines)
    assert landed.lines == {FIRST: 3, SECOND: 2}
    assert _landed(tmp_path) == {FIRST: Counter(lines[:3]), SECOND: Counter([lines[3], b"no end of line\n"])}


STRAY = {
    "the zero time of Go and .NET": "0001-01-01T00:00:00Z",
    "before 1970": "1969-12-31T23:59:59Z",
    "a clock that was never set": "1970-01-01T00:00:07Z",
    "the last that can be written": "9999-12-31T23:59:59Z",
    "past it, in UTC": "9999-12-31T23:59:59-05:00",
    "a clock that is ahead by a day": "2026-03-02T09:30:00Z",
    "a clock that is ahead by some hours": "2026-03-01T14:00:00+02:00",
}


def _with_time(source: Source, time: str, name: str) -> bytes:
    if source.fields:
        return b'{"ts":"%s","url":"http://shop.test/%s"}\n' % (time.encode(), name.encode())
    moment = datetime.fromisoformat(time)
    written = f"{moment.day:02d}/{moment:%b}/{moment.year:04d}:{moment:%H:%M:%S %z}"
    return _line("05:00", name).replace(b"01/Mar/2026:05:00:00 +0000", written.encode())


@pytest.mark.parametrize("time", STRAY.values(), ids=STRAY)
@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize(
    "source", [ACCESS, Source(name="web", format="json", fields=JsonFields(time="ts", url="url"))], ids=["log", "json"]
)
def test_a_stray_time_harms_its_own_line_only(tmp_path: Path, source: Source, time: str, is_first: bool) -> None:
    stray = _with_time(source, time, "stray")
    good = [_with_time(source, f"2026-03-01T0{hour}:10:00Z", f"{hour}") for hour in (5, 6, 9)]
    lines = [stray, *good] if is_first else [*good[:2], stray, good[2]]
    landed = _land(tmp_path, tmp_path / "clicks.log", *lines, source=source)
    beside = FIRST if is_first else SECOND
    expected = {hour: Counter([line]) for hour, line in zip((FIRST, SECOND, FIRST.plus(4)), good, strict=True)}
    expected[beside][stray] += 1
    assert _landed(tmp_path, source.name) == expected
    assert landed.lines == {hour: lines.total() for hour, lines in expected.items()}
    # The ingest quarantines that line, and no other.
    parser = LineParser(source, (), Lookups(needs_clients=False))
    files = [
        LandedFile(file, hour, number)
        for number, hour in enumerate(expected)
        for file in (tmp_path / source.name / f"log_date={hour.day}" / f"log_hour={hour.hour:02d}").glob("*.gz")
    ]
    done: list[ReadFile] = []
    reasons = Counter(
        (row["reason"], row["raw"] and row["raw"].encode() + b"\n")
        for table in read_files(files, parser, unique_ids, done)
        for row in table.select(["reason", "raw"]).to_pylist()
    )
    (reason,) = {reason for reason, _ in reasons if reason}
    assert reason in {"time_out_of_range", "bad_time"}
    assert reasons == {(None, None): 3, (reason, stray): 1}


# --- which logs are the same ----------------------------------------------------------------------


def test_a_rotated_log_and_the_next_one_of_the_same_name_share_an_hour(tmp_path: Path) -> None:
    before = [_line("05:10", "a"), _line("06:10", "b")]
    after = [_line("06:11", "c"), _line("06:12", "d")]
    _land(tmp_path, tmp_path / "access.log", *before)
    _land(tmp_path, tmp_path / "access.log", *after)
    assert _landed(tmp_path)[SECOND] == Counter([before[1], *after])


def test_a_log_landed_again_grown_renamed_and_compressed_replaces_what_it_landed(tmp_path: Path) -> None:
    lines = [_line("05:10", "a"), _line("06:10", "b"), _line("06:10", "b")]
    first = _land(tmp_path, tmp_path / "access.log", *lines[:2])
    again = _land(tmp_path, tmp_path / "access.log.1.gz", *lines)
    assert _landed(tmp_path) == {FIRST: Counter(lines[:1]), SECOND: Counter(lines[1:])}
    assert again.name == first.name


def test_logs_of_two_servers_that_begin_alike_stand_beside_each_other(tmp_path: Path) -> None:
    check = _line("05:00", "health")
    a = [check, *(_line("05:01", f"a{n}") for n in range(5))]
    b = [check, *(_line("05:01", f"b{n}") for n in range(2))]
    first = _land(tmp_path, tmp_path / "a" / "access.log", *a)
    landed = _land(tmp_path, tmp_path / "b" / "access.log", *b)
    assert _landed(tmp_path) == {FIRST: Counter(a + b)}
    assert (first.begins_as, landed.begins_as) == ({}, {first.name: 1})


def test_a_log_that_is_the_beginning_of_another_is_landed_once_it_differs(tmp_path: Path) -> None:
    check = _line("05:00", "health")
    a, b = [check, _line("05:01", "a")], [check, _line("05:02", "b")]
    longer = _land(tmp_path, tmp_path / "a.log", *a)
    assert _land(tmp_path, tmp_path / "b.log", check) == Landed(longer.name, {})
    assert _landed(tmp_path) == {FIRST: Counter(a)}
    _land(tmp_path, tmp_path / "b.log", *b)
    assert _landed(tmp_path) == {FIRST: Counter(a + b)}


def test_a_log_whose_landed_files_were_removed_is_landed_again(tmp_path: Path) -> None:
    lines = [_line("05:00", "a"), _line("05:01", "b")]
    _land(tmp_path, tmp_path / "access.log", *lines)
    for file in tmp_path.glob("access/log_date=*/log_hour=*/*.gz"):
        file.unlink()
    _land(tmp_path, tmp_path / "access.log", lines[0])
    assert _landed(tmp_path) == {FIRST: Counter(lines[:1])}


def test_what_is_landed_elsewhere_now_is_gone_from_where_it_was(tmp_path: Path) -> None:
    """Lines move to another hour when the source's settings have changed, or a time that was in the future is past."""
    lines = [_line("05:00", "a"), _line("06:00", "b" * 300), _line("07:00", "c")]
    _land(tmp_path, tmp_path / "access.log", *lines)
    shorter = ACCESS.model_copy(update={"max_line_bytes": 256})
    landed = _land(tmp_path, tmp_path / "access.log", *lines, source=shorter)
    assert landed.lines == {FIRST: 2, SECOND: 0, THIRD: 1}
    assert _landed(tmp_path) == {FIRST: Counter(lines[:2]), THIRD: Counter(lines[2:])}


def _hours_of(content: bytes) -> dict[Hour, Counter[bytes]]:
    """The oracle of the split: lines by the hour of their time, or of the line before; none if no line has a time."""
    lines = [line + b"\n" for line in content.removesuffix(b"\n").split(b"\n")]
    times = [re.search(rb"\[01/Mar/2026:(0[5-7]):\d\d:\d\d \+0000\]", line) for line in lines]
    hours = [time and Hour.parse(f"2026-03-01T{time[1].decode()}") for time in times]
    hour = next(filter(None, hours), None)
    found: dict[Hour, Counter[bytes]] = {}
    for line, own in zip(lines, hours, strict=True):
        hour = own or hour
        if hour:
            found.setdefault(hour, Counter())[line] += 1
    return found


def _sum(logs: Sequence[bytes]) -> dict[Hour, Counter[bytes]]:
    found: dict[Hour, Counter[bytes]] = {}
    for log in logs:
        for hour, lines in _hours_of(log).items():
            found[hour] = found.get(hour, Counter()) + lines
    return found


#: Few lines, so that logs often begin alike; some begin others, and some have no plausible time.
_LINES = [
    _line("05:00", "health"),
    _line("05:00", "a"),
    _line("06:00", "health"),
    _line("06:00", "a").replace(b"\n", b"\r\n"),
    _line("07:00", "a"),
    b"nonsense\n",
    b"nonsense and more\n",
    b"\n",
    _line("05:00", "a", day="01/Jan/0001"),
    _line("05:00", "a", day="31/Dec/2026"),
]
_SERVERS = st.lists(
    st.lists(st.sampled_from(_LINES[:2]), max_size=2).flatmap(
        lambda begin: st.lists(st.sampled_from(_LINES), max_size=6).map(lambda end: b"".join([*begin, *end]))
    ),
    min_size=1,
    max_size=3,
)
#: Which server's log is landed, how much of it (whole lines, or cut anywhere), and under which name.
_LANDINGS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.one_of(st.integers(0, 8), st.floats(0, 1)),
        st.sampled_from(["access.log", "access.log.1", "access.log.2.gz", "[b] ü?.log.zst"]),
    ),
    min_size=1,
    max_size=8,
)


def _part(log: bytes, until: int | float) -> bytes:
    return b"".join(log.splitlines(keepends=True)[:until]) if isinstance(until, int) else log[: int(until * len(log))]


#: The second log begins as the first, but for the line end.
_ALIKE = [_LINES[0] + _LINES[5], _LINES[0] + _LINES[6]]


@given(_SERVERS, _LANDINGS)
@example(_ALIKE, [(0, 2, "access.log"), (1, 2, "access.log")])
@example(_ALIKE, [(0, 2, "access.log"), (0, 1 - 1 / len(_ALIKE[0]), "access.log"), (1, 2, "access.log")])
@hypothesis_settings(deadline=None, max_examples=300)
def test_each_log_counts_once_however_it_grows_and_is_named(
    tmp_path_factory: pytest.TempPathFactory, servers: list[bytes], landings: list[tuple[int, int | float, str]]
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    distinct: list[bytes] = []
    for number, until, name in landings:
        content = _part(servers[number % len(servers)], until)
        if not content:
            assert land(ACCESS, _write(folder / "given" / name), folder, NOW) is None
            continue
        if not _hours_of(content):
            with pytest.raises(ClickmillError, match="no line of"):
                _land(folder, folder / "given" / name, content)
            continue
        if not any(log.startswith(content) for log in distinct):
            distinct = [log for log in distinct if not content.startswith(log)] + [content]
        _land(folder, folder / "given" / name, content)
        assert _landed(folder) == _sum(distinct)
        files = {file.name.removesuffix(".gz") for file in folder.glob("access/log_date=*/log_hour=*/*.gz")}
        assert files == {file.name for file in (folder / "access" / ".logs").iterdir()}
        assert len(files) == len(distinct)


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
    before = _line("05:00", "a") + _line("06:00", "b" * 300)
    after = before + _line("05:30", "c") + _line("07:00", "d")
    shorter = ACCESS.model_copy(update={"max_line_bytes": 256})
    grown = _write(tmp_path / "access.log.1", after)
    for event in range(1, 1000):
        landing = tmp_path / f"landing{event}"
        _land(landing, tmp_path / "access.log", before)
        if not _killed_at(event, landing, grown, shorter):
            assert event > 30
            return
        for file in landing.glob("access/log_date=*/log_hour=*/*.gz"):
            assert gzip.decompress(file.read_bytes())[-1:] in (b"", b"\n")
        yield landing, after
    raise AssertionError("it never ended")


def test_killed_anywhere_and_landed_again_it_is_as_if_it_had_not_been_killed(tmp_path: Path) -> None:
    shorter = ACCESS.model_copy(update={"max_line_bytes": 256})
    for landing, after in _kills(tmp_path):
        marks = {file: file.stat().st_mtime_ns for file in landing.rglob("_SUCCESS")}
        _land(landing, tmp_path / "access.log", after, source=shorter)
        a, b, c, d = after.splitlines(keepends=True)
        assert _landed(landing) == {FIRST: Counter([a, b, c]), THIRD: Counter([d])}
        assert not [file for file, moment in marks.items() if file.stat().st_mtime_ns == moment]


def test_killed_anywhere_a_log_is_landed_all_or_nothing_when_another_one_is(tmp_path: Path) -> None:
    other = _line("06:30", "other")
    found = set()
    for landing, after in _kills(tmp_path):
        _land(landing, tmp_path / "other.log", other)
        a, b, c, d = after.splitlines(keepends=True)
        old = {FIRST: Counter([a]), SECOND: Counter([b, other])}
        new = {FIRST: Counter([a, b, c]), SECOND: Counter([other]), THIRD: Counter([d])}
        landed = _landed(landing)
        assert landed in (old, new)
        found.add(landed == new)
    assert found == {False, True}


def test_two_logs_of_a_source_are_landed_one_after_the_other(settings: Settings, tmp_path: Path) -> None:
    logs = _write(tmp_path / "access.log", _line("05:00", "a"))
    command = [sys.executable, "-m", "spark_jobs.land_logs", "--source", "access", "--logs", str(logs)]
    with landed_logs(settings.landing, "access"):
        other = subprocess.Popen(command, cwd=REPOSITORY, env=os.environ | {"CLICKMILL_HOME": str(settings.home)})
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(3)
        assert not list(settings.landing.rglob("*.gz"))
    assert other.wait(60) == 0
    assert _landed(settings.landing) == {FIRST: Counter([_line("05:00", "a")])}


def test_logs_for_a_source_that_is_a_topic_are_refused(settings: Settings, tmp_path: Path) -> None:
    """Nobody would read them in the landing zone; of a source with sockets or [files] the landing zone is read."""
    logs = _write(tmp_path / "access.log", _line("05:00", "a"))
    declared = settings.sources_file.read_text(encoding="utf-8")
    environment = {"CLICKMILL_HOME": str(settings.home), "CLICKMILL_SOURCES": str(settings.sources_file)}

    def run(table: str) -> subprocess.CompletedProcess[str]:
        settings.sources_file.write_text(f"{declared}\n[sources.access.{table}\n", encoding="utf-8")
        return subprocess.run(
            [sys.executable, "-m", "spark_jobs.land_logs", "--source=access", "--logs", str(logs)],
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
    assert _landed(settings.landing) == {FIRST: Counter([_line("05:00", "a")])}


def test_nothing_lands_of_a_file_that_breaks_off_or_fits_no_source(
    settings: Settings, source: Source, tmp_path: Path
) -> None:
    broken = _write(tmp_path / "broken.log.gz", *(_line("05:10", f"page{n}") for n in range(1000)))
    broken.write_bytes(broken.read_bytes()[:-20])
    with pytest.raises(ClickmillError, match=r"broken\.log\.gz cannot be read to its end"):
        land(source, broken, settings.landing, NOW)
    for other in (b'{"ts": 1}\n', _line("05:00", "a", day="01/Mar/1970"), _line("05:00", "a", day="01/Mar/2027")):
        with pytest.raises(ClickmillError, match="in the format of source access"):
            _land(settings.landing, tmp_path / "other.log", other, source=source)
    with pytest.raises(UsageError, match="no file"):
        land(source, tmp_path / "absent.log", settings.landing, NOW)
    assert not list(settings.landing.rglob("*.gz"))
    assert not list(settings.landing.rglob("_SUCCESS"))


#: Lands a log in a process that may not have 400 MiB.
_LAND_IN_LITTLE_MEMORY = """
import resource, sys
from datetime import UTC, datetime
from pathlib import Path
from include.sources import Source
from spark_jobs.land_logs import land

resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))
source = Source(name="access", format="combined", base_url="http://shop.test")
print(land(source, Path(sys.argv[1]), Path(sys.argv[2]), datetime(2026, 3, 1, 9, 30, tzinfo=UTC)).lines.values())
"""


@pytest.mark.slow
@pytest.mark.parametrize("is_first", [False, True])
def test_a_line_of_any_length_lands_whole_in_bounded_memory(tmp_path: Path, is_first: bool) -> None:
    mebibyte = b"[01/Mar/2026:06:00:00 +0000]".rjust(1 << 20, b"x")  # the line's last part has a time, too
    good = [_line("05:00", "a"), _line("05:01", "b")]
    compress = zlib.compressobj(1, zlib.DEFLATED, 31)
    with (tmp_path / "access.log.gz").open("wb") as file:
        file.write(compress.compress(b"" if is_first else good[0]))
        for _ in range(1024):
            file.write(compress.compress(mebibyte))
        file.write(compress.compress(b"\n" + (b"".join(good) if is_first else good[1])) + compress.flush())
    done = subprocess.run(
        [sys.executable, "-c", _LAND_IN_LITTLE_MEMORY, str(tmp_path / "access.log.gz"), str(tmp_path / "landing")],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "dict_values([3])\n"
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
    expected = [GIB, *map(len, good)] if is_first else [len(good[0]), GIB, len(good[1])]
    assert lengths == [length - (length != GIB) for length in expected]


# --- from a shell ---------------------------------------------------------------------------------


def test_a_folder_is_all_logs_in_it(tmp_path: Path) -> None:
    for name in ("b/access.log", "a/access.log", "access.log.1", ".hidden.log", ".git/config", "_temporary/a.log"):
        _write(tmp_path / "logs" / name, b"x\n")
    (tmp_path / "empty").mkdir()
    named = [tmp_path / "logs" / name for name in ("a/access.log", "access.log.1", "b/access.log")]
    assert files_of([tmp_path / "logs", named[0]]) == [*named, named[0]]
    with pytest.raises(UsageError, match="no files in"):
        files_of([tmp_path / "empty"])


def test_logs_given_together_land_each_once_and_say_what_is_next(settings: Settings, tmp_path: Path) -> None:
    line = _line("05:00", "a")
    logs = tmp_path / "logs"
    _write(logs / "access.log", line, _line("08:00", "b"))
    _write(logs / "access.log.gz", line, _line("08:00", "b"))
    _write(logs / "copy.log", line)
    _write(logs / "access.log.1.gz")  # as rotation leaves it on a quiet day
    _write(logs / "other.log", line, _line("05:00", "c", day="01/Mar/2025"))
    done = subprocess.run(
        [sys.executable, "-m", "spark_jobs.land_logs", "--source=access", "--logs", str(logs), str(logs / "copy.log")],
        cwd=REPOSITORY, env=os.environ | {"CLICKMILL_HOME": str(settings.home)}, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    landed = _landed(settings.landing)
    assert sum(landed.values(), Counter()) == Counter(
        {line: 2, _line("08:00", "b"): 1, _line("05:00", "c", day="01/Mar/2025"): 1}
    )
    assert done.stdout.count(f"{logs / 'copy.log'} is the beginning of a log that has been landed") == 2
    assert done.stdout.count("begins with the same 1 lines") == 1
    assert f"{logs / 'access.log.1.gz'} is empty: nothing to do" in done.stdout
    ranges = re.findall("--from (.*) --to (.*) --allow-missing", done.stdout)
    assert ranges == [("2025-03-01T05", "2025-03-01T06"), ("2026-03-01T05", "2026-03-01T09")]
