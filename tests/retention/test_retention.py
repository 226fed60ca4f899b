"""What is past its days goes, by whole log hours; what was counted from them stays, and nobody counts it again."""

from __future__ import annotations

import gzip
import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from include.errors import ClickmillError
from include.hours import Hour, HourRange
from include.landing import hour_folder
from include.sources import load_sources
from include.tables import (
    AGGREGATES,
    CLICKS,
    DUPLICATE_CLICKS,
    INGEST_ACCOUNTING,
    PUBLISHED_CLICKS_BY_COUNTRY_DAILY,
    PUBLISHED_CLICKS_BY_COUNTRY_HOURLY,
    PUBLISHED_CLICKS_BY_URL_HOURLY,
    QUARANTINED_CLICKS,
)
from include.unpublished import files_landed_since, unpublished_hours
from spark_jobs.ingest.source_ingest import SourceIngest
from spark_jobs.lake.lake import Lake
from spark_jobs.replay import job as replay_job
from spark_jobs.retention import job as retention_job
from spark_jobs.retention import old_clicks, old_landing
from tests.support.temporary_lake import TemporaryLake, assert_same_tables, click

pytestmark = pytest.mark.spark

FIRST, SECOND, LATER = "2026-01-01T05", "2026-01-01T06", "2026-01-05T05"
#: Twelve days after: log hours before 2026-01-03T12 are past nine days.
NOW = datetime(2026, 1, 12, 12, tzinfo=UTC)
NEVER_AGAIN = datetime(2026, 6, 1, tzinfo=UTC)
COUNTS = (PUBLISHED_CLICKS_BY_URL_HOURLY, PUBLISHED_CLICKS_BY_COUNTRY_HOURLY, PUBLISHED_CLICKS_BY_COUNTRY_DAILY)

LINES = {
    FIRST: click("a", "2026-01-01T05:10:00Z") + click("b", "2026-01-01T05:20:00Z") + b"no line of 192.0.2.7\n",
    # One is late by an hour, one comes twice.
    SECOND: b"".join(
        click(event, at)
        for event, at in [("c", "2026-01-01T05:50:00Z"), ("d", "2026-01-01T06:10:00Z"), ("a", "2026-01-01T05:10:00Z")]
    ),
    LATER: click("e", "2026-01-05T05:10:00Z"),
}


def keep(lake: TemporaryLake, **days: int) -> None:
    file = lake.settings.pipeline_file
    text = file.read_text(encoding="utf-8")
    entries = "".join(f"{name} = {value}\n" for name, value in days.items())
    file.write_text(text + entries if "[retention]" in text else f"{text}[retention]\n{entries}", encoding="utf-8")
    lake.settings.__dict__.pop("pipeline", None)


def filled(lake: TemporaryLake) -> TemporaryLake:
    for hour, lines in LINES.items():
        lake.land(hour, {"part-0.json": lines})
        lake.run_all(hour)
    return lake


@pytest.fixture(scope="module")
def whole(make_lake: Callable[[str], TemporaryLake]) -> TemporaryLake:
    """A lake that nobody changes."""
    return filled(make_lake("whole"))


@pytest.fixture
def lake(whole: TemporaryLake, tmp_path: Path) -> TemporaryLake:
    copied = whole.copy(tmp_path / "home")
    keep(copied, clicks_days=9)
    return copied


def maintain(lake: TemporaryLake, now: datetime = NOW, *, dry_run: bool = False, **options: Any) -> list[str]:
    return retention_job.maintain(lake.settings, dry_run=dry_run, now=now, **options)


def log_hours(lake: TemporaryLake, table: Any) -> set[str]:
    return {f"{row['log_date']}T{row['log_hour']:02d}" for row in lake.rows(table)}


def counts(lake: TemporaryLake) -> dict[str, list[dict[str, Any]]]:
    return {table.name: lake.rows(table) for table in COUNTS}


def removed_at(lake: TemporaryLake) -> dict[str, bool]:
    return {hour: row["clicks_removed_at"] is not None for hour, row in lake.accounting().items()}


def test_old_log_hours_go_their_accounts_say_so_and_their_counts_stay(lake: TemporaryLake) -> None:
    before, accounts = lake.tables(), lake.accounting()
    lines = maintain(lake, dry_run=True)
    assert lines[0].startswith(f"clicks of web, {FIRST}..2026-01-01T07: 6 rows, 4 files, ")
    assert_same_tables(lake.tables(), before)
    assert maintain(lake)[0] == lines[0]
    for table in (CLICKS, DUPLICATE_CLICKS, QUARANTINED_CLICKS):
        assert log_hours(lake, table) <= {LATER}, table
    assert log_hours(lake, CLICKS) == {LATER}
    assert counts(lake) == {name: before[name] for name in counts(lake)}
    assert removed_at(lake) == {FIRST: True, SECOND: True, LATER: False}
    without = {"clicks_removed_at": None}
    assert {hour: row | without for hour, row in lake.accounting().items()} == accounts
    versions = [lake.commits(table) for table in (CLICKS, INGEST_ACCOUNTING)]
    assert maintain(lake) == ["replaced or left behind earlier, removed: 0 files, 0.0 MB"]
    assert [lake.commits(table) for table in (CLICKS, INGEST_ACCOUNTING)] == versions


def test_killed_before_the_rows_went_the_next_run_removes_them(lake: TemporaryLake) -> None:
    old_clicks._say_removed(Lake(None, lake.settings), "web", [Hour.parse(FIRST), Hour.parse(SECOND)])
    with pytest.raises(ClickmillError, match=rf"^web {FIRST} cannot be counted or checked again \(1 of 1 log hours\)"):
        lake.run("aggregate", FIRST)
    assert maintain(lake)[0].startswith(f"clicks of web, {FIRST}..2026-01-01T07: 6 rows")
    assert log_hours(lake, CLICKS) == {LATER}


def test_what_has_been_removed_is_not_counted_again_nor_checked(lake: TemporaryLake) -> None:
    maintain(lake)
    before = counts(lake)
    for job in ("aggregate", "validate", "publish"):
        with pytest.raises(ClickmillError, match=f"^web {FIRST} cannot be counted or checked again"):
            lake.run(job, FIRST, "2026-01-01T07")
    # A click that is four days late, for an hour whose other clicks have gone.
    lake.land(LATER, {"part-0.json": LINES[LATER] + click("late", "2026-01-01T05:30:00Z")})
    lines = lake.run("ingest", LATER)
    assert f"  {FIRST} stays as it was counted: clicks of it have been removed for their age" in lines
    lake.run_all(LATER)
    assert counts(lake) == before
    assert lake.accounting()[LATER]["accepted"] == 2
    assert lake.accounting()[LATER]["click_hours"] == [LATER]
    web = load_sources(lake.settings)["web"]
    assert unpublished_hours(lake.settings, web, timedelta(days=31), NEVER_AGAIN) == []


def test_a_log_hour_that_stays_does_not_count_its_late_clicks_alone(lake: TemporaryLake) -> None:
    last = "2026-01-04T05"
    late = click("h", "2026-01-01T05:40:00Z")
    lake.land(last, {"part-0.json": late + click("i", "2026-01-04T05:40:00Z")})
    lake.run_all(last)
    before = counts(lake)
    maintain(lake)
    (message,) = [line for line in lake.run("aggregate", last) if FIRST in line]
    assert message == f"  {FIRST} stays as it was counted: the clicks of web {FIRST} have been removed for their age"
    lake.run("validate", last)
    lake.run("publish", last)
    assert counts(lake) == before


def test_ingested_again_alone_it_would_miss_its_duplicates(lake: TemporaryLake) -> None:
    maintain(lake)
    before = lake.tables()
    with pytest.raises(ClickmillError, match=rf"cannot be ingested again: the clicks of {FIRST} \(1 log hours\) have"):
        lake.run("ingest", SECOND)
    assert_same_tables(lake.tables(), before)


def test_ingested_again_together_all_is_as_it_was(lake: TemporaryLake, whole: TemporaryLake) -> None:
    maintain(lake)
    lake.run_all(FIRST, "2026-01-01T07")
    assert_same_tables(lake.tables(), whole.tables())


def test_what_is_held_or_not_published_stays_and_the_reason_is_said(lake: TemporaryLake) -> None:
    lake.land("2026-01-02T05", {"part-0.json": b"broken\n" * 9 + click("f", "2026-01-02T05:10:00Z")})
    lake.run_jobs("2026-01-02T05", "2026-01-02T06", "ingest", "aggregate", "validate", "publish")
    lake.land("2026-01-02T06", {"part-0.json": click("g", "2026-01-02T06:10:00Z")})
    lake.run("ingest", "2026-01-02T06")
    assert maintain(lake)[1:3] == [
        "  stays: 2026-01-02T05, as click hour 2026-01-02T05 is held",
        "  stays: 2026-01-02T06, as click hour 2026-01-02T06 is not published",
    ]
    assert log_hours(lake, CLICKS) == {"2026-01-02T05", "2026-01-02T06", LATER}


def test_texts_of_quarantined_lines_go_before_their_rows(lake: TemporaryLake) -> None:
    keep(lake, quarantined_days=8)
    nine_days_on = datetime(2026, 1, 10, 1, tzinfo=UTC)
    rows = lake.rows(QUARANTINED_CLICKS)
    assert "192.0.2.7" in rows[0]["raw"]
    (first_line, *_) = maintain(lake, nine_days_on)
    assert first_line.startswith(f"texts of quarantined lines of web, {FIRST}: 1 rows, 1 files")
    assert lake.rows(QUARANTINED_CLICKS) == [row | {"raw": ""} for row in rows]
    assert "0 critical failures" in lake.run("validate", FIRST)[0], "the account still adds up"
    commits = lake.commits(QUARANTINED_CLICKS)
    maintain(lake, nine_days_on, kept=timedelta(0))
    assert lake.commits(QUARANTINED_CLICKS) <= commits + 2, "no rows again, but what Delta says of removed files"
    folder = lake.settings.lake / QUARANTINED_CLICKS.name
    grep = subprocess.run(["grep", "-rl", "192.0.2.7", folder], capture_output=True, text=True, check=False)
    assert grep.stdout == ""


def test_a_replay_leaves_out_what_was_removed_and_counts_none_of_it_again(lake: TemporaryLake) -> None:
    new = "2026-01-05T06"
    broken = click("x", "2026-01-05T06:10:00Z") + click("y", "2026-01-01T05:40:00Z")
    fine = b"".join(click(f"f{number}", "2026-01-05T06:30:00Z") for number in range(9))
    lake.land(new, {"part-0.json": fine + broken.replace(b'"url"', b'"link"')})
    lake.run_all(new)
    # Killed, so that a quarantined line of it is there still.
    old_clicks._say_removed(Lake(None, lake.settings), "web", [Hour.parse(FIRST), Hour.parse(SECOND)])
    removed, before = replay(lake, FIRST, "2026-01-01T07"), counts(lake)
    assert removed == [
        "web 2026-01-01T05..2026-01-01T07: no quarantined lines; nothing to replay",
        "  left out: 2026-01-01T05..2026-01-01T07, as what they had was removed for its age",
    ]
    assert [row["reason"] for row in lake.rows(QUARANTINED_CLICKS)].count("not_json") == 1
    maintain(lake)
    lines = replay(lake, FIRST, "2026-01-05T07")
    assert lines[:2] == [lines[0], "  2026-01-05T06 missing_url: clicks 2, duplicates 0, stay 0"]
    assert removed[1] in lines
    assert f"  {FIRST} stays as it was counted: clicks of it have been removed for their age" in lines
    new_counts = counts(lake)
    assert sum(row["click_count"] for row in new_counts[PUBLISHED_CLICKS_BY_URL_HOURLY.name]) == 1 + sum(
        row["click_count"] for row in before[PUBLISHED_CLICKS_BY_URL_HOURLY.name]
    )
    of_first = [row for row in before[PUBLISHED_CLICKS_BY_URL_HOURLY.name] if row["click_hour"] == 5]
    assert [row for row in new_counts[PUBLISHED_CLICKS_BY_URL_HOURLY.name] if row["click_hour"] == 5] == of_first
    account = lake.accounting()[new]
    assert [account[name] for name in ("lines", "accepted", "quarantined", "click_hours")] == [11, 11, 0, [new]]


def test_a_replay_beside_what_was_removed_is_refused_as_an_ingest_is(lake: TemporaryLake) -> None:
    old_clicks._say_removed(Lake(None, lake.settings), "web", [Hour.parse(SECOND)])
    before = lake.tables()
    with pytest.raises(ClickmillError, match=rf"^web {FIRST} to {FIRST} cannot be ingested again: .* {SECOND} \(1 log"):
        replay(lake, FIRST, "2026-01-01T07")
    assert_same_tables(lake.tables(), before)


def replay(lake: TemporaryLake, start: str, end: str) -> list[str]:
    """By a rule that finds the URL where the mapping does not."""
    request = replay_job.Request(
        "web", HourRange(Hour.parse(start), Hour.parse(end)), rule="replace(raw, 'link', 'url')"
    )
    return replay_job.replay(lake.spark, lake.settings, request, by="Ada", because="the app is fixed")


def click_hours(lake: TemporaryLake, table: Any) -> set[str]:
    return {f"{row['click_date']}T{row['click_hour']:02d}" for row in lake.rows(table)}


def test_hourly_counts_go_with_their_exports_and_days_stay(lake: TemporaryLake) -> None:
    keep(lake, counts_days=11)
    daily = lake.rows(PUBLISHED_CLICKS_BY_COUNTRY_DAILY)
    planned = maintain(lake, NOW + timedelta(days=1), dry_run=True)
    maintain(lake, NOW)
    assert click_hours(lake, PUBLISHED_CLICKS_BY_URL_HOURLY) == {FIRST, SECOND, LATER}, "the first of January is day 11"
    lines = maintain(lake, NOW + timedelta(days=1))
    assert lines[:-1] == planned[1:-1], "counts would go with their clicks, which are the first line"
    assert [line.split(":")[0] for line in lines[:-1]] == [
        f"{name} before 2026-01-02"
        for name in (
            "clicks_by_url_hourly",
            "clicks_by_country_hourly",
            "published_clicks_by_url_hourly and exports",
            "published_clicks_by_country_hourly and exports",
        )
    ]
    for table in (*AGGREGATES, *AGGREGATES.values()):
        assert click_hours(lake, table) == {LATER}, table
    assert lake.rows(PUBLISHED_CLICKS_BY_COUNTRY_DAILY) == daily
    names = [name for name in lake.exports() if "2026-01-01" in name]
    assert names == [name for name in names if "_daily/" in name] != []
    assert maintain(lake, NOW + timedelta(days=1)) == ["replaced or left behind earlier, removed: 0 files, 0.0 MB"]


def test_hourly_counts_stay_while_an_hour_of_their_days_may_be_counted_again(lake: TemporaryLake) -> None:
    keep(lake, counts_days=11)
    lake.land("2026-01-02T06", {"part-0.json": click("g", "2026-01-02T06:10:00Z")})
    lake.run("ingest", "2026-01-02T06")
    before = counts(lake)
    lines = maintain(lake, NOW + timedelta(days=1))
    reason = "  stays: counts from 2025-12-31 on, as there are clicks of 2026-01-02T06, which may be counted again"
    assert reason in lines
    assert counts(lake) == before


def landed(lake: TemporaryLake) -> set[str]:
    folders = (lake.settings.landing / "web").glob("log_date=*/log_hour=*")
    return {f"{folder.parent.name[-10:]}T{folder.name[-2:]}" for folder in folders}


def test_landing_partitions_go_once_they_are_published_and_are_archived_whole(
    lake: TemporaryLake, tmp_path: Path
) -> None:
    keep(lake, landing_days=2)
    archive = tmp_path / "archive"
    lake.settings.pipeline_file.open("a").write(f'landing_archive = "{archive}"\n')
    lake.land("2026-01-06T06", {"part-0.json": click("h", "2026-01-06T06:10:00Z")})
    lake.run("ingest", "2026-01-06T06")
    lake.land(SECOND, {"part-0.json": LINES[SECOND] + click("i", "2026-01-01T06:20:00Z")})
    for unread in ("2026-01-06T07", "2026-01-11T05"):  # the latter is younger
        lake.land(unread, {"part-0.json": click(unread, f"{unread}:10:00Z")})
    (lake.land("2026-01-06T08", {"part-0.json": click("l", "2026-01-06T08:10:00Z")}) / "sub").mkdir()
    lake.run("ingest", "2026-01-06T08")
    lines = maintain(lake)
    assert lines[1].startswith(f"landing partitions of web, {FIRST}, {LATER}: 0 rows, 2 files, ")
    assert [line for line in lines if line.startswith("  stays")] == [
        f"  stays: {SECOND}, as it has not been ingested since it landed",
        "  stays: 2026-01-06T06, as click hour 2026-01-06T06 is not published",
        "  stays: 2026-01-06T07, as it has not been ingested since it landed",
        "  stays: 2026-01-06T08, as sub was not read",
    ]
    assert landed(lake) == {SECOND, "2026-01-06T06", "2026-01-06T07", "2026-01-06T08", "2026-01-11T05"}
    folder = archive / "web" / "log_date=2026-01-01" / "log_hour=05"
    assert (folder / "part-0.json").read_bytes() == LINES[FIRST]
    assert (folder / "_SUCCESS").exists()
    with pytest.raises(ClickmillError, match=f"the landing partition of web {LATER} is gone"):
        lake.run("ingest", LATER)


def test_a_landing_partition_whose_removal_was_killed_is_not_ingested_by_half_and_goes(lake: TemporaryLake) -> None:
    keep(lake, landing_days=2)
    folder = hour_folder(lake.settings.landing, "web", Hour.parse(LATER))
    folder.rename(old_landing._going(folder))
    with pytest.raises(ClickmillError, match=f"the landing partition of web {LATER} is gone"):
        lake.run("ingest", LATER)
    maintain(lake)
    assert list((lake.settings.landing / "web").iterdir()) == []


def late(lake: TemporaryLake) -> dict[str, list[str]]:
    web = load_sources(lake.settings)["web"]
    return {str(hour): names for hour, names in files_landed_since(lake.settings, web).items()}


def waiting(lake: TemporaryLake) -> list[str]:
    web = load_sources(lake.settings)["web"]
    return list(map(str, unpublished_hours(lake.settings, web, timedelta(days=31), NEVER_AGAIN)))


def add(lake: TemporaryLake, hour: str, name: str, content: bytes, seconds: float = -86_400) -> Path:
    """A file with another date than now, and ``_SUCCESS`` as it is."""
    file = hour_folder(lake.settings.landing, "web", Hour.parse(hour)) / name
    file.write_bytes(content)
    date = datetime.now().timestamp() + seconds
    os.utime(file, (date, date))
    return file


def test_what_landed_before_another_hour_is_run_is_still_to_be_read(whole: TemporaryLake, tmp_path: Path) -> None:
    lake = whole.copy(tmp_path / "home")
    keep(lake, landing_days=2)
    for hour, lines in ((FIRST, click("d", "2026-01-01T05:30:00Z")), (SECOND, click("z", "2026-01-01T06:40:00Z"))):
        (add(lake, hour, "late.json", lines, 0).parent / "_SUCCESS").touch()
    assert waiting(lake) == [FIRST, SECOND]
    looked = account_of(lake, SECOND)["looked_at"]
    # The click d of the second hour is a duplicate now: the hour is accounted for again, unread.
    lake.run_all(FIRST)
    assert account_of(lake, SECOND)["duplicates"] == 2
    assert account_of(lake, SECOND)["looked_at"] == looked
    assert SECOND in waiting(lake)
    maintain(lake)
    assert SECOND in landed(lake)
    lake.run_all(SECOND)
    assert (waiting(lake), late(lake)) == ([], {})
    maintain(lake)
    assert landed(lake) == set()


def account_of(lake: TemporaryLake, hour: str) -> dict[str, Any]:
    rows = lake.rows(INGEST_ACCOUNTING, without=())
    return next(row for row in rows if f"{row['log_date']}T{row['log_hour']:02d}" == hour)


def test_whatever_is_not_as_it_was_read_is_found_whatever_its_date_and_stays(lake: TemporaryLake) -> None:
    keep(lake, landing_days=2)
    part = add(lake, FIRST, "part-0.json", LINES[FIRST].replace(b'"a"', b'"q"'))
    assert part.stat().st_size == len(LINES[FIRST])
    second = hour_folder(lake.settings.landing, "web", Hour.parse(SECOND))
    (second / "part-0.json").rename(second / "part-1.json")
    add(lake, LATER, "copy.json.gz", gzip.compress(LINES[LATER]), 400 * 86_400)
    late_files = {FIRST: ["part-0.json"], SECOND: ["part-1.json"], LATER: ["copy.json.gz"]}
    assert (late(lake), waiting(lake)) == (late_files, sorted(late_files))
    lines = maintain(lake)
    assert [line for line in lines if line.startswith("  stays")] == [
        f"  stays: {hour}, as it has not been ingested since it landed" for hour in sorted(late_files)
    ]
    assert landed(lake) == set(late_files)


def test_what_lands_while_the_hour_is_ingested_is_found_though_it_was_closed_before_the_end(
    lake: TemporaryLake,
) -> None:
    keep(lake, landing_days=2)
    source = load_sources(lake.settings)["web"]
    locked = Lake(lake.spark, lake.settings)
    with locked.locked():
        job = SourceIngest(locked, lake.settings, source, allow_missing=False)
        with job.planned([Hour.parse(LATER)]) as plan:
            (add(lake, LATER, "b.json", click("n", "2026-01-05T05:40:00Z"), 0).parent / "_SUCCESS").touch()
            job.write(plan)
    assert (late(lake), waiting(lake)) == ({LATER: ["_SUCCESS", "b.json"]}, [LATER])
    lake.run_all(LATER)
    assert lake.accounting()[LATER]["accepted"] == 2
    assert (late(lake), waiting(lake)) == ({}, [])


def test_what_lands_while_the_partition_goes_is_kept_with_all_that_is_beside_it(
    lake: TemporaryLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(lake, landing_days=2)
    needed_still = old_landing.needed_still

    def and_land(*arguments: Any) -> Any:
        add(lake, LATER, "b.json", click("n", "2026-01-05T05:40:00Z"))
        return needed_still(*arguments)

    monkeypatch.setattr(old_landing, "needed_still", and_land)
    maintain(lake)
    assert landed(lake) == {LATER}
    folder = hour_folder(lake.settings.landing, "web", Hour.parse(LATER))
    assert sorted(file.name for file in folder.iterdir()) == ["_SUCCESS", "b.json", "part-0.json"]
    assert account_of(lake, LATER)["landing_removed_at"] is None
    assert (late(lake), waiting(lake)) == ({LATER: ["b.json"]}, [LATER])


def test_what_lands_after_the_partition_has_gone_does_not_take_its_place(lake: TemporaryLake) -> None:
    keep(lake, landing_days=2)
    maintain(lake)
    assert landed(lake) == set()
    lake.land(LATER, {"b.json": click("n", "2026-01-05T05:40:00Z")})
    assert late(lake) == {LATER: ["_SUCCESS", "b.json"]}
    assert waiting(lake) == [], "nobody can run it as it is"
    with pytest.raises(ClickmillError, match=rf"the landed files of web {LATER} were removed or archived at .*part-0"):
        lake.run("ingest", LATER)
    maintain(lake)
    assert landed(lake) == {LATER}
    lake.land(LATER, {"b.json": click("n", "2026-01-05T05:40:00Z"), "part-0.json": LINES[LATER]})
    lake.run("ingest", LATER)
    assert lake.accounting()[LATER]["accepted"] == 2
    assert account_of(lake, LATER)["landing_removed_at"] is None
