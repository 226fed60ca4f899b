"""Bad input is a quarantined line with a reason, or a clear error: never a lost line or a half-written table."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from include.errors import MissingLandingError
from include.hours import Hour
from include.settings import REPOSITORY
from include.tables import (
    AGGREGATES,
    CLICKS,
    CLICKS_BY_URL_HOURLY,
    DUPLICATE_CLICKS,
    PUBLISHED_CLICKS_BY_COUNTRY_HOURLY,
    PUBLISHED_CLICKS_BY_URL_HOURLY,
    QUALITY_RESULTS,
    QUARANTINED_CLICKS,
    SKETCH_LG_K,
    UNFINISHED_INGESTS,
)
from spark_jobs.erasure.accounts import recount
from spark_jobs.lake.lake import Lake
from tests.support.temporary_lake import TemporaryLake, click

pytestmark = pytest.mark.spark

DAY = "2026-03-01"


def _ids(lake: TemporaryLake) -> list[str]:
    return [row["event_id"] for row in lake.rows(CLICKS)]


def _clicks(hour: str, count: int, name: str = "e", **fields: Any) -> bytes:
    return b"".join(click(f"{name}{n}", f"{hour}:{n % 60:02d}:{n // 60 % 60:02d}Z", **fields) for n in range(count))


@pytest.fixture(scope="module")
def bad(make_lake: Callable[[str], TemporaryLake]) -> TemporaryLake:
    """One lake, one run, one kind of bad input a log hour."""
    lake = make_lake("bad")
    # 04: lines that a rule leaves out, beside a duplicate and a bad one.
    with lake.settings.sources_file.open("a", encoding="utf-8") as file:
        file.write('[[sources.web.drop]]\nname = "tests"\nfield = { kind = "test" }\n')
    at = f"{DAY}T04:30:00Z"
    tests = [click("kept", at, kind="test"), b'{"kind": "test"}\n', click("other", "no time", kind="test")]
    lake.land(f"{DAY}T04", {"a.json": b"".join([tests[0], click("kept", at), *tests[1:], click("kept", at), b"no\n"])})
    # 05: a gzip that breaks off beside one that is whole.
    whole = gzip.compress(_clicks(f"{DAY}T05", 5000, "broken", user_agent="Mozilla/5.0 (a test)"))
    folder = lake.land(f"{DAY}T05", {"whole.json.gz": _clicks(f"{DAY}T05", 10, "whole")})
    (folder / "broken.json.gz").write_bytes(whole[: len(whole) * 2 // 3])
    # 06: closed, without files.
    lake.land(f"{DAY}T06", {})
    # 07: 50 MB without a line end, between two clicks.
    lake.land(
        f"{DAY}T07",
        {"long.json": click("a", f"{DAY}T07:00:00Z") + b"x" * 50_000_000 + b"\n" + click("b", f"{DAY}T07:00:01Z")},
    )
    # 08: bytes that are no text. NUL is UTF-8, and JSON may carry it escaped.
    lake.land(
        f"{DAY}T08",
        {
            "bytes.json": b"\n".join(
                [
                    click("nul", f"{DAY}T08:00:00Z", url="http://shop.test/\x00").rstrip(),
                    b'{"event_id":"raw\x00nul","ts":"2026-03-01T08:00:01Z","url":"http://shop.test/"}',
                    b'{"event_id":"M\xfcnchen","ts":"2026-03-01T08:00:02Z","url":"http://shop.test/"}',
                    b"\xff\xfe\x00",
                    b"\x00\x00\x00",
                    "é".encode() * 3,
                    click("fine", f"{DAY}T08:00:03Z").rstrip(),
                ]
            )
        },
    )
    # 09: times far away.
    lake.land(
        f"{DAY}T09",
        {
            "times.json": click("epoch", "1970-01-01T00:00:00Z")
            + click("before", "1969-12-31T23:59:59Z")
            + click("far", "2100-01-01T00:00:00Z")
            + click("huge", "+294247-01-10T04:00:54.775807Z")
            + click("zero", "0000-00-00T00:00:00Z")
            + click("now", f"{DAY}T09:30:00Z")
        },
    )
    # 10: a last line without its end; hidden and unfinished files are not data.
    lake.land(
        f"{DAY}T10",
        {
            "open.json": click("last", f"{DAY}T10:00:00Z").rstrip(b"\n"),
            ".hidden.json": click("hidden", f"{DAY}T10:00:00Z"),
            "_draft.json": click("draft", f"{DAY}T10:00:00Z"),
            "empty.json": b"",
        },
        is_closed=False,
    )
    lake.run("ingest", f"{DAY}T04", f"{DAY}T11")
    return lake


def test_what_a_rule_leaves_out_is_an_outcome_of_its_own(bad: TemporaryLake) -> None:
    account = bad.accounting()[f"{DAY}T04"]
    names = ("lines", "accepted", "duplicates", "quarantined", "left_out", "left_out_by_rule")
    assert [account[name] for name in names] == [6, 1, 1, 1, 3, {"tests": 3}]
    assert [row["line"] for row in bad.rows(CLICKS) if row["log_hour"] == 4] == [2]
    assert [row["raw"] for row in bad.rows(QUARANTINED_CLICKS) if row["log_hour"] == 4] == ["no"]
    # Where the rows of an hour are counted after an erasure, what is in no table is not forgotten.
    recount(Lake(bad.spark, bad.settings), "web", [Hour.parse(f"{DAY}T04")])
    again = bad.accounting()[f"{DAY}T04"]
    assert {name: again[name] for name in account.keys() - {"ingested_at"}} == {
        name: account[name] for name in account.keys() - {"ingested_at"}
    }


def test_lines_before_the_damage_count(bad: TemporaryLake) -> None:
    broken = (bad.settings.landing / "web" / f"log_date={DAY}" / "log_hour=05" / "broken.json.gz").read_bytes()
    readable = zlib.decompressobj(wbits=31).decompress(broken)
    complete = readable.count(b"\n")
    assert 0 < complete < 5000
    assert not readable.endswith(b"\n")
    account = bad.accounting()[f"{DAY}T05"]
    assert account["damaged_files"] == ["broken.json.gz"]
    # The line at which the file breaks off may be there in part: then it is in quarantine, not gone unseen.
    assert account["accepted"] == complete + 10
    assert account["lines"] - account["accepted"] in (0, 1)
    assert account["quarantined_by_reason"] in ({}, {"not_json": 1})
    ids = {name for name in _ids(bad) if name.startswith("broken")}
    assert ids == {f"broken{n}" for n in range(complete)}


def test_closed_hour_without_files_is_accounted_for(bad: TemporaryLake) -> None:
    account = bad.accounting()[f"{DAY}T06"]
    assert account["is_closed"]
    assert [account[name] for name in ("lines", "accepted", "duplicates", "quarantined", "files", "bytes")] == [0] * 6
    assert account["first_clicked_at"] is None
    assert account["click_hours"] == []


def test_very_long_line_is_quarantined_and_its_neighbours_are_not(bad: TemporaryLake) -> None:
    assert bad.accounting()[f"{DAY}T07"]["quarantined_by_reason"] == {"line_too_long": 1}
    (line,) = [row for row in bad.rows(QUARANTINED_CLICKS) if row["log_hour"] == 7]
    assert (line["file"], line["line"], line["raw"]) == ("long.json", 2, "x" * 8192)
    assert {"a", "b"} <= set(_ids(bad))


def test_bytes_that_are_no_text_are_quarantined(bad: TemporaryLake) -> None:
    lines = {row["line"]: row["reason"] for row in bad.rows(QUARANTINED_CLICKS) if row["log_hour"] == 8}
    assert (lines[3], lines[4], lines[6]) == ("not_utf8", "not_utf8", "not_json")
    assert lines[5] in ("blank", "not_json")
    assert {"fine"} <= set(_ids(bad))
    account = bad.accounting()[f"{DAY}T08"]
    assert account["lines"] == 7 == account["accepted"] + account["quarantined"]
    (raw,) = [row["raw"] for row in bad.rows(QUARANTINED_CLICKS) if (row["log_hour"], row["line"]) == (8, 3)]
    assert "M\ufffdnchen" in raw


def test_times_far_away_are_quarantined(bad: TemporaryLake) -> None:
    reasons = bad.accounting()[f"{DAY}T09"]["quarantined_by_reason"]
    # Whether a year of six digits is a time may be told either way; it is not a click.
    assert reasons in ({"time_out_of_range": 4, "bad_time": 1}, {"time_out_of_range": 3, "bad_time": 2})
    assert [row["event_id"] for row in bad.rows(CLICKS) if row["log_hour"] == 9] == ["now"]


def test_last_line_needs_no_end_and_hidden_files_are_not_data(bad: TemporaryLake) -> None:
    account = bad.accounting()[f"{DAY}T10"]
    assert (account["lines"], account["accepted"], account["files"], account["is_closed"]) == (1, 1, 2, False)
    assert not {"hidden", "draft"} & set(_ids(bad))


def test_damage_and_open_hours_are_warnings_and_are_published(bad: TemporaryLake) -> None:
    # Hours that are mostly malformed would be held.
    with bad.settings.pipeline_file.open("a", encoding="utf-8") as file:
        file.write("[thresholds]\nquarantined_share = { critical = 1 }\n")
    bad.settings.__dict__.pop("pipeline", None)
    for job in ("aggregate", "validate", "publish"):
        bad.run(job, f"{DAY}T04", f"{DAY}T11")
    failed = [row for row in bad.rows(QUALITY_RESULTS) if row["outcome"] == "fail"]
    assert {row["severity"] for row in failed} == {"warning"}
    closed = [row["partition"] for row in failed if row["check_id"] == "hour_is_complete"]
    assert sorted(closed) == [f"web {DAY}T05", f"web {DAY}T10"]
    clicks = Counter((row["click_date"], row["click_hour"], row["url"]) for row in bad.rows(CLICKS))
    published = {
        (row["click_date"], row["click_hour"], row["url"]): row["click_count"]
        for row in bad.rows(PUBLISHED_CLICKS_BY_URL_HOURLY)
    }
    assert published == dict(clicks)


def test_a_file_that_is_being_written_in_the_landing_zone_is_whole_after_the_next_run(lake: TemporaryLake) -> None:
    """As syslog's writers do it; field case B16."""
    hour = f"{DAY}T05"
    whole = _clicks(hour, 4)
    folder = lake.land(hour, {"host-a.json": whole[:-30]}, is_closed=False)
    lake.run("ingest", hour, allow_missing=True)
    account = lake.accounting()[hour]
    assert (account["accepted"], account["quarantined"], account["is_closed"]) == (3, 1, False)

    (folder / "host-a.json").write_bytes(whole)
    (folder / "_SUCCESS").touch()
    lake.run("ingest", hour)
    account = lake.accounting()[hour]
    assert (account["accepted"], account["quarantined"], account["is_closed"]) == (4, 0, True)
    assert sorted(_ids(lake)) == ["e0", "e1", "e2", "e3"]
    assert not lake.rows(QUARANTINED_CLICKS)


def test_hour_that_becomes_empty_loses_exactly_its_clicks(lake: TemporaryLake) -> None:
    first, second = f"{DAY}T05", f"{DAY}T06"
    lake.land(first, {"a.json": _clicks(first, 5, "stays") + click("stays-too", f"{DAY}T04:59:00Z")})
    lake.land(second, {"a.json": _clicks(second, 4, "goes") + click("late", f"{DAY}T05:30:00Z", "http://late.test/")})
    lake.run_all(first, f"{DAY}T07")
    stays = [row for row in lake.rows(CLICKS) if row["log_hour"] == 5]
    assert len(lake.rows(CLICKS)) == 11

    lake.land(second, {})
    lake.run_all(second)

    assert lake.rows(CLICKS) == stays
    expected = Counter((row["click_hour"], row["url"]) for row in stays)
    for table in (CLICKS_BY_URL_HOURLY, PUBLISHED_CLICKS_BY_URL_HOURLY):
        assert {(row["click_hour"], row["url"]): row["click_count"] for row in lake.rows(table)} == expected
    assert sum(row["click_count"] for row in lake.rows(PUBLISHED_CLICKS_BY_COUNTRY_HOURLY)) == 6
    account = lake.accounting()[second]
    assert account["lines"] == 0
    assert account["click_hours"] == [first, second]


def test_first_arrival_that_goes_gives_way_to_the_second(lake: TemporaryLake) -> None:
    first, second = f"{DAY}T05", f"{DAY}T06"
    lake.land(first, {"a.json": click("x", f"{DAY}T05:10:00Z", "http://shop.test/first")})
    lake.land(second, {"a.json": click("x", f"{DAY}T05:10:00Z", "http://shop.test/second")})
    lake.run("ingest", first, f"{DAY}T07")
    assert [row["url"] for row in lake.rows(CLICKS)] == ["http://shop.test/first"]
    assert lake.accounting()[second]["duplicates_of"] == {first: 1}
    lake.land(first, {})
    lake.run("ingest", first)
    assert [row["url"] for row in lake.rows(CLICKS)] == ["http://shop.test/second"]
    assert [account["accepted"] for account in lake.accounting().values()] == [0, 1]


def test_landing_that_never_came_is_refused_unless_allowed(lake: TemporaryLake) -> None:
    with pytest.raises(MissingLandingError, match=f"no landing partition for web {DAY}T05.*--allow-missing"):
        lake.run("ingest", f"{DAY}T05")
    assert lake.tables() == {name: [] for name in lake.tables()}
    lake.run("ingest", f"{DAY}T05", allow_missing=True)
    assert [account["lines"] for account in lake.accounting().values()] == [0]


def test_landing_that_is_gone_is_refused_even_if_missing_is_allowed(lake: TemporaryLake) -> None:
    folder = lake.land(f"{DAY}T05", {"a.json": _clicks(f"{DAY}T05", 3)})
    lake.run("ingest", f"{DAY}T05")
    before = lake.tables()
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    with pytest.raises(MissingLandingError, match="3 lines stay in the lake"):
        lake.run("ingest", f"{DAY}T05", allow_missing=True)
    assert lake.tables() == before


def test_later_hour_whose_files_are_gone_changes_all_the_same(lake: TemporaryLake) -> None:
    earlier, later = f"{DAY}T05", f"{DAY}T07"
    folder = lake.land(later, {"a.json": click("same", f"{DAY}T07:00:00Z") + click("other", f"{DAY}T07:00:01Z")})
    lake.run("ingest", later)
    shutil.rmtree(folder)
    lake.land(earlier, {"a.json": click("same", f"{DAY}T05:00:00Z")})
    lines = lake.run("ingest", earlier)
    assert any("duplicates or the reverse" in line and line.endswith(later) for line in lines), lines
    assert sorted((row["event_id"], row["log_hour"]) for row in lake.rows(CLICKS)) == [("other", 7), ("same", 5)]
    ((duplicate),) = lake.rows(DUPLICATE_CLICKS)
    assert (duplicate["event_id"], duplicate["log_hour"], duplicate["first_log_hour"]) == ("same", 7, 5)
    account = lake.accounting()[later]
    assert (account["lines"], account["accepted"], account["duplicates_of"]) == (2, 1, {earlier: 1})
    # And back, when the earlier one is gone.
    lake.land(earlier, {"a.json": b""})
    lake.run("ingest", earlier)
    assert sorted((row["event_id"], row["log_hour"]) for row in lake.rows(CLICKS)) == [("other", 7), ("same", 7)]
    assert lake.rows(DUPLICATE_CLICKS) == []
    account = lake.accounting()[later]
    assert (account["lines"], account["accepted"], account["duplicates_of"]) == (2, 2, {})


def _start_ingest(lake: TemporaryLake, spark_remote: str) -> subprocess.Popen[bytes]:
    settings = lake.settings
    environment = os.environ | {
        "SPARK_REMOTE": spark_remote,
        "CLICKMILL_HOME": str(settings.home),
        "CLICKMILL_SOURCES": str(settings.sources_file),
        "CLICKMILL_PIPELINE": str(settings.pipeline_file),
    }
    command = [sys.executable, "-m", "clickmill", "ingest", "--from", f"{DAY}T05", "--to", f"{DAY}T07"]
    return subprocess.Popen(command, env=environment, cwd=REPOSITORY, stderr=subprocess.DEVNULL)


def _kill_when(process: subprocess.Popen[bytes], reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not reached():
        assert process.poll() is None, "the job ended before it was killed"
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_ingest_that_was_killed_and_run_again_equals_one_that_was_not(
    lake: TemporaryLake, make_lake: Callable[[str], TemporaryLake], spark_remote: str
) -> None:
    undisturbed = make_lake("undisturbed")
    for home in (lake, undisturbed):
        home.land(f"{DAY}T05", {"a.json.gz": _clicks(f"{DAY}T05", 3000), "b.json": b"nonsense\n"})
        home.land(f"{DAY}T06", {"a.json.gz": _clicks(f"{DAY}T05", 3000), "c.json": _clicks(f"{DAY}T06", 500, "c")})
    undisturbed.run("ingest", f"{DAY}T05", f"{DAY}T07")
    assert len(_ids(undisturbed)) == 3500

    tables = lake.settings.lake
    # While the first files of clicks are written; and when the clicks are committed but not accounted for.
    moments: list[Callable[[], bool]] = [
        lambda: any((tables / "clicks").glob("**/*.parquet")),
        lambda: any((tables / "clicks" / "_delta_log").glob("*1.json")),
    ]
    for reached in moments:
        if reached():
            continue
        _kill_when(_start_ingest(lake, spark_remote), reached)
        assert len(lake.rows(UNFINISHED_INGESTS)) == 2
    assert any((tables / "clicks").iterdir())
    lake.run("ingest", f"{DAY}T05", f"{DAY}T07")
    assert lake.tables() == undisturbed.tables()


def test_two_aggregations_side_by_side_equal_one(lake: TemporaryLake) -> None:
    lake.land(f"{DAY}T05", {"a.json": _clicks(f"{DAY}T05", 50)})
    lake.land(f"{DAY}T06", {"a.json": _clicks(f"{DAY}T05", 40, "late") + _clicks(f"{DAY}T06", 30, "six")})
    lake.run("ingest", f"{DAY}T05", f"{DAY}T07")
    failures: list[BaseException] = []

    def aggregate(hour: str) -> None:
        try:
            lake.run("aggregate", hour)
        except BaseException as error:
            failures.append(error)

    # Both count click hour 05.
    threads = [threading.Thread(target=aggregate, args=(f"{DAY}T{hour}",)) for hour in ("05", "06")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    side_by_side = {table.name: lake.rows(table) for table in AGGREGATES}
    lake.run("aggregate", f"{DAY}T05", f"{DAY}T07")
    assert side_by_side == {table.name: lake.rows(table) for table in AGGREGATES}
    counts = {row["click_hour"]: row["click_count"] for row in lake.rows(CLICKS_BY_URL_HOURLY)}
    assert counts == {5: 90, 6: 30}


def test_client_addresses_are_kept_nowhere(lake: TemporaryLake) -> None:
    line = '203.0.113.77 - - [01/Mar/2026:05:10:00 +0000] "GET /a HTTP/1.1" 200 1 "-" "curl/8"\n'
    bad = line.replace("05:10:00", "05:61:00").replace("/a", "/?for=203.0.113.77")
    lake.land(f"{DAY}T05", {"a.log": (line + bad).encode()}, source="access")
    lake.run("ingest", f"{DAY}T05", source="access")
    (quarantined,) = lake.rows(QUARANTINED_CLICKS)
    assert quarantined["raw"] == bad.replace("203.0.113.77", "203.0.113.0").rstrip("\n")
    assert quarantined["bytes"] == len(bad) - 1
    (row,) = lake.rows(CLICKS)
    assert row["url"] == "http://www.example.com/a"
    assert row["country_code"] == "unknown"
    assert len(row["visitor_id"]) == 32
    assert "203.0.113.77" not in json.dumps(lake.tables(), default=str)
    assert not [
        file for file in Path(lake.settings.lake).rglob("*") if file.is_file() and b"203.0.113.77" in file.read_bytes()
    ]


def failures(lake: TemporaryLake) -> set[tuple[str, str]]:
    """Check and severity of what failed."""
    return {(row["check_id"], row["severity"]) for row in lake.rows(QUALITY_RESULTS) if row["outcome"] == "fail"}


def test_two_event_ids_of_one_hash_hold_no_hour(lake: TemporaryLake) -> None:
    """As anybody finds them in an instant: the stripes of xxHash can be changed so that one undoes the other."""
    fill = "-" * 24
    ids = [f"exerrztp{fill}0553o0q3{fill}", f"0lddis7y{fill}0{{VvKDwe{fill}"]
    columns = ", ".join(f"xxhash64('web', '{event_id}')" for event_id in ids)
    (hashes,) = lake.spark.sql(f"SELECT {columns}").collect()
    assert hashes[0] == hashes[1]
    lake.land("2026-03-01T05", {"a.json": b"".join(click(event_id, "2026-03-01T05:00:00Z") for event_id in ids)})
    lake.run_all("2026-03-01T05")
    assert not {check for check, severity in failures(lake) if severity == "critical"}
    assert [row["click_count"] for row in lake.rows(PUBLISHED_CLICKS_BY_URL_HOURLY)] == [2]


def test_visitor_ids_that_were_chosen_for_the_sketch_hold_no_hour(lake: TemporaryLake) -> None:
    """2,000 that fall on as many registers look like many more: the sketch's hash is public, and so is its seed."""
    names = lake.spark.sql(
        f"SELECT text, hll_sketch_agg(text, {SKETCH_LG_K}) AS sketch FROM "
        "(SELECT concat('visitor-', id) AS text FROM range(6000)) GROUP BY text"
    )
    # A sketch of one is a list of one coupon, whose lowest bits are its register.
    by_register = {
        int.from_bytes(row["sketch"][8:10], "little") % 2**SKETCH_LG_K: row["text"] for row in names.collect()
    }
    chosen = sorted(by_register.values())[:2000]
    assert len(chosen) == 2000
    lines = [
        click(str(number), "2026-03-01T05:00:00Z", visitor_id=visitor, user_agent="Firefox")
        for number, visitor in enumerate(chosen)
    ]
    lake.land("2026-03-01T05", {"a.json": b"".join(lines)})
    lake.run_all("2026-03-01T05")
    failed_checks = failures(lake)
    assert ("url_visitors_within_clicks", "warning") in failed_checks, "they do look like more"
    assert not {check for check, severity in failed_checks if severity == "critical"}
    assert [row["click_count"] for row in lake.rows(PUBLISHED_CLICKS_BY_URL_HOURLY)] == [2000]
