"""Whatever the history, the tables are what plain Python makes of the landed files, and nothing unjudged is published.

Histories are: log hours that land, again and late, runs over them in any order, and processes that are killed between
any two commits. Under ``make test-faults`` (CLICKMILL_FAULT_ROUNDS) more of them; CLICKMILL_FAULT_SEED draws the same
ones again. Those of streamed sources are in ``test_streamed_histories.py``.
"""

from __future__ import annotations

import os
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, product
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from include.errors import ClickmillError, NotHeldError, QualityError
from include.log_hours import Hour
from include.settings import Settings
from include.tables import CLICKS_BY_URL_HOURLY, PUBLISHED_CLICKS_BY_COUNTRY_HOURLY, PUBLISHED_CLICKS_BY_URL_HOURLY
from spark_jobs import decide_held
from tests.support.killed_runs import Killed, after_each_commit, killed_after
from tests.support.lake_model import Files, LakeModel, Line, differences, landed, stored_counts, unfinished
from tests.support.temporary_lake import TemporaryLake

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.faults]

ARE_MANY = "CLICKMILL_FAULT_ROUNDS" in os.environ
DAY = Hour.parse("2026-03-01T00")
LATENESS, OLDEST = 2, 3
JOBS = ("ingest", "aggregate", "validate", "publish")
#: The pieces of work that an ingest does at the same time.
PIECES = 4
#: What is published at the same time.
COUNTED = (PUBLISHED_CLICKS_BY_URL_HOURLY, PUBLISHED_CLICKS_BY_COUNTRY_HOURLY)
#: The log hour of which the ingest is killed, and those that are ingested beside it.
KILLED, EARLIER, LATER = 5, 4, 6

Counts = Counter[tuple[int, str]]


def _hour(number: int) -> str:
    return str(DAY.plus(number))


@pytest.fixture
def lake(lake: TemporaryLake) -> TemporaryLake:
    """As everywhere, with a small lateness, so that clicks are duplicates of duplicates, and a small reach."""
    sources = lake.settings.sources_file
    declared = sources.read_text(encoding="utf-8")
    for format_ in ('format = "json"', 'format = "combined"'):
        declared = declared.replace(format_, f"{format_}\nlateness_hours = {LATENESS}\noldest_hours = {OLDEST}", 1)
    sources.write_text(declared, encoding="utf-8")
    return lake


def _copy(lake: TemporaryLake, home: Path) -> TemporaryLake:
    """What a process that is killed now leaves behind."""
    of = lake.settings
    shutil.copytree(of.home, home)
    moved = (home / file.relative_to(of.home) for file in (of.sources_file, of.pipeline_file))
    return replace(lake, settings=Settings(home, *moved))


def _land(lake: TemporaryLake, hour: int, files: Files) -> None:
    lake.land(_hour(hour), landed(files))


def _run(lake: TemporaryLake, hour: int, *jobs: str, end: int | None = None, **options: Any) -> None:
    """Run these jobs; that a critical check fails is no error here."""
    for job in jobs:
        try:
            lake.run(job, _hour(hour), _hour(end or hour + 1), **options)
        except QualityError:
            assert job == "validate"


# Killed between any two commits


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
OLD, NEW = _one_file("old", KILLED, _OLD), _one_file("new", KILLED, _NEW)
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


@dataclass
class Homes:
    """Folders for lakes of one test."""

    folder: Path

    def __post_init__(self) -> None:
        self._numbers = count()

    def copy(self, lake: TemporaryLake) -> TemporaryLake:
        return _copy(lake, self.folder / str(next(self._numbers)))

    def cut_off(self, lake: TemporaryLake, job: str, run: Callable[[TemporaryLake], None], pieces: int) -> list[Cut]:
        """The job, cut off in every way: ``pieces`` of it are done at the same time. In the last cut it has ended.

        The lake stays as it is.
        """
        cuts: dict[tuple[str, ...], Cut] = {}
        for first in range(pieces):
            running, committed = self.copy(lake), list[str]()

            def keep(table: str, running: TemporaryLake = running, committed: list[str] = committed) -> None:
                committed.append(table)
                if (of_cut := tuple(sorted(committed))) not in cuts:
                    cuts[of_cut] = Cut(job, tuple(committed), self.copy(running))

            with after_each_commit(keep, first):
                run(running)
        return sorted(cuts.values(), key=lambda cut: len(cut.committed))


@pytest.fixture
def homes(tmp_path: Path) -> Homes:
    return Homes(tmp_path / "homes")


def _killed_after_writing(table: str) -> AbstractContextManager[None]:
    def kill(written: str) -> None:
        if written == table:
            raise Killed

    return after_each_commit(kill)


def _base(lake: TemporaryLake, hours: Mapping[int, Files], *jobs: str) -> LakeModel:
    """A lake in which the old version of the log hour, and these later ones, have been through the jobs."""
    everything = {KILLED: OLD, **hours}
    for hour, files in everything.items():
        _land(lake, hour, files)
    _run(lake, KILLED, *jobs[:1], end=max(everything) + 1, allow_missing=True)
    _run(lake, KILLED, *jobs[1:], end=max(everything) + 1)
    missing = {hour: {} for hour in range(KILLED, max(everything))}
    return _model(missing | everything)


def _model(hours: Mapping[int, Files]) -> LakeModel:
    return LakeModel(LATENESS, {DAY.number + hour: files for hour, files in hours.items()})


def _with(model: LakeModel, hours: Mapping[int, Files]) -> LakeModel:
    return LakeModel(LATENESS, model.ingested | _model(hours).ingested)


def _published(lake: TemporaryLake) -> Counts:
    return stored_counts(lake, PUBLISHED_CLICKS_BY_URL_HOURLY)


def _unlike_all(found: Counts, *allowed: Counts) -> list[str]:
    """The click hours whose counts are those of none of these."""

    def of_hour(counts: Counts, hour: int) -> dict[str, int]:
        return {url: clicks for (of, url), clicks in counts.items() if of == hour}

    hours = sorted({hour for counts in (found, *allowed) for hour, _ in counts})
    return [
        f"published of {Hour.of_number(hour)}: {of_hour(found, hour)}"
        for hour in hours
        if of_hour(found, hour) not in [of_hour(counts, hour) for counts in allowed]
    ]


def _report(failures: list[str]) -> None:
    assert not failures, "\n".join(failures[:40])


def test_ingest_killed_anywhere_and_run_again_forgets_no_click(lake: TemporaryLake, homes: Homes) -> None:
    """Of ids that no later log hour has stored: what is written at the same time is cut off in every order."""
    base = _base(lake, {}, "ingest")
    _land(lake, KILLED, NEW)
    cuts = homes.cut_off(lake, "ingest", lambda copied: _run(copied, KILLED, "ingest"), PIECES)
    assert len(cuts) == 10
    failures = []
    for number, cut in enumerate(cuts[:-1]):
        for hour, files in sorted(BESIDE.items(), reverse=number % 2 == 0):
            _land(cut.lake, hour, files)
            _run(cut.lake, hour, "ingest")
        _run(cut.lake, KILLED, "ingest")
        failures += [f"{cut}: {found}" for found in differences(cut.lake, _with(base, {KILLED: NEW, **BESIDE}))[:5]]
    _report(failures)


def test_nothing_of_an_ingest_that_was_killed_is_published(lake: TemporaryLake, homes: Homes) -> None:
    """Of ids that later log hours have: these change with it. A run beside it counts, validates and publishes."""
    base = _base(lake, FURTHER, *JOBS)
    assert _published(lake) == base.counts()
    _land(lake, KILLED, NEW)
    cuts = homes.cut_off(lake, "ingest", lambda copied: _run(copied, KILLED, "ingest"), PIECES - 1)
    assert len(cuts) == 8
    touched = {hour for hour, _ in base.counts() + _with(base, {KILLED: NEW}).counts()}
    failures = []
    for cut in cuts[:-1]:
        with pytest.raises(ClickmillError, match=f"not to the end .* run: .* --hour {_hour(KILLED)}"):
            cut.lake.run("aggregate", _hour(max(FURTHER)))
        _land(cut.lake, LATER, BESIDE[LATER])
        _run(cut.lake, LATER, *JOBS)
        published = Counter({of: clicks for of, clicks in _published(cut.lake).items() if of[0] in touched})
        failures += [f"{cut}: {found}" for found in _unlike_all(published, base.counts())]
        for hour in BESIDE.keys() - {LATER}:
            _land(cut.lake, hour, BESIDE[hour])
            _run(cut.lake, hour, "ingest")
        _run(cut.lake, KILLED, "ingest")
        failures += [f"{cut}: {found}" for found in differences(cut.lake, _with(base, {KILLED: NEW, **BESIDE}))[:5]]
    _report(failures)


def _decide(lake: TemporaryLake) -> None:
    """A person publishes the killed log hour's own click hour as it is, if it is held."""
    with suppress(NotHeldError):
        decide_held.run(lake.spark, lake.settings, decide_held.Decision(DAY.plus(KILLED), "publish", "Ada", "seen"))


def _do(lake: TemporaryLake, job: str) -> None:
    _decide(lake) if job == "decide" else _run(lake, KILLED, job)


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
    with_later = _with(base, {KILLED: new, LATER: BESIDE[LATER]})
    before, after, beside = base.counts(), _with(base, {KILLED: new}).counts(), with_later.counts()
    _land(lake, KILLED, new)
    _run(lake, KILLED, "ingest")
    cuts = []
    for job in jobs:
        if job in _CUT_JOBS[outcome]:
            cuts += homes.cut_off(lake, job, partial(_do, job=job), len(COUNTED))[:-1]
        _do(lake, job)
    failures = []
    for cut in cuts:
        # That it is published is on record before it is done.
        may_have = [before, after] if cut.job in ("publish", "decide") else [before]
        failures += [f"{cut}: {found}" for found in _unlike_all(_published(cut.lake), *may_have)]
        _land(cut.lake, LATER, BESIDE[LATER])
        _run(cut.lake, LATER, *JOBS)
        # The run beside it has counted again. It judges the killed log hour too, if that was judged before.
        of_later = Counter({of: clicks for of, clicks in beside.items() if of[0] == DAY.number + LATER})
        may_have = [counts | of_later for counts in may_have] + ([] if is_held else [beside])
        failures += [f"{cut}, beside it: {found}" for found in _unlike_all(_published(cut.lake), *may_have)]
        for job in jobs[jobs.index(cut.job) :]:
            _do(cut.lake, job)
        failures += [f"{cut}, at the end: {found}" for found in differences(cut.lake, with_later)[:5]]
        assert stored_counts(cut.lake, CLICKS_BY_URL_HOURLY) == beside, cut
        may_have = [before, beside] if is_held else [beside]
        failures += [f"{cut}, at the end: {found}" for found in _unlike_all(_published(cut.lake), *may_have)]
    _report(failures)


def test_log_hour_beyond_reach_is_held_still_when_its_duplicates_change(lake: TemporaryLake) -> None:
    """The click of one id, two log hours apart each, is the first, or a duplicate, by what it is before it."""
    first, held = 18, 24
    hours = {hour: _one_file("same", hour, {"same": 1}) for hour in range(first, held + 1, 2)}
    hours[held] = {**_one_file("same", held, {"same": 1, "bad": 1}), **NOISE}
    for hour, files in hours.items():
        _land(lake, hour, files)
    _run(lake, first, "ingest", end=held + 1, allow_missing=True)
    _run(lake, first, *JOBS[1:], end=held + 1)
    held_hour = DAY.number + held
    expected = _model(hours).counts()
    assert _published(lake) == Counter({of: clicks for of, clicks in expected.items() if of[0] != held_hour})

    _land(lake, first, {"a.json": ()})
    _run(lake, first, *JOBS)
    expected = _model(hours | {first: {}}).counts()
    assert stored_counts(lake, CLICKS_BY_URL_HOURLY) == expected
    assert expected[held_hour, "http://shop.test/same"] == 2
    assert _published(lake) == Counter({of: clicks for of, clicks in expected.items() if of[0] != held_hour})


def test_ingest_killed_beyond_reach_leaves_nothing_to_publish(lake: TemporaryLake) -> None:
    """Each id is two log hours apart: that the first is gone changes all of them, those out of reach too."""
    first, last = 18, 28

    def of_ids(hour: int, *ids: str) -> Files:
        second = (DAY.number + hour) * 3600
        return {"a.json": tuple(Line(event_id, second, f"http://shop.test/{event_id}") for event_id in ids)}

    hours = {first: of_ids(first, "x")} | {hour: of_ids(hour, "x", "z") for hour in range(first + 2, last + 1, 2)}
    for hour, files in hours.items():
        _land(lake, hour, files)
    _run(lake, first, "ingest", end=last + 1, allow_missing=True)
    _run(lake, first, *JOBS[1:], end=last + 1)
    before = _model(hours).counts()
    assert _published(lake) == before
    now = hours | {first: of_ids(first, "z")}
    _land(lake, first, now[first])
    with pytest.raises(Killed), _killed_after_writing("clicks"):
        _run(lake, first, "ingest")
    for hour in (last, last - 2):
        with pytest.raises(ClickmillError, match=f"not to the end .* run: .* --hour {_hour(first)}"):
            _run(lake, hour, *JOBS[1:])
    assert _published(lake) == before
    _run(lake, first, *JOBS)
    assert _published(lake) == _model(now).counts() != before


# Histories that are drawn

#: How many schedules at least, each of so many steps and ids.
ROUNDS = int(os.environ.get("CLICKMILL_FAULT_ROUNDS") or 1)
#: The same ones each time, until asked for more: what is rare is looked for by make test-faults.
SEED = int(os.environ.get("CLICKMILL_FAULT_SEED") or (random.randrange(1 << 32) if ARE_MANY else 0))
STEPS, IDS = 10, 400
#: So many different ones for each; most have more.
HISTORIES = 200
HOURS = range(4, 14)
#: In so many log hours, one after the other, an id may come.
SPAN = 5
#: How long a schedule that fails is made shorter.
SHRINKING_SECONDS = 600
_ID = re.compile(r"event_id='(\w+)'")


@dataclass(frozen=True)
class Land:
    """The log hour has these files from now on, and no others."""

    hour: int
    files: Files

    def of_ids(self, ids: Collection[str]) -> Land:
        """The lines of these ids alone."""
        kept = {name: tuple(line for line in lines if line.event_id in ids) for name, lines in self.files.items()}
        return Land(self.hour, kept)


@dataclass(frozen=True)
class Ingest:
    """The log hours are ingested; killed after so many commits, if it has as many and is to be killed."""

    start: int
    end: int
    killed_after: int | None = None
    first: int = 0


@dataclass(frozen=True)
class Publish:
    """The log hours are counted, validated and published."""

    start: int
    end: int


Step = Land | Ingest | Publish


def _span(number: int) -> range:
    """The log hours in which an id may come; some of them are outside of HOURS."""
    first = HOURS.start - SPAN + 2 + number % (len(HOURS) + SPAN - 3)
    return range(first, first + SPAN)


def _some_files(rng: random.Random, hour: int) -> Files:
    files: dict[str, list[Line]] = {name: [] for name in rng.choice([["a.json"], ["a.json", "b.json.gz"], []])}
    for number in range(IDS) if files else ():
        for _ in range(rng.choice([0, 0, 1, 1, 2]) if hour in _span(number) else 0):
            second = (DAY.number + hour) * 3600 + rng.randrange(-2 * 3600, 3600)
            url = f"http://shop.test/{rng.randrange(5)}"
            files[rng.choice(list(files))].append(Line(f"e{number}", second, url))
    for lines in files.values():
        lines[len(lines) // 2 : len(lines) // 2] = [Line(None)] * rng.randrange(3)
    return {name: tuple(lines) for name, lines in files.items()}


def _schedule(rng: random.Random) -> list[Step]:
    """First all log hours are there. Then some land again and are ingested, of which many a run is killed."""
    steps: list[Step] = [Land(hour, _some_files(rng, hour)) for hour in HOURS]
    steps.append(Ingest(HOURS.start, HOURS.stop))
    for _ in range(STEPS):
        start = rng.choice(HOURS)
        end = min(start + rng.choice([1, 1, 2, 4]), HOURS.stop)
        steps += [Land(hour, _some_files(rng, hour)) for hour in range(start, end) if rng.random() < 0.7]
        if rng.random() < 0.4:
            steps.append(Ingest(start, end, rng.randrange(1, 7), rng.randrange(PIECES)))
            if rng.random() < 0.3:
                continue
        if rng.random() < 0.15:
            steps.append(Publish(start, end))
        steps.append(Ingest(start, end))
    return steps


def _histories(steps: Iterable[Step]) -> set[tuple[object, ...]]:
    """What happens to each id, all hours counted from the first in which it may come; the same for several ids once.

    It lands, otherwise than before; and runs over log hours that may decide on it, whole or killed.
    """
    steps, found = list(steps), set()
    for number in range(IDS):
        event_id, span = f"e{number}", _span(number)
        near = range(max(span.start - LATENESS, HOURS.start), min(span.stop + LATENESS, HOURS.stop))
        history: list[tuple[object, ...]] = []
        landed: dict[int, list[tuple[str, int]]] = {}
        for step in steps:
            if isinstance(step, Land):
                places = (name for name, lines in step.files.items() for line in lines if line.event_id == event_id)
                copies = sorted(Counter(places).items())
                if step.hour in span and copies != landed.get(step.hour, []):
                    landed[step.hour] = copies
                    history.append(("land", step.hour - span.start, *copies))
            elif range(max(step.start, near.start), min(step.end, near.stop)):
                begin, end = max(step.start, near.start), min(step.end, near.stop)
                how = (step.killed_after, step.first) if isinstance(step, Ingest) else ()
                history.append((type(step).__name__, begin - span.start, end - span.start, *how))
        if landed:
            found.add(tuple(history))
    return found


class Player:
    """A lake and its model, step by step."""

    def __init__(self, lake: TemporaryLake) -> None:
        self.lake, self.model = lake, LakeModel(LATENESS)
        self.landing: dict[int, Files] = {}
        #: The log hours of which the newest ingest was killed, with the files that it had.
        self.killed: dict[int, Files] = {}

    def play(self, steps: Iterable[Step]) -> list[str]:
        """What is wrong after the first step that leaves something wrong; then the history ends."""
        for step in steps:
            if wrong := self._step(step):
                return [f"after {step}", *wrong[:5]]
        # Not all of them again: that would put right what is wrong.
        for hour in sorted(self.killed):
            if hour in self.killed and (wrong := self._step(Ingest(hour, hour + 1))):
                return [f"after the last ingest of {hour}", *wrong[:5]]
        if wrong := self._step(Publish(HOURS.start, HOURS.stop)):
            return ["after the last publication", *wrong[:5]]
        published = _unlike_all(_published(self.lake), self.model.counts())
        return published and ["after all", *published]

    def _step(self, step: Step) -> list[str]:
        if isinstance(step, Land):
            _land(self.lake, step.hour, step.files)
            self.landing[step.hour] = step.files
            return []
        return self._ingest(step) if isinstance(step, Ingest) else self._publish(step)

    def _ingest(self, step: Ingest) -> list[str]:
        files = {hour: self.landing.get(hour, {}) for hour in range(step.start, step.end)}
        try:
            with killed_after(step.killed_after, step.first):
                _run(self.lake, step.start, "ingest", end=step.end, allow_missing=True)
        except Killed:
            # Or it was at its end.
            if any(DAY.number + hour in unfinished(self.lake) for hour in files):
                self.killed |= files
                return []
        self.model = _with(self.model, files)
        self.killed = {hour: of for hour, of in self.killed.items() if hour not in files}
        return [] if self.killed else differences(self.lake, self.model)

    def _publish(self, step: Publish) -> list[str]:
        """What is published is as before, or all that has arrived; and as before where half of it may be written."""
        before = _published(self.lake)
        try:
            for job in JOBS[1:]:
                self.lake.run(job, _hour(step.start), _hour(step.end))
        except ClickmillError as error:
            # Some of the log hours may not have been ingested to the end.
            return [] if self.killed else [str(error)]
        after, counts = _published(self.lake), self.model.counts()
        if not self.killed:
            return _unlike_all(after, before, counts)
        half = _with(self.model, self.killed).lines() | self.model.lines()
        written = {line.second // 3600 for place, line in half.items() if place.hour - DAY.number in self.killed}
        of_half = [Counter({of: n for of, n in all_.items() if of[0] in written}) for all_ in (after, before)]
        return _unlike_all(*of_half)


def test_drawn_histories_end_as_the_model_says(lake: TemporaryLake, homes: Homes) -> None:
    """A history is what happens to one event id: where and how often it lands, and the runs that may decide on it.

    Ids know nothing of each other, so one schedule of runs and kills carries 200 and more of them, of which each comes
    in other log hours and sees other runs, or the same runs from elsewhere. What is not of ids (the accounts of the log
    hours, what is published at each moment) is looked at once a schedule.
    """
    print(f"CLICKMILL_FAULT_SEED={SEED} CLICKMILL_FAULT_ROUNDS={ROUNDS}")

    def play(steps: Sequence[Step]) -> list[str]:
        return Player(homes.copy(lake)).play(steps)

    histories, number = set[tuple[object, ...]](), 0
    while number < ROUNDS or len(histories) < HISTORIES * ROUNDS:
        steps = _schedule(random.Random(f"{SEED}/{number}"))
        histories |= _histories(steps)
        if wrong := play(steps):
            shortest, wrong = _shorter(steps, wrong, play)
            pytest.fail("\n".join([f"CLICKMILL_FAULT_SEED={SEED}, schedule {number}:", *map(str, shortest), *wrong]))
        number += 1
    print(f"{len(histories)} different histories in {number} schedules")


def _shorter(
    steps: list[Step], wrong: list[str], play: Callable[[Sequence[Step]], list[str]]
) -> tuple[list[Step], list[str]]:
    """A schedule that fails in the same way with one id, and without more and more of its steps, as time allows.

    Hypothesis, which shortens what needs no Spark (tests/ingest/test_streamed_histories.py), tries hundreds; here a try
    takes half a minute. So first comes what helps most: the ids that are told of, then halves of the steps.
    """
    end = monotonic() + SHRINKING_SECONDS
    table = wrong[1].split()[0]

    def again(fewer: Sequence[Step]) -> list[str]:
        found = play(fewer) if monotonic() < end else []
        return found if found and found[1].split()[0] == table else []

    def of_ids(ids: Collection[str]) -> list[Step]:
        return [step.of_ids(ids) if isinstance(step, Land) else step for step in steps]

    for event_id in sorted({found[0] for found in map(_ID.findall, wrong) if found})[:3]:
        if found := again(of_ids([event_id])):
            steps, wrong = of_ids([event_id]), found
            break
    size = len(steps) // 2
    while size:
        for start in reversed(range(0, len(steps), size)):
            fewer = steps[:start] + steps[start + size :]
            if found := again(fewer):
                steps, wrong = fewer, found
        size //= 2
    return steps, wrong
