"""The topology of a query, read from Spark's final plan: cut at its exchanges, adaptive decisions included."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from include.spark_plan import Operator, entries, without_ids
from include.tables import TABLES, Table
from include.topology import BROADCAST, SHUFFLE, Cut, QueryTopology, SubTopology

#: Operators that only hand rows on, and those of which there is nothing to say.
_SILENT = re.compile(
    r"(AdaptiveSparkPlan|\w*QueryStage|AQEShuffleRead|InputAdapter|ColumnarToRow|WholeStageCodegen.*|Project"
    r"|DeserializeToObject|SerializeFromObject|WriteFiles|Execute .*)$"
)
_EXCHANGE = re.compile(r"(Exchange|BroadcastExchange|\w*ShuffleExchange)$")
_AGGREGATE = re.compile(r"(Hash|ObjectHash|Sort)Aggregate$")
_JOIN = re.compile(r"(SortMerge|ShuffledHash|BroadcastHash|BroadcastNestedLoop)Join$|CartesianProduct$")
#: Through these rows stay with the task that they were dealt to.
_KEEPS_DEALING = re.compile(r"(Filter|Project|Sort|Generate|Window|WindowGroupLimit|Expand|\w*Aggregate)$")
#: These change neither the rows' task nor their keys.
_STRAIGHT = re.compile(r"(Filter|Project|Sort)$")
_PARTITIONERS = {
    "hashpartitioning": "hash",
    "rangepartitioning": "range",
    "roundrobinpartitioning": "round-robin",
    "singlepartition": "single",
}


@dataclass(frozen=True)
class Dealing:
    """How an exchange deals rows, keys with Spark's expression ids; ``origin`` is why, in Spark's words."""

    partitioner: str
    keys: tuple[str, ...]
    count: int
    origin: str

    @classmethod
    def of(cls, exchange: Operator) -> Dealing:
        """As the exchange's arguments say: ``hashpartitioning(url#1, 4), REPARTITION_BY_NUM, [plan_id=7]``."""
        how, *rest = [*exchange.detail_list("Arguments"), ""]
        name, _, inside = how.removesuffix(")").partition("(")
        partitioner = _PARTITIONERS.get(name.lower(), name.lower())
        *keys, count = entries(inside) or ["1"]
        return cls(partitioner, tuple(keys), int(count) if count.isdigit() else 1, rest[0])

    @property
    def is_asked_for(self) -> bool:
        """Whether the job asked for it, and not an operator."""
        return self.origin.startswith(("REPARTITION", "REBALANCE"))


@dataclass(frozen=True)
class RanStage:
    """A stage that ran for the query; ``rows`` and ``size``, in bytes, are what it wrote for a shuffle."""

    stage_id: int
    tasks: int
    rows: int
    size: int


def read_query(
    name: str,
    plan: Operator,
    sink: str,
    stages: Sequence[RanStage] = (),
    named: Callable[[str], str] = lambda path: path,
) -> QueryTopology:
    """The topology of a final plan.

    ``sink`` is what the last sub-topology's rows go to. ``stages`` are those that ran for it; without them there are no
    tasks. ``named`` gives a path as people know it.
    """
    reader = _Reader(named)
    reader.sub_topology(plan, sink)
    ran = _stages_of(reader, stages)
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
        replace(part, partitions=ran[part.number].tasks) if part.number in ran else part
        for part in reader.sub_topologies
    )
    return QueryTopology(name, sub_topologies, cuts, tuple(dict.fromkeys(_needless(plan, named))))


def is_internal(plan: Operator) -> bool:
    """Whether a query reads nothing but Delta's own log, or rows that the job sent itself."""
    leaves = [operator for operator in plan.walk() if not operator.children]
    return all("Delta Table State" in leaf.name or _IS_LOCAL.match(leaf.name) or _is_log(leaf) for leaf in leaves)


class _Reader:
    """Walks a plan from its root to its leaves, and numbers sub-topologies and cuts as rows flow: leaves first."""

    def __init__(self, named: Callable[[str], str]) -> None:
        self.named = named
        self.sub_topologies: list[SubTopology] = []
        self.cuts: list[Cut] = []
        self.readers: dict[int, list[int]] = {}
        self.reads: dict[int, list[str]] = {}
        self.cut_of: dict[int, int] = {}
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
        said = (_said(operator) for operator in operators)
        self.sub_topologies.append(
            SubTopology(
                number,
                tuple(dict.fromkeys(named)),
                tuple(words for words in said if words),
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
            self.reads[cut] += _read_as(above)
            return
        if _EXCHANGE.match(operator.name) and operator.children:
            sources.append(self._cut(operator, above))
            return
        for child in operator.children:
            self._walk(child, (operator, *above), sources, operators)
        if not operator.children:
            sources.append(_source(operator, self.named))
        operators.append(operator)

    def _cut(self, exchange: Operator, above: tuple[Operator, ...]) -> int:
        writer = self.sub_topology(exchange.children[0], None)
        number = len(self.cuts)
        reader = next((operator for operator in above if not _SILENT.match(operator.name)), None)
        if exchange.name == "BroadcastExchange":
            cut = Cut(number, BROADCAST, _cause(reader), BROADCAST, (), None, False, writer, ())
        else:
            how = Dealing.of(exchange)
            cause = "repartition asked for" if how.is_asked_for else _cause(reader)
            keys = tuple(map(without_ids, how.keys))
            # With a number of partitions of its own: repartition(4, key). Without one it is Spark's default.
            has_own_count = how.origin == "REPARTITION_BY_NUM" or how.partitioner == "single"
            cut = Cut(number, SHUFFLE, cause, how.partitioner, keys, how.count, has_own_count, writer, ())
        rows, size = _crossed(exchange)
        self.cuts.append(replace(cut, rows=rows, size=size))
        self.readers[number], self.reads[number] = [], _read_as(above)
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
    found: dict[int, RanStage] = {}
    for number, named in reader.named_stages.items():
        its = Counter(stage for stage in named if stage in left).most_common(1)
        if its:
            found[number] = left.pop(its[0][0])
    for cut in reader.cuts:
        fits = [stage for stage in left.values() if cut.kind == SHUFFLE and stage.rows == cut.rows]
        if cut.writer not in found and fits:
            found[cut.writer] = left.pop(fits[0].stage_id)
    last = len(reader.sub_topologies) - 1
    ends = [stage for stage in left.values() if stage.rows == 0]
    if last not in found and ends:
        found[last] = left.pop(ends[-1].stage_id)
    unknown = [part.number for part in reader.sub_topologies if part.number not in found]
    if len(unknown) == len(left) == 1:
        found[unknown[0]] = left.popitem()[1]
    return found


_WRITE_METRICS = ("data size", "shuffle bytes written", "shuffle write time", "time to collect", "time to build")
_STAGE = re.compile(r"\(stage (\d+)\.\d+: task \d+\)")
_IS_LOCAL = re.compile(r"(LocalTableScan|Scan OneRowRelation|OneRowRelation|EmptyRelation|LocalRelation|Range)$")
_LOCATION = re.compile(r"\[(?P<first>[^,\]]+)")


def _stages_in(metric: str) -> list[int]:
    return [int(stage) for stage in _STAGE.findall(metric)]


def _is_log(leaf: Operator) -> bool:
    return "_delta_log" in leaf.name or "_delta_log" in leaf.details.get("Location", "")


def _source(leaf: Operator, named: Callable[[str], str]) -> str:
    location = _LOCATION.search(leaf.details.get("Location", ""))
    if location:
        return named(location["first"].strip().removeprefix("file:"))
    if "Delta Table State" in leaf.name or _is_log(leaf):
        return "Delta's log"
    return "rows of the job" if _IS_LOCAL.match(leaf.name) else leaf.name


def _cause(reader: Operator | None) -> str:
    """The kind of operator that rows must be dealt anew for."""
    if reader is None:
        return "result"
    for pattern, cause in (
        (_AGGREGATE, "aggregate"),
        (_JOIN, "join"),
        (re.compile("Window"), "window"),
        (re.compile("Sort$"), "sort"),
        (re.compile(r".*Limit|TakeOrdered"), "limit"),
    ):
        if pattern.match(reader.name):
            return cause
    return reader.name


def _said(operator: Operator) -> str | None:
    """The operator in words; None for those that only hand rows on."""
    name = operator.name
    if _SILENT.match(name) or not operator.children:
        return None
    if _AGGREGATE.match(name):
        functions = operator.detail_list("Functions")
        partial = any(function.startswith(("partial_", "merge_")) for function in functions)
        what = "partial aggregate" if partial else "aggregate" if functions else "distinct"
        return what + _by(operator.detail_list("Keys"), " of all rows" if functions else "")
    if _JOIN.match(name):
        kind = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", operator.details.get("Join type", "Inner")).lower()
        how = " with broadcast rows" if name.startswith("Broadcast") else ""
        return f"{kind} join{how}" + _by(operator.detail_list("Left keys"))
    if name.startswith("Window"):
        _, keys, order = [*operator.detail_list("Arguments"), "", "", ""][:3]
        return "window" + _by(entries(keys)) + (f", ordered by {_names(entries(order))}" if entries(order) else "")
    if name == "Sort":
        return f"sort by {_names(entries(operator.detail_list('Arguments')[0]))}"
    return _WORDS.get(name) or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


_WORDS = {"Generate": "explode", "TakeOrderedAndProject": "top rows", "CollectLimit": "limit", "GlobalLimit": "limit"}


def _by(keys: Sequence[str], without: str = "") -> str:
    return f" by {_names(keys)}" if keys else without


def _names(keys: Iterable[str]) -> str:
    return ", ".join(
        re.sub(r" (ASC|DESC)( NULLS (FIRST|LAST))?", lambda m: " desc" if m[1] == "DESC" else "", without_ids(key))
        for key in keys
    )


def _read_as(above: Sequence[Operator]) -> list[str]:
    """What adaptive execution made of the partitions of a shuffle: ``1 partition, coalesced``."""
    for operator in above:
        if operator.name == "AQEShuffleRead":
            how = operator.details.get("Arguments", "").strip() or "anew"
            count = operator.metrics.get("number of partitions")
            return [f"{how} to {count}" if count and how == "coalesced" else how]
        if not operator.name.endswith("QueryStage"):
            break
    return []


def _crossed(exchange: Operator) -> tuple[int | None, int | None]:
    """Rows and bytes, from the exchange's metrics."""
    is_broadcast = exchange.name == "BroadcastExchange"
    rows = exchange.metrics.get("number of output rows" if is_broadcast else "shuffle records written", "")
    size = exchange.metrics.get("data size" if is_broadcast else "shuffle bytes written", "")
    return (int(rows.replace(",", "")) if rows.replace(",", "").isdigit() else None), _bytes_of(size)


_SIZE = re.compile(r"(?P<number>[\d,.]+) (?P<unit>[KMGTPE]?i?B)\b")
_UNITS = {unit: 1024**power for power, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))}


def _bytes_of(metric: str) -> int | None:
    """The total of a size as Spark writes it: ``431.5 KiB``, or with a line above and a spread behind."""
    size = _SIZE.search(metric)
    if not size or size["unit"] not in _UNITS:
        return None
    return round(float(size["number"].replace(",", "")) * int(_UNITS[size["unit"]]))


# Needless shuffles --------------------------------------------------------------------------------------------


def _needless(plan: Operator, named: Callable[[str], str]) -> Iterator[str]:
    """A sentence for each shuffle that need not be."""
    for operator in plan.walk():
        if operator.name == "Exchange" and operator.children:
            yield from _dealt_twice(operator)
        if _JOIN.match(operator.name):
            yield from _already_co_partitioned(operator, named)


def _dealt_twice(exchange: Operator) -> Iterator[str]:
    how, source = Dealing.of(exchange), _dealt_by(exchange.children[0])
    if source is None or how.partitioner != "hash":
        return
    before = Dealing.of(source)
    keys, keys_before = set(how.keys), set(before.keys)
    these, those = _names(how.keys), _names(before.keys)
    same_count = how.count == before.count or how.origin != "REPARTITION_BY_NUM"
    if before.partitioner == "hash" and keys_before <= keys and same_count:
        yield (
            f"the shuffle by {these} is needless: its rows were dealt by {those} before, so rows of equal {these} are "
            "together already; leave the second out"
        )
    elif before.partitioner == "hash" and keys < keys_before and how.is_asked_for and not before.is_asked_for:
        crossed, crossed_before = _crossed(exchange)[0], _crossed(source)[0]
        rows = (
            "" if crossed is None or crossed_before is None else f" ({crossed_before:,} and {crossed:,} rows crossed)"
        )
        yield (
            f"the shuffles by {those} and then by {these} could be one{rows}: dealt by {these} before the aggregate, "
            f"rows of equal {those} are together too"
        )


def _dealt_by(operator: Operator) -> Operator | None:
    """The exchange that dealt this operator's rows to their tasks, if nothing in between lost that."""
    while True:
        if operator.name == "Exchange":
            return operator
        is_wrapper = operator.name.endswith("QueryStage") or operator.name in ("InputAdapter", "ColumnarToRow")
        is_read = operator.name == "AQEShuffleRead" and operator.details.get("Arguments", "coalesced") == "coalesced"
        if not (is_wrapper or is_read or _KEEPS_DEALING.match(operator.name)) or len(operator.children) != 1:
            return None
        operator = operator.children[0]


def _already_co_partitioned(join: Operator, named: Callable[[str], str]) -> Iterator[str]:
    """Both sides of the join are shuffled, and both come straight from stored tables that are co-partitioned on it."""
    if len(join.children) != 2:
        return
    sides = []
    for child, keys in zip(join.children, ("Left keys", "Right keys"), strict=True):
        exchange = _dealt_by(child)
        table = _stored_table(exchange.children[0], named) if exchange else None
        sides.append((table, [without_ids(key) for key in join.detail_list(keys)]))
    (left, left_keys), (right, right_keys) = sides
    if left is None or right is None or left.bucket_key is None or right.bucket_key is None:
        return
    if (left.bucket_key, right.bucket_key) in zip(left_keys, right_keys, strict=False):
        yield (
            f"the shuffles for the join of {left.name} and {right.name} are needless: both are stored co-partitioned "
            f"on {left.bucket_key}, in as many buckets (checked by validate_clicks); join them bucket by bucket"
        )


def _stored_table(operator: Operator, named: Callable[[str], str]) -> Table | None:
    """The table that these rows are, but for the columns and rows left out."""
    while operator.children:
        is_wrapper = operator.name.endswith("QueryStage") or operator.name in ("InputAdapter", "ColumnarToRow")
        if not (is_wrapper or _STRAIGHT.match(operator.name)) or len(operator.children) != 1:
            return None
        operator = operator.children[0]
    return TABLES.get(_source(operator, named).removeprefix("table "))
