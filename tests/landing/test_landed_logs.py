"""Which log hour a line of a log lands in, and which logs are the same."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from include.errors import ClickmillError
from include.hours import Hour
from include.source_fields import LineFields
from include.sources import Source
from spark_jobs.landing.land import land as land_beside
from spark_jobs.landing.landed_logs import Landed, LandedLogs, landed_logs
from spark_jobs.lines.arrivals import LineParser, read_files, unique_ids
from spark_jobs.lines.lookups import Lookups
from spark_jobs.lines.read_lines import LandedFile, ReadFile
from tests.landing.landing_zone import ACCESS, FIRST, NOW, SECOND, THIRD, land_log, landed_lines, log_line, write_log

# --- which line goes where ------------------------------------------------------------------------


def test_lines_go_to_the_hour_of_their_click_and_one_without_time_goes_along(tmp_path: Path) -> None:
    lines = [
        b"early nonsense\n",
        log_line("05:59", "a"),
        b"nonsense\n",
        log_line("06:00", "b"),
        b"no end of line",
    ]
    landed = land_log(tmp_path, tmp_path / "access.log", *lines)
    assert landed.lines == {FIRST: 3, SECOND: 2}
    assert landed_lines(tmp_path) == {FIRST: Counter(lines[:3]), SECOND: Counter([lines[3], b"no end of line\n"])}


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
    return log_line("05:00", name).replace(b"01/Mar/2026:05:00:00 +0000", written.encode())


@pytest.mark.parametrize("time", STRAY.values(), ids=STRAY)
@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize(
    "source", [ACCESS, Source(name="web", format="json", fields=LineFields(time="ts", url="url"))], ids=["log", "json"]
)
def test_a_stray_time_harms_its_own_line_only(tmp_path: Path, source: Source, time: str, is_first: bool) -> None:
    stray = _with_time(source, time, "stray")
    good = [_with_time(source, f"2026-03-01T0{hour}:10:00Z", f"{hour}") for hour in (5, 6, 9)]
    lines = [stray, *good] if is_first else [*good[:2], stray, good[2]]
    landed = land_log(tmp_path, tmp_path / "clicks.log", *lines, source=source)
    beside = FIRST if is_first else SECOND
    expected = {hour: Counter([line]) for hour, line in zip((FIRST, SECOND, FIRST.plus(4)), good, strict=True)}
    expected[beside][stray] += 1
    assert landed_lines(tmp_path, source.name) == expected
    assert landed.lines == {hour: lines.total() for hour, lines in expected.items()}
    # The ingest quarantines that line, and no other.
    parser = LineParser(source.model_copy(update={"keep_raw": True}), (), Lookups())
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
    before = [log_line("05:10", "a"), log_line("06:10", "b")]
    after = [log_line("06:11", "c"), log_line("06:12", "d")]
    land_log(tmp_path, tmp_path / "access.log", *before)
    land_log(tmp_path, tmp_path / "access.log", *after)
    assert landed_lines(tmp_path)[SECOND] == Counter([before[1], *after])


def test_a_log_landed_again_grown_renamed_and_compressed_replaces_what_it_landed(tmp_path: Path) -> None:
    lines = [log_line("05:10", "a"), log_line("06:10", "b"), log_line("06:10", "b")]
    first = land_log(tmp_path, tmp_path / "access.log", *lines[:2])
    again = land_log(tmp_path, tmp_path / "access.log.1.gz", *lines)
    assert landed_lines(tmp_path) == {FIRST: Counter(lines[:1]), SECOND: Counter(lines[1:])}
    assert again.name == first.name


def test_logs_of_two_servers_that_begin_alike_stand_beside_each_other(tmp_path: Path) -> None:
    check = log_line("05:00", "health")
    a = [check, *(log_line("05:01", f"a{n}") for n in range(5))]
    b = [check, *(log_line("05:01", f"b{n}") for n in range(2))]
    first = land_log(tmp_path, tmp_path / "a" / "access.log", *a)
    landed = land_log(tmp_path, tmp_path / "b" / "access.log", *b)
    assert landed_lines(tmp_path) == {FIRST: Counter(a + b)}
    assert (first.begins_as, landed.begins_as) == ({}, {first.name: 1})


def test_a_log_that_is_the_beginning_of_another_is_landed_once_it_differs(tmp_path: Path) -> None:
    check = log_line("05:00", "health")
    a, b = [check, log_line("05:01", "a")], [check, log_line("05:02", "b")]
    longer = land_log(tmp_path, tmp_path / "a.log", *a)
    assert land_log(tmp_path, tmp_path / "b.log", check) == Landed(longer.name, {})
    assert landed_lines(tmp_path) == {FIRST: Counter(a)}
    land_log(tmp_path, tmp_path / "b.log", *b)
    assert landed_lines(tmp_path) == {FIRST: Counter(a + b)}


def test_a_log_whose_landed_files_were_removed_is_landed_again(tmp_path: Path) -> None:
    lines = [log_line("05:00", "a"), log_line("05:01", "b")]
    land_log(tmp_path, tmp_path / "access.log", *lines)
    for file in tmp_path.glob("access/log_date=*/log_hour=*/*.gz"):
        file.unlink()
    land_log(tmp_path, tmp_path / "access.log", lines[0])
    assert landed_lines(tmp_path) == {FIRST: Counter(lines[:1])}


def test_what_is_landed_elsewhere_now_is_gone_from_where_it_was(tmp_path: Path) -> None:
    """Lines move to another hour when the source's settings have changed, or a time that was in the future is past."""
    lines = [log_line("05:00", "a"), log_line("06:00", "b" * 300), log_line("07:00", "c")]
    land_log(tmp_path, tmp_path / "access.log", *lines)
    shorter = ACCESS.model_copy(update={"max_line_bytes": 256})
    landed = land_log(tmp_path, tmp_path / "access.log", *lines, source=shorter)
    assert landed.lines == {FIRST: 2, SECOND: 0, THIRD: 1}
    assert landed_lines(tmp_path) == {FIRST: Counter(lines[:2]), THIRD: Counter(lines[2:])}


def _hours_of(content: bytes) -> dict[Hour, Counter[bytes]]:
    """The oracle of the split: lines by the hour of their time, or of the line before; none if no line has a time.

    A time is what stands in brackets before the request.
    """
    lines = [line + b"\n" for line in content.removesuffix(b"\n").split(b"\n")]
    times = [re.search(rb'\[01/Mar/2026:(0[5-7]):\d\d:\d\d \+0000\] "', line) for line in lines]
    hours = [time and Hour.parse(f"2026-03-01T{time[1].decode()}") for time in times]
    hour = next(filter(None, hours), None)
    by_hour: dict[Hour, Counter[bytes]] = {}
    for line, own in zip(lines, hours, strict=True):
        hour = own or hour
        if hour:
            by_hour.setdefault(hour, Counter())[line] += 1
    return by_hour


def _sum(logs: Sequence[bytes]) -> dict[Hour, Counter[bytes]]:
    by_hour: dict[Hour, Counter[bytes]] = {}
    for log in logs:
        for hour, lines in _hours_of(log).items():
            by_hour[hour] = by_hour.get(hour, Counter()) + lines
    return by_hour


#: Few lines, so that logs often begin alike; some begin others, and some have no plausible time.
_LINES = [
    log_line("05:00", "health"),
    log_line("05:00", "a"),
    log_line("06:00", "health"),
    log_line("06:00", "a").replace(b"\n", b"\r\n"),
    log_line("07:00", "a"),
    b"nonsense\n",
    b"nonsense and more\n",
    b"\n",
    log_line("05:00", "a", day="01/Jan/0001"),
    log_line("05:00", "a", day="31/Dec/2026"),
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


@given(_SERVERS, _LANDINGS, st.booleans())
@example(_ALIKE, [(0, 2, "access.log"), (1, 2, "access.log")], False)
@example(_ALIKE, [(0, 2, "access.log"), (0, 1 - 1 / len(_ALIKE[0]), "access.log"), (1, 2, "access.log")], True)
@example([_LINES[3] + _LINES[1]], [(0, 0.5, "access.log"), (0, 2, "access.log")], False)
@hypothesis_settings(deadline=None, max_examples=200)
def test_each_log_counts_once_however_it_grows_and_is_named(
    tmp_path_factory: pytest.TempPathFactory,
    servers: list[bytes],
    landings: list[tuple[int, int | float, str]],
    is_one_command: bool,
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    with landed_logs(folder, ACCESS.name) if is_one_command else nullcontext() as landed:
        _land_in_turn(folder, servers, landings, landed)


def _land_in_turn(
    folder: Path, servers: list[bytes], landings: list[tuple[int, int | float, str]], landed: LandedLogs | None
) -> None:
    """Land parts of the servers' logs, by one command if ``landed`` is its own, and compare with the model."""

    def land_part(file: Path, content: bytes) -> Landed | None:
        with landed_logs(folder, ACCESS.name) if landed is None else nullcontext(landed) as landed_before:
            return land_beside(ACCESS, write_log(file, content), landed_before, NOW)

    distinct: list[bytes] = []
    for number, until, name in landings:
        content = _part(servers[number % len(servers)], until)
        if not content:
            assert land_part(folder / "given" / name, content) is None
            continue
        if not _hours_of(content):
            with pytest.raises(ClickmillError, match="no line of"):
                land_part(folder / "given" / name, content)
            continue
        if not any(log.startswith(content) for log in distinct):
            distinct = [log for log in distinct if not content.startswith(log)] + [content]
        land_part(folder / "given" / name, content)
        assert landed_lines(folder) == _sum(distinct)
        files = {file.name.removesuffix(".gz") for file in folder.glob("access/log_date=*/log_hour=*/*.gz")}
        assert files == {file.name for file in (folder / "access" / ".logs").iterdir()}
        assert len(files) == len(distinct)
