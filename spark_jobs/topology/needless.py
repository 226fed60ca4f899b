"""Shuffles of a plan that need not be: rows repartitioned twice, and joins of tables that are stored co-partitioned."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from include.tables import TABLES, Table
from spark_jobs.topology.exchanges import Partitioning
from spark_jobs.topology.plan import Operator, without_ids
from spark_jobs.topology.plan_words import JOIN, names_of, source_of

#: Through these rows stay with the task that they were sent to.
_KEEPS_PARTITIONING = re.compile(r"(Filter|Project|Sort|Generate|Window|WindowGroupLimit|Expand|\w*Aggregate)$")
#: These change neither the rows' task nor their keys.
_STRAIGHT = re.compile(r"(Filter|Project|Sort)$")


def needless_shuffles(plan: Operator, named: Callable[[str], str]) -> Iterator[str]:
    """A sentence for each shuffle that need not be."""
    for operator in plan.walk():
        if operator.name == "Exchange" and operator.children:
            yield from _partitioned_twice(operator)
        if JOIN.match(operator.name):
            yield from _already_co_partitioned(operator, named)


def _partitioned_twice(exchange: Operator) -> Iterator[str]:
    how, source = Partitioning.of(exchange), _partitioned_by(exchange.children[0])
    if source is None or how.partitioner != "hash":
        return
    before = Partitioning.of(source)
    keys, keys_before = set(how.keys), set(before.keys)
    names, names_before = names_of(how.keys), names_of(before.keys)
    same_count = how.count == before.count or how.origin != "REPARTITION_BY_NUM"
    if before.partitioner == "hash" and keys_before <= keys and same_count:
        yield (
            f"the shuffle by {names} is needless: its rows were partitioned by {names_before} before, so rows "
            f"of equal {names} are together already; leave the second out"
        )


def _partitioned_by(operator: Operator) -> Operator | None:
    """The exchange that sent this operator's rows to their tasks, if nothing in between lost that."""
    while True:
        if operator.name == "Exchange":
            return operator
        is_wrapper = operator.name.endswith("QueryStage") or operator.name in ("InputAdapter", "ColumnarToRow")
        is_read = operator.name == "AQEShuffleRead" and operator.details.get("Arguments", "coalesced") == "coalesced"
        if not (is_wrapper or is_read or _KEEPS_PARTITIONING.match(operator.name)) or len(operator.children) != 1:
            return None
        operator = operator.children[0]


def _already_co_partitioned(join: Operator, named: Callable[[str], str]) -> Iterator[str]:
    """Both sides of the join are shuffled, and both come straight from stored tables that are co-partitioned on it."""
    if len(join.children) != 2:
        return
    sides = []
    for child, keys in zip(join.children, ("Left keys", "Right keys"), strict=True):
        exchange = _partitioned_by(child)
        table = _stored_table(exchange.children[0], named) if exchange else None
        sides.append((table, [without_ids(key) for key in join.detail_list(keys)]))
    (left, left_keys), (right, right_keys) = sides
    if left is None or right is None or left.bucket_key is None or right.bucket_key is None:
        return
    if (left.bucket_key, right.bucket_key) in zip(left_keys, right_keys, strict=False):
        yield (
            f"the shuffles for the join of {left.name} and {right.name} can be left out: both are stored "
            f"co-partitioned on {left.bucket_key}, in as many buckets (checked by validate_clicks); joined bucket by "
            "bucket, with a filter on bucket, no row moves, and every filter reads the files"
        )


def _stored_table(operator: Operator, named: Callable[[str], str]) -> Table | None:
    """The table that these rows are, but for the columns and rows left out."""
    while operator.children:
        is_wrapper = operator.name.endswith("QueryStage") or operator.name in ("InputAdapter", "ColumnarToRow")
        if not (is_wrapper or _STRAIGHT.match(operator.name)) or len(operator.children) != 1:
            return None
        operator = operator.children[0]
    return TABLES.get(source_of(operator, named).removeprefix("table "))
