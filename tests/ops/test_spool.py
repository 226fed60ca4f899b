"""Received lines as files: durable, numbered, in the hour in which they came, whatever the disk and the clock do."""

from __future__ import annotations

import errno
import random
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from include.hours import Hour
from include.landing import hour_folder, look_at
from ops.receiver.connection import Decoder
from ops.receiver.spool import LineSplitter, Spool, close_hour, open_hours

HOUR = Hour.parse("2026-03-01T08")


class Clock:
    def __init__(self, minutes: float = 10.0) -> None:
        self.now = HOUR.start + timedelta(minutes=minutes)

    def __call__(self) -> datetime:
        return self.now

    def go(self, **by: float) -> None:
        self.now += timedelta(**by)


def make_spool(landing: Path, clock: Clock, **settings: object) -> Spool:
    return Spool(landing, "web", 9990, **({"roll_seconds": 5, "roll_bytes": 1000, "clock": clock} | settings))  # type: ignore[arg-type]


def contents(landing: Path, hour: Hour = HOUR) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in look_at(landing, "web", hour).files}


def test_lines_are_whole_however_they_are_cut_and_long_ones_are_bounded() -> None:
    dice = random.Random(7)
    lines = [bytes(dice.choices(b"abc\r{", k=dice.choice((0, 1, 5, 99, 100, 101, 5000)))) for _ in range(300)]
    sent = b"".join(line + b"\n" for line in lines) + b"no end"
    splitter, pieces, at = LineSplitter(100), [], 0
    while at < len(sent):
        size = dice.choice((1, 2, 50, 1000))
        pieces += splitter.feed(sent[at : at + size])
        at += size
    assert [*pieces, *splitter.rest()] == [line[:100] + b"\n" for line in [*lines, b"no end"]]
    assert LineSplitter(100).rest() == []


@pytest.mark.parametrize(
    ("text", "encoding"),
    [("ascii \u4e16\u00e9\U0001f600", "utf-8"), ("\ufeff\u4e16\u00e9 a", "utf-16-le"), ("\ufeffa\udc00b", "utf-16-le"),
     ('{"name":"\u4e16\U0001f600"}', "utf-16-le"), ('{"name":"\u4e16\u0a0a"}', "utf-16-be"),
     ("\ufeff\u4e16 a", "utf-16-be")],
)  # fmt: skip
@pytest.mark.parametrize("size", [2, 3, 16, 17, 1000])
def test_what_a_client_sends_is_stored_in_utf_8(text: str, encoding: str, size: int) -> None:
    content = f"{text}\nsecond line\n{text}".encode(encoding, "surrogatepass")

    decoder, splitter = Decoder(), LineSplitter(1000)
    parts = [content[at : at + size] for at in range(0, len(content), size)]
    lines = [line for part in parts for line in splitter.feed(decoder.feed(part))]
    lines += splitter.feed(decoder.end()) + splitter.rest()
    expected = [line.encode("utf-8", "surrogatepass") for line in (f"{text}\n", "second line\n", f"{text}\n")]
    assert lines == expected


def test_half_a_character_at_the_end_of_what_a_client_sends_is_no_utf_8() -> None:
    decoder = Decoder()
    assert decoder.feed("\ufeffabc".encode("utf-16-le") + b"d") + decoder.end() == "\ufeffabc".encode() + b"\xff"


def test_what_a_client_sends_is_utf_16_by_the_test_of_files() -> None:
    text = "a\u4e16bcdefgh and so on to an end"
    decoder = Decoder()
    assert decoder.feed(text.encode("utf-16-le")) + decoder.end() == text.encode()


@pytest.mark.parametrize("begin", [b"a", b"\n", b"ab", b"hello\n", b'{"a": 1}\n', b"\xef\xbb\xbfa\n"])
def test_a_short_line_is_not_waited_with(begin: bytes) -> None:
    assert Decoder().feed(begin) == begin


def test_a_file_has_its_name_when_it_is_old_or_large_enough_and_ids_go_on(tmp_path: Path) -> None:
    clock = Clock()
    spool = make_spool(tmp_path, clock)
    assert spool.store([b"a\n", b"b\n"]) == 2
    spool.roll_if_due()
    assert contents(tmp_path) == {}, "hidden while it is written"
    clock.go(seconds=5)
    spool.roll_if_due()
    assert spool.store([b"c" * 1000 + b"\n"]) == 3
    spool.roll_if_due()
    assert spool.store([b"d\n"]) == 4
    spool.roll()
    assert contents(tmp_path) == {
        "9990-000000000000001.log": b"a\nb\n",
        "9990-000000000000003.log": b"c" * 1000 + b"\n",
        "9990-000000000000004.log": b"d\n",
    }


def test_what_a_killed_one_left_is_completed_without_its_torn_line(tmp_path: Path) -> None:
    clock = Clock()
    spool = make_spool(tmp_path, clock)
    spool.store([b"a\n", b"b\n"])
    (hidden,) = tmp_path.rglob(".9990-*.unfinished")
    with hidden.open("ab") as stream:
        stream.write(b"x" * 70_000)
    after = make_spool(tmp_path, clock)
    assert after.recover() == [hidden]
    assert contents(tmp_path) == {"9990-000000000000001.log": b"a\nb\n"}
    assert after.store([b"c\n"]) == 3
    after.roll()
    for file in look_at(tmp_path, "web", HOUR).files:
        file.unlink()
    again = make_spool(tmp_path, clock)
    assert again.recover() == []
    assert again.store([b"d\n"]) == 4, "though its files have been taken away"


def test_a_file_that_holds_only_a_torn_line_is_removed(tmp_path: Path) -> None:
    clock = Clock()
    make_spool(tmp_path, clock).store([b"a\n"])
    (hidden,) = tmp_path.rglob(".9990-*.unfinished")
    hidden.write_bytes(b"torn")
    after = make_spool(tmp_path, clock)
    after.recover()
    assert not hidden.exists()
    assert after.store([b"b\n"]) == 1


def test_lines_are_in_the_hour_in_which_they_came(tmp_path: Path) -> None:
    clock = Clock(59.9)
    spool = make_spool(tmp_path, clock, roll_seconds=3600)
    spool.store([b"a\n"])
    clock.go(seconds=10)
    spool.store([b"b\n"])
    clock.go(seconds=-20)
    spool.store([b"c\n"])  # the clock was set back: the hour before is over all the same
    spool.roll()
    assert contents(tmp_path) == {"9990-000000000000001.log": b"a\n"}
    assert contents(tmp_path, HOUR.plus(1)) == {"9990-000000000000002.log": b"b\nc\n"}
    clock.go(days=-2)
    spool.store([b"d\n"])
    spool.roll()
    assert contents(tmp_path, HOUR.plus(-48)) == {"9990-000000000000004.log": b"d\n"}, "a clock that was put right"


def test_an_hour_that_was_begun_takes_all_lines_from_then_on(tmp_path: Path) -> None:
    clock = Clock(59.99)
    spool = make_spool(tmp_path, clock)
    spool.store([b"a\n"])
    spool.begin_hour(HOUR.plus(1))
    assert contents(tmp_path) == {"9990-000000000000001.log": b"a\n"}
    spool.store([b"b\n"])
    spool.roll()
    assert contents(tmp_path, HOUR.plus(1)) == {"9990-000000000000002.log": b"b\n"}


def test_hours_left_open_are_found_and_closed(tmp_path: Path) -> None:
    clock = Clock()
    spool = make_spool(tmp_path, clock)
    spool.store([b"a\n"])
    spool.roll()
    assert open_hours(tmp_path, "web", [9990], HOUR.end - timedelta(seconds=1)) == []
    assert open_hours(tmp_path, "web", [9991], HOUR.end) == []
    assert open_hours(tmp_path, "web", [9990], HOUR.end) == [HOUR]
    close_hour(tmp_path, "web", HOUR)
    assert look_at(tmp_path, "web", HOUR).is_closed
    assert open_hours(tmp_path, "web", [9990], HOUR.end) == []


def test_hours_of_others_are_not_closed_but_in_a_folder_of_the_receivers_own(tmp_path: Path) -> None:
    others = [HOUR.plus(1), HOUR.plus(2), HOUR.plus(3)]
    empty, files, unfinished = (hour_folder(tmp_path, "web", hour) for hour in others)
    for folder in (empty, files, unfinished):
        folder.mkdir(parents=True)
    (files / "a.json").touch()
    (unfinished / ".9993-000000000000001.log.unfinished").touch()
    assert open_hours(tmp_path, "web", [9990], HOUR.plus(9).start) == []
    assert open_hours(tmp_path, "web", None, HOUR.plus(9).start) == others


def test_nothing_is_added_to_a_file_that_has_its_name(tmp_path: Path) -> None:
    refused = []

    def sync(descriptor: int) -> None:
        if contents(tmp_path) and not refused:
            refused.append(descriptor)
            raise OSError(errno.EIO, "Input/output error")

    spool = make_spool(tmp_path, Clock(), sync=sync)
    spool.store([b"a\n", b"b\n"])
    with pytest.raises(OSError, match="Input/output error"):
        spool.roll()  # it has its name by now, and the folder is not known to have it
    assert spool.store([b"c\n"]) == 3
    assert contents(tmp_path) == {"9990-000000000000001.log": b"a\nb\n"}
    spool.roll()
    assert contents(tmp_path) == {"9990-000000000000001.log": b"a\nb\n", "9990-000000000000003.log": b"c\n"}


@pytest.mark.parametrize("seed", range(20))
def test_a_disk_that_refuses_at_random_has_each_stored_group_once(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    is_bad = True

    def sync(descriptor: int) -> None:
        if is_bad and dice.random() < 0.4:
            raise OSError(errno.ENOSPC, "No space left on device")

    clock = Clock()
    spool = make_spool(tmp_path, clock, sync=sync, roll_bytes=60)
    stored = []
    seen: dict[str, bytes] = {}
    for number in range(40):
        lines = [f"{number}-{place}\n".encode() for place in range(dice.randint(1, 4))]
        while True:
            try:
                last = spool.store(lines)
                break
            except OSError:
                continue
        stored += lines
        assert last == len(stored)
        with suppress(OSError):
            spool.roll_if_due()
        # Whoever has read a file that has its name does not read it again.
        for name, content in contents(tmp_path).items():
            assert seen.setdefault(name, content) == content
    is_bad = False
    spool.roll()
    files = contents(tmp_path)
    assert b"".join(files.values()) == b"".join(stored)
    first_ids = [int(name.partition("-")[2].removesuffix(".log")) for name in files]
    counts = [content.count(b"\n") for content in files.values()]
    assert first_ids == [1 + sum(counts[:place]) for place in range(len(counts))], "no gaps"
    assert not list(tmp_path.rglob("*.unfinished"))
