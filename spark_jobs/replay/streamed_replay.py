"""A replay of lines that a stream has quarantined: the stream does not read them again, so their kept text is parsed.

The stream goes on meanwhile, and adds to the same log hours: so what is recovered is added too, as if by a micro-batch
of its own, whose row in ``stream_batches`` puts the account right when its hours are finalised again. What comes later
in a stream is the duplicate: of an id that is among the clicks already, what is recovered is one.

If a replay is withdrawn, its lines go back by the text that is kept of them; another such row puts the account right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from include.errors import ClickmillError, FinalError
from include.hours import Hour, HourRange, click_hour_of, log_hour_of
from include.settings import Settings
from include.sources import Source
from include.stored_rows import distinct_rows
from include.tables import (
    CLICKS,
    DUPLICATE_CLICKS,
    INGEST_ACCOUNTING,
    QUARANTINED_CLICKS,
    REPLAYED_LINES,
    STREAM_BATCHES,
    Table,
)
from spark_jobs.hours.account import HourAccount
from spark_jobs.hours.replays import AskedReplay, repairs_of
from spark_jobs.hours.stream_batches import in_order_of_time
from spark_jobs.hours.touched_hours import removed_within_lateness
from spark_jobs.ids.duplicates import CANDIDATES, DECIDED, decide_duplicates, log_hour_number
from spark_jobs.ingest.decided_clicks import PLACE, DecidedClicks, decided_lines
from spark_jobs.ingest.spark_arrivals import arrivals_in, reason_of
from spark_jobs.ingest.stored_arrivals import StoredHour, stage_stored
from spark_jobs.lake.data_files import has_log_hours
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.transactions import StreamTransaction
from spark_jobs.lines.arrivals import LineParser
from spark_jobs.lines.rules import failure_of_rule
from spark_jobs.replay.withdrawals import Withdrawal


@dataclass(frozen=True)
class StreamedReplay:
    """The replay of a streamed source. Hold the lake's lock."""

    lake: Lake
    settings: Settings
    source: Source
    asked: AskedReplay

    @contextmanager
    def planned(self, hours: Sequence[Hour]) -> Iterator[DecidedClicks]:
        """The quarantined lines of these log hours as they are parsed now; nothing is written yet.

        Raises:
            ClickmillError: if an hour is not finalised, or its ids may come again; or the rule fails on a line.
        """
        self._require_over(hours)
        parser = replace(
            LineParser.of(self.source, self.settings),
            repairs=repairs_of(self.lake, self.source.name, hours, self.asked),
        )
        quarantined = [
            StoredHour(hour, number, {CLICKS.name: [], DUPLICATE_CLICKS.name: [], QUARANTINED_CLICKS.name: files})
            for number, hour in enumerate(hours)
            for files in [self.lake.data_files(QUARANTINED_CLICKS, self._of([hour]))]
        ]
        with self.lake.scratch_folder("quarantined lines") as folder:
            try:
                files = stage_stored(self.lake.spark, quarantined, parser, self.asked.reasons, folder)
            except (PySparkException, OSError) as error:
                reason = failure_of_rule(error) or f"the quarantined lines cannot be read: {reason_of(error)}"
                raise ClickmillError(f"{reason}; nothing has been replaced") from error
            # Those that stay quarantined are no matter, nor those that another replay has recovered.
            arrivals = arrivals_in(self.lake.spark, files).where(F.col("replay_id") == self.asked.replay.id)
            yield DecidedClicks(arrivals, self._duplicates(arrivals, hours), None)

    def recorded(self, hours: Sequence[Hour]) -> int:
        """How many lines it recovers, if that is on record, as it was killed after that; else 0."""
        return self._recorded(hours).count()

    def write(self, hours: Sequence[Hour]) -> None:
        """Write the lines on record: first where they are to be, then away from where they were, then the account."""
        transaction = StreamTransaction(self.asked.replay.id, 0)
        if not transaction.is_in(self.lake.stored(CLICKS)):
            with self.planned(hours) as clicks:
                accepted = decided_lines(clicks.arrivals, clicks.decided).where("first_hour IS NULL")
                files = self.lake.write_files(CLICKS, self._as_clicks(accepted))
                self.lake.append(CLICKS, files, transaction)
        places = self._recorded(hours).select(*PLACE)
        rows, former = self.lake.read_with_files(QUARANTINED_CLICKS, self._of(hours))
        kept = self.lake.write_files(QUARANTINED_CLICKS, rows.join(places, PLACE, "left_anti"))
        self.lake.exchange_files(QUARANTINED_CLICKS, kept, former)
        with in_order_of_time(self.lake) as now:
            self.lake.append_rows(STREAM_BATCHES, self._batch(hours, now), transaction)

    def _of(self, hours: Sequence[Hour]) -> Any:
        return has_log_hours(self.source.name, hours)

    def _require_over(self, hours: Sequence[Hour]) -> None:
        """What is recovered is not among the ids that the stream knows: it may be no first arrival of one to come."""
        final = self.lake.row_by_hour(INGEST_ACCOUNTING, self.source.name, hours, ["lines"])
        lateness = timedelta(hours=self.source.lateness_hours)
        if removed := removed_within_lateness(self.lake, self.source, hours):
            raise FinalError(
                f"{self.source.name} {hours[0]} to {hours[-1]}: the clicks of {removed[0]} ({len(removed)} log hours) "
                "have been removed for their age, and with them what says which lines are duplicates"
            )
        for hour in hours:
            if hour not in final:
                raise FinalError(
                    f"{self.source.name} {hour} is open: expected one that is finalised; "
                    f"run: clickmill ingest --source {self.source.name} --hour {hour}"
                )
            if hour.end + lateness > datetime.now(UTC):
                raise FinalError(
                    f"{self.source.name} {hour} is within lateness_hours = {self.source.lateness_hours}: the stream "
                    f"may still get its event ids; replay it after {hour.end + lateness:%Y-%m-%d %H:%M} UTC"
                )

    def _recorded(self, hours: Sequence[Hour]) -> DataFrame:
        recorded = self.lake.read_log_hours(REPLAYED_LINES, self.source.name, hours)
        return recorded.where(F.col("replay_id") == self.asked.replay.id)

    def _duplicates(self, arrivals: DataFrame, hours: Sequence[Hour]) -> DataFrame:
        """Of the recovered ones those whose id is among the clicks, or is recovered twice, as ``DECIDED``."""
        schema = from_arrow_schema(DECIDED)
        if not self.source.has_event_id:
            return self.lake.spark.createDataFrame([], schema)
        lateness = self.source.lateness_hours
        window = HourRange(hours[0].plus(-lateness), hours[-1].plus(lateness + 1))
        recovered = arrivals.withColumn("hour_number", log_hour_number())
        clicks = self.lake.read_log_hours(CLICKS, self.source.name, window)
        stored = clicks.where(~F.col("replay_id").eqNullSafe(self.asked.replay.id)).select(
            "event_id", log_hour_number().alias("of_stored")
        )
        is_near = F.abs(F.col("hour_number") - F.col("of_stored")) <= lateness
        of_stored = (
            recovered.select("row_id", "event_id", "hour_number")
            .join(stored, "event_id")
            .where(is_near)
            .groupBy("row_id")
            .agg(F.min("of_stored").alias("first_hour"))
            .withColumns({name: F.lit(None).cast(schema[name].dataType) for name in DECIDED.names[2:]})
            .select(*DECIDED.names)
        )
        candidates = recovered.withColumn("first_hour", F.lit(None).cast("int")).select(*CANDIDATES.names)
        others = candidates.join(of_stored.select("row_id"), "row_id", "left_anti").select(*CANDIDATES.names)
        ingested = range(hours[0].number, hours[-1].number + 1)

        def decide(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            rows = [pa.Table.from_batches([batch]).cast(CANDIDATES) for batch in batches]
            if rows:
                decided = decide_duplicates(pa.concat_tables(rows), ingested=ingested, lateness_hours=lateness)
                yield from decided.to_batches()

        # A task has all arrivals of an id.
        return of_stored.unionByName(others.repartition("event_id").mapInArrow(decide, schema))

    def _as_clicks(self, accepted: DataFrame) -> DataFrame:
        name = F.lit(self.source.name)
        columns = {"source": name, "click_date": F.to_date("clicked_at"), "click_hour": F.hour("clicked_at")}
        return accepted.withColumns(columns).select(*CLICKS.column_names)

    def _batch(self, hours: Sequence[Hour], now: datetime) -> list[dict[str, Any]]:
        """The rows of ``stream_batches``: no line more, some clicks, fewer in the quarantine."""
        transaction = StreamTransaction(self.asked.replay.id, 0)
        accepted = _counted_clicks(_clicks_of(self.lake, self.source, self.asked.replay.id, hours))
        return _batch(self.lake, self.source, transaction, _counted(self._recorded(hours)), accepted, 1, now)


@dataclass(frozen=True)
class StreamedWithdrawal:
    """The withdrawal of a replay of a streamed source. Hold the lake's lock."""

    lake: Lake
    source: Source
    withdrawal: Withdrawal

    def planned(self, hours: Sequence[Hour]) -> DataFrame:
        """Its lines, as they are quarantined again."""
        lines = self.withdrawal.lines(self.lake, hours)
        if self._is_in(QUARANTINED_CLICKS):
            there = self.lake.read_log_hours(QUARANTINED_CLICKS, self.source.name, hours)
            return there.join(lines.select(*PLACE), PLACE, "left_semi")
        clicks = self.lake.read_log_hours(CLICKS, self.source.name, hours)
        is_its = clicks.where(F.col("replay_id") == self.withdrawal.replay_id).select(
            *PLACE, F.lit(True).alias("is_click")
        )
        # What was no click was a duplicate, of which a stream keeps nothing; where there are none, it was erased.
        known = lines.join(is_its, PLACE, "left").where(F.col("is_click") | F.lit(self.source.has_event_id))
        return known.select(*QUARANTINED_CLICKS.column_names)

    def write(self, hours: Sequence[Hour]) -> None:
        """First into the quarantine, then the account, then out of the clicks: killed anywhere, the same again."""
        if not self._is_in(QUARANTINED_CLICKS):
            files = self.lake.write_files(QUARANTINED_CLICKS, self.planned(hours))
            self.lake.append(QUARANTINED_CLICKS, files, self._transaction)
        lines = self.planned(hours).select(*PLACE, "reason", F.lit(self.withdrawal.replay_id).alias("replay_id"))
        if not (quarantined := _counted(lines)):
            return  # all of them were erased
        # A click whose line was erased, for what no column of the click has, stays one: nothing of it can go back.
        recovered = _clicks_of(self.lake, self.source, self.withdrawal.replay_id, hours)
        accepted = _counted_clicks(recovered.join(lines.select(*PLACE), PLACE, "left_semi"))
        with in_order_of_time(self.lake) as now:
            rows = _batch(self.lake, self.source, self._transaction, quarantined, accepted, -1, now)
            self.lake.append_rows(STREAM_BATCHES, rows, self._transaction)
        stored, former = self.lake.read_with_files(CLICKS, has_log_hours(self.source.name, hours))
        kept = stored.join(lines.drop("reason"), [*PLACE, "replay_id"], "left_anti")
        self.lake.exchange_files(CLICKS, self.lake.write_files(CLICKS, kept), former)

    @property
    def _transaction(self) -> StreamTransaction:
        return StreamTransaction(self.withdrawal.replay_id, 1)

    def _is_in(self, table: Table) -> bool:
        return self._transaction.is_in(self.lake.stored(table))


def _clicks_of(lake: Lake, source: Source, replay_id: str, hours: Sequence[Hour]) -> DataFrame:
    """The clicks that a replay has recovered."""
    return lake.read_log_hours(CLICKS, source.name, hours).where(F.col("replay_id") == replay_id)


def _counted(lines: DataFrame) -> list[dict[str, Any]]:
    """How many ``lines`` there are by log hour, file and reason; the first of them, and the last."""
    counts = lines.groupBy("log_date", "log_hour", "file", "reason").agg(
        F.count("line").alias("lines"), F.min("line").alias("first"), F.max("line").alias("last")
    )
    rows: list[dict[str, Any]] = counts.toArrow().to_pylist()
    return rows


def _counted_clicks(clicks: DataFrame) -> list[dict[str, Any]]:
    """How many by log hour, file and click hour, and out of order; when the first of them is, and the last."""
    counts = clicks.groupBy("log_date", "log_hour", "file", "click_date", "click_hour").agg(
        F.count("line").alias("lines"),
        F.count_if("is_out_of_order").alias("out_of_order"),
        F.min("clicked_at").alias("first_clicked_at"),
        F.max("clicked_at").alias("last_clicked_at"),
    )
    rows: list[dict[str, Any]] = counts.toArrow().to_pylist()
    return rows


def _batch(
    lake: Lake,
    source: Source,
    transaction: StreamTransaction,
    quarantined: Sequence[Mapping[str, Any]],
    accepted: Sequence[Mapping[str, Any]],
    sign: int,
    now: datetime,
) -> list[dict[str, Any]]:
    """The rows of ``stream_batches``, by log hour and file, of what a replay has recovered; with ``sign`` -1 not.

    ``quarantined`` are the lines that it recovers, ``accepted`` those of them that are clicks: as ``_counted`` and
    ``_counted_clicks`` give them.
    """
    where = [("source", "=", source.name), ("log_date", "in", sorted({row["log_date"] for row in quarantined}))]
    partitions = {
        row["file"]: {"topic": row["topic"], "partition": row["partition"]}
        for row in distinct_rows(lake.open_table(STREAM_BATCHES, ["file", "topic", "partition"], [where]))
    }
    accounts: dict[tuple[Hour, str], HourAccount] = {}
    offsets: dict[tuple[Hour, str], list[int]] = {}
    for row in quarantined:
        place = log_hour_of(row), row["file"]
        accounts.setdefault(place, HourAccount()).quarantined[row["reason"]] -= sign * row["lines"]
        offsets.setdefault(place, []).extend((row["first"], row["last"]))
    # When the clicks were that are left is not known: what was first and last may be so still.
    moments = {} if sign > 0 else {"first_clicked_at": None, "last_clicked_at": None}
    for row in accepted:
        hour = log_hour_of(row)
        counted = {**row, **moments, **{name: sign * row[name] for name in ("lines", "out_of_order")}}
        accounts[hour, row["file"]].add_accepted(counted, hour, click_hour_of(row))
    return [
        {
            "source": source.name,
            "stream_id": transaction.stream_id,
            "batch_id": transaction.batch_id,
            "file": file,
            **partitions.get(file, {}),
            "log_date": hour.day,
            "log_hour": hour.hour,
            "first_offset": min(offsets[hour, file]),
            "last_offset": max(offsets[hour, file]),
            "bytes": 0,
            **account.of_lines(),
            "written_at": now,
        }
        for (hour, file), account in sorted(accounts.items())
    ]
