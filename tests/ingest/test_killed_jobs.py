"""Killed between any two commits, a job leaves nothing unjudged to publish, and run again it forgets nothing.

Each job is cut off, another run goes beside it, then it is run again: after some of its commits in an ordinary run,
after each by ``make test-faults``. Histories are drawn in ``test_histories.py``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from include.errors import ClickmillError, NotHeldError
from include.tables import CLICKS_BY_URL_HOURLY, PUBLISHED_CLICKS_BY_COUNTRY_HOURLY, PUBLISHED_CLICKS_BY_URL_HOURLY
from spark_jobs.publish import decide_held
from tests.ingest.played_lake import (
    DAY,
    Homes,
    hour_name,
    land,
    model_of,
    published_counts,
    run_jobs,
    unlike_all,
    with_files,
    with_short_reach,
)
from tests.support.fault_rounds import ARE_MANY, some_of
from tests.support.killed_runs import Killed, after_each_commit
from tests.support.lake_model import Files, LakeModel, Line, differences, stored_counts
from tests.support.temporary_lake import JOBS, TemporaryLake

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.faults]

#: What is published at the same time.
COUNTED = (PUBLISHED_CLICKS_BY_URL_HOURLY, PUBLISHED_CLICKS_BY_COUNTRY_HOURLY)
#: The log hour of which the ingest is killed, and those that are ingested beside it.
KILLED, EARLIER, LATER = 5, 4, 6


@pytest.fixture
def lake(lake: TemporaryLake) -> TemporaryLake:
    return with_short_reach(lake)


@pytest.fixture
def homes(tmp_path: Path) -> Homes:
    return Homes(tmp_path / "homes")


def _one_file(name: str, hour: int, times: Mapping[str, int]) -> Files:
    """So many lines of each id, of this click hour and the one before, as of a version of the log hour."""
    return {
        "a.json": tuple(
            Line(event_id, (DAY.number + hour) * 3600 - 1800 * (position % 3) + 1800, f"http://shop.test/{name}")
            for event_id, copies in times.items()
            for position in range(copies)
        )
    }


#: How often an id is in the killed log hour before and after it landed again, and in the log hours around it: each
#: combination is an id.
_TIMES = list(product(range(3), range(3), range(3), range(2), range(2), range(3)))
_OLD, _NEW, _TWO_LATER, _THREE_LATER, _EARLIER, _LATER = (
    {f"e{number}": times[column] for number, times in enumerate(_TIMES)} for column in range(6)
)
OLD, NEW = _one_file("old", KILLED, _OLD), _one_file("new", KILLED, _NEW) | {"bad.json": (Line(None),)}
NOISE = {"b.json": (Line(None),) * 1000}
FURTHER = {7: _one_file("seventh", 7, _TWO_LATER), 8: _one_file("eighth", 8, _THREE_LATER)}
BESIDE = {LATER: _one_file("later", LATER, _LATER)}
if ARE_MANY:
    BESIDE[EARLIER] = _one_file("earlier", EARLIER, _EARLIER)


@dataclass(frozen=True)
class Cut:
    """What a job leaves that is killed when it has committed to these tables."""

    job: str
    committed: tuple[str, ...]
    lake: TemporaryLake

    def __str__(self) -> str:
        return f"{self.job} killed after {', '.join(self.committed)}"


def cut_off(
    homes: Homes, lake: TemporaryLake, job: str, run: Callable[[TemporaryLake], None], pieces: int = 1
) -> list[Cut]:
    """The job, cut off in every way: ``pieces`` of it are done at the same time. In the last cut it has ended.

    The lake stays as it is.
    """
    cuts: dict[tuple[str, ...], Cut] = {}
    for first in range(pieces):
        running, committed = homes.copy(lake), list[str]()

        def keep(table: str, running: TemporaryLake = running, committed: list[str] = committed) -> None:
            committed.append(table)
            if (of_cut := tuple(sorted(committed))) not in cuts:
                cuts[of_cut] = Cut(job, tuple(committed), homes.copy(running))

        with after_each_commit(keep, first):
            run(running)
    return sorted(cuts.values(), key=lambda cut: len(cut.committed))


def _killed_after_writing(table: str) -> AbstractContextManager[None]:
    def kill(written: str) -> None:
        if written == table:
            raise Killed

    return after_each_commit(kill)


def _base(lake: TemporaryLake, hours: Mapping[int, Files], *jobs: str) -> LakeModel:
    """A lake in which the old version of the log hour, and these later ones, have been through the jobs."""
    everything = {KILLED: OLD, **hours}
    for hour, files in everything.items():
        land(lake, hour, files)
    run_jobs(lake, KILLED, *jobs[:1], end=max(everything) + 1, allow_missing=True)
    run_jobs(lake, KILLED, *jobs[1:], end=max(everything) + 1)
    missing = {hour: {} for hour in range(KILLED, max(everything))}
    return model_of(missing | everything)


def _report(failures: list[str]) -> None:
    assert not failures, "\n".join(failures[:40])


def test_ingest_killed_anywhere_and_run_again_forgets_no_click(lake: TemporaryLake, homes: Homes) -> None:
    """Of ids that no later log hour has stored."""
    base = _base(lake, {}, "ingest")
    land(lake, KILLED, NEW)
    cuts = cut_off(homes, lake, "ingest", lambda copied: run_jobs(copied, KILLED, "ingest"))
    assert len(cuts) == 6
    failures = []
    for number, cut in enumerate(some_of(cuts[:-1], 5)):
        for hour, files in sorted(BESIDE.items(), reverse=number % 2 == 0):
            land(cut.lake, hour, files)
            run_jobs(cut.lake, hour, "ingest")
        run_jobs(cut.lake, KILLED, "ingest")
        failures += [
            f"{cut}: {difference}"
            for difference in differences(cut.lake, with_files(base, {KILLED: NEW, **BESIDE}))[:5]
        ]
    _report(failures)


def test_nothing_of_an_ingest_that_was_killed_is_published(lake: TemporaryLake, homes: Homes) -> None:
    """Of ids that later log hours have: these change with it. A run beside it counts, validates and publishes."""
    base = _base(lake, FURTHER, *JOBS)
    assert published_counts(lake) == base.counts()
    land(lake, KILLED, NEW)
    cuts = cut_off(homes, lake, "ingest", lambda copied: run_jobs(copied, KILLED, "ingest"))
    assert len(cuts) == 7
    touched = {hour for hour, _ in base.counts() + with_files(base, {KILLED: NEW}).counts()}
    failures = []
    for cut in some_of(cuts[:-1], 3):
        with pytest.raises(ClickmillError, match=f"not to the end .* run: .* --hour {hour_name(KILLED)}"):
            cut.lake.run("aggregate", hour_name(max(FURTHER)))
        land(cut.lake, LATER, BESIDE[LATER])
        run_jobs(cut.lake, LATER, *JOBS)
        published = Counter({of: clicks for of, clicks in published_counts(cut.lake).items() if of[0] in touched})
        failures += [f"{cut}: {difference}" for difference in unlike_all(published, base.counts())]
        for hour in BESIDE.keys() - {LATER}:
            land(cut.lake, hour, BESIDE[hour])
            run_jobs(cut.lake, hour, "ingest")
        run_jobs(cut.lake, KILLED, "ingest")
        failures += [
            f"{cut}: {difference}"
            for difference in differences(cut.lake, with_files(base, {KILLED: NEW, **BESIDE}))[:5]
        ]
    _report(failures)


def _decide(lake: TemporaryLake) -> None:
    """A person publishes the killed log hour's own click hour as it is, if it is held."""
    with suppress(NotHeldError):
        decide_held.decide(lake.spark, lake.settings, decide_held.Decision(DAY.plus(KILLED), "publish", "Ada", "seen"))


def _do(lake: TemporaryLake, job: str) -> None:
    _decide(lake) if job == "decide" else run_jobs(lake, KILLED, job)


#: Of which jobs the cuts are tried: those that are alike for a good log hour and a bad one once, but for many rounds.
_CUT_JOBS = {"good": ["publish"], "held": ["aggregate", "validate", "decide"]}
if ARE_MANY:
    _CUT_JOBS = {"good": ["aggregate", "validate", "publish"], "held": ["aggregate", "validate", "publish", "decide"]}


@pytest.mark.parametrize("outcome", ["good", "held"])
def test_run_killed_after_its_ingest_publishes_what_was_judged(lake: TemporaryLake, homes: Homes, outcome: str) -> None:
    """Nothing of a log hour is published before its checks have passed, or a person has seen these very counts."""
    is_held = outcome == "held"
    jobs = [*JOBS[1:], "decide"] if is_held else list(JOBS[1:])
    base = _base(lake, {}, *JOBS)
    new = NEW | NOISE if is_held else NEW
    with_later = with_files(base, {KILLED: new, LATER: BESIDE[LATER]})
    before, after, beside = base.counts(), with_files(base, {KILLED: new}).counts(), with_later.counts()
    land(lake, KILLED, new)
    run_jobs(lake, KILLED, "ingest")
    cuts = []
    for job in jobs:
        if job in _CUT_JOBS[outcome]:
            pieces = len(COUNTED) if ARE_MANY else 1
            cuts += some_of(cut_off(homes, lake, job, partial(_do, job=job), pieces)[:-1], 2)
        _do(lake, job)
    failures = []
    for cut in cuts:
        # That it is published is on record before it is done.
        may_have = [before, after] if cut.job in ("publish", "decide") else [before]
        failures += [f"{cut}: {difference}" for difference in unlike_all(published_counts(cut.lake), *may_have)]
        land(cut.lake, LATER, BESIDE[LATER])
        run_jobs(cut.lake, LATER, *JOBS)
        # The run beside it has counted again. It judges the killed log hour too, if that was judged before.
        of_later = Counter({of: clicks for of, clicks in beside.items() if of[0] == DAY.number + LATER})
        may_have = [counts | of_later for counts in may_have] + ([] if is_held else [beside])
        failures += [
            f"{cut}, beside it: {difference}" for difference in unlike_all(published_counts(cut.lake), *may_have)
        ]
        for job in jobs[jobs.index(cut.job) :]:
            _do(cut.lake, job)
        failures += [f"{cut}, at the end: {difference}" for difference in differences(cut.lake, with_later)[:5]]
        assert stored_counts(cut.lake, CLICKS_BY_URL_HOURLY) == beside, cut
        may_have = [before, beside] if is_held else [beside]
        failures += [
            f"{cut}, at the end: {difference}" for difference in unlike_all(published_counts(cut.lake), *may_have)
        ]
    _report(failures)


def test_log_hour_beyond_reach_is_held_still_when_its_duplicates_change(lake: TemporaryLake) -> None:
    """The click of one id, two log hours apart each, is the first, or a duplicate, by what it is before it."""
    first, held = 18, 24
    hours = {hour: _one_file("same", hour, {"same": 1}) for hour in range(first, held + 1, 2)}
    hours[held] = {**_one_file("same", held, {"same": 1, "bad": 1}), **NOISE}
    for hour, files in hours.items():
        land(lake, hour, files)
    run_jobs(lake, first, "ingest", end=held + 1, allow_missing=True)
    run_jobs(lake, first, *JOBS[1:], end=held + 1)
    held_hour = DAY.number + held
    expected = model_of(hours).counts()
    assert published_counts(lake) == Counter({of: clicks for of, clicks in expected.items() if of[0] != held_hour})

    land(lake, first, {"a.json": ()})
    run_jobs(lake, first, *JOBS)
    expected = model_of(hours | {first: {}}).counts()
    assert stored_counts(lake, CLICKS_BY_URL_HOURLY) == expected
    assert expected[held_hour, "http://shop.test/same"] == 2
    assert published_counts(lake) == Counter({of: clicks for of, clicks in expected.items() if of[0] != held_hour})


def test_ingest_killed_beyond_reach_leaves_nothing_to_publish(lake: TemporaryLake) -> None:
    """Each id is two log hours apart: that the first is gone changes all of them, those out of reach too."""
    first, last = 18, 28

    def of_ids(hour: int, *ids: str) -> Files:
        second = (DAY.number + hour) * 3600
        return {"a.json": tuple(Line(event_id, second, f"http://shop.test/{event_id}") for event_id in ids)}

    hours = {first: of_ids(first, "x")} | {hour: of_ids(hour, "x", "z") for hour in range(first + 2, last + 1, 2)}
    for hour, files in hours.items():
        land(lake, hour, files)
    run_jobs(lake, first, "ingest", end=last + 1, allow_missing=True)
    run_jobs(lake, first, *JOBS[1:], end=last + 1)
    before = model_of(hours).counts()
    assert published_counts(lake) == before
    now = hours | {first: of_ids(first, "z")}
    land(lake, first, now[first])
    with pytest.raises(Killed), _killed_after_writing("clicks"):
        run_jobs(lake, first, "ingest")
    for hour in (last, last - 2):
        with pytest.raises(ClickmillError, match=f"not to the end .* run: .* --hour {hour_name(first)}"):
            run_jobs(lake, hour, *JOBS[1:])
    assert published_counts(lake) == before
    run_jobs(lake, first, *JOBS)
    assert published_counts(lake) == model_of(now).counts() != before
