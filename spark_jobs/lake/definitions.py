"""Tables made as ``include.tables`` declares them, and those of an earlier version completed; by delta-rs."""

from __future__ import annotations

from pathlib import Path

from deltalake import DeltaTable, Field, Schema

from include.stored_rows import arrow_schema
from include.tables import Table


def make_or_complete(table: Table, folder: Path) -> None:
    """Make the table in this folder; add the columns that it lacks if it is there, null in the rows that it has.

    What an earlier version declared and this one does not, or not as required, stays, and may be null from now on.
    """
    if not DeltaTable.is_deltatable(str(folder)):
        folder.mkdir(parents=True, exist_ok=True)
        DeltaTable.create(
            str(folder),
            Schema(_fields(table)),
            partition_by=list(table.partitioned_by),
            description=f"One row: {table.grain}",
            configuration=_properties(table),
        )
        return
    stored = DeltaTable(str(folder))
    there = stored.schema().fields
    required = set(table.required_columns)
    for former in there:
        if former.name not in required and not former.nullable:
            stored.alter.drop_column_not_null(former.name)
    # Rows that are there have none of an added column, so it cannot be required.
    absent = [_as_nullable(field) for field in _fields(table) if field.name not in {former.name for former in there}]
    if absent:
        stored.alter.add_columns(absent)
        stored.alter.set_table_properties(_properties(table))


def _fields(table: Table) -> list[Field]:
    types = {field.name: field.type for field in Schema.from_arrow(arrow_schema(table, table.column_names)).fields}
    return [
        Field(column.name, types[column.name], nullable=not column.required, metadata={"comment": column.comment})
        for column in table.columns
    ]


def _as_nullable(field: Field) -> Field:
    return Field(field.name, field.type, nullable=True, metadata=field.metadata)


def _properties(table: Table) -> dict[str, str]:
    # As often as Spark makes one; of itself delta-rs does after a hundred commits, which are read one by one.
    checkpoints = {"delta.checkpointInterval": "10"}
    if table.statistics:
        return checkpoints | {"delta.dataSkippingStatsColumns": ",".join(table.statistics)}
    return checkpoints | {"delta.dataSkippingNumIndexedCols": "0"}
