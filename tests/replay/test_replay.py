"""Quarantined lines that a fixed mapping, or a rule, makes clicks: as if they had been ingested so from the start."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clickmill.app import run as run_command
from include.errors import ClickmillError, UsageError
from include.hours import Hour, HourRange
from include.journal import REPLAY, read_events
from include.tables import (
    CLICKS,
    DUPLICATE_CLICKS,
    INGEST_ACCOUNTING,
    JOURNAL,
    QUARANTINED_CLICKS,
    REPLAY_OUTCOMES,
    REPLAYED_LINES,
    UNFINISHED_INGESTS,
)
from spark_jobs.lake.lake import Lake
from spark_jobs.replay import job as replay_job
from spark_jobs.replay.job import Request
from tests.ingest.played_lake import Homes, with_short_reach
from tests.support.fault_rounds import some_of
from tests.support.killed_runs import Killed, killed_after
from tests.support.temporary_lake import TemporaryLake, assert_same_tables, click

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HOURS = [str(Hour.parse("2026-03-01T05").plus(hours)) for hours in range(6)]
FROM, TO = HOURS[0], str(Hour.parse(HOURS[-1]).plus(1))
SIGNED = {"by": "Ada", "because": "the mapping is fixed"}
#: What only a replay writes, and who was there first.
OF_REPLAYS = {REPLAYED_LINES.name, REPLAY_OUTCOMES.name}


def _lines(hour: int) -> dict[str, bytes]:
    """Two files: clicks of the old app, of the new one, whose URL is elsewhere, broken ones, and ids of other hours.

    The id ``every`` is in each hour, first in a line of the new app where the hour is even.
    """
    at = HOURS[hour] + ":{:02}:00Z"
    old = [
        click(f"o{hour}-{n}", at.format(n * 7 % 60), f"http://shop.test/{n}", link=f"http://shop.test/{n}")
        for n in range(8)
    ]
    new = [click(f"n{hour}-{n}", at.format(n * 11 % 60), f"http://shop.test/{n}") for n in range(6)]
    again = [click(f"n{max(hour - 1, 0)}-1", at.format(50), "http://shop.test/again", link="http://shop.test/again")]
    every = [
        click(
            "every",
            at.format(30),
            "http://shop.test/every",
            **({} if hour % 2 == 0 else {"link": "http://shop.test/every"}),
        )
    ]
    bad = [b"nonsense\n", b"day=" + click(f"r{hour}", at.format(40), "http://shop.test/repaired")]
    return {"a.json": b"".join(old[:4] + new[:3] + every + bad), "b.json.gz": b"".join(again + new[3:] + old[4:])}


def _map_url(lake: TemporaryLake, path: str) -> None:
    file = lake.settings.sources_file
    text = file.read_text(encoding="utf-8")
    for known in ("link", "url"):
        text = text.replace(f'url = "{known}"', f'url = "{path}"')
    file.write_text(text, encoding="utf-8")


def _landed(lake: TemporaryLake) -> TemporaryLake:
    with_short_reach(lake)
    for number, hour in enumerate(HOURS):
        lake.land(hour, _lines(number))
    return lake


@pytest.fixture(scope="module")
def broken(make_lake: Callable[[str], TemporaryLake]) -> TemporaryLake:
    """All hours ingested and published by the mapping that misses the new app's URLs, which is fixed then."""
    lake = _landed(make_lake("broken"))
    _map_url(lake, "link")
    lake.run_jobs(FROM, TO, "ingest", "aggregate", "validate", "publish")
    _map_url(lake, "url")
    return lake


@pytest.fixture(scope="module")
def right(make_lake: Callable[[str], TemporaryLake]) -> TemporaryLake:
    """The same, by the fixed mapping from the start."""
    lake = _landed(make_lake("right"))
    lake.run_jobs(FROM, TO, "ingest", "aggregate", "validate", "publish")
    return lake


@pytest.fixture
def copy(tmp_path: Path, broken: TemporaryLake) -> TemporaryLake:
    return Homes(tmp_path / "homes").copy(broken)


@pytest.fixture
def uncounted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines alone are recovered: nothing is counted, validated and published after them."""
    monkeypatch.setattr(replay_job, "_count", lambda *_: [])


def _replay(lake: TemporaryLake, *reasons: str, rule: str | None = None, is_dry_run: bool = False) -> list[str]:
    request = _request(*reasons, rule=rule)
    return replay_job.replay(lake.spark, lake.settings, request, **SIGNED, is_dry_run=is_dry_run)


def _request(*reasons: str, rule: str | None = None) -> Request:
    return Request("web", HourRange(Hour.parse(FROM), Hour.parse(TO)), reasons, rule)


def _tables(lake: TemporaryLake) -> dict[str, list[dict[str, Any]]]:
    """Without what says that, and when, there was a replay."""
    tables = {name: rows for name, rows in lake.tables().items() if name not in OF_REPLAYS}
    for name in (CLICKS.name, DUPLICATE_CLICKS.name):
        for row in tables[name]:
            del row["replay_id"]
    return tables


def _events(lake: TemporaryLake) -> list[dict[str, Any]]:
    """What is on record of replays, oldest first."""
    return read_events(lake.settings.lake, [("kind", "=", REPLAY)])


def _ids(lake: TemporaryLake) -> set[str]:
    """The replays on record."""
    return {row["subject"] for row in _events(lake)}


def _marked(lake: TemporaryLake) -> Counter[str]:
    """The ids of clicks and duplicates that a replay has recovered."""
    rows = lake.rows(CLICKS) + lake.rows(DUPLICATE_CLICKS)
    return Counter(row["event_id"] for row in rows if row["replay_id"] is not None)


#: By the lines themselves: those of the new app.
NEW_APP = Counter([f"n{hour}-{n}" for hour in range(6) for n in range(6)] + ["every"] * 3)
REPAIRED = Counter(f"r{hour}" for hour in range(6))


def test_replay_gives_the_tables_of_the_fixed_mapping(copy: TemporaryLake, right: TemporaryLake) -> None:
    lines = _replay(copy)
    assert_same_tables(_tables(copy), _tables(right))
    assert _marked(copy) == NEW_APP
    (begun, done) = _events(copy)
    assert [row["event"] for row in (begun, done)] == ["begun", "done"]
    assert (done["details"]["lines"], done["actor"], done["because"]) == ("39", "Ada", "the mapping is fixed")
    assert copy.acts() == [("replay_quarantined", "completed")]
    assert lines[0].startswith("web 2026-03-01T05..2026-03-01T11: 39 quarantined lines recovered")
    before = copy.tables()
    copy.run_all(FROM, TO)
    assert_same_tables(copy.tables(), before)


def test_rule_repairs_lines_and_later_ingests_apply_it(copy: TemporaryLake, tmp_path: Path) -> None:
    fixed = Homes(tmp_path / "fixed").copy(copy)
    for number, hour in enumerate(HOURS):
        fixed.land(hour, {name: _repaired(content) for name, content in _lines(number).items()})
    shutil.rmtree(fixed.settings.lake)
    fixed.run_jobs(FROM, TO, "ingest", "aggregate", "validate", "publish")
    _replay(copy, "not_json", rule=RULE)
    assert _marked(copy) == REPAIRED
    same = (CLICKS.name, DUPLICATE_CLICKS.name, "published_clicks_by_url_hourly", "clicks_by_country_daily")
    tables, expected = _tables(copy), _tables(fixed)
    assert_same_tables({name: tables[name] for name in same}, {name: expected[name] for name in same})
    before = copy.tables()
    copy.run("ingest", FROM, TO)
    assert_same_tables(copy.tables(), before)


RULE = "if(starts_with(raw, 'day='), substr(raw, 5), NULL)"


@pytest.mark.usefixtures("uncounted")
@pytest.mark.parametrize("are_gone", [False, True], ids=["landed", "gone"])
def test_a_second_replay_leaves_the_first_ones_lines_to_it(copy: TemporaryLake, are_gone: bool) -> None:
    _replay(copy, "missing_url")
    (first,) = _ids(copy)
    if are_gone:
        shutil.rmtree(copy.settings.landing / "web")
    _replay(copy, "not_json", rule=RULE)
    (second,) = _ids(copy) - {first}
    # What either has recovered, another one finds no more.
    lines = _replay(copy, rule="replace(raw, 'day=', '')")
    assert lines[0] == "web 2026-03-01T05..2026-03-01T11: no quarantined line is a click by now"
    assert len(_events(copy)) == 4
    rows = [row for table in (CLICKS, DUPLICATE_CLICKS) for row in copy.rows(table)]
    event_ids = {id: Counter(row["event_id"] for row in rows if row["replay_id"] == id) for id in (first, second)}
    assert event_ids == {first: NEW_APP, second: REPAIRED}
    # A line of nonsense an hour is left; the id "every" is a click in every other hour but one.
    for row in copy.rows(INGEST_ACCOUNTING):
        assert row["lines"] == 18 == row["accepted"] + row["duplicates"] + row["quarantined"], row
        assert row["quarantined_by_reason"] == {"not_json": 1}
    if not are_gone:
        before = copy.tables()
        copy.run("ingest", FROM, TO)
        assert_same_tables(copy.tables(), before)


def _repaired(content: bytes) -> bytes:
    return content.replace(b"day=", b"")


@pytest.mark.usefixtures("uncounted")
def test_lines_that_a_rule_leaves_out_by_now_do_not_stay_quarantined(copy: TemporaryLake) -> None:
    file = copy.settings.sources_file
    text = file.read_text(encoding="utf-8")
    file.write_text(
        text.replace("[sources.web]", '[sources.web]\ndrop = [{ name = "three", path = "/3" }]'), encoding="utf-8"
    )
    lines = _replay(copy, is_dry_run=True)
    told = [
        re.findall(r"(?:stay|left out) (\d+)", line) for line in lines if "missing_url" in line or "not_json" in line
    ]
    stay, left_out = (sum(int(counts[place]) for counts in told if len(counts) > place) for place in (0, 1))
    assert left_out == len(HOURS)  # of the new app's lines one an hour is of this page
    _replay(copy)
    assert stay == len(copy.rows(QUARANTINED_CLICKS))


@pytest.mark.usefixtures("uncounted")
def test_dry_run_says_what_a_replay_does_and_changes_nothing_else(copy: TemporaryLake) -> None:
    before = copy.tables()
    lines = _replay(copy, is_dry_run=True)
    assert_same_tables(copy.tables() | {REPLAY_OUTCOMES.name: []}, before)
    assert lines[0] == "web 2026-03-01T05..2026-03-01T11: 39 quarantined lines would be recovered"
    # In an even hour "every" stands in a line of the new app: a duplicate, if it is one two hours before.
    expected = [
        line
        for number, hour in enumerate(HOURS)
        for line in (
            f"  {hour} missing_url: clicks {7 if number == 0 else 6}, duplicates {int(number in (2, 4))}, stay 0",
            f"  {hour} not_json: clicks 0, duplicates 0, stay 2",
        )
    ]
    assert lines[1:] == [*expected, f"  web {FROM}..{TO}: would be counted, validated and published"]
    outcomes = {(row["log_hour"], row["reason"]): row for row in copy.rows(REPLAY_OUTCOMES)}
    assert len(outcomes) == 12
    assert {row["replay_id"] for row in outcomes.values()} == {None}
    of_seven = outcomes[7, "missing_url"]
    assert [of_seven[name] for name in ("clicks", "duplicates", "stay")] == [6, 1, 0]
    replayed = _replay(copy)
    assert replayed[1:13] == expected
    assert len({row["replay_id"] for row in copy.rows(REPLAY_OUTCOMES)} - {None}) == 1


#: Until the accounts are written: who asks, what is recovered, and the ingest. Counting is killed in test_killed_jobs.
COMMITS = some_of(range(1, 10), 3)


@pytest.mark.faults
@pytest.mark.parametrize("are_gone", [False, True], ids=["landed", "gone"])
def test_killed_after_any_commit_and_run_again(
    copy: TemporaryLake, right: TemporaryLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, are_gone: bool
) -> None:
    if are_gone:
        shutil.rmtree(copy.settings.landing / "web")
    homes, expected = Homes(tmp_path / "killed"), _tables(right)
    of_ingest = [table.name for table in (CLICKS, DUPLICATE_CLICKS, QUARANTINED_CLICKS, INGEST_ACCOUNTING)]
    for commits in COMMITS:
        lake = homes.copy(copy)
        with pytest.raises(Killed), killed_after(commits):
            _replay(lake)
        with monkeypatch.context() as patch:
            if commits != COMMITS[-1]:
                patch.setattr(replay_job, "_count", lambda *_: [])
            _replay(lake)
        tables = _tables(lake)
        if commits == COMMITS[-1]:
            assert_same_tables(tables, expected)
        assert_same_tables({name: tables[name] for name in of_ingest}, {name: expected[name] for name in of_ingest})
        assert not tables[UNFINISHED_INGESTS.name]
        assert _marked(lake) == NEW_APP, commits
        begun = _ids(lake)
        assert len(begun) == 1, commits
        assert {row["replay_id"] for row in lake.rows(CLICKS)} - {None} == begun, commits


def test_lines_whose_files_are_gone_are_recovered_from_the_quarantine(
    copy: TemporaryLake, right: TemporaryLake
) -> None:
    shutil.rmtree(copy.settings.landing / "web" / "log_date=2026-03-01" / "log_hour=05")
    for hour in ("07", "08"):
        for file in (copy.settings.landing / "web" / "log_date=2026-03-01" / f"log_hour={hour}").glob("*.*"):
            file.unlink()
    _replay(copy)
    assert_same_tables(_tables(copy), _tables(right))
    assert _marked(copy) == NEW_APP
    for row in copy.rows(INGEST_ACCOUNTING):
        assert row["lines"] == row["accepted"] + row["duplicates"] + row["quarantined"], row


@pytest.mark.usefixtures("uncounted")
def test_line_that_was_not_kept_whole_stays(copy: TemporaryLake) -> None:
    long = click("long", HOURS[0] + ":10:00Z", "http://shop.test/long", padding="x" * 9000)
    copy.land(HOURS[0], _lines(0) | {"c.json": long})
    _map_url(copy, "link")
    copy.run("ingest", HOURS[0])
    _map_url(copy, "url")
    shutil.rmtree(copy.settings.landing / "web")
    lines = _replay(copy, "missing_url")
    assert lines[1] == "  2026-03-01T05 missing_url: clicks 7, duplicates 0, stay 1"
    (left,) = [row for row in copy.rows(QUARANTINED_CLICKS) if row["reason"] == "missing_url"]
    assert (left["file"], left["bytes"]) == ("c.json", len(long) - 1)


def test_rule_that_throws_changes_nothing_and_shows_no_text(copy: TemporaryLake) -> None:
    before = copy.tables()
    with pytest.raises(ClickmillError) as failed:
        _replay(copy, rule="strftime(strptime(raw, 'day=%Y'), '%Y')")
    assert str(failed.value) == (
        "the rule of the replay fails at web 2026-03-01T05 a.json:9 (not_json): Invalid Input Error; "
        "nothing has been replaced"
    )
    assert_same_tables(copy.tables(), before)
    assert [event for _, event in copy.acts()] == ["failed"]


def _withdraw(lake: TemporaryLake, *, is_dry_run: bool = False) -> list[str]:
    (replay_id,) = _ids(lake)
    signed = {"by": "Eve", "because": "the wrong rule"}
    return replay_job.withdraw(lake.spark, lake.settings, replay_id, **signed, is_dry_run=is_dry_run)


@pytest.mark.parametrize("are_gone", [False, True], ids=["landed", "gone"])
def test_withdrawn_replay_leaves_the_tables_as_they_were(
    copy: TemporaryLake, monkeypatch: pytest.MonkeyPatch, are_gone: bool
) -> None:
    """Of a rule; its lines are in quarantine again, and no later ingest recovers them."""
    if are_gone:
        shutil.rmtree(copy.settings.landing / "web")
    _map_url(copy, "link")  # as it was when all was ingested
    before = _tables(copy)
    # The id "every" is a duplicate in some of these lines, and in others the first arrival.
    rule = "replace(replace(raw, 'day=', ''), '\"url\":', '\"link\":')"
    _replay(copy, rule=rule)
    assert _marked(copy) == NEW_APP + REPAIRED
    replayed = copy.tables()
    lines = _withdraw(copy, is_dry_run=True)
    assert_same_tables(copy.tables(), replayed)
    assert lines[0].endswith("of web 2026-03-01T05..2026-03-01T11: 45 lines would be quarantined again")
    assert lines[1:3] == [
        "  2026-03-01T05 missing_url: quarantined again 7",
        "  2026-03-01T05 not_json: quarantined again 1",
    ]
    done = _withdraw(copy)
    assert done[0].endswith("of web 2026-03-01T05..2026-03-01T11: withdrawn, 45 lines are quarantined again")
    assert done[1:13] == lines[1:13]
    assert lines[13:] == [f"  web {FROM}..{TO}: would be counted, validated and published"]
    assert_same_tables(_tables(copy), before)
    assert not copy.rows(REPLAY_OUTCOMES)
    assert [(row["event"], row["actor"]) for row in _events(copy)] == [
        ("begun", "Ada"), ("done", "Ada"), ("withdrawing", "Eve"), ("withdrawn", "Eve"),
    ]  # fmt: skip
    assert _withdraw(copy)[0].rpartition(" UTC: ")[2] == "the wrong rule"
    if not are_gone:
        copy.run_all(FROM, TO)
        assert_same_tables(_tables(copy), before)
    # Asked for again, it is another replay.
    monkeypatch.setattr(replay_job, "_count", lambda *_: [])
    _map_url(copy, "url")
    _replay(copy, "not_json", rule=RULE)
    assert _marked(copy) == REPAIRED
    assert len(_ids(copy)) == 2


@pytest.mark.faults
@pytest.mark.usefixtures("uncounted")
@pytest.mark.parametrize("are_gone", [False, True], ids=["landed", "gone"])
def test_withdrawal_that_is_killed_goes_on(copy: TemporaryLake, tmp_path: Path, are_gone: bool) -> None:
    if are_gone:
        shutil.rmtree(copy.settings.landing / "web")
    _map_url(copy, "link")
    before = _tables(copy)
    _replay(copy, rule="replace(raw, '\"url\":', '\"link\":')")
    of_ingest = [table.name for table in (CLICKS, DUPLICATE_CLICKS, QUARANTINED_CLICKS, INGEST_ACCOUNTING)]
    homes = Homes(tmp_path / "killed")
    for commits in COMMITS:
        lake = homes.copy(copy)
        with pytest.raises(Killed), killed_after(commits):
            _withdraw(lake)
        _withdraw(lake)
        tables = _tables(lake)
        assert_same_tables({name: tables[name] for name in of_ingest}, {name: before[name] for name in of_ingest})
        assert not tables[UNFINISHED_INGESTS.name], commits


@pytest.mark.usefixtures("uncounted")
def test_what_the_mapping_takes_by_now_stays_when_its_replay_is_withdrawn(copy: TemporaryLake) -> None:
    _replay(copy)
    lines = _withdraw(copy)
    assert lines[0].endswith(": withdrawn, 0 lines are quarantined again")
    assert lines[1] == (
        "  2026-03-01T05 missing_url: quarantined again 0, stay clicks by today's mapping or another replay 7"
    )
    assert not _marked(copy)
    assert {row["quarantined"] for row in copy.rows(INGEST_ACCOUNTING)} == {2}


@pytest.mark.usefixtures("uncounted")
def test_a_rule_is_of_the_text_and_a_corrected_file_is_ingested(copy: TemporaryLake) -> None:
    """The usual repair after a replay: the sender lands the file again, its lines bad in other ways."""
    throws = f"if(starts_with(raw, 'day='), {RULE}, strftime(strptime(raw, 'nonsense%Y'), '%Y'))"
    with pytest.raises(ClickmillError, match="the rule of the replay fails at"):
        _replay(copy, "not_json", rule=throws)
    _replay(copy, "not_json", rule=RULE)
    lines = _lines(0)["a.json"].splitlines(keepends=True)
    assert lines[-1].startswith(b"day=")
    # Repaired by nobody's wish: another line in its place that the rule would repair as well.
    other = b"day=" + click("other", HOURS[0] + ":41:00Z", "http://shop.test/other")
    copy.land(HOURS[0], {"a.json": b"".join([*lines[:-1], other]), "b.json.gz": _lines(0)["b.json.gz"]})
    copy.run("ingest", FROM)
    assert _marked(copy) == REPAIRED - Counter(["r0"])
    account = next(row for row in copy.rows(INGEST_ACCOUNTING) if row["log_hour"] == 5)
    assert account["quarantined_by_reason"] == {"not_json": 2}
    # The same lines again: they are its own again.
    copy.land(HOURS[0], _lines(0))
    copy.run("ingest", FROM)
    assert _marked(copy) == REPAIRED


@pytest.mark.usefixtures("uncounted")
def test_rule_that_throws_in_an_ingest_leaves_its_lines_quarantined(copy: TemporaryLake) -> None:
    """As of another DuckDB, or a table that somebody has changed: nothing but the line may depend on it."""
    _replay(copy, "not_json", rule=RULE)
    (replay_id,) = _ids(copy)
    rows = _events(copy)
    # Of hour 05 it throws, of the others it does not; of hour 06 it is another repair.
    fails = f"if(raw LIKE '%05:40%', strftime(strptime(raw, '%Y'), '%Y'), {RULE})"
    lake = Lake(copy.spark, copy.settings)
    for rule, marked in ((fails, REPAIRED - Counter(["r0"])), ("no_such_function(raw)", Counter[str]())):
        changed = [row | {"details": row["details"] | {"rule": rule}} for row in rows]
        lake.replace_rows(JOURNAL, changed, "kind = 'replay'")
        lines = copy.run("ingest", FROM, TO)
        warned = [line for line in lines if "warning: " in line]
        assert warned[0].startswith(
            f"  warning: replay {replay_id}: the rule of the replay fails at web 2026-03-01T05 a.json:10 (not_json): "
        )
        assert warned[0].endswith("; such lines stay quarantined")
        assert "day=" not in warned[0]
        assert _marked(copy) == marked
    for row in copy.rows(INGEST_ACCOUNTING):
        assert row["lines"] == row["accepted"] + row["duplicates"] + row["quarantined"], row


def test_bad_requests_are_one_clear_line(copy: TemporaryLake) -> None:
    with pytest.raises(UsageError, match="no quarantine reason 'bad': expected one of line_too_long"):
        _request("bad")
    with pytest.raises(UsageError, match=r"no source 'wep' in .*: expected one of access, web"):
        replay_job.replay(copy.spark, copy.settings, Request("wep", _request().log_hours), **SIGNED, is_dry_run=True)
    with pytest.raises(UsageError, match=r"no replay 'x': expected the id of one in table journal, such as none yet"):
        replay_job.withdraw(copy.spark, copy.settings, "x", **SIGNED)
    signed = ["--by", "A", "--because", "b"]
    for options, message in (
        (["--withdraw", "x", "--source", "web"], "--withdraw takes a replay as it was: expected no --source beside it"),
        (["--source", "web", "--to", TO], "no --from given: expected all of --source, --from, --to; or --withdraw ID"),
    ):
        with pytest.raises(UsageError, match=message):
            run_command(["replay", *options, *signed])
    with pytest.raises(UsageError, match="empty range of hours"):
        run_command(["replay", "--source", "web", "--from", FROM, "--to", FROM, *signed])
    assert _replay(copy, "bad_time") == [
        "web 2026-03-01T05..2026-03-01T11: no quarantined lines of bad_time; nothing to replay"
    ]
