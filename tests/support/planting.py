"""Ways to plant a fault in a lake; most without Spark, in milliseconds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from include.hours import Hour
from include.tables import (
    Table,
)
from tests.support.temporary_lake import TemporaryLake


def stored_table(lake: TemporaryLake, table: Table) -> DeltaTable:
    return DeltaTable(lake.settings.lake / table.name)


def _of_hour(table: Table, hour: Hour) -> str:
    day, number = table.partitioned_by[-2:]
    return f"{day} = '{hour.day}' AND {number} = {hour.hour}"


def change(table: Table, where: str, **values: str) -> Callable[[TemporaryLake, Hour], None]:
    """Give columns of an hour's rows other values, SQL expressions."""

    def plant(lake: TemporaryLake, hour: Hour) -> None:
        changed = stored_table(lake, table).update(updates=values, predicate=f"{_of_hour(table, hour)} AND {where}")
        assert changed["num_updated_rows"] > 0

    return plant


def remove(table: Table, where: str) -> Callable[[TemporaryLake, Hour], None]:
    def plant(lake: TemporaryLake, hour: Hour) -> None:
        assert stored_table(lake, table).delete(f"{_of_hour(table, hour)} AND {where}")["num_deleted_rows"] > 0

    return plant


def add_again(table: Table, where: str, **values: str) -> Callable[[TemporaryLake, Hour], None]:
    """Add rows of an hour once more, with other values of some columns."""

    def plant(lake: TemporaryLake, hour: Hour) -> None:
        columns = ", ".join(f"{values[name]} AS {name}" if name in values else name for name in table.column_names)
        path = lake.settings.lake / table.name
        rows = lake.spark.sql(f"SELECT {columns} FROM delta.`{path}` WHERE {_of_hour(table, hour)} AND {where}")
        rows.write.format("delta").mode("append").save(str(path))

    return plant


def make_null(table: Table, column: str, where: str) -> Callable[[TemporaryLake, Hour], None]:
    """Take a constraint away, and make the column null."""

    def plant(lake: TemporaryLake, hour: Hour) -> None:
        path = f"delta.`{lake.settings.lake / table.name}`"
        lake.spark.sql(f"ALTER TABLE {path} ALTER COLUMN {column} DROP NOT NULL").collect()
        lake.spark.sql(f"UPDATE {path} SET {column} = NULL WHERE {_of_hour(table, hour)} AND {where}").collect()

    return plant


def _file(lake: TemporaryLake, table: Table, hour: Hour) -> Path:
    return Path(sorted(stored_table(lake, table).file_uris(file_pruning_predicate=_of_hour(table, hour)))[0])


def lose_file(table: Table) -> Callable[[TemporaryLake, Hour], None]:
    return lambda lake, hour: _file(lake, table, hour).unlink()


def cut_file(table: Table) -> Callable[[TemporaryLake, Hour], None]:
    def plant(lake: TemporaryLake, hour: Hour) -> None:
        file = _file(lake, table, hour)
        file.write_bytes(file.read_bytes()[:-100])

    return plant


def scatter(table: Table, key: str, files: int) -> Callable[[TemporaryLake, Hour], None]:
    """Write the rows of an hour as so many files."""

    def plant(lake: TemporaryLake, hour: Hour) -> None:
        path, of_hour = lake.settings.lake / table.name, _of_hour(table, hour)
        rows = lake.spark.sql(f"SELECT * FROM delta.`{path}` WHERE {of_hour}")
        spread = rows.repartitionByRange(files, key)
        spread.write.format("delta").mode("overwrite").option("replaceWhere", of_hour).save(str(path))

    return plant


def publish_and(plant_in: Callable[[TemporaryLake, Hour], None]) -> Callable[[TemporaryLake, Hour], None]:
    """Publish the hour, say so, and plant the fault after that."""

    def plant(lake: TemporaryLake, hour: Hour) -> None:
        from spark_jobs.lake.lake import Lake
        from spark_jobs.publish.publish_hours import publish_hours

        publish_hours(Lake(lake.spark, lake.settings), [hour])
        lake.say_published(hour)
        plant_in(lake, hour)

    return plant


def in_buckets(table: Table, buckets: int, where: str | None = None) -> Callable[[TemporaryLake, Hour], None]:
    """Give some of an hour's rows, or the whole table's, another number of buckets and the bucket that follows."""

    def plant(lake: TemporaryLake, hour: Hour) -> None:
        values = f"buckets = {buckets}, bucket = pmod(hash({table.bucket_key}), {buckets})"
        rows = f"{_of_hour(table, hour)} AND {where}" if where else "true"
        lake.spark.sql(f"UPDATE delta.`{lake.settings.lake / table.name}` SET {values} WHERE {rows}").collect()

    return plant


def retype(table: Table, column: str, kind: pa.DataType) -> Callable[[TemporaryLake, Hour], None]:
    """Write the table again, with a column of another type and this hour's rows alone."""

    def plant(lake: TemporaryLake, hour: Hour) -> None:
        day, number = table.partitioned_by[-2:]
        of_hour = [(day, "=", hour.day), (number, "=", hour.hour)]
        stored = stored_table(lake, table).to_pyarrow_table(filters=of_hour)
        place = stored.column_names.index(column)
        other = stored.set_column(place, column, stored[column].cast(kind))
        write_deltalake(
            lake.settings.lake / table.name,
            other,
            mode="overwrite",
            schema_mode="overwrite",
            partition_by=list(table.partitioned_by),
        )

    return plant
