"""The statements that make a table as ``include.tables`` declares it, and that complete one of an earlier version."""

from __future__ import annotations

from deltalake import DeltaTable

from include.tables import Column, Table
from include.texts import as_literal


def creating(table: Table, uri: str) -> str:
    """The statement that makes the table in this folder, unless it is there."""
    columns = ",\n  ".join(_declared(column, " NOT NULL" if column.required else "") for column in table.columns)
    partitioned = f"\nPARTITIONED BY ({', '.join(table.partitioned_by)})" if table.partitioned_by else ""
    return (
        f"CREATE TABLE IF NOT EXISTS delta.`{uri}` (\n  {columns}\n) USING delta{partitioned}\n"
        f"COMMENT {as_literal('One row: ' + table.grain)}\nTBLPROPERTIES ({_properties(table)})"
    )


def completing(table: Table, uri: str) -> list[str]:
    """What adds the declared columns that the table in this folder lacks; null in the rows that it has.

    What an earlier version declared and this one does not, or not as required, stays, and may be null from now on.
    """
    stored = DeltaTable(uri).schema().fields
    required = {column.name for column in table.columns if column.required}
    absent = [column for column in table.columns if column.name not in {one.name for one in stored}]
    alter = f"ALTER TABLE delta.`{uri}`"
    statements = [
        f"{alter} ALTER COLUMN `{former.name}` DROP NOT NULL"
        for former in stored
        if former.name not in required and not former.nullable
    ]
    if absent:
        statements += [
            f"{alter} ADD COLUMNS ({', '.join(map(_declared, absent))})",
            f"{alter} SET TBLPROPERTIES ({_properties(table)})",
        ]
    return statements


def _declared(column: Column, required: str = "") -> str:
    return f"{column.name} {column.type}{required} COMMENT {as_literal(column.comment)}"


def _properties(table: Table) -> str:
    # As often as Spark makes one; of itself delta-rs does after a hundred commits, which are read one by one.
    checkpoints = "'delta.checkpointInterval' = '10'"
    if table.statistics:
        return f"{checkpoints}, 'delta.dataSkippingStatsColumns' = {as_literal(','.join(table.statistics))}"
    return f"{checkpoints}, 'delta.dataSkippingNumIndexedCols' = '0'"
