"""Tasks fall evenly on workers and cores, and as few as possible move when a worker comes or goes."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from include.errors import UsageError
from spark_jobs.topology.task_assignment import Assignment, Core, TaskId, assign, moves, worker_names


def _tasks(*partitions: int) -> list[TaskId]:
    return [TaskId(number, partition) for number, count in enumerate(partitions) for partition in range(count)]


def _fewest_moves(loads: dict[str, int], workers: list[str]) -> int:
    """By trying every even split."""
    total = sum(loads.values())
    share = total // len(workers)
    kept = [
        sum(min(loads.get(worker, 0), size) for worker, size in zip(workers, sizes, strict=True))
        for sizes in product((share, share + 1), repeat=len(workers))
        if sum(sizes) == total
    ]
    return total - max(kept)


def _is_even(counts: list[int]) -> bool:
    return max(counts) - min(counts) <= 1


def _check_even(assignment: Assignment, tasks: list[TaskId]) -> None:
    assert sorted(assignment.core_of) == tasks
    for number in {task.sub_topology for task in tasks}:
        cores = Counter(core for task, core in assignment.core_of.items() if task.sub_topology == number)
        per_worker = {
            worker: [cores[core] for core in assignment.cores if core.worker == worker]
            for worker in {core.worker for core in assignment.cores}
        }
        assert _is_even([sum(counts) for counts in per_worker.values()])
        assert all(map(_is_even, per_worker.values()))


def test_tasks_fall_evenly_and_what_is_left_over_goes_where_least_is() -> None:
    assignment = assign(_tasks(3, 1, 4), worker_names(2), cores=2)
    placed = {str(task): str(core) for task, core in assignment.core_of.items()}
    assert placed == {
        "0_0": "w1 core 0",
        "0_1": "w2 core 0",
        "0_2": "w1 core 1",
        "1_0": "w2 core 1",
        "2_0": "w1 core 0",
        "2_1": "w2 core 0",
        "2_2": "w1 core 1",
        "2_3": "w2 core 1",
    }
    assert assignment.idle(0) == [Core("w2", 1)]
    assert [str(core) for core in assignment.idle(1)] == ["w1 core 0", "w2 core 0", "w1 core 1"]


@pytest.mark.parametrize("partitions", [(1,), (4, 4), (7, 1, 3), (16, 5), (2, 2, 2, 2, 2)])
@pytest.mark.parametrize("cores", [1, 2, 3])
def test_as_little_as_possible_moves_when_a_worker_is_added_or_lost(partitions: tuple[int, ...], cores: int) -> None:
    tasks = _tasks(*partitions)
    for count in (1, 2, 3, 5):
        workers = worker_names(count)
        before = assign(tasks, workers, cores)
        _check_even(before, tasks)
        assert _is_even(
            list(Counter({w: 0 for w in workers} | Counter(c.worker for c in before.core_of.values())).values())
        )
        for then in [[*workers, "new"], *([w for w in workers if w != lost] for lost in workers if count > 1)]:
            after = assign(tasks, then, cores, before)
            _check_even(after, tasks)
            fewest = sum(
                _fewest_moves(
                    Counter(core.worker for task, core in before.core_of.items() if task.sub_topology == number), then
                )
                for number in range(len(partitions))
            )
            assert len(moves(before, after)) == fewest


def test_nothing_moves_when_nothing_changes() -> None:
    tasks = _tasks(7, 2)
    before = assign(tasks, worker_names(3), cores=2)
    assert assign(tasks, worker_names(3), 2, before).core_of == before.core_of


def test_no_worker_or_core_is_an_error_before_any_work() -> None:
    with pytest.raises(UsageError, match="0 workers: expected"):
        worker_names(0)
    with pytest.raises(UsageError, match="each named once"):
        assign(_tasks(1), ["a", "a"], 1)
    with pytest.raises(UsageError, match="-1 cores a worker: expected"):
        assign(_tasks(1), ["a"], -1)
