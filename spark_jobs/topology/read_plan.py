"""The topology of a query, read from Spark's final plan: cut at its exchanges, adaptive decisions included."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from include.tables import TABLES, Table
from spark_jobs.topology.model import BROADCAST, SHUFFLE, Cut, QueryTopology, SubTopology
from spark_jobs.topology.plan import Operator, entries, without_ids

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
        replace(part, partitions=ran[part.number].tasks if part.number in ran else _planned(part, cuts))
        if stages
        else part
        for part in reader.sub_topologies
    )
    left_out = (_shuffles(initial) - _shuffles(plan)).elements() if initial else ()
    return QueryTopology(
        name, sub_topologies, cuts, tuple(dict.fromkeys(_needless(plan, named))), tuple(sorted(left_out))
    )


def _shuffles(plan: Operator) -> Counter[str]:
    """The shuffles of a plan in words, with how often each is there."""
    exchanges = [Dealing.of(operator) for operator in plan.walk() if operator.name == "Exchange"]
    return Counter(f"{how.partitioner} of {_names(how.keys)}" if how.keys else how.partitioner for how in exchanges)


def is_internal(plan: Operator) -> bool:
    """Whether a query reads nothing but Delta's own log, or rows that the job sent itself."""
    operators = list(plan.walk())
    leaves = [operator for operator in operators if not operator.children]
    # What Python makes of the job's rows may be all lines of the files that they name.
    return not any(operator.name in _PYTHON for operator in operators) and all(
        _IS_LOCAL.match(leaf.name) or _is_log(leaf) for leaf in leaves
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
        said = (_said(operator, self.aliases) for operator in operators)
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
        reader = next((operator for operator in above if not _is_beside(operator, exchange)), None)
        if exchange.name == "BroadcastExchange":
            cut = Cut(number, BROADCAST, _cause(reader), BROADCAST, (), None, False, writer, ())
        else:
            how = Dealing.of(exchange)
            cause = "repartition asked for" if how.is_asked_for else _cause(reader)
            keys = tuple(_name(key, self.aliases) for key in how.keys)
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


def _planned(part: SubTopology, cuts: Sequence[Cut]) -> int:
    """The tasks of a sub-topology whose stage is not known: as many as the partitions it reads, else one.

    Spark's metrics do not name the stage when there is only one task to tell of.
    """
    read = [cut for cut in cuts if cut.kind == SHUFFLE and part.number in cut.readers]
    coalesced = [int(match[1]) for cut in read for how in cut.reads if (match := _COALESCED.match(how))]
    return max(coalesced or [cut.count or 1 for cut in read], default=1)


def _is_beside(operator: Operator, exchange: Operator) -> bool:
    """Whether an operator above an exchange is not what the exchange is for."""
    is_local_sort = operator.name == "Sort" and Dealing.of(exchange).partitioner != "range"
    return bool(_SILENT.match(operator.name)) or is_local_sort


def _own_columns(plan: Operator) -> dict[str, str]:
    """What the columns that Spark made itself stand for."""
    found = {}
    for operator in plan.walk():
        for column in operator.detail_list("Output"):
            expression, made, name = column.rpartition(" AS ")
            if made and name.startswith("_"):
                found[name] = expression
    return found


_COALESCED = re.compile(r"coalesced to (\d+)")
_WRITE_METRICS = ("data size", "shuffle bytes written", "shuffle write time", "time to collect", "time to build")
_STAGE = re.compile(r"\(stage (\d+)\.\d+: task \d+\)")
_PYTHON = {"MapInArrow", "PythonMapInArrow"}
_IS_LOCAL = re.compile(r"(LocalTableScan|Scan OneRowRelation|OneRowRelation|LocalRelation|Range)$")
_LOCATION = re.compile(r"\[(?P<first>[^,\]]+)")


def _stages_in(metric: str) -> list[int]:
    return [int(stage) for stage in _STAGE.findall(metric)]


def _is_log(leaf: Operator) -> bool:
    # Delta reads its log by RDDs; a Connect client has none.
    return leaf.name.startswith("Scan ExistingRDD") or "_delta_log" in leaf.details.get("Location", "")


def _source(leaf: Operator, named: Callable[[str], str]) -> str:
    location = _LOCATION.search(leaf.details.get("Location", ""))
    if location:
        return named(location["first"].strip().removeprefix("file:"))
    if _is_log(leaf):
        return "Delta's log"
    if leaf.name == "EmptyRelation":
        return "nothing: Spark found, while it ran, that there are no rows"
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


def _said(operator: Operator, aliases: Mapping[str, str]) -> str | None:
    """The operator in words; None for those that only hand rows on."""

    def by(keys: Sequence[str], without: str = "") -> str:
        return f" by {_names(keys, aliases)}" if keys else without

    name = operator.name
    if _SILENT.match(name) or not operator.children:
        return None
    if _AGGREGATE.match(name):
        functions = operator.detail_list("Functions")
        is_partial = any(function.startswith("partial_") for function in functions)
        is_merging = any(function.startswith("merge_") for function in functions) and not is_partial
        what = (
            "partial aggregate" if is_partial else "merge" if is_merging else "aggregate" if functions else "distinct"
        )
        return what + by(operator.detail_list("Keys"), " of all rows" if functions else "")
    if _JOIN.match(name):
        kind = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", operator.details.get("Join type", "Inner")).lower()
        how = " with broadcast rows" if name.startswith("Broadcast") else ""
        return f"{kind} join{how}" + by(operator.detail_list("Left keys"))
    if name.startswith("Window"):
        _, keys, order = [*operator.detail_list("Arguments"), "", "", ""][:3]
        return "window" + by(entries(keys)) + (", ordered" + by(entries(order)) if entries(order) else "")
    if name == "Sort":
        return "sort" + by(entries(operator.detail_list("Arguments")[0]))
    return _WORDS.get(name) or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


_WORDS = {
    **dict.fromkeys(_PYTHON, "read and parse in Python, a table at a time"),
    "Generate": "explode",
    "TakeOrderedAndProject": "top rows",
    "CollectLimit": "limit",
    "GlobalLimit": "limit",
    "CollectMetrics": "observe",
}


def _names(keys: Iterable[str], aliases: Mapping[str, str] = MappingProxyType({})) -> str:
    return ", ".join(_name(key, aliases) for key in keys)


_OWN_COLUMN = re.compile(r"(?<![\w`])_\w+#\d+L?")
_ORDER = re.compile(r" (ASC|DESC)( NULLS (FIRST|LAST))?")


def _name(key: str, aliases: Mapping[str, str]) -> str:
    """A key as people read it: without Spark's ids, and with a word only for an order that is not the usual one."""
    known = _OWN_COLUMN.sub(lambda column: aliases.get(column[0], column[0]), key)
    return _ORDER.sub(lambda order: " desc" if order[1] == "DESC" else "", without_ids(known))


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
