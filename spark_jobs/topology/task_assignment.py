"""How tasks fall on workers and their cores: balanced, and sticky when a worker comes or goes.

Spark runs the tasks of a sub-topology side by side, one sub-topology after another: so each of them is balanced by
itself, and what is left over goes where the fewest tasks are in all. Spark itself gives tasks to cores as these come
free; the assignment here is the even one, which it approaches when tasks take equally long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeVar

from include.errors import UsageError

Place = TypeVar("Place", bound="str | Core")


@dataclass(frozen=True, order=True)
class TaskId:
    """One partition of a sub-topology, written as Kafka Streams does: ``<sub-topology>_<partition>``."""

    sub_topology: int
    partition: int

    def __str__(self) -> str:
        return f"{self.sub_topology}_{self.partition}"


@dataclass(frozen=True, order=True)
class Core:
    """A core of a worker, numbered from 0: what runs one task at a time."""

    worker: str
    number: int

    def __str__(self) -> str:
        return f"{self.worker} core {self.number}"


@dataclass(frozen=True)
class Assignment:
    """Which core each task is on."""

    cores: tuple[Core, ...]
    core_of: Mapping[TaskId, Core] = field(hash=False)

    def tasks_of(self, core: Core) -> list[TaskId]:
        """The core's tasks, in order."""
        return sorted(task for task, place in self.core_of.items() if place == core)

    def idle(self, sub_topology: int) -> list[Core]:
        """The cores without a task of this sub-topology."""
        busy = {core for task, core in self.core_of.items() if task.sub_topology == sub_topology}
        return [core for core in self.cores if core not in busy]


@dataclass(frozen=True)
class Move:
    """A task that is on another worker now; ``before`` may be gone."""

    task: TaskId
    before: str
    after: str


def worker_names(count: int) -> list[str]:
    """``w1``, ``w2`` and so on.

    Raises:
        UsageError: if there is none.
    """
    if count < 1:
        raise UsageError(f"{count} workers: expected a whole number of 1 or more")
    return [f"w{number}" for number in range(1, count + 1)]


def assign(tasks: Iterable[TaskId], workers: Sequence[str], cores: int, before: Assignment | None = None) -> Assignment:
    """Each sub-topology's tasks on workers, and on the cores of each, so that no two differ by more than one task.

    With ``before``, no more tasks change their worker than that needs.

    Raises:
        UsageError: if there is no worker, one is named twice, or it has no core.
    """
    if not workers or len(set(workers)) < len(workers):
        raise UsageError(f"workers {list(workers)}: expected one or more, each named once")
    if cores < 1:
        raise UsageError(f"{cores} cores a worker: expected a whole number of 1 or more")
    stayed = before.core_of if before else {}
    worker_load, core_load = dict.fromkeys(workers, 0), dict.fromkeys(_cores_of(workers, cores), 0)
    core_of: dict[TaskId, Core] = {}
    for _, group in groupby(sorted(set(tasks)), key=lambda task: task.sub_topology):
        were = {task: stayed.get(task) for task in group}
        worker_of = _balance({task: core.worker if core else None for task, core in were.items()}, worker_load)
        for worker in workers:
            here = {task: were[task] for task, of_task in worker_of.items() if of_task == worker}
            of_worker = {core: core_load[core] for core in _cores_of([worker], cores)}
            core_of |= _balance(here, of_worker)
            core_load |= of_worker
    return Assignment(tuple(core_load), core_of)


def moves(before: Assignment, after: Assignment) -> list[Move]:
    """The tasks that are on another worker than before, in order."""
    return [
        Move(task, before.core_of[task].worker, core.worker)
        for task, core in sorted(after.core_of.items())
        if task in before.core_of and before.core_of[task].worker != core.worker
    ]


def _cores_of(workers: Iterable[str], cores: int) -> list[Core]:
    # One core of every worker, then the next of every worker.
    return [Core(worker, number) for number in range(cores) for worker in workers]


def _balance(were: Mapping[TaskId, Place | None], load: dict[Place, int]) -> dict[TaskId, Place]:
    """Tasks to places, evenly, with as many as possible where they were; adds what each place got to its load.

    Every place may keep the smaller even share. The larger share, one task more, goes to as many places as there are
    tasks over: to those first that had more than the smaller one, so that no split keeps more tasks where they were.
    """
    had = {place: [task for task, at in were.items() if at == place] for place in load}
    share, over = divmod(len(were), len(load))
    places = list(load)
    by_claim = sorted(places, key=lambda place: (len(had[place]) <= share, load[place], places.index(place)))
    room = {place: share + (rank < over) for rank, place in enumerate(by_claim)}
    placed = {task: place for place in places for task in had[place][: room[place]]}
    size = Counter(placed.values())
    for task in were:
        if task not in placed:
            free = (place for place in places if size[place] < room[place])
            placed[task] = min(free, key=lambda place: (size[place], load[place]))
            size[placed[task]] += 1
    for place in places:
        load[place] += size[place]
    return {task: placed[task] for task in were}
