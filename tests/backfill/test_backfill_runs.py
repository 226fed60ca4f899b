"""A backfill from plan to undo on a real lake: in chunks, staged, killed, decided on and undone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from deltalake import DeltaTable

from include.backfills import Backfill, UnknownBackfillError, read_backfills
from include.errors import ClickmillError, QualityError, UsageError
from include.hours import Hour, HourRange
from include.journal import BACKFILL, read_events
from include.sources import choose_sources
from include.tables import (
    AGGREGATES,
    PUBLISHED_CLICKS_BY_COUNTRY_HOURLY,
    PUBLISHED_CLICKS_BY_URL_HOURLY,
    Table,
)
from include.tables import PUBLISHED as PUBLISHED_DAYS
from include.unpublished import unpublished_hours
from spark_jobs.backfill import job as backfill_job
from spark_jobs.backfill.decide import BackfillDecision, ComparedAgainError, decide
from spark_jobs.backfill.plan import Plan, Request
from spark_jobs.backfill.undo import undo
from spark_jobs.publish import decide_held
from tests.support.fault_rounds import some_of
from tests.support.killed_runs import Killed, killed_after
from tests.support.temporary_lake import TemporaryLake, click

pytestmark = pytest.mark.spark

DAY = Hour.parse("2026-03-01T00")
PUBLISHED = tuple(AGGREGATES.values())
NOISE = b"<html>502 Bad Gateway</html>\n"
Tables = dict[str, list[dict[str, Any]]]


def hour(number: int) -> str:
    return str(DAY.plus(number))


def land(lake: TemporaryLake, number: int, clicks: int, *, late: int | None = None, noise: int = 0) -> None:
    """So many clicks in the hour, on two URLs; one more for an earlier hour if told."""
    of = hour(number)
    lines = [click(f"{of}-{n}", f"{of}:{n:02d}:00Z", f"http://shop.test/{n % 2}") for n in range(clicks)]
    if late is not None:
        lines.append(click(f"{of}-late", f"{hour(late)}:59:00Z", "http://shop.test/late"))
    lake.land(of, {"a.json": b"".join(lines) + NOISE * noise})


def asked(start: int, end: int, *, chunk: int = 2, is_staged: bool = False) -> Request:
    return Request("web", HourRange(DAY.plus(start), DAY.plus(end)), chunk, is_staged)


def run(lake: TemporaryLake, request: Request) -> Backfill:
    """The command, to its end; the newest backfill."""
    lake.backfill(request)
    return newest(lake)


def newest(lake: TemporaryLake) -> Backfill:
    return list(read_backfills(lake.settings.lake).values())[-1]


def plan(lake: TemporaryLake, request: Request) -> Plan:
    return backfill_job.plan(lake.settings, request)


def decision(lake: TemporaryLake, backfill: Backfill, chosen: str) -> list[str]:
    return decide(lake.spark, lake.settings, BackfillDecision(backfill.id, chosen, "Ada", "seen"))


def undone(lake: TemporaryLake, backfill: Backfill, *, force: bool = False) -> list[str]:
    return undo(lake.spark, lake.settings, backfill.id, "Ada", "wrong after all", force=force)


def published(lake: TemporaryLake) -> Tables:
    """All that readers see, row by row."""
    return {table.name: lake.rows(table) for table in PUBLISHED}


def clicks(lake: TemporaryLake, table: Table = PUBLISHED_CLICKS_BY_URL_HOURLY) -> dict[int, int]:
    """Published clicks by click hour."""
    counts: Counter[int] = Counter()
    for row in lake.rows(table):
        counts[Hour.of(row["click_date"], row["click_hour"]).number - DAY.number] += row["click_count"]
    return dict(sorted(counts.items()))


def days_follow(lake: TemporaryLake) -> bool:
    """Whether each published day has the clicks of its published hours, key by key."""
    for hourly, daily in PUBLISHED_DAYS.items():
        key = hourly.key[-1]
        sums: Counter[tuple[Any, Any]] = Counter()
        for row in lake.rows(hourly):
            sums[row["click_date"], row[key]] += row["click_count"]
        if sums != {(row["click_date"], row[key]): row["click_count"] for row in lake.rows(daily)}:
            return False
    return True


def say_events(backfill: Backfill, lake: TemporaryLake) -> list[str]:
    of_backfill = [("kind", "=", BACKFILL), ("subject", "=", backfill.id)]
    return [row["event"] for row in read_events(lake.settings.lake, of_backfill)]


# Chunks


@pytest.mark.path
def test_chunks_are_published_planned_again_and_undone(lake: TemporaryLake) -> None:
    """That hours and ranges give the same: ``tests/stream/test_same_month.py``."""
    land(lake, 0, 3)
    land(lake, 1, 4, late=0)
    # Hour 2 never landed.
    land(lake, 3, 2, late=1)
    done = run(lake, asked(0, 4))
    assert (done.state, [len(chunk) for chunk in done.chunks()]) == ("published", [2, 2])
    assert [of.log_hours for of in done.done.values()] == [2, 1]
    assert clicks(lake) == {0: 4, 1: 5, 3: 2}
    assert len(lake.exports()) > 0
    assert sorted(lake.accounting()) == [hour(0), hour(1), hour(3)], "what never landed is not accounted for"

    # A plan of the same range sees what has been done; it changes nothing.
    land(lake, 3, 5, late=1)
    new_plan = plan(lake, asked(1, 4))
    assert [str(of) for of in new_plan.landed_again] == [hour(3)]
    assert [str(of) for of in new_plan.missing] == [hour(2)]
    assert [str(of) for of in new_plan.published] == [hour(1), hour(3)]
    assert [str(of) for of in new_plan.outside] == [hour(0)]
    assert (len(new_plan.chunks), new_plan.measured_chunks, new_plan.blocks) == (2, 2, ())
    assert new_plan.seconds
    assert list(read_backfills(lake.settings.lake)) == [done.id]

    # Undone, what it had published is gone, files too: there was nothing before.
    undone(lake, done)
    assert clicks(lake) == {}
    assert lake.exports() == []


def test_a_chunk_whose_check_fails_holds_its_hours_and_the_others_go_on(lake: TemporaryLake) -> None:
    land(lake, 0, 2, noise=9)
    land(lake, 1, 3)
    with pytest.raises(QualityError, match="critical checks failed in 1 places"):
        run(lake, asked(0, 2, chunk=1))
    assert newest(lake).state == "published"
    assert clicks(lake) == {1: 3}


# Staged


@pytest.fixture(scope="module")
def published_hours(make_lake: Callable[[str], TemporaryLake]) -> TemporaryLake:
    """Hours 0 to 3 published; then 1 and 2 have landed again with other clicks. For copies."""
    lake = make_lake("published")
    for number in range(4):
        land(lake, number, 3)
    lake.run_all(hour(0), hour(4))
    land(lake, 1, 7, late=0)
    land(lake, 2, 5)
    return lake


@pytest.fixture
def based(published_hours: TemporaryLake, tmp_path: Path) -> TemporaryLake:
    """A copy of ``published_hours`` of the test's own."""
    return published_hours.copy(tmp_path / "copy")


STAGED = asked(1, 3, chunk=1, is_staged=True)


def test_staged_counts_reach_no_reader_until_a_person_approves_and_are_undone(based: TemporaryLake) -> None:
    lake, before = based, published(based)
    staged = run(lake, STAGED)
    assert (staged.state, staged.next_step.split(",")[0]) == ("waiting", "Look at the comparison")
    assert published(lake) == before
    comparison = orjson.loads((lake.settings.reports / "backfills" / f"{staged.id}.json").read_bytes())
    assert (comparison["old_clicks"], comparison["new_clicks"], comparison["critical"]) == (9, 16, 0)
    assert comparison["changed_hours"] == [hour(0), hour(1), hour(2)]
    by_url = {of["key"]: (of["old_clicks"], of["new_clicks"]) for of in comparison["tables"][0]["largest"]}
    # Of 3 clicks 2 are on the first URL, of 7 there are 4, of 5 there are 3; hour 0 has its clicks, and a late one.
    assert by_url == {"http://shop.test/0": (6, 9), "http://shop.test/1": (3, 6), "http://shop.test/late": (0, 1)}
    page = (lake.settings.reports / "backfills" / f"{staged.id}.html").read_text(encoding="utf-8")
    assert "3 of 3 click hours change: " in page
    assert "clicks in them: 9 published, 16 counted (+7)" in page

    (web,) = choose_sources(lake.settings, "web")
    waiting = unpublished_hours(lake.settings, web, timedelta(days=2), datetime.now(UTC))
    assert waiting == [], "a run of what is not published would count the staged hours again"

    # A run beside it publishes its own hour, and leaves the staged one alone, though it has counted it.
    land(lake, 3, 4, late=2)
    said_beside = "\n".join(("", *lake.run("ingest", hour(3)), *lake.run("aggregate", hour(3))))
    lake.run("validate", hour(3))
    said_beside += "\n".join(lake.run("publish", hour(3)))
    assert f"{hour(2)} is not published: it waits for a decision on the staged backfill {staged.id}" in said_beside
    assert clicks(lake) == {0: 3, 1: 3, 2: 3, 3: 4}

    # The counts are others now: they are compared again, and nothing else is done.
    with pytest.raises(ComparedAgainError, match="decide again"):
        decision(lake, staged, "approve")
    assert clicks(lake) == {0: 3, 1: 3, 2: 3, 3: 4}
    before = published(lake)
    assert "3 click hours published" in decision(lake, staged, "approve")[0]
    assert clicks(lake) == clicks(lake, PUBLISHED_CLICKS_BY_COUNTRY_HOURLY) == {0: 4, 1: 7, 2: 6, 3: 4}
    assert days_follow(lake)
    assert "published, as Ada had decided" in decision(lake, staged, "approve")[0]
    with pytest.raises(ClickmillError, match=r"is published by Ada: seen; there is nothing to decide"):
        decision(lake, staged, "drop")

    assert "3 click hours as they were published before" in undone(lake, staged)[0]
    assert published(lake) == before
    assert days_follow(lake)
    # What was undone is not published again by whoever comes along.
    lake.run("validate", hour(1), hour(4))
    lake.run("publish", hour(1), hour(4))
    assert published(lake) == before
    assert "was undone by Ada at " in undone(lake, staged)[0]
    # Nor counted again: for a late click, by the log hour, by a backfill of another hour.
    land(lake, 4, 4, late=1)
    lake.run_all(hour(4))
    lake.run_all(hour(2))
    land(lake, 3, 5, late=2)
    run(lake, asked(3, 4))
    stays = dict(clicks(lake))
    assert [stays[number] for number in (0, 1, 2)] == [3, 3, 3]
    assert days_follow(lake)
    # Until a backfill has again what this one brought: then all of it is back, with what came since.
    land(lake, 1, 5)
    land(lake, 2, 1)
    again = run(lake, STAGED)
    assert clicks(lake) == stays
    decision(lake, again, "approve")
    assert clicks(lake) == {0: 3, 1: 6, 2: 2, 3: 5, 4: 4}
    assert say_events(staged, lake) == [
        "begun", "chunk_done", "chunk_done", "compared", "compared", "approved", "publishing", "swapping", "swapping",
        "swapped", "undoing", "undone",
    ]  # fmt: skip


def test_dropped_what_was_published_stays_until_the_right_files_come(based: TemporaryLake) -> None:
    lake, before = based, published(based)
    land(lake, 2, 2, noise=9)
    with pytest.raises(QualityError):
        run(lake, STAGED)
    staged = newest(lake)
    assert staged.state == "waiting"
    held = decide_held.Decision(Hour.parse(hour(2)), "publish", "Bob", "seen")
    with pytest.raises(ClickmillError, match=f"is of the staged backfill {staged.id}: approve or drop that first"):
        decide_held.decide(lake.spark, lake.settings, held)
    decision(lake, staged, "drop")
    lake.run("publish", hour(1), hour(3))
    assert published(lake) == before
    assert days_follow(lake)
    with pytest.raises(ClickmillError, match="has published nothing: there is nothing to undo"):
        undone(lake, staged)
    land(lake, 1, 2)
    land(lake, 2, 1)
    assert run(lake, asked(1, 3)).state == "published"
    assert clicks(lake) == {0: 3, 1: 2, 2: 1, 3: 3}


def test_given_up_in_its_first_chunk_it_leaves_nothing_to_be_published(based: TemporaryLake) -> None:
    lake, before = based, published(based)
    begun = backfill_job.start(lake.spark, lake.settings, plan(lake, STAGED), because="")
    for job in ("ingest", "aggregate", "validate"):
        lake.run(job, hour(1))
    decision(lake, begun, "drop")
    lake.run("publish", hour(1))
    assert published(lake) == before


# Kills


def through(step: Callable[[], object], kills: Iterable[int | None], after: Callable[[], object]) -> bool:
    """Do a step that is killed after so many commits, and done again; whether it ended before all kills were done."""
    for commits in kills:
        try:
            with killed_after(commits):
                step()
        except Killed:
            after()
            continue
        return commits is not None
    return False


@pytest.mark.slow
@pytest.mark.faults
def test_killed_anywhere_and_started_again_it_ends_the_same(published_hours: TemporaryLake, tmp_path: Path) -> None:
    quiet, killed = published_hours.copy(tmp_path / "quiet"), published_hours.copy(tmp_path / "killed")
    before = published(quiet)
    decision(quiet, run(quiet, STAGED), "approve")
    after = published(quiet)

    def unchanged() -> None:
        assert published(killed) == before

    def no_mix() -> None:
        swapped = newest(killed).swapped_tables
        for name, rows in published(killed).items():
            assert rows in (before[name], after[name]), "a reader sees old and new rows in one table"
            # The marker comes after the table.
            assert rows == after[name] or name not in swapped or newest(killed).state in ("undoing", "undone")

    assert not through(lambda: run(killed, STAGED), (1, 4, 9, None), unchanged)
    assert len(read_backfills(killed.settings.lake)) == 1
    staged = newest(killed)
    unchanged()
    assert not through(lambda: decision(killed, staged, "approve"), range(1, 5), no_mix)
    assert newest(killed).state == "swapping"

    def finish() -> None:
        # Killed after its last commit it is done; the same arguments would begin another.
        if newest(killed).is_open:
            run(killed, STAGED)

    # The command finishes it too.
    assert through(finish, some_of(range(1, 20), 7), no_mix)
    assert published(killed) == after
    assert killed.exports() == quiet.exports()
    assert through(lambda: undone(killed, staged), some_of(range(1, 20), 7), no_mix)
    assert published(killed) == before
    assert newest(killed).state == "undone"


# Undo


def test_an_undo_leaves_alone_what_others_have_published_unless_forced(based: TemporaryLake) -> None:
    lake, before = based, published(based)
    done = run(lake, asked(1, 3, chunk=1))
    assert clicks(lake) == {0: 4, 1: 7, 2: 5, 3: 3}
    land(lake, 3, 3, late=2)
    lake.run_all(hour(3))
    changed = published(lake)
    with pytest.raises(ClickmillError, match=f"1 click hours were published with other counts since: {hour(2)}"):
        undone(lake, done)
    assert published(lake) == changed
    assert undone(lake, done, force=True)[1:3] == ["  of these, others had published since:", f"    {hour(2)}"]
    assert published(lake) == before


def test_without_the_tables_history_nothing_is_undone(lake: TemporaryLake) -> None:
    for number in range(2):
        land(lake, number, 3)
    lake.run_all(hour(0), hour(2))
    land(lake, 1, 5)
    done = run(lake, asked(1, 2))
    folder = lake.settings.lake / PUBLISHED_CLICKS_BY_COUNTRY_HOURLY.name
    events = [lake.events(hour(number)) for number in range(2)]

    def require_refused(message: str) -> None:
        with pytest.raises(ClickmillError, match=message):
            undone(lake, done)
        assert newest(lake).state == "published"
        assert [lake.events(hour(number)) for number in range(2)] == events

    version = next(iter(done.published.values())).versions[PUBLISHED_CLICKS_BY_COUNTRY_HOURLY.name]
    entry = folder / "_delta_log" / f"{version:020d}.json"
    entry.rename(folder / "gone")
    require_refused("has no version")
    (folder / "gone").rename(entry)
    DeltaTable(folder).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    require_refused("files of version .* are gone; VACUUM")


# Bad input


def test_what_cannot_be_done_is_one_line_and_changes_nothing(lake: TemporaryLake) -> None:
    with pytest.raises(ClickmillError, match="none of the 4 log hours has landed: expected folders such as web/log"):
        run(lake, asked(0, 4))
    with pytest.raises(UsageError, match="no source 'shop'"):
        run(lake, Request("shop", HourRange(DAY, DAY.plus(1))))
    with pytest.raises(UnknownBackfillError, match=r"no backfill 'x'; expected .* there has been no backfill"):
        decide(lake.spark, lake.settings, BackfillDecision("x", "approve", "Ada", "seen"))
    assert read_backfills(lake.settings.lake) == {}

    land(lake, 0, 2)
    request = asked(0, 4, is_staged=True)
    begun = backfill_job.start(lake.spark, lake.settings, plan(lake, request), because="")
    for other in (asked(3, 5), asked(0, 4), asked(0, 4, chunk=3, is_staged=True)):
        with pytest.raises(ClickmillError, match=f"{begun.id} .* is running over some of these hours; finish it"):
            run(lake, other)
    with pytest.raises(ClickmillError, match="chunks that are not done or not compared"):
        decision(lake, begun, "approve")
    with pytest.raises(ClickmillError, match="is running, and cannot be undone yet"):
        undone(lake, begun)
    with pytest.raises(UsageError, match="no by given"):
        BackfillDecision(begun.id, "approve", " ", "seen")
    with pytest.raises(UsageError, match="decision 'keep': expected approve or drop"):
        BackfillDecision(begun.id, "keep", "Ada", "seen")
    assert list(read_backfills(lake.settings.lake)) == [begun.id]
    # Given up before anything was ingested, its hours are free.
    decision(lake, begun, "drop")
    assert plan(lake, asked(0, 4)).blocks == ()
    land(lake, 1, 2)
    not_staged = backfill_job.start(lake.spark, lake.settings, plan(lake, asked(0, 4)), because="")
    with pytest.raises(ClickmillError, match="is not staged: what passes the checks is published"):
        decision(lake, not_staged, "approve")
