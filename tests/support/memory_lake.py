"""A lake in memory, of Arrow tables: as far as accounts are read and written, and so quick that many histories run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.parquet import filters_to_expression

from include.settings import Settings
from include.stored_rows import Filters, StoredLake, arrow_schema
from include.tables import Table
from spark_jobs.lake import declared
from spark_jobs.lake.data_files import DataFile

#: Of log hours of one source and day.
_PREDICATE = re.compile(
    r"source = 'web' AND \(\(log_date = DATE'[-0-9]+' AND log_hour IN \((?P<hours>[0-9, ]+)\)\)\)"
    r"( AND written_at < '(?P<before>[^']+)')?"
)


class MemoryLake(StoredLake):
    """Methods as of ``spark_jobs.lake.lake.Lake``; each table is one file, of accounts each row is one."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.lake)
        self.settings = settings
        self.tables: dict[str, pa.Table] = {}
        #: Called before each commit: whoever is at work may die there.
        self.before_commit: Callable[[], None] = lambda: None

    def rows(self, table: Table) -> pa.Table:
        """All rows of a table."""
        if table.name not in self.tables:
            self.tables[table.name] = arrow_schema(table, table.column_names).empty_table()
        return self.tables[table.name]

    def open_table(self, table: Table, columns: Sequence[str], where: Sequence[Filters]) -> pa.RecordBatchReader:
        rows = self.rows(table)
        chosen = rows.filter(filters_to_expression([list(filters) for filters in where])) if all(where) else rows
        return chosen.select(list(columns)).to_reader()

    def append_rows(self, table: Table, rows: Sequence[Mapping[str, Any]], _: object = None) -> None:
        self.before_commit()
        self.tables[table.name] = pa.concat_tables([self.rows(table), _as_declared(table, rows)])

    def replace_rows(self, table: Table, rows: Sequence[Mapping[str, Any]] | pa.Table, predicate: str) -> None:
        self.before_commit()
        stored, match = self.rows(table), _PREDICATE.fullmatch(predicate)
        assert match, predicate
        hours, before = match["hours"].split(", "), match["before"]
        goes = pc.is_in(stored["log_hour"], pa.array(map(int, hours), pa.int32()))
        if before:
            goes = pc.and_(goes, pc.less(stored["written_at"], pa.scalar(datetime.fromisoformat(before))))
        kept = stored.filter(pc.invert(goes))
        new = rows if isinstance(rows, pa.Table) else _as_declared(table, rows)
        self.tables[table.name] = pa.concat_tables([kept, new.cast(kept.schema)])

    def data_files(self, table: Table, *choices: pc.Expression) -> list[DataFile]:
        rows = self.rows(table)
        columns = {f"partition.{name}": rows[name] for name in table.partitioned_by}
        columns |= {f"{bound}.{name}": rows[name] for name in table.statistics for bound in ("min", "max")}
        files = pa.table(columns)
        chosen = files.filter(reduce(or_, choices)) if choices else files
        now = datetime.now(UTC)
        return [
            DataFile(Path(), "", 0, {name: row[f"partition.{name}"] for name in table.partitioned_by}, now, 1)
            for row in chosen.to_pylist()
        ]

    def compact(self, table: Table, leave_out: str = "false", *, above_files: int = 0) -> bool:
        return len(self.rows(table)) > above_files

    def write_as_few_files(self, *_: object) -> None:
        pass

    @contextmanager
    def locked(self, _: str = "lake") -> Iterator[None]:
        yield


def _as_declared(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    return declared.as_arrow(table, rows).cast(arrow_schema(table, table.column_names))
