"""Rows that take the place of those of the same key, and are added where there are none."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from functools import reduce

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from pyspark.sql import DataFrame

from include.hours import Hour, hours_predicate
from include.stored_rows import arrow_schema
from include.tables import Table


def merged(stored: DataFrame, new: DataFrame, table: Table) -> DataFrame:
    """The new rows, unique by the table's key, and the stored ones of other keys."""
    is_same = reduce(operator.and_, (stored[name].eqNullSafe(new[name]) for name in table.key))
    return stored.join(new, is_same, "left_anti").unionByName(new)


def merge_few(
    stored: DeltaTable, table: Table, rows: pa.Table, hours: Iterable[Hour], properties: CommitProperties
) -> None:
    """Merge rows of these click hours, unique by the table's key, in one commit of delta-rs: in memory, without Spark.

    That takes a tenth of the time of a few rows, and several times the bytes of the hours' files.
    """
    new_rows = rows.select(table.column_names).cast(arrow_schema(table, table.column_names))
    same = " AND ".join(_is_same(name, name in table.required_columns) for name in table.key)
    # Delta looks at files of these hours alone.
    in_hours = hours_predicate(hours, "old.click_date", "old.click_hour")
    merge = stored.merge(
        new_rows,
        f"{same} AND ({in_hours})",
        source_alias="new",
        target_alias="old",
        commit_properties=properties,
    )
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


def _is_same(column: str, is_required: bool) -> str:
    """That both rows have the same in a column; two nulls are.

    delta-rs joins by what is equal; by ``IS NOT DISTINCT FROM`` it compares each row with each.
    """
    if is_required:
        return f"old.`{column}` = new.`{column}`"
    old, new = (f"coalesce(CAST({side}.`{column}` AS STRING), '')" for side in ("old", "new"))
    return f"{old} = {new} AND (old.`{column}` IS NULL) = (new.`{column}` IS NULL)"
