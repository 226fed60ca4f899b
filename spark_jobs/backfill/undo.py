"""Undo a backfill: the click hours that it published have again, in the published tables, their earlier rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pyspark.sql import SparkSession

from include.backfills import UNDOING, UNDONE, Backfill
from include.errors import FinalError
from include.holds import PUBLISHED, PUBLISHED_ANYWAY, ClickHourState
from include.hours import Hour, contiguous
from include.journal import click_hours_filter
from include.settings import Settings
from include.tables import AGGREGATES, JOURNAL, Table
from spark_jobs.backfill.decide import drop_counts
from spark_jobs.backfill.record import find_backfill, say
from spark_jobs.engine.steps import in_parallel
from spark_jobs.hours.held_hours import click_hour_states
from spark_jobs.hours.touched_hours import log_hours_around
from spark_jobs.lake.data_files import TableVersion, may_have_click_hours
from spark_jobs.lake.journal import signed_act
from spark_jobs.lake.lake import Lake
from spark_jobs.publish.follow_hours import follow_hours
from spark_jobs.publish.publish_hours import HoursOfVersions, replace_published
from spark_jobs.publish.report_data import renew_report


def undo(
    spark: SparkSession, settings: Settings, backfill_id: str, by: str, because: str, *, force: bool = False
) -> list[str]:
    """Restore what was published before, and put it on record; returns a few lines on what was done.

    They stay so, whoever counts them again, until a backfill has them again or a person releases them. Killed, it is
    done by the same again. Everything that could refuse it is looked at before anything is written.

    Raises:
        UsageError: if nobody or no reason is named.
        ClickmillError: if the backfill is open or has published nothing, if the tables' history does not reach back,
            or, unless ``force``, if others have published new counts of these hours since.
    """
    lake = Lake(spark, settings)
    with signed_act(lake, "undo_backfill", backfill_id, by, because) as signed, lake.locked():
        backfill = find_backfill(lake, backfill_id)
        if backfill.state == "undone":
            report = renew_report(lake)
            (*_, last) = backfill.decisions
            before = f"{backfill.described}: was undone by {last.actor} at {last.at:%Y-%m-%d %H:%M} UTC: {last.because}"
            return [before, f"  report: {report}"]
        _require_undoable(backfill)
        hours = sorted(backfill.published)
        around = log_hours_around(lake, hours)
        states = click_hour_states(lake, {hour: around.touching.get(hour, {}) for hour in hours})
        others = _published_by_others(lake, backfill, states)
        if others and not force:
            raise FinalError(
                f"nothing is undone: {len(others)} click hours were published with other counts since: "
                f"{', '.join(map(str, others[:5]))}{', …' if len(others) > 5 else ''}; with --force they too are as "
                f"they were before {backfill.described}"
            )
        former = {published: _former(backfill, published) for published in AGGREGATES.values()}
        for published, of_table in former.items():
            _require_there(lake, published, of_table)
        backfill = say(lake, backfill, UNDOING, signed, click_hours=[str(hour) for hour in hours])
        drop_counts(signed, backfill, states.values(), f"undone, {because.strip()}")
        in_parallel(lake.spark, *(partial(replace_published, lake, table, table, former[table]) for table in former))
        followed = follow_hours(lake, hours)
        say(lake, backfill, UNDONE)
    return [
        f"{backfill.described}: undone by {by.strip()}; {len(hours)} click hours as they were published before "
        f"({hours[0]} to {hours[-1]})",
        *(["  of these, others had published since:"] if others else []),
        *(f"    {of_others}" for of_others in contiguous(others)),
        "  clicks has what the backfill ingested, and they stay as they are published whoever counts them again:",
        "    land the right files, and backfill the hours again",
        f"    or clickmill decide --from {hours[0]} --to {hours[-1].plus(1)} --decision release --help",
        *followed,
    ]


def _require_undoable(backfill: Backfill) -> None:
    description = backfill.described
    if backfill.state in ("running", "waiting", "swapping"):
        raise FinalError(f"{description} is {backfill.state}, and cannot be undone yet. {backfill.next_step}")
    if not backfill.published:
        raise FinalError(f"{description} is {backfill.state}, and has published nothing: there is nothing to undo")


def _is_counted_since(backfill: Backfill, state: ClickHourState) -> bool:
    return state.changed_at > backfill.published[state.hour].last_at


def _published_by_others(lake: Lake, backfill: Backfill, states: Mapping[Hour, ClickHourState]) -> list[Hour]:
    """The click hours of which other counts have been published since the backfill published its own."""
    counted = [hour for hour, state in states.items() if _is_counted_since(backfill, state)]
    published = [*click_hours_filter(counted), ("event", "in", [PUBLISHED, PUBLISHED_ANYWAY])]
    moments = [(Hour.parse(row["subject"]), row["at"]) for row in lake.read_rows(JOURNAL, ["subject", "at"], published)]
    return sorted({hour for hour, at in moments if at > backfill.published[hour].last_at})


def _former(backfill: Backfill, table: Table) -> HoursOfVersions:
    """The versions that the published table had before the backfill published its hours."""
    by_version: dict[int | None, list[Hour]] = {}
    for hour, published in sorted(backfill.published.items()):
        by_version.setdefault(published.versions.get(table.name), []).append(hour)
    return by_version


def _require_there(lake: Lake, table: Table, former: HoursOfVersions) -> None:
    for number, hours in former.items():
        if number is None:
            continue
        files = TableVersion.newest(lake.path(table), table, number).chosen(may_have_click_hours(table, hours))
        lost = [file for file in files if not file.is_whole]
        if lost:
            raise FinalError(
                f"nothing is undone: {len(lost)} files of version {number} of table {table.name} are gone; VACUUM has "
                "removed them, or somebody else"
            )
