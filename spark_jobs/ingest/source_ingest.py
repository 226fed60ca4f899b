"""The ingest of a source's log hours: what is read, what is decided, and in what order it is written.

Everything is decided before anything is written: which arrivals are duplicates, and which stored clicks of later log
hours become duplicates by that, or the other way round.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from include.errors import ClickmillError, MissingLandingError
from include.hours import Hour, HourRange, LogHour, log_hours_predicate
from include.landing import LandedHour, look_at, printed_name
from include.settings import Settings
from include.sources import Source
from include.tables import (
    CLICKS,
    DUPLICATE_CLICKS,
    INGEST_ACCOUNTING,
    QUARANTINED_CLICKS,
    REPLAYED_LINES,
    UNFINISHED_INGESTS,
    Table,
)
from spark_jobs.engine.steps import step
from spark_jobs.hours.account import HourAccount, accounts_of, recounted
from spark_jobs.hours.replays import AskedReplay, repairs_of
from spark_jobs.hours.stream_batches import forget_counts
from spark_jobs.hours.touched_hours import closed_click_hours, removed_within_lateness
from spark_jobs.ids.duplicates import DECIDED
from spark_jobs.ids.repeated_ids import ArrivalFile, changed_hours, find_duplicates
from spark_jobs.ingest.decided_clicks import PLACE, DecidedClicks, stored_as_decided
from spark_jobs.ingest.decided_files import write_decided
from spark_jobs.ingest.spark_arrivals import StagedArrivals, reason_of, stage_arrivals
from spark_jobs.ingest.stored_arrivals import StoredHour, stage_stored
from spark_jobs.lake.data_files import has_log_hours
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.new_files import NewFile
from spark_jobs.lines.arrivals import LineParser
from spark_jobs.lines.json_fields import SampledFields
from spark_jobs.lines.rules import failure_of_rule

#: A row of ``ingest_accounting`` or ``unfinished_ingests``.
Account = Mapping[str, Any]


@dataclass(frozen=True)
class Ingested:
    """The account of each log hour, and the later log hours of which clicks have become duplicates or the reverse.

    ``warnings`` say which rules of replays fail on lines.
    """

    accounts: dict[Hour, HourAccount]
    changed_later: list[Hour]
    warnings: list[str]


@dataclass(frozen=True)
class Plan:
    """What is to be written, of the log hours that have ``landed`` and of the ``later`` ones that change.

    ``gone`` are those of the landed ones whose files are gone, with their accounting: they are made of what is stored.
    """

    landed: Sequence[LandedHour]
    gone: Mapping[Hour, Account]
    later: Mapping[Hour, Account]
    staged: Sequence[Path]
    decided: Sequence[Path]
    clicks: DecidedClicks
    accounts: Mapping[Hour, HourAccount]
    warnings: list[str]

    @property
    def ingested(self) -> list[Hour]:
        """The log hours of which all lines are read."""
        return [landed.hour for landed in self.landed]

    @property
    def hours(self) -> list[Hour]:
        """The log hours whose rows are replaced."""
        return [*self.ingested, *self.later]


class SourceIngest:
    """The ingest of one source. Hold the lake's lock."""

    def __init__(
        self,
        lake: Lake,
        settings: Settings,
        source: Source,
        allow_missing: bool,
        asked: AskedReplay | None = None,
        withdrawn: str | None = None,
    ) -> None:
        self.lake, self.settings, self.source, self.allow_missing = lake, settings, source, allow_missing
        #: The replay that this ingest is to do, or the id of the one that is withdrawn by it: then what has landed
        #: once, and is gone, is read from the lake.
        self.asked, self.withdrawn = asked, withdrawn
        self.parser = LineParser.of(source, settings)

    def run(self, hours: Sequence[Hour]) -> Ingested:
        """Ingest these log hours, in order, and decide again on the stored clicks of later ones.

        Raises:
            MissingLandingError: if a log hour has no landing partition, and was ingested before or must not be missing.
            ClickmillError: if files cannot be read, or clicks with which they must be compared have been removed.
        """
        with self.planned(hours) as plan:
            return self.write(plan)

    @contextmanager
    def planned(self, hours: Sequence[Hour]) -> Iterator[Plan]:
        """What an ingest of these log hours would write; nothing is written yet. Raises as ``run``."""
        self._require_neighbours(hours)
        name = self.source.name
        known = self.lake.row_by_hour(INGEST_ACCOUNTING, name, hours)
        landed, gone = self._landed(hours, known)
        with self._staged(landed, gone) as staged, self._decided(staged.files, hours) as (files, changed):
            decided = self._rows_of(files)
            unfinished = self.lake.row_by_hour(UNFINISHED_INGESTS, name, hours)
            left_open = {Hour.parse(hour) for row in unfinished.values() for hour in row["changed_later"]}
            later_hours = sorted(left_open.union(changed).difference(hours))
            later = self.lake.row_by_hour(INGEST_ACCOUNTING, name, later_hours)
            with self._stored(decided, list(later)) as stored:
                clicks = DecidedClicks(staged.arrivals, decided, stored)
                with step(self.lake.spark, "count outcomes"):
                    accounts = accounts_of([*hours, *later], staged.read, clicks.outcomes().collect())
                if self.source.fields is not None:
                    none = [(hour, SampledFields(0, {})) for hour in hours]
                    for hour, fields in [*none, *staged.sampled]:
                        accounts[hour].add_sampled(fields)
                for hour, row in {**gone, **later}.items():
                    accounts[hour].keep_read(row)
                for hour, row in later.items():
                    accounts[hour].quarantined.update(dict(row["quarantined_by_reason"]))
                _keep_click_hours(accounts, [known, unfinished], later)
                self._leave_out_closed(accounts)
                yield Plan(landed, gone, later, staged.files, files, clicks, accounts, staged.warnings)

    def write(self, plan: Plan) -> Ingested:
        """Write what was planned."""
        self._write(plan)
        return Ingested({hour: plan.accounts[hour] for hour in plan.ingested}, list(plan.later), plan.warnings)

    def _write(self, plan: Plan) -> None:
        """Write the tables in an order that misleads no reader, and no run that follows one that was killed.

        First that the log hours are being ingested: until that has ended, nobody counts a click hour that they touch.
        It is said in a table that is read whole: a later log hour that changes may be far away.
        The clicks of all log hours are one commit, so that of each id one arrival is accepted at every moment. What is
        no click any more is among the duplicates before that: nothing that has arrived is forgotten. Of log hours whose
        files are gone, a line leaves the quarantine when it is in another table, and not before; and the clicks when it
        is in the quarantine again.
        """
        self._begin(plan)
        arrived = self._write_arrived(plan)
        if plan.later or plan.gone:
            self._replace(plan, DUPLICATE_CLICKS, arrived, self._former_duplicates(plan))
        first, second = QUARANTINED_CLICKS, CLICKS
        if plan.gone and not self.withdrawn:
            first, second = second, first
        stored = {CLICKS: plan.clicks.stored_accepted(), DUPLICATE_CLICKS: plan.clicks.stored_duplicates()}
        for table in (first, second, DUPLICATE_CLICKS):
            rows = stored.get(table)
            self._replace(plan, table, arrived, [] if rows is None else self.lake.write_files(table, rows))
        self._write_accounts(plan)
        self._replace_unfinished(plan, [])

    def _begin(self, plan: Plan) -> None:
        later, now = list(map(str, plan.later)), datetime.now(UTC)
        rows = [
            {
                "source": self.source.name,
                "log_date": hour.day,
                "log_hour": hour.hour,
                "click_hours": sorted(plan.accounts[hour].click_hours),
                "changed_later": later,
                "began_at": now,
            }
            for hour in plan.ingested
        ]
        self._replace_unfinished(plan, rows)

    def _replace_unfinished(self, plan: Plan, rows: Sequence[Account]) -> None:
        self.lake.replace_rows(UNFINISHED_INGESTS, rows, log_hours_predicate(self.source.name, plan.ingested))

    def _write_arrived(self, plan: Plan) -> dict[Table, list[NewFile]]:
        """What the tables are to have of the arrivals, as files that none of them has yet.

        There may be nothing quarantined, and no duplicates: most small log hours have none.
        """
        accounts = plan.accounts.values()
        has_some = {
            CLICKS: True,
            DUPLICATE_CLICKS: any(account.duplicates_of for account in accounts),
            QUARANTINED_CLICKS: any(plan.accounts[hour].quarantined for hour in plan.ingested),
        }
        folders = {table: self.lake.folder_for_files(table) for table, some in has_some.items() if some}
        with step(self.lake.spark, "write lines"):
            return write_decided(self.lake.spark, plan.staged, plan.decided, self.source.name, folders)

    def _former_duplicates(self, plan: Plan) -> list[NewFile]:
        """Rows of those that are none any more, and of stored ones as they are stored."""
        files: list[NewFile] = []
        if (stored := plan.clicks.stored_duplicates(with_former=True)) is not None:
            files += self.lake.write_files(DUPLICATE_CLICKS, stored)
        if plan.gone:
            former = self.lake.read_log_hours(DUPLICATE_CLICKS, self.source.name, plan.gone)
            rows = former.join(plan.clicks.places_of_duplicates(), PLACE, "left_anti")
            files += self.lake.write_files(DUPLICATE_CLICKS, rows)
        return files

    def _replace(
        self, plan: Plan, table: Table, arrived: Mapping[Table, list[NewFile]], others: Iterable[NewFile]
    ) -> None:
        """Put these files in the place of what the table has of the log hours whose rows change."""
        hours = plan.ingested if table == QUARANTINED_CLICKS else plan.hours
        new, chosen = [*arrived.get(table, []), *others], has_log_hours(self.source.name, hours)
        if new or self.lake.data_files(table, chosen):
            self.lake.replace_files(table, new, chosen)

    def _write_accounts(self, plan: Plan) -> None:
        now, name = datetime.now(UTC), self.source.name
        rows = [
            plan.accounts[landed.hour].as_row(name, landed, now)
            for landed in plan.landed
            if landed.hour not in plan.gone
        ]
        rows += [recounted(row, plan.accounts[hour], now) for hour, row in {**plan.gone, **plan.later}.items()]
        # What a stream had counted, while the source was one.
        forget_counts(self.lake, name, [hour for hour in plan.ingested if hour not in plan.gone])
        self.lake.replace_rows(INGEST_ACCOUNTING, rows, log_hours_predicate(name, plan.hours))

    def _require_neighbours(self, hours: Sequence[Hour]) -> None:
        """Whether an arrival is a duplicate, the clicks of the log hours around it say."""
        removed = sorted(set(removed_within_lateness(self.lake, self.source, hours)) - set(hours))
        if removed:
            raise ClickmillError(
                f"{self.source.name} {hours[0]} to {hours[-1]} cannot be ingested again: the clicks of {removed[0]} "
                f"({len(removed)} log hours) have been removed for their age, and with them what says which lines are "
                f"duplicates within {self.source.lateness_hours} hours; ingest these log hours together with all that "
                "were removed before and after them"
            )

    def _leave_out_closed(self, accounts: Mapping[Hour, HourAccount]) -> None:
        """Nobody is to count click hours of which clicks have been removed."""
        touched = {hour for account in accounts.values() for hour in account.click_hours}
        again = {LogHour(self.source.name, hour) for hour in accounts}
        closed = set(map(str, closed_click_hours(self.lake, map(Hour.parse, touched), again)))
        for account in accounts.values():
            account.leave_out(closed)

    def _landed(
        self, hours: Sequence[Hour], known: Mapping[Hour, Account]
    ) -> tuple[list[LandedHour], dict[Hour, Account]]:
        """What is in the landing zone; and, of a replay, the accounting of the log hours whose files are gone."""
        landed = [look_at(self.settings.landing, self.source.name, hour) for hour in hours]
        gone = self._gone(landed, known) if self.asked or self.withdrawn else {}
        for hour in landed:
            if hour.hour in gone:
                continue
            if hour.folder.is_dir():
                _require_removed_files(hour, known.get(hour.hour), self.source.name)
                continue
            if hour.hour in known and known[hour.hour]["lines"]:
                raise MissingLandingError(
                    f"the landing partition of {self.source.name} {hour.hour} is gone: expected {hour.folder}; "
                    f"its {known[hour.hour]['lines']} lines stay in the lake; put the files back, "
                    "or, to empty the hour, an empty folder"
                )
            if not self.allow_missing:
                raise MissingLandingError(
                    f"no landing partition for {self.source.name} {hour.hour}: expected {hour.folder} with _SUCCESS; "
                    "check the uploader, or pass --allow-missing"
                )
        return landed, gone

    def _gone(self, landed: Iterable[LandedHour], known: Mapping[Hour, Account]) -> dict[Hour, Account]:
        gone = {}
        for hour in landed:
            row = known.get(hour.hour)
            if row is None or not row["lines"] or row["clicks_removed_at"]:
                continue
            if not hour.files:
                gone[hour.hour] = row
            elif len(hour.files) < row["files"]:
                raise ClickmillError(
                    f"the landing partition of {self.source.name} {hour.hour} has {len(hour.files)} files, and "
                    f"{row['files']} were ingested; put the others back, or ingest it as it is; nothing is changed"
                )
        return gone

    @contextmanager
    def _staged(self, landed: Sequence[LandedHour], gone: Collection[Hour]) -> Iterator[StagedArrivals]:
        """The arrivals, staged for the passes over them: memory does not grow with their number."""
        files = [(file, hour.hour) for hour in landed for file in hour.data]
        hours = [hour.hour for hour in landed]
        parser = replace(
            self.parser, repairs=repairs_of(self.lake, self.source.name, hours, self.asked, self.withdrawn)
        )
        with self.lake.scratch_folder("arrivals") as folder:
            try:
                with step(self.lake.spark, "stage arrivals"):
                    staged = stage_arrivals(self.lake.spark, files, parser, folder)
                    if gone:
                        stored = [self._stored_hour(hour, number) for number, hour in enumerate(gone, len(files))]
                        reasons = self.asked.reasons if self.asked else ()
                        more = stage_stored(self.lake.spark, stored, parser, reasons, folder)
                        staged = staged.with_more(self.lake.spark, more)
            except (PySparkException, OSError) as error:
                if failed := failure_of_rule(error):
                    raise ClickmillError(f"{failed}; nothing has been replaced") from error
                raise ClickmillError(
                    f"the files of {self.source.name} {landed[0].hour} to {landed[-1].hour} cannot be read: "
                    f"{reason_of(error)}; nothing has been replaced; see that they can be read, and ingest them again"
                ) from error
            yield staged

    def _stored_hour(self, hour: Hour, number: int) -> StoredHour:
        chosen = has_log_hours(self.source.name, [hour])
        tables = (CLICKS, DUPLICATE_CLICKS, QUARANTINED_CLICKS, REPLAYED_LINES)
        files = {table.name: self.lake.data_files(table, chosen) for table in tables}
        return StoredHour(hour, number, files, self.withdrawn)

    @contextmanager
    def _decided(self, arrivals: Sequence[Path], hours: Sequence[Hour]) -> Iterator[tuple[list[Path], list[Hour]]]:
        """The files of ``decide_duplicates``' rows; and the later log hours of which stored clicks change.

        An arrival changes what is at most the lateness window later. That may change what is later still: looked at
        in windows that double, until nothing changes at the end.
        """
        lateness, spark = self.source.lateness_hours, self.lake.spark
        ingested = range(hours[0].number, hours[-1].number + 1)
        last = hours[-1].plus(lateness)
        with self.lake.scratch_folder("duplicates") as folder:
            decided: list[Path] = []
            changed: list[Hour] = []
            while self.source.has_event_id:
                others = set(HourRange(hours[0].plus(-lateness), last.plus(1))) - set(hours)
                with step(spark, "find duplicates"):
                    decided = find_duplicates(spark, self._id_files(arrivals, others), ingested, lateness, folder)
                changed = list(map(Hour.of_number, changed_hours(decided)))
                if not changed or changed[-1].plus(lateness) <= last:
                    break
                last = last.plus(last.number - hours[0].number + 1)
            yield decided, changed

    def _rows_of(self, decided: Sequence[Path]) -> DataFrame:
        schema = from_arrow_schema(DECIDED)
        if not decided:
            return self.lake.spark.createDataFrame([], schema)
        return self.lake.spark.read.schema(schema).parquet(*map(str, decided))

    def _id_files(self, arrivals: Sequence[Path], others: Collection[Hour]) -> list[ArrivalFile]:
        of_others = has_log_hours(self.source.name, others)
        stored = [
            ArrivalFile.stored(file, table)
            for table in (CLICKS, DUPLICATE_CLICKS)
            for file in self.lake.data_files(table, of_others)
        ]
        return [*map(ArrivalFile.staged, arrivals), *stored]

    @contextmanager
    def _stored(self, decided: DataFrame, later: Sequence[Hour]) -> Iterator[DataFrame | None]:
        """The stored arrivals of these log hours, as they are decided now, staged; None of no log hours."""
        if not later:
            yield None
            return
        rows = stored_as_decided(self.lake, self.source.name, later, decided)
        with self.lake.staged(rows, "stored clicks") as stored:
            yield stored


def _require_removed_files(landed: LandedHour, account: Account | None, source: str) -> None:
    """What landed after a partition was removed for its age is not to take the place of all that was in it."""
    if account is None or not account["landing_removed_at"]:
        return
    there = set(map(printed_name, landed.files))
    missing = [file["name"] for file in account["landed_files"] if file["bytes"] and file["name"] not in there]
    if missing:
        raise MissingLandingError(
            f"the landed files of {source} {landed.hour} were removed or archived at "
            f"{account['landing_removed_at']:%Y-%m-%d %H:%M} UTC ({len(missing)} files, of {missing[0]} first), and "
            f"{landed.folder} has only what landed since; put them back beside it, or ingest it as another log hour; "
            "nothing has been replaced"
        )


def _keep_click_hours(
    accounts: Mapping[Hour, HourAccount], former: Iterable[Mapping[Hour, Account]], later: Mapping[Hour, Account]
) -> None:
    """Add the click hours that were touched before; and to those ingested all that later ones touch, to be counted."""
    for rows in (*former, later):
        for hour, row in rows.items():
            accounts[hour].click_hours.update(row["click_hours"])
    touched_later = set().union(*(accounts[hour].click_hours for hour in later))
    for hour in accounts.keys() - later.keys():
        accounts[hour].click_hours |= touched_later
