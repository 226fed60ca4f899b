"""The topology of what Spark ran, in the way of Kafka Streams' ``Topology.describe()``.

A query's final plan is cut at its exchanges into sub-topologies: what one task does to its partition without waiting
for others. Each has sources, operators and sinks, and as many tasks, named ``<sub-topology>_<partition>``, as it has
partitions. At a cut rows change their task: a shuffle repartitions them, a broadcast gives all of them to every task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from include.texts import as_size, plural
from spark_jobs.topology.task_assignment import Assignment, TaskId, assign, moves, worker_names

SHUFFLE, BROADCAST = "shuffle", "broadcast"


@dataclass(frozen=True)
class Cut:
    """Where rows leave the tasks of one sub-topology for those of others.

    ``cause`` is the operator that needs it. ``count`` is the number of partitions that rows are sent to, None for a
    broadcast; ``is_asked_for`` says that the job asked for this count, else it is Spark's default. ``reads`` says what
    adaptive execution made of it. ``rows`` and ``size``, in bytes, are what crossed; None when Spark did not say.
    """

    number: int
    kind: str
    cause: str
    partitioner: str
    keys: tuple[str, ...]
    count: int | None
    is_asked_for: bool
    writer: int
    readers: tuple[int, ...]
    reads: tuple[str, ...] = ()
    rows: int | None = None
    size: int | None = None

    @property
    def name(self) -> str:
        """``shuffle 0``."""
        return f"{self.kind} {self.number}"


@dataclass(frozen=True)
class SubTopology:
    """What a task does between two cuts; ``partitions`` is the number of its tasks, None when it did not run.

    ``executors`` are those that ran its tasks, by partition; none on a machine alone, or where Spark did not say.
    """

    number: int
    sources: tuple[str, ...]
    operators: tuple[str, ...]
    sinks: tuple[str, ...]
    partitions: int | None = None
    executors: tuple[str, ...] = ()

    @property
    def tasks(self) -> list[TaskId]:
        """Its tasks, by partition."""
        return [TaskId(self.number, partition) for partition in range(self.partitions or 0)]


@dataclass(frozen=True)
class QueryTopology:
    """The topology of one query.

    ``needless`` says, a sentence each, which shuffles need not be. ``left_out`` are shuffles, such as ``hash of url``,
    that were planned but are not in the final plan: adaptive execution found that their rows are not needed.
    """

    name: str
    sub_topologies: tuple[SubTopology, ...]
    cuts: tuple[Cut, ...]
    needless: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def shuffles(self) -> list[Cut]:
        """The cuts that repartition rows."""
        return [cut for cut in self.cuts if cut.kind == SHUFFLE]

    @property
    def tasks(self) -> list[TaskId]:
        """All tasks."""
        return [task for sub_topology in self.sub_topologies for task in sub_topology.tasks]

    @property
    def placement(self) -> dict[str, list[TaskId]]:
        """The tasks that each executor ran; empty where there are none."""
        tasks_of: dict[str, list[TaskId]] = {}
        for part in self.sub_topologies:
            for task, executor in zip(part.tasks, part.executors, strict=False):
                tasks_of.setdefault(executor, []).append(task)
        return dict(sorted(tasks_of.items()))


@dataclass(frozen=True)
class JobTopology:
    """All queries of a job, in the order in which they ran."""

    job: str
    queries: tuple[QueryTopology, ...]

    @property
    def shuffle_count(self) -> int:
        """How often rows are repartitioned."""
        return sum(len(query.shuffles) for query in self.queries)


def describe(topology: JobTopology, *, workers: int = 0, cores: int = 1) -> str:
    """The job's topology as text; with workers, how its tasks fall on these."""
    count, shuffles = len(topology.queries), topology.shuffle_count
    lines = [f"Topology of {topology.job}: {plural(count, 'query', 'queries')}, {plural(shuffles, 'shuffle')}"]
    for query in topology.queries:
        lines += ["", *describe_query(query)]
        lines += described_assignment(query, workers, cores) if workers else []
    return "\n".join(lines) + "\n"


def describe_query(query: QueryTopology) -> list[str]:
    """The query's sub-topologies and what crosses between them, a line each."""
    lines = [f"Query: {query.name}"]
    for part in query.sub_topologies:
        tasks = f" ({_span(part.tasks)})" if part.partitions else ""
        lines.append(f"  Sub-topology: {part.number}{tasks}")
        lines += [f"    Source: {source}" for source in part.sources]
        lines += [f"      --> {operator}" for operator in part.operators]
        lines += [f"    Sink: {sink}" for sink in part.sinks]
        for cut in query.cuts:
            if cut.writer == part.number:
                to = ", ".join(map(str, cut.readers))
                lines.append(f"      --> sub-topology {to}: {'; '.join(described_cut(cut))}")
    lines += [f"  Planned, then left out by adaptive execution: {shuffle}" for shuffle in query.left_out]
    lines += [f"  Needless: {sentence}" for sentence in query.needless]
    return lines


def described_cut(cut: Cut) -> list[str]:
    """What a cut does and why, how its partitions are read, and what crossed it, each as some words."""
    if cut.kind == BROADCAST:
        how = "all rows to every task"
    elif cut.partitioner == "single":
        how = "all rows to one task"
    else:
        of = f" of {', '.join(cut.keys)}" if cut.keys else ""
        how = f"{cut.partitioner}{of} into {cut.count}" + ("" if cut.is_asked_for else " by default")
    phrases = [f"{cut.cause}: {how}", *(f"read {read}" for read in cut.reads)]
    in_memory = " in memory" if cut.kind == BROADCAST else ""
    if cut.rows is not None:
        phrases.append(plural(cut.rows, "row") + ("" if cut.size is None else f", {as_size(cut.size)}{in_memory}"))
    return phrases


def described_assignment(query: QueryTopology, workers: int, cores: int) -> list[str]:
    """Which executor ran which of the query's tasks.

    Without executors, by simulation: how the tasks fall on workers and cores, who idles, and what moves when a worker
    comes or goes.
    """
    if query.placement:
        return [
            "  Placement: tasks by the executors that ran them:",
            *(f"    {executor}: {' '.join(map(str, tasks))}" for executor, tasks in query.placement.items()),
        ]
    names = worker_names(workers)
    assignment = assign(query.tasks, names, cores)
    lines = [f"  Simulation: tasks on {plural(workers, 'worker')} with {plural(cores, 'core')} each:"]
    lines += [
        f"    {core}: {' '.join(map(str, assignment.tasks_of(core))) or 'idle'}" for core in sorted(assignment.cores)
    ]
    for part in query.sub_topologies:
        idle = sorted(assignment.idle(part.number))
        if part.partitions and idle:
            lines.append(f"    idle in sub-topology {part.number}: {', '.join(map(str, idle))}")
    for change, then in _changes(names):
        moved = moves(assignment, assign(query.tasks, then, cores, assignment))
        listed = ", ".join(f"{move.task} {move.before} -> {move.after}" for move in moved) or "nothing"
        lines.append(f"    {change}: moves {listed}")
    return lines


def as_json(topology: JobTopology, workers: int, cores: int) -> dict[str, Any]:
    """The job's topology with its tasks' assignment, as plain values."""
    return {
        "job": topology.job,
        "shuffles": topology.shuffle_count,
        "queries": [
            {
                **asdict(query),
                "tasks": [str(task) for task in query.tasks],
                "placement": {executor: [str(task) for task in tasks] for executor, tasks in query.placement.items()},
                "assignment": None if query.placement else _assignment_as_json(query, workers, cores),
            }
            for query in topology.queries
        ],
    }


def _assignment_as_json(query: QueryTopology, workers: int, cores: int) -> dict[str, Any]:
    names = worker_names(workers)
    assignment: Assignment = assign(query.tasks, names, cores)
    return {
        "cores": {str(core): [str(task) for task in assignment.tasks_of(core)] for core in sorted(assignment.cores)},
        "idle": {
            part.number: [str(core) for core in sorted(assignment.idle(part.number))] for part in query.sub_topologies
        },
        "moves": {
            change: [
                {"task": str(move.task), "before": move.before, "after": move.after}
                for move in moves(assignment, assign(query.tasks, then, cores, assignment))
            ]
            for change, then in _changes(names)
        },
    }


def _changes(names: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """One worker more, and each one less."""
    added = f"w{len(names) + 1}"
    yield f"{added} added", [*names, added]
    if len(names) > 1:
        for lost in names:
            yield f"{lost} lost", [name for name in names if name != lost]


def _span(tasks: Sequence[TaskId]) -> str:
    """``2 tasks, 0_0 to 0_1``."""
    names = f"{tasks[0]} to {tasks[-1]}" if len(tasks) > 1 else f"{tasks[0]}"
    return f"{plural(len(tasks), 'task')}, {names}"
