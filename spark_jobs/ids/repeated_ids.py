"""The arrivals whose event id comes again, and few do; found by tasks, which then decide on them, or count them.

Found by the ids' 64-bit hashes, in Arrow, by Spark's Python workers: each reads the ids of some files and keeps their
hashes, in order; then each compares a range of all hashes; then each keeps the rows whose hash is one of those that
were found; then each decides on the rows of a range of hashes. No id that comes once is ever handed to Spark. Two ids
of the same hash do no harm: whoever decides compares the ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow.dataset import Dataset, dataset
from pyarrow.parquet import ParquetFile, read_metadata, read_table
from pyspark.sql import SparkSession

from include.duckdb_sql import run_sql
from include.hours import HourRange
from include.storage import filesystem_of, key_of, place
from include.tables import DUPLICATE_CLICKS, Table
from spark_jobs.engine.worker_tasks import run_tasks, share_files, work_on_files, write_scratch
from spark_jobs.ids.duplicates import CANDIDATES, DECIDED, decide_duplicates
from spark_jobs.ids.hash_files import SortedHashes
from spark_jobs.ids.partitions import HashRange
from spark_jobs.lake.data_files import DataFile
from spark_jobs.lines.columns import as_numpy, is_among

#: What a task says of each file that it has written: the ``kind`` of what is in it.
_WRITTEN = pa.schema([("kind", pa.string()), ("path", pa.string())])
#: Kinds of hashes: of new arrivals, of those that they are compared with, and of stored duplicates of what is being
#: ingested again.
_ARRIVED, _STORED, _OF_INGESTED = "arrived", "stored", "duplicates of ingested"
_REPEATED, _ROWS, _DECIDED = "repeated", "rows", "decided"
#: A task reads the ids of files of so many bytes, of which they are a third or less.
_TASK_BYTES = 64 << 20
#: A task compares about so many hashes of arrivals, 8 bytes each; or decides on so many rows.
_RANGE_HASHES = 1 << 20
_BATCH_ROWS = 1 << 17
_DAMAGE = (OSError, pa.ArrowException)
_NO_HASHES = SortedHashes((np.empty(0, np.uint64),))
_HASH = "hash(event_id)"
_EPOCH = "DATE '1970-01-01'"
#: How often ids come again, by log hour.
_COUNTS = pa.schema([("hour_number", pa.int64()), ("duplicate_event_ids", pa.int64())])
_COUNTED = """
    SELECT hour_number, count(*) AS duplicate_event_ids FROM (
        SELECT hour_number, hour_number - lag(hour_number) OVER (PARTITION BY event_id ORDER BY hour_number) AS since
        FROM candidates WHERE {condition}
    ) WHERE since <= {lateness_hours} AND hour_number >= {first_hour} GROUP BY hour_number
"""


@dataclass(frozen=True)
class ArrivalFile:
    """A Parquet file with arrivals: staged ones, or those that are stored of this log hour."""

    path: Path
    size_bytes: int
    hour_number: int | None = None
    #: Of stored ones: whether they are duplicates, which say what of.
    are_duplicates: bool = False
    #: Whether ids of it that come again, in it or in others, are looked for; else the others' are looked for in it.
    is_new: bool = False
    #: Whether rows that cannot be read are left out; else they are an error.
    may_be_damaged: bool = False

    @classmethod
    def staged(cls, path: Path) -> ArrivalFile:
        """A file of ``ARRIVALS``."""
        return cls(path, path.stat().st_size, is_new=True)

    @classmethod
    def stored(cls, file: DataFile, table: Table) -> ArrivalFile:
        """A data file of ``clicks`` or of ``duplicate_clicks``."""
        return cls(file.path, file.size, file.log_hour.number, table == DUPLICATE_CLICKS)

    @classmethod
    def checked(cls, file: DataFile, log_hours: HourRange) -> ArrivalFile:
        """A data file of ``clicks``, of these log hours or of those before, for a check."""
        number, start = file.log_hour.number, log_hours.start.number
        return cls(file.path, file.size, number, is_new=number >= start, may_be_damaged=True)

    def ids(self) -> Iterator[pa.Table]:
        """``hash`` and ``first_hour`` of those of its rows that have an id and no reason for quarantine."""
        hashed = {"hash": _HASH, "first_hour": self._values()["first_hour"]}
        return self._query(hashed, ["event_id", *self._more_columns()])

    def candidates(self, hashes: pa.ChunkedArray) -> Iterator[pa.Table]:
        """The same rows, those of these hashes, as ``CANDIDATES``."""
        columns = ["event_id", "file", "line", *self._more_columns()]
        if self.hour_number is None:
            columns += ["log_date", "log_hour", "row_id"]
        where, wanted = f"{_HASH} IN (SELECT hash FROM hashes)", pa.table({"hash": hashes})
        for rows in self._query(self._values(), columns, where, hashes=wanted):
            yield rows.cast(CANDIDATES)

    def _values(self) -> dict[str, str]:
        """The expression of each column of ``CANDIDATES``."""
        values = {name: name for name in CANDIDATES.names}
        if self.hour_number is None:
            return values | {"hour_number": f"(log_date - {_EPOCH}) * 24 + log_hour", "first_hour": "NULL"}
        first_hour = f"(first_log_date - {_EPOCH}) * 24 + first_log_hour" if self.are_duplicates else self.hour_number
        return values | {"hour_number": str(self.hour_number), "row_id": "NULL", "first_hour": str(first_hour)}

    def _more_columns(self) -> list[str]:
        """What is looked at of each row beside its id."""
        if self.hour_number is None:
            return ["reason"]
        return ["first_log_date", "first_log_hour"] if self.are_duplicates else []

    def _query(
        self, values: Mapping[str, str], columns: Sequence[str], where: str = "true", **tables: pa.Table
    ) -> Iterator[pa.Table]:
        selected = ", ".join(f"{value} AS {name}" for name, value in values.items())
        is_click = "event_id IS NOT NULL" + (" AND reason IS NULL" if self.hour_number is None else "")
        sql = f"SELECT {selected} FROM batch WHERE {is_click} AND {where}"
        with suppress(*(_DAMAGE if self.may_be_damaged else ())):
            with ParquetFile(key_of(self.path), filesystem=filesystem_of(self.path)) as stored:
                for batch in stored.iter_batches(_BATCH_ROWS, columns=columns):
                    yield run_sql(sql, batch=pa.Table.from_batches([batch]), **tables)


def find_duplicates(
    spark: SparkSession, files: Iterable[ArrivalFile], ingested: range, lateness_hours: int, folder: Path
) -> list[Path]:
    """What ``decide_duplicates`` gives of the arrivals in these files, in Parquet files; none of no rows.

    Decided on are the ids of which two have arrived, or one that is stored too; and those of stored duplicates of what
    the log hours that are ``ingested`` had: what an ingest of them has dropped may have been the first. Duplicates say
    so, not ``clicks``, for an ingest that was killed may have replaced these. ``folder`` is for files that Spark's
    workers write and all of them can read; the result is there.

    Raises:
        PySparkException: if a file cannot be read.
    """
    decide = partial(decide_duplicates, ingested=ingested, lateness_hours=lateness_hours)
    search = _Search(folder, ingested, decide, DECIDED)
    shares = share_files(files, _size, _TASK_BYTES)
    if len(shares) <= 1:  # most hours: four tasks, one after the other, would take longer than what they do
        return [place(row["path"]) for row in run_tasks(spark, shares, search.whole, _WRITTEN)]
    return search.by_tasks(spark, shares)


def count_repeated(
    spark: SparkSession, files: Sequence[ArrivalFile], log_hours: HourRange, lateness_hours: int, folder: Path
) -> Counter[int]:
    """How often ids come again in each of these log hours, at most ``lateness_hours`` after; by the hours' numbers.

    ``files`` are of these log hours and of those before, as far as the lateness reaches, of one source. ``folder`` as
    of ``find_duplicates``. What is no more than a task's share is read by this process.
    """
    count = partial(_counted, first_hour=log_hours.start.number, lateness_hours=lateness_hours)
    search = _Search(folder, range(0), count, _COUNTS)
    shares = share_files(files, _size, _TASK_BYTES)
    if len(shares) <= 1:
        rows = work_on_files(spark, files, _size, _TASK_BYTES, search.whole, _WRITTEN)
        paths = [place(row["path"]) for row in rows]
    else:
        paths = search.by_tasks(spark, shares)
    counts = Counter[int]()
    for path in paths:
        for row in read_table(key_of(path), filesystem=filesystem_of(path)).to_pylist():
            counts[row["hour_number"]] += row["duplicate_event_ids"]
    return counts


def _size(file: ArrivalFile) -> int:
    return file.size_bytes


def _counted(candidates: Dataset, condition: str, **values: int) -> pa.Table:
    return run_sql(_COUNTED.format(condition=condition, **values), candidates=candidates).cast(_COUNTS)


def changed_hours(decided: Sequence[Path]) -> list[int]:
    """The log hours of which stored arrivals change by files of ``find_duplicates``, in order."""
    tables = (read_table(key_of(path), columns=["hour_number"], filesystem=filesystem_of(path)) for path in decided)
    return sorted({hour for table in tables for hour in table[0].unique().drop_null().to_pylist()})


#: Files of hashes, each in order, by what they are of.
_Hashes = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class _Search:
    """What the tasks do, each on its share; sent to Spark's workers as it is. They give rows of ``_WRITTEN``."""

    folder: Path
    #: The log hours of which stored duplicates are looked at.
    ingested: range
    #: What is done with rows of ``CANDIDATES``, those for which an SQL condition is true; and what it gives.
    decide_rows: Callable[[Dataset, str], pa.Table]
    result: pa.Schema

    def by_tasks(self, spark: SparkSession, shares: Sequence[Sequence[ArrivalFile]]) -> list[Path]:
        """All of it, by several tasks at a time; files of the result, none of no rows."""
        hashes = _paths(run_tasks(spark, shares, self.hash_ids, _WRITTEN))
        repeated = _paths(run_tasks(spark, self.compared(hashes), self.compare, _WRITTEN))[_REPEATED]
        if not repeated:
            return []
        rows = _paths(run_tasks(spark, [(share, repeated) for share in shares], self.select, _WRITTEN))[_ROWS]
        return list(map(place, _paths(run_tasks(spark, self.decided(rows), self.decide, _WRITTEN))[_DECIDED]))

    def hash_ids(self, files: Iterable[ArrivalFile]) -> list[dict[str, Any]]:
        """Keep the hashes of the ids of these files."""
        hashes_of_kind: dict[str, list[SortedHashes]] = {_ARRIVED: [], _STORED: [], _OF_INGESTED: []}
        for file in files:
            for ids in file.ids():
                hashes = SortedHashes((as_numpy(ids["hash"]),))
                hashes_of_kind[_ARRIVED if file.is_new else _STORED].append(hashes)
                if file.are_duplicates:
                    first = as_numpy(ids["first_hour"])
                    is_of_ingested = (first >= self.ingested.start) & (first < self.ingested.stop)
                    hashes_of_kind[_OF_INGESTED].append(hashes.where(is_of_ingested))
        return [self._keep(kind, SortedHashes.joined(parts)) for kind, parts in hashes_of_kind.items() if parts]

    def compared(self, hashes: _Hashes) -> list[tuple[HashRange, _Hashes]]:
        """The shares of ``compare``: as many as there are hashes of arrivals for."""
        return [(part, hashes) for part in _ranges(sum(map(len, _read(hashes[_ARRIVED]))))]

    def compare(self, share: tuple[HashRange, _Hashes]) -> list[dict[str, Any]]:
        """Keep those hashes of a range that come again."""
        part, paths = share
        # A file at a time: there may be many, open or in memory as long as their hashes are looked at.
        parts = {kind: (hashes.within(part) for hashes in _read(paths[kind])) for kind in paths}
        arrived = SortedHashes.joined([_NO_HASHES, *parts[_ARRIVED]]).hashes
        again = arrived[1:][arrived[1:] == arrived[:-1]]
        stored = (among.hashes[is_among(among.hashes, arrived)] for among in parts[_STORED])
        of_ingested = (hashes.hashes for hashes in parts[_OF_INGESTED])
        repeated = np.unique(np.concatenate([again, *stored, *of_ingested]))
        return [self._keep(_REPEATED, SortedHashes((repeated,)))] if len(repeated) else []

    def select(self, share: tuple[Iterable[ArrivalFile], Iterable[str]]) -> list[dict[str, Any]]:
        """Keep the rows of these files whose hash is in these files of hashes."""
        files, hashes = share[0], pa.chunked_array([repeated.hashes for repeated in _read(share[1])])
        return self._keep_rows(_ROWS, CANDIDATES, (rows for file in files for rows in file.candidates(hashes)))

    def decided(self, rows: Sequence[str]) -> list[tuple[HashRange, Sequence[str]]]:
        """The shares of ``decide``: as many as there are rows for."""
        count = sum(read_metadata(key_of(file), filesystem=filesystem_of(file)).num_rows for file in map(place, rows))
        return [(part, rows) for part in _ranges(count)]

    def decide(self, share: tuple[HashRange, Sequence[str]]) -> list[dict[str, Any]]:
        """Decide on the rows of a range, of these files of rows."""
        part, paths = share
        files = list(map(place, paths))
        names, filesystem = [key_of(file) for file in files], filesystem_of(self.folder)
        candidates = dataset(names, CANDIDATES, format="parquet", filesystem=filesystem)
        least, greatest = part.bounds
        condition = f"{_HASH} BETWEEN {least}::UBIGINT AND {greatest}::UBIGINT"
        decided = self.decide_rows(candidates, condition)
        return self._keep_rows(_DECIDED, self.result, [decided]) if len(decided) else []

    def whole(self, files: Sequence[ArrivalFile]) -> list[dict[str, Any]]:
        """All of it, one after the other."""
        (every,) = _ranges(0)
        repeated = _paths(self.compare((every, _paths(self.hash_ids(files)))))[_REPEATED]
        return self.decide((every, _paths(self.select((files, repeated)))[_ROWS])) if repeated else []

    def _keep(self, kind: str, hashes: SortedHashes) -> dict[str, Any]:
        return {"kind": kind, "path": str(hashes.write(self.folder))}

    def _keep_rows(self, kind: str, schema: pa.Schema, tables: Iterable[pa.Table]) -> list[dict[str, Any]]:
        return [{"kind": kind, "path": str(write_scratch(self.folder, schema, tables))}]


def _paths(written: Iterable[Any]) -> dict[str, list[str]]:
    """The files that tasks have written, by what they have."""
    paths: dict[str, list[str]] = {kind: [] for kind in (_ARRIVED, _STORED, _OF_INGESTED, _REPEATED, _ROWS, _DECIDED)}
    for row in written:
        paths[row["kind"]].append(row["path"])
    return paths


def _ranges(count: int) -> list[HashRange]:
    """All hashes in ranges, one for each so many of ``count``."""
    ranges = 1 + count // _RANGE_HASHES
    return [HashRange.of_partition(number, ranges) for number in range(ranges)]


def _read(paths: Iterable[str]) -> Iterator[SortedHashes]:
    """What is in one of these files of hashes after the other."""
    return (SortedHashes.read(place(path)) for path in paths)
