"""Lines that a stream has quarantined, recovered after the mapping was fixed; the stream goes on then."""

from __future__ import annotations

import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from include.errors import ClickmillError
from include.hours import Hour, HourRange
from include.tables import (
    CLICKS,
    INGEST_ACCOUNTING,
    PUBLISHED_CLICKS_BY_URL_HOURLY,
    QUARANTINED_CLICKS,
    REPLAYED_LINES,
    STREAM_BATCHES,
)
from spark_jobs.erasure.requests import Requests
from spark_jobs.hours.stream_batches import write_as_few
from spark_jobs.lake.lake import Lake
from spark_jobs.publish import decide_held
from spark_jobs.publish.decide_held import Decision
from spark_jobs.replay import job as replay_job
from spark_jobs.replay.job import Request
from spark_jobs.retention.old_clicks import old_texts
from tests.erasure.erased_lake import erase
from tests.ingest.played_lake import Homes
from tests.stream.files_lake import FilesLake, in_order_of_names
from tests.support.fault_rounds import some_of
from tests.support.killed_runs import Killed, killed_after
from tests.support.temporary_lake import click, make_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FIRST, SECOND = Hour.parse("2026-03-01T08"), Hour.parse("2026-03-01T09")
HOURS = HourRange(FIRST, SECOND.plus(1))


def _old(event_id: str, hour: Hour, minute: int) -> bytes:
    return click(
        event_id, f"{hour}:{minute:02}:00Z", f"http://shop.test/{event_id}", link=f"http://shop.test/{event_id}"
    )


def _new(event_id: str, hour: Hour, minute: int) -> bytes:
    """Of the new app: its URL is where the mapping does not look for it."""
    return click(event_id, f"{hour}:{minute:02}:00Z", f"http://shop.test/{event_id}")


#: ``both`` is among the clicks by then, ``twice`` twice in the quarantine, once in each hour.
LINES = {
    FIRST: {
        "a.json": _old("o1", FIRST, 1) + _new("n1", FIRST, 2) + _new("both", FIRST, 3) + b"nonsense\n",
        "b.json": _new("n2", FIRST, 4) + _new("twice", FIRST, 5),
    },
    SECOND: {
        "a.json": _old("both", SECOND, 6) + _new("twice", SECOND, 7) + _old("o2", SECOND, 8) + _new("n3", FIRST, 59)
    },
}
#: Lines, accepted, duplicates, quarantined, late; by log hour.
BEFORE = {FIRST: (6, 1, 0, 5, 0), SECOND: (4, 2, 0, 2, 0)}
AFTER = {FIRST: (6, 4, 1, 1, 0), SECOND: (4, 3, 1, 0, 1)}
RECOVERED = {"n1", "n2", "n3", "twice"}


def _map_url(lake: FilesLake, known: str, path: str) -> None:
    file = lake.settings.sources_file
    file.write_text(file.read_text(encoding="utf-8").replace(f'url = "{known}"', f'url = "{path}"'), encoding="utf-8")


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> FilesLake:
    """Streamed, finalised and published by the mapping that misses the new app's URLs, which is fixed then."""
    lake = FilesLake(spark, make_settings(tmp_path_factory.mktemp("streamed") / "home"))
    lake.configure()
    _map_url(lake, "url", "link")
    for hour, files in LINES.items():
        lake.land(str(hour), files)
    in_order_of_names(lake.settings.landing)
    lake.read_all()
    lake.run_jobs(str(FIRST), str(SECOND.plus(1)), "ingest", "aggregate", "validate", "publish")
    _map_url(lake, "link", "url")
    return lake


@pytest.fixture
def copy(tmp_path: Path, broken: FilesLake) -> Any:
    return Homes(tmp_path / "homes").copy(broken)


def _replay(lake: FilesLake, *, is_dry_run: bool = False) -> list[str]:
    signed = {"by": "Ada", "because": "the mapping is fixed"}
    return replay_job.replay(lake.spark, lake.settings, Request("web", HOURS), **signed, is_dry_run=is_dry_run)


def _accounts(lake: FilesLake) -> dict[Hour, tuple[int, ...]]:
    names = ("lines", "accepted", "duplicates", "quarantined", "late")
    return {
        Hour.of(row["log_date"], row["log_hour"]): tuple(row[name] for name in names)
        for row in lake.rows(INGEST_ACCOUNTING)
    }


def _clicks(lake: FilesLake) -> Counter[tuple[str, bool]]:
    return Counter((row["event_id"], row["replay_id"] is not None) for row in lake.rows(CLICKS))


EXPECTED = Counter([(event_id, True) for event_id in RECOVERED] + [(name, False) for name in ("o1", "o2", "both")])


def test_lines_of_a_stream_are_recovered_and_the_stream_goes_on(copy: FilesLake) -> None:
    assert _accounts(copy) == BEFORE
    assert _replay(copy, is_dry_run=True) == [
        "web 2026-03-01T08..2026-03-01T10: 6 quarantined lines would be recovered",
        "  2026-03-01T08 missing_url: clicks 3, duplicates 1, stay 0",
        "  2026-03-01T08 not_json: clicks 0, duplicates 0, stay 1",
        "  2026-03-01T09 missing_url: clicks 1, duplicates 1, stay 0",
        "  web 2026-03-01T08..2026-03-01T10: would be counted, validated and published",
    ]
    assert _accounts(copy) == BEFORE
    _replay(copy)
    assert _accounts(copy) == AFTER
    assert _clicks(copy) == EXPECTED
    assert [row["reason"] for row in copy.rows(QUARANTINED_CLICKS)] == ["not_json"]
    assert len(copy.rows(REPLAYED_LINES)) == 6
    published = {row["url"].rpartition("/")[2] for row in copy.rows(PUBLISHED_CLICKS_BY_URL_HOURLY)}
    assert published == {*RECOVERED, "o1", "o2", "both"}

    copy.land(str(FIRST), LINES[FIRST] | {"c.json": _new("late", FIRST, 30) + b"more nonsense\n"})
    shutil.rmtree(copy.checkpoint)  # then it is the lake that says what has been read: what was replayed says no more
    copy.read_all()
    copy.run_jobs(str(FIRST), str(SECOND.plus(1)), "ingest", "aggregate", "validate", "publish")
    lines, accepted, duplicates, quarantined, late = AFTER[FIRST]
    assert _accounts(copy) == AFTER | {FIRST: (lines + 2, accepted + 1, duplicates, quarantined + 1, late)}
    assert _clicks(copy) == EXPECTED + Counter([("late", False)])


def test_account_stays_right_when_micro_batches_are_added_up(copy: FilesLake, monkeypatch: pytest.MonkeyPatch) -> None:
    _replay(copy)
    lake, name = Lake(copy.spark, copy.settings), "spark_jobs.hours.stream_batches"
    monkeypatch.setattr(f"{name}.MOST_FILES", 0)
    # Rows of one place, so that the hour's rows are all written again.
    rows = [
        row | {"batch_id": 9, "lines": 0, "accepted": 0, "late": 0, "quarantined_by_reason": {}}
        for row in copy.rows(STREAM_BATCHES, without=())
    ]
    lake.append_rows(STREAM_BATCHES, rows)
    with lake.locked():
        write_as_few(lake, "web", datetime(2999, 1, 1, tzinfo=UTC))
    assert len(copy.rows(STREAM_BATCHES)) == len(rows)
    copy.run("ingest", str(FIRST), str(SECOND.plus(1)))
    assert _accounts(copy) == AFTER


def test_what_was_recovered_is_erased_like_other_clicks(copy: FilesLake) -> None:
    asked = Requests.of(prefixes=["http://shop.test/n1", "http://shop.test/both"])
    with pytest.raises(Killed), killed_after(3):
        _replay(copy)
    with pytest.raises(ClickmillError, match=r"^nothing is erased: replay \S+ of web was killed; run it again"):
        erase(copy, asked)
    _replay(copy)
    erase(copy, asked)
    assert _clicks(copy) == EXPECTED - Counter([("n1", True), ("both", False)])
    # Of a stream no duplicate is stored: in the first hour "both" is counted still.
    erased = {FIRST: (5, 3, 1, 1, 0), SECOND: (3, 2, 1, 0, 1)}
    assert _accounts(copy) == erased
    batches: Counter[tuple[int, str]] = Counter()
    for row in copy.rows(STREAM_BATCHES):
        batches.update({(row["log_hour"], name): row[name] for name in ("lines", "accepted", "late")})
    assert +batches == {(8, "lines"): 5, (8, "accepted"): 3, (9, "lines"): 3, (9, "accepted"): 2, (9, "late"): 1}
    shutil.rmtree(copy.checkpoint)
    copy.read_all()
    copy.run("ingest", str(FIRST), str(SECOND.plus(1)))
    assert _accounts(copy) == erased
    assert _replay(copy)[0].endswith("no quarantined line is a click by now")


def _count_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows the lines is killed in tests of its own."""
    for function in ("aggregate_measured", "require_valid"):
        monkeypatch.setattr(replay_job, function, lambda *_: [])
    monkeypatch.setattr(replay_job, "publish", lambda *_: SimpleNamespace(lines=[]))


@pytest.mark.faults
def test_killed_after_any_commit_and_run_again(
    copy: FilesLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes = Homes(tmp_path / "killed")
    _count_nothing(monkeypatch)
    for commits in some_of(range(1, 8), 3):
        lake: Any = homes.copy(copy)
        with pytest.raises(Killed), killed_after(commits):
            _replay(lake)
        _replay(lake)
        assert _accounts(lake) == AFTER, commits
        assert _clicks(lake) == EXPECTED, commits
        assert [row["reason"] for row in lake.rows(QUARANTINED_CLICKS)] == ["not_json"], commits
        assert len({row["replay_id"] for row in lake.rows(REPLAYED_LINES)}) == 1, commits


def _published(lake: FilesLake) -> set[tuple[int, str]]:
    return {(row["click_hour"], row["url"].rpartition("/")[2]) for row in lake.rows(PUBLISHED_CLICKS_BY_URL_HOURLY)}


def _withdraw(lake: FilesLake) -> list[str]:
    (replay_id,) = {row["replay_id"] for row in lake.rows(REPLAYED_LINES)}
    return replay_job.withdraw(lake.spark, lake.settings, replay_id, by="Eve", because="the wrong mapping")


def test_withdrawn_replay_of_a_stream_leaves_its_lines_quarantined(copy: FilesLake, tmp_path: Path) -> None:
    before = {table: copy.rows(table) for table in (CLICKS, QUARANTINED_CLICKS)}
    half: Any = Homes(tmp_path / "withdrawn").copy(copy)
    with pytest.raises(Killed), killed_after(3):
        _replay(half)
    with pytest.raises(ClickmillError, match=r"was killed half way: run it again, .* and withdraw it then"):
        _withdraw(half)
    _replay(copy)
    lines = _withdraw(copy)
    assert lines[0].endswith(" of web 2026-03-01T08..2026-03-01T10: withdrawn, 6 lines are quarantined again")
    assert lines[1:3] == [
        "  2026-03-01T08 missing_url: quarantined again 4",
        "  2026-03-01T09 missing_url: quarantined again 2",
    ]
    assert _accounts(copy) == BEFORE
    for table, rows in before.items():
        assert copy.rows(table) == rows, table
    # Of the first hour five of six lines are in quarantine, for which it had been held before the replay.
    assert f"  {FIRST} is held; to decide: clickmill decide --hour {FIRST} --help" in lines
    assert _published(copy) == {(8, name) for name in RECOVERED | {"o1"}} | {(9, "both"), (9, "o2")}
    decide_held.decide(copy.spark, copy.settings, Decision(FIRST, "publish", "Eve", "the app is broken"))
    assert _published(copy) == {(8, "o1"), (9, "both"), (9, "o2")}
    # It goes on: what the stream does comes to what is there, and another replay finds the lines.
    copy.land(str(FIRST), LINES[FIRST] | {"c.json": _new("late", FIRST, 30)})
    shutil.rmtree(copy.checkpoint)
    copy.read_all()
    copy.run("ingest", str(FIRST), str(SECOND.plus(1)))
    assert _accounts(copy)[FIRST] == (7, 2, 0, 5, 0)
    assert _replay(copy)[0].startswith("web 2026-03-01T08..2026-03-01T10: 6 quarantined lines recovered")
    assert _clicks(copy) == EXPECTED + Counter([("late", False)])


def test_withdrawal_of_a_stream_whose_clicks_were_erased(copy: FilesLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where lines have no ids, so that none is a duplicate, and what is kept of them has no text any more."""
    file = copy.settings.sources_file
    web = 'event_id = "event_id"\n'
    assert web in file.read_text(encoding="utf-8")
    file.write_text(file.read_text(encoding="utf-8").replace(web, "", 1), encoding="utf-8")
    monkeypatch.setattr(replay_job, "_count", lambda *_: [])
    _replay(copy)
    lake = Lake(copy.spark, copy.settings)
    with lake.locked():
        for stage in old_texts(lake, "web", SECOND.plus(1)):
            stage.run()
    # By landed lines the erasure would know which of them these were.
    shutil.rmtree(copy.settings.landing / "web")
    erase(copy, Requests.of(prefixes=["http://shop.test/n", "http://shop.test/both", "http://shop.test/twice"]))
    erased = {FIRST: (2, 1, 0, 1, 0), SECOND: (1, 1, 0, 0, 0)}
    assert _accounts(copy) == erased
    assert len(copy.rows(REPLAYED_LINES)) == 6
    batches = copy.rows(STREAM_BATCHES)
    lines = _withdraw(copy)
    assert lines[0].endswith("withdrawn, 0 lines are quarantined again")
    assert lines[1].endswith(" missing_url: quarantined again 0, not there any more 4")
    assert copy.rows(STREAM_BATCHES) == batches
    copy.run("ingest", str(FIRST), str(SECOND.plus(1)))
    assert _accounts(copy) == erased
    assert _clicks(copy) == Counter([("o1", False), ("o2", False)])


@pytest.mark.faults
def test_withdrawal_of_a_stream_that_is_killed_goes_on(
    copy: FilesLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quarantined = copy.rows(QUARANTINED_CLICKS)
    _count_nothing(monkeypatch)
    _replay(copy)
    homes = Homes(tmp_path / "killed")
    for commits in some_of(range(1, 8), 3):
        lake: Any = homes.copy(copy)
        with pytest.raises(Killed), killed_after(commits):
            _withdraw(lake)
        if commits in (2, 4):
            with pytest.raises(ClickmillError, match=r"^nothing is erased: the withdrawal of replay .* was killed"):
                erase(lake, Requests.of(prefixes=["http://shop.test/o1"]))
        # The last commit says that it is over.
        expected = "6 lines are quarantined again" if commits < 7 else ": was withdrawn by Eve at "
        assert expected in _withdraw(lake)[0], commits
        assert _accounts(lake) == BEFORE, commits
        assert _clicks(lake) == Counter([(name, False) for name in ("o1", "o2", "both")]), commits
        assert lake.rows(QUARANTINED_CLICKS) == quarantined, commits


def test_an_hour_that_is_open_is_refused(copy: FilesLake) -> None:
    late = SECOND.plus(1)
    copy.land(str(late), {"a.json": click("x", f"{late}:00:00Z", "")})
    shutil.rmtree(copy.checkpoint)
    copy.read_all()
    with pytest.raises(ClickmillError, match=r"web 2026-03-01T10 is open: .* run: clickmill ingest"):
        replay_job.replay(
            copy.spark, copy.settings, Request("web", HourRange(FIRST, late.plus(1))), by="Ada", because="test"
        )
    assert _accounts(copy) == BEFORE
