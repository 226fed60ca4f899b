"""The topology of a query, read from Spark's final plan: cut at its exchanges, adaptive decisions included."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from spark_jobs.topology.exchanges import Partitioning, crossed, read_as
from spark_jobs.topology.model import BROADCAST, SHUFFLE, Cut, QueryTopology, SubTopology
from spark_jobs.topology.needless import needless_shuffles
from spark_jobs.topology.plan import Operator
from spark_jobs.topology.plan_words import (
    IS_LOCAL,
    PYTHON,
    SILENT,
    cause_of,
    is_log,
    name_of,
    names_of,
    source_of,
    words_of,
)

_EXCHANGE = re.compile(r"(Exchange|BroadcastExchange|\w*ShuffleExchange)$")


@dataclass(frozen=True)
class RanStage:
    """A stage that ran for the query; ``rows`` and ``size``, in bytes, are what it wrote for a shuffle.

    ``executors`` are those of its tasks, by partition; none where the driver ran them.
    """

    stage_id: int
    tasks: int
    rows: int
    size: int
    executors: tuple[str, ...] = ()


def read_query(
    name: str,
    plan: Operator,
    sink: str,
    stages: Sequence[RanStage] = (),
    named: Callable[[str], str] = lambda path: path,
    initial: Operator | None = None,
) -> QueryTopology:
    """The topology of a final plan; with the initial one it knows what adaptive execution has left out.

    ``sink`` is what the last sub-topology's rows go to. ``stages`` are those that ran for it; without them there are no
    tasks. ``named`` gives a path as people know it.
    """
    reader = _Reader(plan, named)
    reader.sub_topology(plan, sink)
    ran = _stages_of(reader, stages) if stages else {}
    cuts = tuple(
        replace(
            cut,
            readers=tuple(dict.fromkeys(reader.readers[cut.number])),
            reads=tuple(dict.fromkeys(reader.reads[cut.number])),
            size=ran[cut.writer].size if cut.kind == SHUFFLE and cut.writer in ran else cut.size,
        )
        for cut in reader.cuts
    )
    sub_topologies = tuple(
        _with_tasks(part, ran.get(part.number), cuts) if stages else part for part in reader.sub_topologies
    )
    left_out = (_shuffles(initial) - _shuffles(plan)).elements() if initial else ()
    return QueryTopology(
        name, sub_topologies, cuts, tuple(dict.fromkeys(needless_shuffles(plan, named))), tuple(sorted(left_out))
    )


def _shuffles(plan: Operator) -> Counter[str]:
    """The shuffles of a plan in words, with how often each is there."""
    exchanges = [Partitioning.of(operator) for operator in plan.walk() if operator.name == "Exchange"]
    return Counter(f"{how.partitioner} of {names_of(how.keys)}" if how.keys else how.partitioner for how in exchanges)


def is_internal(plan: Operator) -> bool:
    """Whether a query reads nothing but Delta's own log, or rows that the job sent itself."""
    operators = list(plan.walk())
    leaves = [operator for operator in operators if not operator.children]
    # What Python makes of the job's rows may be all lines of the files that they name.
    return not any(operator.name in PYTHON for operator in operators) and all(
        IS_LOCAL.match(leaf.name) or is_log(leaf) for leaf in leaves
    )


class _Reader:
    """Walks a plan from its root to its leaves, and numbers sub-topologies and cuts as rows flow: leaves first."""

    def __init__(self, plan: Operator, named: Callable[[str], str]) -> None:
        self.named = named
        self.sub_topologies: list[SubTopology] = []
        self.cuts: list[Cut] = []
        self.readers: dict[int, list[int]] = {}
        self.reads: dict[int, list[str]] = {}
        self.cut_of: dict[int, int] = {}
        #: Spark's own columns by what they stand for: _w0#7 is shiftright(row_id#3, 33).
        self.aliases = _own_columns(plan)
        #: Stage ids that the metrics of a sub-topology name.
        self.named_stages: dict[int, list[int]] = {}

    def sub_topology(self, root: Operator, sink: str | None) -> int:
        """Read all below; returns the number of the sub-topology that the root is the end of."""
        sources: list[str | int] = []
        operators: list[Operator] = []
        self._walk(root, (), sources, operators)
        number = len(self.sub_topologies)
        for source in sources:
            if isinstance(source, int):
                self.readers[source].append(number)
        named = (self.cuts[source].name if isinstance(source, int) else source for source in sources)
        described = (words_of(operator, self.aliases) for operator in operators)
        self.sub_topologies.append(
            SubTopology(
                number,
                tuple(dict.fromkeys(named)),
                tuple(words for words in described if words),
                (sink,) if sink else (),
            )
        )
        self.named_stages.setdefault(number, []).extend(
            stage for operator in operators for text in operator.metrics.values() for stage in _stages_in(text)
        )
        return number

    def _walk(
        self, operator: Operator, above: tuple[Operator, ...], sources: list[str | int], operators: list[Operator]
    ) -> None:
        """Gather, leaves first, what belongs to a sub-topology; ``above`` are the operators that read this one."""
        if operator.name == "ReusedExchange" and operator.reuses in self.cut_of:
            cut = self.cut_of[operator.reuses]
            sources.append(cut)
            self.reads[cut] += read_as(above)
            return
        if _EXCHANGE.match(operator.name) and operator.children:
            sources.append(self._cut(operator, above))
            return
        for child in operator.children:
            self._walk(child, (operator, *above), sources, operators)
        if not operator.children:
            sources.append(source_of(operator, self.named))
        operators.append(operator)

    def _cut(self, exchange: Operator, above: tuple[Operator, ...]) -> int:
        writer = self.sub_topology(exchange.children[0], None)
        number = len(self.cuts)
        reader = next((operator for operator in above if not _is_beside(operator, exchange)), None)
        if exchange.name == "BroadcastExchange":
            cut = Cut(number, BROADCAST, cause_of(reader), BROADCAST, (), None, False, writer, ())
        else:
            how = Partitioning.of(exchange)
            cause = "repartition asked for" if how.is_asked_for else cause_of(reader)
            keys = tuple(name_of(key, self.aliases) for key in how.keys)
            cut = Cut(number, SHUFFLE, cause, how.partitioner, keys, how.count, how.has_own_count, writer, ())
        rows, size = crossed(exchange)
        self.cuts.append(replace(cut, rows=rows, size=size))
        self.readers[number], self.reads[number] = [], read_as(above)
        self.cut_of[exchange.number] = number
        self.sub_topologies[writer] = replace(self.sub_topologies[writer], sinks=(cut.name,))
        self.named_stages[writer] += [
            stage for key in _WRITE_METRICS for stage in _stages_in(exchange.metrics.get(key, ""))
        ]
        return number


def _stages_of(reader: _Reader, stages: Sequence[RanStage]) -> dict[int, RanStage]:
    """The stage that ran each sub-topology.

    Spark names it in metrics of more than one task. Else it is the one that wrote as many rows as crossed the cut; the
    last sub-topology's is the last that is left and wrote none.
    """
    left = {stage.stage_id: stage for stage in stages}
    stage_of: dict[int, RanStage] = {}
    for number, named in reader.named_stages.items():
        most_named = Counter(stage for stage in named if stage in left).most_common(1)
        if most_named:
            stage_of[number] = left.pop(most_named[0][0])
    for cut in reader.cuts:
        fits = [stage for stage in left.values() if cut.kind == SHUFFLE and stage.rows == cut.rows]
        if cut.writer not in stage_of and fits:
            stage_of[cut.writer] = left.pop(fits[0].stage_id)
    last = len(reader.sub_topologies) - 1
    ends = [stage for stage in left.values() if stage.rows == 0]
    if last not in stage_of and ends:
        stage_of[last] = left.pop(ends[-1].stage_id)
    unknown = [part.number for part in reader.sub_topologies if part.number not in stage_of]
    if len(unknown) == len(left) == 1:
        stage_of[unknown[0]] = left.popitem()[1]
    return stage_of


def _with_tasks(part: SubTopology, stage: RanStage | None, cuts: Sequence[Cut]) -> SubTopology:
    if stage is None:
        return replace(part, partitions=_planned(part, cuts))
    return replace(part, partitions=stage.tasks, executors=stage.executors)


def _planned(part: SubTopology, cuts: Sequence[Cut]) -> int:
    """The tasks of a sub-topology whose stage is not known: as many as the partitions it reads, else one.

    Spark's metrics do not name the stage when there is only one task to report on.
    """
    read = [cut for cut in cuts if cut.kind == SHUFFLE and part.number in cut.readers]
    coalesced = [int(match[1]) for cut in read for how in cut.reads if (match := _COALESCED.match(how))]
    return max(coalesced or [cut.count or 1 for cut in read], default=1)


def _is_beside(operator: Operator, exchange: Operator) -> bool:
    """Whether an operator above an exchange is not what the exchange is for."""
    is_local_sort = operator.name == "Sort" and Partitioning.of(exchange).partitioner != "range"
    return bool(SILENT.match(operator.name)) or is_local_sort


def _own_columns(plan: Operator) -> dict[str, str]:
    """What the columns that Spark made itself stand for."""
    expressions = {}
    for operator in plan.walk():
        for column in operator.detail_list("Output"):
            expression, made, name = column.rpartition(" AS ")
            if made and name.startswith("_"):
                expressions[name] = expression
    return expressions


_COALESCED = re.compile(r"coalesced to (\d+)")
_WRITE_METRICS = ("data size", "shuffle bytes written", "shuffle write time", "time to collect", "time to build")
_STAGE = re.compile(r"\(stage (\d+)\.\d+: task \d+\)")


def _stages_in(metric: str) -> list[int]:
    return [int(stage) for stage in _STAGE.findall(metric)]
