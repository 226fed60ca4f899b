"""Published tables as plain files, for readers without Delta: one Parquet and one CSV file per click hour, or day.

The visitors' sketches and the quarters of hours are left out: who unites visitors reads the tables.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from include.days import Day
from include.hours import Hour
from include.storage import write_whole
from include.tables import PUBLISHED, QUARTERS, Table

_CLICK_HOUR = ["click_date", "click_hour"]


def exported_columns(table: Table) -> list[str]:
    """The columns of a published table that its files have."""
    return [name for name in table.column_names if name not in ("visitor_sketch", QUARTERS.name)]


def export_hours(table: pa.Table, folder: Path, name: str, hours: Iterable[Hour]) -> list[Path]:
    """Replace the files of these click hours; returns those there afterwards, by hour, Parquet before CSV.

    ``table`` holds the ``exported_columns`` of at least these click hours; rows of others are left alone.
    The files are ``folder/name/click_date=YYYY-MM-DD/click_hour=HH/name.parquet`` and ``.csv``, busiest key
    first. An hour without rows has none: those of an earlier run are removed. Each file changes at once, the
    two of an hour one after the other.

    The Parquet file leaves ``click_date`` and ``click_hour`` to its path, as Hive does: with both, Arrow and
    pandas refuse several files together. The CSV file holds all columns.

    Raises:
        ValueError: if the table has not the columns of a published table.
    """
    busiest = _busiest_first(table)
    # Hours since the epoch: the rows of an hour lie together, and two look-ups find them.
    numbers = pc.add(
        pc.multiply(pc.cast(pc.cast(busiest["click_date"], pa.int32()), pa.int64()), 24),
        pc.cast(busiest["click_hour"], pa.int64()),
    ).to_pylist()
    files = []
    for hour in sorted(set(hours)):
        number = (hour.day - date(1970, 1, 1)).days * 24 + hour.hour
        first, end = bisect_left(numbers, number), bisect_right(numbers, number)
        files += _replace_files(busiest.slice(first, end - first), _hour_folder(folder / name, hour), name, _CLICK_HOUR)
    return files


def export_day(rows: pa.Table, folder: Path, daily: Table, day: Day) -> list[Path]:
    """Replace the files of a day by its rows, the ``exported_columns`` of the daily table; as ``export_hours``.

    The files are ``folder/name/time_zone=Europe%2FBerlin/click_date=YYYY-MM-DD/name.parquet`` and ``.csv``, with the
    zone's name escaped as Hive does it.
    """
    busiest = rows.sort_by([("click_count", "descending"), (daily.key[-1], "ascending")])
    zone = folder / daily.name / f"time_zone={quote(day.time_zone, safe='')}"
    by_path = list(daily.partitioned_by)
    return _replace_files(busiest, zone / f"click_date={day.date.isoformat()}", daily.name, by_path)


def _busiest_first(table: pa.Table) -> pa.Table:
    """The rows by click hour, then ``click_count`` downwards, then key."""
    published = next((known for known in PUBLISHED if exported_columns(known) == table.column_names), None)
    if published is None:
        expected = " or ".join(", ".join(exported_columns(known)) for known in PUBLISHED)
        raise ValueError(f"cannot export a table with the columns {', '.join(table.column_names)}; expected {expected}")
    by_hour = [(column, "ascending") for column in _CLICK_HOUR]
    return table.sort_by([*by_hour, ("click_count", "descending"), (published.key[-1], "ascending")])


def _hour_folder(folder: Path, click_hour: Hour) -> Path:
    return folder / f"click_date={click_hour.day.isoformat()}" / f"click_hour={click_hour.hour:02d}"


def _replace_files(rows: pa.Table, folder: Path, name: str, by_path: list[str]) -> list[Path]:
    """Replace the two files of a partition, whose columns ``by_path`` its folders name."""
    parquet, csv = folder / f"{name}.parquet", folder / f"{name}.csv"
    if not rows.num_rows:
        parquet.unlink(missing_ok=True)
        csv.unlink(missing_ok=True)
        return []
    write_whole(parquet, lambda file: pyarrow.parquet.write_table(rows.drop_columns(by_path), file))
    write_whole(csv, lambda file: pyarrow.csv.write_csv(rows, file))
    return [parquet, csv]
