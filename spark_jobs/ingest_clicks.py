"""Ingest landed log hours: accepted clicks, quarantined lines, and an account of every line.

The log hours of a streamed source are in the lake already: they are settled, that is accounted for.
Replaces exactly the log hours' partitions of clicks, quarantined_clicks and ingest_accounting, so that running it
again gives the same tables. The accounting is written last: its row says that the log hour is complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from include.errors import ClickmillError, MissingLandingError
from include.job_arguments import JobArguments, OneLineParser, exit_with
from include.landing import LandedHour, look_at
from include.log_hours import Hour
from include.settings import Settings
from include.sources import Source, choose_sources
from include.tables import CLICKS, INGEST_ACCOUNTING, QUARANTINED_CLICKS, Table
from spark_jobs.hour_account import HourAccount, accounts_of
from spark_jobs.ingest.arrivals import LineParser
from spark_jobs.ingest.spark_arrivals import StagedArrivals, reason_of, stage_arrivals
from spark_jobs.io import Lake, log_hours_predicate
from spark_jobs.shell import run_from_shell
from spark_jobs.steps import at_once, step
from spark_jobs.stream_accounting import described, settle
from spark_jobs.transforms.account_for_lines import count_outcomes
from spark_jobs.transforms.build_clicks import accepted_lines, build_clicks, quarantine
from spark_jobs.transforms.drop_duplicates import find_duplicates, log_hour_number
from spark_jobs.transforms.sample_lines import LOG_HOUR, line_shapes

#: A row of ``ingest_accounting``, and what is asked of those that are there.
Account = Mapping[str, Any]
_KNOWN = ("log_date", "log_hour", "lines", "click_hours", "ids_hash", "duplicates_of")


def run(spark: SparkSession, settings: Settings, arguments: JobArguments, *, allow_missing: bool = False) -> list[str]:
    """Ingest the log hours of every chosen source; returns a few lines on what was done.

    With ``allow_missing`` a log hour that never landed is accounted for as one without lines.

    Raises:
        MissingLandingError: if a log hour has no landing partition, and was ingested before or must not be missing.
        ClickmillError: if files cannot be read.
    """
    lake = Lake(spark, settings)
    report = []
    for source in choose_sources(settings, arguments.source):
        # Whether a line is a duplicate depends on the log hours around it, and may change those after it.
        with lake.locked():
            if source.stream is not None:
                report.append(described(source, settle(lake, source, list(arguments.log_hours))))
                continue
            accounts = SourceIngest(lake, settings, source, allow_missing).run(list(arguments.log_hours))
        report += _summary(source, arguments, accounts)
    return report


class SourceIngest:
    """The ingest of one source."""

    def __init__(self, lake: Lake, settings: Settings, source: Source, allow_missing: bool) -> None:
        self.lake, self.settings, self.source, self.allow_missing = lake, settings, source, allow_missing
        self.parser = LineParser.of(source, settings)

    def run(self, hours: Sequence[Hour]) -> dict[Hour, HourAccount]:
        """Ingest these log hours, and again those later ones whose first arrivals have changed by that."""
        known = self._known_around(hours)
        landed = self._landed(hours, known)
        touched_before = self._touched_before(hours, known)
        with (
            self._staged(landed) as staged,
            self.lake.staged(self._duplicates(staged.arrivals, hours), "duplicates") as duplicates,
        ):
            arrivals = staged.arrivals
            with step(self.lake.spark, "count outcomes"):
                accounts = accounts_of(hours, staged.read, count_outcomes(arrivals, duplicates).collect())
            accepted = accepted_lines(arrivals, duplicates)
            changed_later = self._later_hours_changed_by(accepted, accounts, known)
            self._require_landed(changed_later, known)
            at_once(
                self.lake.spark,
                lambda: self._replace(CLICKS, build_clicks(accepted, self.source.name), hours),
                lambda: self._replace(QUARANTINED_CLICKS, quarantine(arrivals, self.source.name), hours),
                lambda: self._add_fields(arrivals, accounts),
            )
        again = self.run(changed_later) if changed_later else {}
        touched_again = {hour for account in again.values() for hour in account.click_hours}
        for hour, account in accounts.items():
            account.click_hours |= touched_before[hour] | touched_again
        self._write_accounting(landed, accounts)
        return accounts

    def _known_around(self, hours: Sequence[Hour]) -> dict[Hour, Account]:
        """The accounting of these log hours and of all within the lateness window around them."""
        lateness = self.source.lateness_hours
        around = {hour.plus(shift) for hour in hours for shift in range(-lateness, lateness + 1)}
        of_these = [("source", "=", self.source.name), ("log_date", "in", sorted({hour.day for hour in around}))]
        rows = self.lake.read_rows(INGEST_ACCOUNTING, _KNOWN, of_these)
        known = {Hour.of(row["log_date"], row["log_hour"]): row for row in rows}
        return {hour: row for hour, row in known.items() if hour in around}

    def _landed(self, hours: Sequence[Hour], known: Mapping[Hour, Account]) -> list[LandedHour]:
        landed = [look_at(self.settings.landing, self.source.name, hour) for hour in hours]
        for hour in landed:
            if hour.folder.is_dir():
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
        return landed

    def _touched_before(self, hours: Sequence[Hour], known: Mapping[Hour, Account]) -> dict[Hour, set[str]]:
        """Click hours that each log hour touched in earlier runs, one that broke off included."""
        touched = {hour: set(known[hour]["click_hours"]) if hour in known else set() for hour in hours}
        if self.lake.exists(CLICKS):
            stored = self.lake.read_log_hours(CLICKS, self.source.name, hours)
            with step(self.lake.spark, "find click hours touched before"):
                pairs = stored.select("log_date", "log_hour", "click_date", "click_hour").distinct().collect()
            for row in pairs:
                touched[Hour.of(row["log_date"], row["log_hour"])].add(
                    str(Hour.of(row["click_date"], row["click_hour"]))
                )
        return touched

    @contextmanager
    def _staged(self, landed: Sequence[LandedHour]) -> Iterator[StagedArrivals]:
        """The arrivals, staged for the passes over them: memory does not grow with their number."""
        files = [(file, hour.hour) for hour in landed for file in hour.files]
        with self.lake.scratch_folder("arrivals") as folder:
            try:
                with step(self.lake.spark, "stage arrivals"):
                    staged = stage_arrivals(self.lake.spark, files, self.parser, folder)
            except (PySparkException, OSError) as error:
                raise ClickmillError(
                    f"the files of {self.source.name} {landed[0].hour} to {landed[-1].hour} cannot be read: "
                    f"{reason_of(error)}; nothing has been replaced; see that they can be read, and ingest them again"
                ) from error
            yield staged

    def _duplicates(self, arrivals: DataFrame, hours: Sequence[Hour]) -> DataFrame:
        if not self.source.has_event_id:
            return self.lake.spark.createDataFrame([], "row_id BIGINT, first_hour INT")
        # Accounted for or not: while later log hours are ingested again, the account of these is still to come.
        window = range(1, self.source.lateness_hours + 1)
        others = {hour.plus(-shift) for hour in hours for shift in window} - set(hours)
        before = self.lake.read_log_hours(CLICKS, self.source.name, others).select(
            "event_id", log_hour_number().alias("hour_number")
        )
        with_id = arrivals.where("reason IS NULL").select(
            "event_id", log_hour_number().alias("hour_number"), "file", "line", "row_id"
        )
        return find_duplicates(with_id, before, self.source.lateness_hours)

    def _add_fields(self, arrivals: DataFrame, accounts: Mapping[Hour, HourAccount]) -> None:
        """What fields the sampled lines of a JSON source have."""
        if self.source.fields is None:
            return
        with step(self.lake.spark, "sample fields"):
            rows = line_shapes(arrivals, LOG_HOUR).collect()
        shapes: dict[Hour, list[Row]] = {hour: [] for hour in accounts}
        for row in rows:
            shapes[Hour.of(row["log_date"], row["log_hour"])].append(row)
        for hour, account in accounts.items():
            account.add_fields(shapes[hour], self.source)

    def _later_hours_changed_by(
        self, accepted: DataFrame, accounts: Mapping[Hour, HourAccount], known: Mapping[Hour, Account]
    ) -> list[Hour]:
        """Log hours ingested before, later than those of the accepted lines, whose duplicates are others now.

        Either one of their clicks has turned out to be a second arrival, or the first arrival that made one of theirs
        a duplicate may have gone.
        """
        if not self.source.has_event_id:
            return []
        later = {hour for hour in known if hour > min(accounts) and hour not in accounts}
        if not later:
            return []
        changed = {
            str(hour)
            for hour, account in accounts.items()
            # Without an account an earlier run broke off, and what it wrote may have been seen.
            if hour not in known or known[hour]["ids_hash"] != account.ids_hash
        }
        lost_first = {hour for hour in later if changed & dict(known[hour]["duplicates_of"]).keys()}
        first = accepted.select("event_id", log_hour_number().alias("first_hour"))
        second = self.lake.read_log_hours(CLICKS, self.source.name, later).select(
            "event_id", log_hour_number().alias("hour_number")
        )
        apart = F.col("hour_number") - F.col("first_hour")
        twice = first.join(second, "event_id").where(apart.between(1, self.source.lateness_hours))
        with step(self.lake.spark, "find later duplicates"):
            turned = {Hour.of_number(row[0]) for row in twice.select("hour_number").distinct().collect()}
        return sorted(lost_first | turned)

    def _require_landed(self, changed: Sequence[Hour], known: Mapping[Hour, Account]) -> None:
        """Refuse, before anything is replaced, when log hours that are to be ingested again have lost their files."""
        try:
            self._landed(changed, known)
        except MissingLandingError as error:
            raise MissingLandingError(
                f"{error}; it is to be ingested again, because another log hour now has the first arrival of its "
                "clicks; nothing has been replaced"
            ) from None

    def _replace(self, table: Table, rows: DataFrame, hours: Sequence[Hour]) -> None:
        self.lake.replace(table, rows, log_hours_predicate(self.source.name, hours))

    def _write_accounting(self, landed: Sequence[LandedHour], accounts: Mapping[Hour, HourAccount]) -> None:
        now = datetime.now(UTC)
        rows = [accounts[hour.hour].as_row(self.source.name, hour, now) for hour in landed]
        self.lake.replace_rows(INGEST_ACCOUNTING, rows, log_hours_predicate(self.source.name, list(accounts)))


def _summary(source: Source, arguments: JobArguments, accounts: Mapping[Hour, HourAccount]) -> list[str]:
    def total(name: str) -> int:
        return sum(getattr(account, name) for account in accounts.values())

    duplicates = sum(account.duplicates_of.total() for account in accounts.values())
    reasons: dict[str, int] = {}
    for account in accounts.values():
        for reason, count in account.quarantined.items():
            reasons[reason] = reasons.get(reason, 0) + count
    listed = ", ".join(f"{reason} {count:,}" for reason, count in sorted(reasons.items())) or "none"
    click_hours = {hour for account in accounts.values() for hour in account.click_hours}
    return [
        f"{source.name} {arguments.log_hours}: {total('lines'):,} lines = {total('accepted'):,} accepted "
        f"+ {duplicates:,} duplicates + {sum(reasons.values()):,} quarantined",
        f"  quarantined: {listed}; late {total('late'):,}; out of order {total('out_of_order'):,}; "
        f"click hours touched: {len(click_hours)}",
        *(
            f"  breaks off, the lines before the damage count: {hour} {file}"
            for hour, account in accounts.items()
            for file in sorted(account.damaged_files)
        ),
    ]


def _add_options(parser: OneLineParser) -> None:
    parser.add_argument("--allow-missing", action="store_true", help="count a log hour that never landed as empty")


if __name__ == "__main__":
    exit_with(lambda: run_from_shell("spark_jobs.ingest_clicks", __doc__, run, _add_options))
