"""A plan's operators, keys and sources in words that people read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from spark_jobs.topology.plan import Operator, entries, without_ids

#: Operators that only hand rows on, and those of which there is nothing to say.
SILENT = re.compile(
    r"(AdaptiveSparkPlan|\w*QueryStage|AQEShuffleRead|InputAdapter|ColumnarToRow|WholeStageCodegen.*|Project"
    r"|DeserializeToObject|SerializeFromObject|WriteFiles|Execute .*)$"
)
_AGGREGATE = re.compile(r"(Hash|ObjectHash|Sort)Aggregate$")
JOIN = re.compile(r"(SortMerge|ShuffledHash|BroadcastHash|BroadcastNestedLoop)Join$|CartesianProduct$")
PYTHON = {"MapInArrow", "PythonMapInArrow"}
IS_LOCAL = re.compile(r"(LocalTableScan|Scan OneRowRelation|OneRowRelation|LocalRelation|Range)$")
_LOCATION = re.compile(r"\[(?P<first>[^,\]]+)")


def is_log(leaf: Operator) -> bool:
    """Whether a leaf reads Delta's log."""
    # Delta reads its log by RDDs; a Connect client has none.
    return leaf.name.startswith("Scan ExistingRDD") or "_delta_log" in leaf.details.get("Location", "")


def source_of(leaf: Operator, named: Callable[[str], str]) -> str:
    """What a leaf reads; ``named`` gives a path as people know it."""
    location = _LOCATION.search(leaf.details.get("Location", ""))
    if location:
        return named(location["first"].strip().removeprefix("file:"))
    if is_log(leaf):
        return "Delta's log"
    if leaf.name == "EmptyRelation":
        return "nothing: Spark found, while it ran, that there are no rows"
    return "rows of the job" if IS_LOCAL.match(leaf.name) else leaf.name


def cause_of(reader: Operator | None) -> str:
    """The kind of operator that rows must be repartitioned for."""
    if reader is None:
        return "result"
    for pattern, cause in (
        (_AGGREGATE, "aggregate"),
        (JOIN, "join"),
        (re.compile("Window"), "window"),
        (re.compile("Sort$"), "sort"),
        (re.compile(r".*Limit|TakeOrdered"), "limit"),
    ):
        if pattern.match(reader.name):
            return cause
    return reader.name


def words_of(operator: Operator, aliases: Mapping[str, str]) -> str | None:
    """The operator in words; None for those that only hand rows on."""

    def by(keys: Sequence[str], without: str = "") -> str:
        return f" by {names_of(keys, aliases)}" if keys else without

    name = operator.name
    if SILENT.match(name) or not operator.children:
        return None
    if _AGGREGATE.match(name):
        functions = operator.detail_list("Functions")
        is_partial = any(function.startswith("partial_") for function in functions)
        is_merging = any(function.startswith("merge_") for function in functions) and not is_partial
        aggregation = (
            "partial aggregate" if is_partial else "merge" if is_merging else "aggregate" if functions else "distinct"
        )
        return aggregation + by(operator.detail_list("Keys"), " of all rows" if functions else "")
    if JOIN.match(name):
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
    **dict.fromkeys(PYTHON, "in Python, a table at a time"),
    "Generate": "explode",
    "TakeOrderedAndProject": "top rows",
    "CollectLimit": "limit",
    "GlobalLimit": "limit",
    "CollectMetrics": "observe",
}


def names_of(keys: Iterable[str], aliases: Mapping[str, str] = MappingProxyType({})) -> str:
    """Keys as people read them; ``aliases`` are what Spark's own columns stand for."""
    return ", ".join(name_of(key, aliases) for key in keys)


_OWN_COLUMN = re.compile(r"(?<![\w`])_\w+#\d+L?")
_ORDER = re.compile(r" (ASC|DESC)( NULLS (FIRST|LAST))?")


def name_of(key: str, aliases: Mapping[str, str]) -> str:
    """A key as people read it: without Spark's ids, and with a word only for an order that is not the usual one."""
    known = _OWN_COLUMN.sub(lambda column: aliases.get(column[0], column[0]), key)
    return _ORDER.sub(lambda order: " desc" if order[1] == "DESC" else "", without_ids(known))
