"""The Delta tables of a lake: the only place where jobs read and write them, and the locks around them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from pyarrow.dataset import dataset
from pyspark.sql import DataFrame, SparkSession

from include.buckets import Layout
from include.errors import ClickmillError
from include.hours import Hour, click_hour_of, click_hours_predicate
from include.locks import Held, Locks, locks_of
from include.settings import Settings
from include.storage import entries, filesystem_of, flush_file, flush_folder, is_on_disk, key_of, remove_folder
from include.stored_rows import StoredLake, distinct_rows
from include.tables import AGGREGATES, Table
from spark_jobs.engine.steps import step
from spark_jobs.engine.worker_tasks import TASK_BYTES
from spark_jobs.lake import declared
from spark_jobs.lake.copied_files import copy_files
from spark_jobs.lake.data_files import DataFile, TableVersion, has_log_hours, may_have_click_hours
from spark_jobs.lake.definitions import make_or_complete
from spark_jobs.lake.merged_rows import merge_few, merged
from spark_jobs.lake.new_files import NewFile, write_files
from spark_jobs.lake.panics import panics_left_out
from spark_jobs.lake.transactions import NOT_TRIED_AGAIN, StreamTransaction
from spark_jobs.lake.version_checksums import write_checksum

#: In bytes, of which only those that are smaller are written together.
_LARGE_FILE = 1 << 30


class Lake(StoredLake):
    """The Delta tables under one folder, made as ``include.tables`` declares them when first written."""

    def __init__(self, spark: SparkSession | None, settings: Settings) -> None:
        super().__init__(settings.lake)
        self._spark = spark
        self.settings = settings
        self._complete: set[str] = set()
        self._held: list[Held] = []

    @property
    def spark(self) -> SparkSession:
        """The session; without one, what needs none can be done: files, rows made outside Spark."""
        if self._spark is None:
            raise ValueError("this lake was opened without Spark")
        return self._spark

    def read(self, table: Table) -> DataFrame:
        """The table as it is now; with its declared columns and no rows when it has not been made.

        A column that an earlier version of the table lacks is null.
        """
        if not self.exists(table):
            return declared.without_rows(self.spark, table)
        return declared.with_declared(self.spark.read.format("delta").load(self.uri(table)), table)

    def read_stream(self, table: Table, *, begins: bool) -> DataFrame:
        """The table's rows as they come, those that it has first, in the order of their time where it is large.

        Rows that are replaced later come once. ``begins`` says that nothing has been read of it yet.
        """
        self._make(table)
        rows = (
            self.spark.readStream.format("delta").option("skipChangeCommits", True).option("maxBytesPerTrigger", "512m")
        )
        stored = DeltaTable(self.uri(table))
        if begins and not stored.file_uris():
            # Else Delta first computes, in seconds, what the table has.
            return rows.option("startingVersion", stored.version()).load(self.uri(table))
        return rows.option("withEventTimeOrder", True).load(self.uri(table))

    def read_log_hours(self, table: Table, source: str, hours: Iterable[Hour]) -> DataFrame:
        """The rows of a source's log hours, of a table that is partitioned by them."""
        return self.read_files(table, has_log_hours(source, hours))

    def read_click_hours(self, table: Table, hours: Iterable[Hour]) -> DataFrame:
        """The rows of these click hours."""
        wanted = list(hours)
        return self.read_files(table, may_have_click_hours(table, wanted)).where(click_hours_predicate(wanted))

    def replace(self, table: Table, rows: DataFrame, choice: pc.Expression, *, are_few: bool = False) -> None:
        """Replace, in one commit, the files that are chosen, by their partition: rows of no other may be among these.

        The rows may come from the table itself. Raises as ``write_files`` and ``replace_files``.
        """
        self.replace_files(table, self.write_files(table, rows, are_few=are_few), choice)

    def write_files(self, table: Table, rows: DataFrame, *, are_few: bool = False) -> list[NewFile]:
        """Write these rows as files of the table, which has them when they are committed.

        By tasks; if they are few, by this process. Raises as ``new_files.write_files``.
        """
        folder = self.folder_for_files(table)
        with step(self.spark, f"write {table.name}"):
            return write_files(declared.as_declared(rows, table), table, folder, are_few=are_few)

    def copy_files(self, table: Table, files: Sequence[DataFile]) -> list[NewFile]:
        """As ``write_files``, of all rows of these files, of a table with the same partitions.

        Raises as ``copied_files.copy_files``.
        """
        folder = self.folder_for_files(table)
        with step(self.spark, f"copy to {table.name}"):
            return copy_files(self.spark, files, table, folder)

    def folder_for_files(self, table: Table) -> Path:
        """The table's folder, for tasks to write files into; the table is made, as Delta makes none where files are."""
        self._make(table)
        return self.path(table)

    def replace_files(self, table: Table, new: Sequence[NewFile], choice: pc.Expression) -> None:
        """As ``replace``, by files that have been written; those of them that the table has already stay.

        Raises:
            ValueError: if a file is of a partition that is not chosen.
            LockLostError: if a lock is not held any more.
            ClickmillError: if another has written to the table in the same moment, or a column is stored with another
                type than the declared one.
        """
        self._make(table)
        with self.locked(f"write-{table.name}"):
            version = TableVersion.newest(self.path(table), table)
            declared.require_declared_types(version, table)
            strange = version.not_chosen([file.partition for file in new], choice)
            if strange:
                raise ValueError(f"{table.name}: rows of {dict(strange[0])}, a partition that is not to be replaced")
            chosen, kept = version.chosen(choice), {file.path for file in new}
            removed = [file for file in chosen if file.name not in kept]
            known = {file.name for file in chosen}
            added = [file for file in new if file.path not in known]
            try:
                # Not on top of what another has written: of two jobs that have the same hours, one is to go.
                version.commit(added, removed, NOT_TRIED_AGAIN)
            except CommitFailedError as error:
                raise ClickmillError(
                    f"nothing is replaced in table {table.name}: another has written to it in the same moment, though "
                    "this job had its lock; run it again"
                ) from error

    def exchange_files(
        self,
        table: Table,
        new: Sequence[NewFile],
        removed: Sequence[DataFile],
        transaction: StreamTransaction | None = None,
    ) -> None:
        """Put files in the place of others, in one commit: single files, not partitions; what others add stays.

        By a transaction the commit can be known. Raises as ``TableVersion.require_files``.
        """
        with self.locked(f"write-{table.name}"):
            version = TableVersion.newest(self.path(table), table)
            version.require_files(removed)
            version.commit(new, removed, transaction.as_committed(retries=0) if transaction else NOT_TRIED_AGAIN)

    def append(self, table: Table, new: Sequence[NewFile], transaction: StreamTransaction) -> None:
        """Add files in one commit, unless the table has the rows of this transaction already.

        Raises:
            ClickmillError: if a column is stored with another type than the declared one.
        """
        self._make(table)
        with self.locked(f"write-{table.name}"):
            version = TableVersion.newest(self.path(table), table)
            declared.require_declared_types(version, table)
            # A query that was ended may have written the same micro-batch meanwhile.
            if transaction.is_in(version.stored):
                return
            try:
                version.commit(new, [], transaction.as_committed())
            except CommitFailedError:
                if not transaction.is_in(self.stored(table)):
                    raise
                return
            self._keep_commits(table, version.stored.version())
            write_checksum(version, new)

    def merge_click_hours(self, table: Table, rows: DataFrame, transaction: StreamTransaction) -> None:
        """Put the rows of some click hours, unique by the table's key, in the place of those of the same key.

        Unless the table has those of the transaction, or of a later one of its stream, already. In one commit; if they
        and those of their hours are few, by this process, which takes a tenth of the time; else by tasks.

        Raises:
            PySparkException: as ``write_files``.
        """
        self._make(table)
        with self.scratch_folder(f"merged {table.name}") as folder:
            with step(self.spark, f"stage {table.name}"):
                rows.write.mode("overwrite").parquet(str(folder))
            staged = dataset(key_of(folder), format="parquet", filesystem=filesystem_of(folder))
            hours = set(map(click_hour_of, distinct_rows(staged.to_batches(columns=["click_date", "click_hour"]))))
            if not hours:
                return
            with self.locked(f"write-{table.name}"), panics_left_out():
                version = TableVersion.newest(self.path(table), table)
                if transaction.is_in(version.stored):
                    return
                replaced = version.chosen(may_have_click_hours(table, hours))
                size = sum(entry.size for entry in entries(folder)) + sum(file.size for file in replaced)
                if size <= TASK_BYTES:
                    merge_few(version.stored, table, staged.to_table(), hours, transaction.as_committed())
                    return
                stored = declared.with_declared(version.read(self.spark, replaced), table)
                new = self.spark.read.schema(rows.schema).parquet(str(folder))
                written = self.write_files(table, merged(stored, new, table))
                version.commit(written, replaced, transaction.as_committed(retries=0))

    def append_rows(
        self, table: Table, rows: Sequence[Mapping[str, Any]], transaction: StreamTransaction | None = None
    ) -> None:
        """Add a few rows, made outside Spark, in one commit, unless the table has those of the transaction already.

        A column that a row leaves out is null. Raises ValueError if it is required, or a name is no column.
        """
        self._make(table)
        with self.locked(f"write-{table.name}"), panics_left_out():
            before = None if transaction is None else DeltaTable(self.uri(table))
            if transaction is not None and before is not None and transaction.is_in(before):
                return
            # Merged by name: a table of an earlier version may have more columns, which are null from now on.
            properties = None if transaction is None else transaction.as_committed()
            arrow = declared.as_arrow(table, rows)
            write_deltalake(self.uri(table), arrow, mode="append", schema_mode="merge", commit_properties=properties)
            if before is not None:
                self._keep_commits(table, before.version())

    def _keep_commits(self, table: Table, after: int) -> None:
        """Have the disk keep the commits after this version, before the checkpoint of a stream says that they are done.

        What is replaced can be replaced again after a power cut; a stream does not read its records again.
        """
        log = self.path(table) / "_delta_log"
        if not is_on_disk(log):
            return
        number = after + 1
        while (commit := log / f"{number:020}.json").exists():
            flush_file(commit)
            number += 1
        flush_folder(log)

    def replace_rows(
        self,
        table: Table,
        rows: Sequence[Mapping[str, Any]] | pa.Table,
        predicate: str,
        *,
        transaction: StreamTransaction | None = None,
    ) -> None:
        """As ``replace``, by a few rows, made outside Spark or fetched from it; by delta-rs, as in ``append_rows``."""
        self._make(table)
        arrow = rows if isinstance(rows, pa.Table) else declared.as_arrow(table, rows)
        with self.locked(f"write-{table.name}"), panics_left_out():
            write_deltalake(
                self.uri(table),
                arrow,
                mode="overwrite",
                predicate=predicate,
                schema_mode="merge",
                commit_properties=None if transaction is None else transaction.as_committed(),
            )

    def compact(self, table: Table, leave_out: str = "false", *, above_files: int = 0) -> bool:
        """Write a table of ``append_rows``, if it has more files than that, as few; whether it was.

        Rows for which the predicate ``leave_out`` is true go. Readers that have begun keep the files that they see for
        a week.
        """
        self.require_locks()
        before = self.stored(table)
        if before is None or len(before.file_uris()) <= above_files:
            return False
        with self.locked(f"write-{table.name}"):
            stored = DeltaTable(self.uri(table))
            stored.delete(leave_out)
            stored.optimize.compact()
            stored.vacuum(dry_run=False)
        return True

    def write_as_few_files(self, table: Table, source: str, hours: Iterable[Hour]) -> None:
        """Write the files of a source's log hours as few, an hour at a time; their rows stay the same.

        In this process, which needs some 0.4 GiB for 200 MiB of files; others may add rows meanwhile.
        """
        self.require_locks()
        of_hours = Counter(file.log_hour for file in self.data_files(table, has_log_hours(source, hours)))
        for hour in (hour for hour, files in of_hours.items() if files > 1):
            partition = [("source", "=", source), ("log_date", "=", str(hour.day)), ("log_hour", "=", str(hour.hour))]
            # Without the table's lock, so that no stream waits: Delta keeps it apart from what is only added.
            self.require_locks()
            DeltaTable(self.uri(table)).optimize.compact(
                partition_filters=partition, target_size=_LARGE_FILE, max_concurrent_tasks=1
            )

    def data_files(self, table: Table, *choices: pc.Expression, version: int | None = None) -> list[DataFile]:
        """The files that one of the choices takes, as the table is now or was then; none when it has not been made."""
        stored = self._newest(table, version)
        return stored.chosen(*choices) if stored else []

    def read_files(
        self, table: Table, *choices: pc.Expression, leave_out_lost: bool = False, version: int | None = None
    ) -> DataFrame:
        """The rows of the files that one of the choices takes, as the table is now, or was at this version.

        Without the Spark jobs by which Delta chooses files, one to three for each table of a query: see
        docs/performance.md. A file that is lost or cut short is an error, or left out.
        """
        return self.read_with_files(table, *choices, leave_out_lost=leave_out_lost, version=version)[0]

    def read_with_files(
        self, table: Table, *choices: pc.Expression, leave_out_lost: bool = False, version: int | None = None
    ) -> tuple[DataFrame, list[DataFile]]:
        """As ``read_files``; and which files they are."""
        if stored := self._newest(table, version):
            files = [file for file in stored.chosen(*choices) if file.is_whole or not leave_out_lost]
            return declared.with_declared(stored.read(self.spark, files), table), files
        return declared.without_rows(self.spark, table), []

    def columns_of_other_types(self, table: Table) -> dict[str, str]:
        """The columns that are stored with another type than the declared one, and that type."""
        stored = self._newest(table)
        return declared.columns_of_other_types(stored, table) if stored else {}

    def _newest(self, table: Table, number: int | None = None) -> TableVersion | None:
        """The table as it is now, or was at this version; None when it has not been made."""
        return TableVersion.newest(self.path(table), table, number) if self.exists(table) else None

    @contextmanager
    def staged(self, rows: DataFrame, name: str) -> Iterator[DataFrame]:
        """The rows, computed now and kept as Parquet until the end, for several passes that each need few columns."""
        with self.scratch_folder(name) as folder:
            with step(self.spark, f"stage {name}"):
                rows.write.mode("overwrite").option("compression", "lz4_raw").parquet(str(folder))
            yield self.spark.read.schema(rows.schema).parquet(str(folder))

    @contextmanager
    def scratch_folder(self, name: str) -> Iterator[Path]:
        """An empty folder for intermediate rows, removed at the end."""
        folder = self.settings.scratch / f"staged-{name.replace(' ', '-')}-{uuid4()}"
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            remove_folder(folder)

    def buckets(self, table: Table) -> int:
        """The number of buckets of a co-partitioned table's rows; without any that of other tables, or the setting.

        Raises:
            ClickmillError: if rows differ in it, or have none.
        """
        layout = self.layout(table)
        if layout.buckets is None:
            raise ClickmillError(
                f"table {table.name}: number of buckets: {layout}; expected one number in all rows; "
                "give them one with: clickmill repartition --buckets N"
            )
        return layout.buckets

    def layout(self, table: Table) -> Layout:
        """What the rows of a co-partitioned table say about where they are, or will say when there are any."""
        if stored := self._stored_layout(table):
            return stored
        others = (self._stored_layout(other) for other in AGGREGATES)
        buckets = next((other.buckets for other in others if other and other.buckets), self.settings.pipeline.buckets)
        return Layout(buckets, buckets, str(table.key_type))

    def _stored_layout(self, table: Table) -> Layout | None:
        """By the statistics of its files, so no row is read; None without rows."""
        stored = self._newest(table)
        if stored is None or not stored.files.num_rows:
            return None
        assert table.bucket_key is not None
        key_type = stored.schema[table.bucket_key].dataType.simpleString().upper()
        fewest, most = stored.files["min.buckets"], stored.files["max.buckets"]
        if fewest.null_count:
            return Layout(None, None, key_type)
        return Layout(pc.min(fewest).as_py(), pc.max(most).as_py(), key_type)

    @contextmanager
    def locked(self, name: str = "lake") -> Iterator[None]:
        """Let one job at a time, of all homes of this data, work on the lake; ends with the process at the latest.

        Delta itself keeps two writers of the same rows apart. It cannot know that what one of them is about to write
        was computed from rows that the other has replaced since, nor that two tables are to be read as they were at
        one moment.
        """
        with self._locks.held(name) as lock:
            # While this one was waited for, another may have been lost.
            self.require_locks()
            self._held.append(lock)
            try:
                yield
            finally:
                self._held.remove(lock)

    def require_locks(self) -> None:
        """See to it that all locks that were taken are held still, before anything is written.

        Raises:
            LockLostError: if one is not.
        """
        for lock in list(self._held):
            lock.require()

    @cached_property
    def _locks(self) -> Locks:
        return locks_of(self.settings)

    def _make(self, table: Table) -> None:
        """Make the table, or complete its columns, before this process writes its first rows."""
        self.require_locks()
        if table.name in self._complete and self.exists(table):
            return
        with self.locked(f"write-{table.name}"):
            make_or_complete(table, self.path(table))
        self._complete.add(table.name)
