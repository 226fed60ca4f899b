"""Whatever the history, the tables are what plain Python makes of the landed files, and nothing unjudged is published.

Histories are drawn: log hours that land, again and late, runs over them in any order, and ingests that are killed
between any two commits. Under ``make test-faults`` (CLICKMILL_FAULT_ROUNDS) more of them; CLICKMILL_FAULT_SEED draws
the same ones again. Those of streamed sources are in ``test_streamed_histories.py``; each commit of each job is cut off
in ``test_killed_jobs.py``.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import pytest

from include.errors import ClickmillError
from tests.ingest.played_lake import (
    DAY,
    LATENESS,
    Homes,
    hour_name,
    land,
    published_counts,
    run_jobs,
    unlike_all,
    with_files,
    with_short_reach,
)
from tests.support.fault_rounds import ROUNDS, SEED
from tests.support.killed_runs import Killed, killed_after
from tests.support.lake_model import Files, LakeModel, Line, differences, unfinished
from tests.support.temporary_lake import JOBS, TemporaryLake

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.faults]

#: ``ROUNDS`` schedules at least, each of so many steps and ids.
STEPS, IDS = 10, 400
#: So many different ones for each; most have more.
HISTORIES = 200
HOURS = range(4, 14)
#: In so many log hours, one after the other, an id may come.
SPAN = 5
#: How long a schedule that fails is made shorter.
SHRINKING_SECONDS = 600
_ID = re.compile(r"event_id='(\w+)'")


@pytest.fixture
def lake(lake: TemporaryLake) -> TemporaryLake:
    return with_short_reach(lake)


@pytest.fixture
def homes(tmp_path: Path) -> Homes:
    return Homes(tmp_path / "homes")


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
            steps.append(Ingest(start, end, rng.randrange(1, 8)))
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
    steps, histories = list(steps), set()
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
                how = (step.killed_after,) if isinstance(step, Ingest) else ()
                history.append((type(step).__name__, begin - span.start, end - span.start, *how))
        if landed:
            histories.add(tuple(history))
    return histories


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
        published = unlike_all(published_counts(self.lake), self.model.counts())
        return published and ["after all", *published]

    def _step(self, step: Step) -> list[str]:
        if isinstance(step, Land):
            land(self.lake, step.hour, step.files)
            self.landing[step.hour] = step.files
            return []
        return self._ingest(step) if isinstance(step, Ingest) else self._publish(step)

    def _ingest(self, step: Ingest) -> list[str]:
        files = {hour: self.landing.get(hour, {}) for hour in range(step.start, step.end)}
        try:
            with killed_after(step.killed_after):
                run_jobs(self.lake, step.start, "ingest", end=step.end, allow_missing=True)
        except Killed:
            # Or it was at its end.
            if any(DAY.number + hour in unfinished(self.lake) for hour in files):
                self.killed |= files
                return []
        self.model = with_files(self.model, files)
        self.killed = {hour: of for hour, of in self.killed.items() if hour not in files}
        return [] if self.killed else differences(self.lake, self.model)

    def _publish(self, step: Publish) -> list[str]:
        """What is published is as before, or all that has arrived; and as before where half of it may be written."""
        before = published_counts(self.lake)
        try:
            for job in JOBS[1:]:
                self.lake.run(job, hour_name(step.start), hour_name(step.end))
        except ClickmillError as error:
            # Some of the log hours may not have been ingested to the end.
            return [] if self.killed else [str(error)]
        after, counts = published_counts(self.lake), self.model.counts()
        if not self.killed:
            return unlike_all(after, before, counts)
        half = with_files(self.model, self.killed).lines() | self.model.lines()
        written = {line.second // 3600 for place, line in half.items() if place.hour - DAY.number in self.killed}
        of_half = [Counter({of: n for of, n in all_.items() if of[0] in written}) for all_ in (after, before)]
        return unlike_all(*of_half)


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
    takes half a minute. So first comes what helps most: the ids that are named, then halves of the steps.
    """
    end = monotonic() + SHRINKING_SECONDS
    table = wrong[1].split()[0]

    def again(fewer: Sequence[Step]) -> list[str]:
        problems = play(fewer) if monotonic() < end else []
        return problems if problems and problems[1].split()[0] == table else []

    def of_ids(ids: Collection[str]) -> list[Step]:
        return [step.of_ids(ids) if isinstance(step, Land) else step for step in steps]

    for event_id in sorted({ids[0] for ids in map(_ID.findall, wrong) if ids})[:3]:
        if problems := again(of_ids([event_id])):
            steps, wrong = of_ids([event_id]), problems
            break
    size = len(steps) // 2
    while size:
        for start in reversed(range(0, len(steps), size)):
            fewer = steps[:start] + steps[start + size :]
            if problems := again(fewer):
                steps, wrong = fewer, problems
        size //= 2
    return steps, wrong
