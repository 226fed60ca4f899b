"""Exports: a click hour's files are replaced whole, hold what was published, and go when it is emptied."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from include.errors import LockLostError
from include.hours import Hour, click_hours_predicate
from include.stored_rows import arrow_schema
from include.tables import (
    PUBLISHED_CLICKS_BY_COUNTRY_HOURLY,
    PUBLISHED_CLICKS_BY_URL_HOURLY,
    UNKNOWN_COUNTRY,
    Table,
)
from spark_jobs.engine import sorted_rows
from spark_jobs.lake.lake import Lake
from spark_jobs.publish.exports import export_hours, exported_columns
from tests.support.temporary_lake import make_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = PUBLISHED_CLICKS_BY_URL_HOURLY.name
FOUR, FIVE = (Hour.parse(f"2026-03-01T{hour:02d}") for hour in (4, 5))
HOSTILE_URLS = [
    'http://x.example/"><script>alert(1)</script>',
    "http://x.example/,=cmd|' /C calc'!A0",
    "http://x.example/\n=1+1",
    "https://x.example/é?日本",
]
Row = tuple[str, int, int, int]


class NoSpark:
    """What little is exported without."""

    def getTags(self) -> set[str]:
        return set()

    def addTag(self, tag: str) -> None: ...

    def removeTag(self, tag: str) -> None: ...


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(cast("SparkSession", NoSpark()), make_settings(tmp_path))


def exported(lake: Lake, hour: Hour, *rows: Row, table: Table = PUBLISHED_CLICKS_BY_URL_HOURLY) -> list[Path]:
    """Publish an hour with these rows, in two data files if they are several; the two files of its export."""
    of_hour = {"click_date": hour.day, "click_hour": hour.hour}
    names = (table.key[-1], "click_count", "bot_click_count", "visitor_count")
    values = [of_hour | dict(zip(names, row, strict=True)) for row in rows]
    lake.replace_rows(table, values[::2], click_hours_predicate([hour]))
    lake.append_rows(table, values[1::2])
    export_hours(lake, table, [hour])
    folder = lake.settings.reports / "exports" / table.name
    folder = folder / f"click_date={hour.day}" / f"click_hour={hour.hour:02d}"
    return [folder / f"{table.name}.{kind}" for kind in ("parquet", "csv")]


def names_in(lake: Lake) -> list[str]:
    """All files and folders that are there, hidden ones too, but for those on the way to files."""
    folder = lake.settings.reports / "exports"
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not any(path.glob("*")))


def lines_of(text: Path) -> list[list[str]]:
    with text.open(encoding="utf-8", newline="") as lines:
        return list(csv.reader(lines))


def test_an_hour_has_its_rows_busiest_first(lake: Lake) -> None:
    rows = [("http://x.example/b", 5, 0, 2), ("http://x.example/c", 9, 1, 3), ("http://x.example/a", 5, 0, 2)]
    files = exported(lake, FIVE, *rows)
    hour = f"{NAME}/click_date=2026-03-01/click_hour=05"
    assert names_in(lake) == [f"{hour}/{NAME}.csv", f"{hour}/{NAME}.parquet"]
    assert lines_of(files[1]) == [
        ["click_date", "click_hour", "url", "click_count", "bot_click_count", "visitor_count"],
        ["2026-03-01", "5", "http://x.example/c", "9", "1", "3"],
        ["2026-03-01", "5", "http://x.example/a", "5", "0", "2"],
        ["2026-03-01", "5", "http://x.example/b", "5", "0", "2"],
    ]


def test_more_rows_than_are_sorted_at_a_time_are_in_order_and_leave_nothing_behind(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorted_rows, "PART_BYTES", 1)
    numbers = random.Random(1)
    rows = [(f"http://x.example/{number}", numbers.randrange(1, 9), 0, 0) for number in range(10_000)]
    parquet, text = exported(lake, FIVE, *rows)
    expected = [
        {"url": url, "click_count": clicks} for url, clicks, _, _ in sorted(rows, key=lambda row: (-row[1], row[0]))
    ]
    assert (
        pyarrow.parquet.read_table(parquet, columns=["url", "click_count"], partitioning=None).to_pylist() == expected
    )
    assert [line[2:4] for line in lines_of(text)[1:]] == [[row["url"], str(row["click_count"])] for row in expected]
    assert list(lake.settings.scratch.iterdir()) == []


def test_csv_read_back_equals_what_was_published(lake: Lake) -> None:
    parquet, text = exported(lake, FIVE, *((url, 10 - n, n, n) for n, url in enumerate(HOSTILE_URLS)))
    schema = arrow_schema(PUBLISHED_CLICKS_BY_URL_HOURLY, exported_columns(PUBLISHED_CLICKS_BY_URL_HOURLY))
    read = pyarrow.csv.read_csv(
        text,
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(column_types=schema),
    )
    of_hour = {"click_date": FIVE.day, "click_hour": FIVE.hour}
    expected: list[dict[str, Any]] = [
        {"url": url, "click_count": 10 - n, "bot_click_count": n, "visitor_count": n}
        for n, url in enumerate(HOSTILE_URLS)
    ]
    assert read.to_pylist() == [of_hour | row for row in expected]
    assert pyarrow.parquet.ParquetFile(parquet).read().to_pylist() == expected


def test_parquet_files_of_several_hours_are_read_as_one_table(lake: Lake) -> None:
    files = [exported(lake, hour, (f"http://x.example/{hour.hour}", 1, 0, 1))[0] for hour in (FOUR, FIVE)]
    read = pyarrow.parquet.read_table(files).to_pylist()
    assert [(row["click_date"], row["click_hour"], row["url"]) for row in read] == [
        ("2026-03-01", 4, "http://x.example/4"),
        ("2026-03-01", 5, "http://x.example/5"),
    ]


def test_exporting_again_replaces_the_files(lake: Lake) -> None:
    exported(lake, FIVE, ("http://x.example/old", 1, 0, 1))
    before = names_in(lake)
    parquet, text = exported(lake, FIVE, ("http://x.example/new", 2, 0, 1))
    assert pyarrow.parquet.ParquetFile(parquet).read()["url"].to_pylist() == ["http://x.example/new"]
    assert "old" not in text.read_text(encoding="utf-8")
    assert names_in(lake) == before


def test_an_emptied_hour_loses_its_files_and_no_others(lake: Lake) -> None:
    for hour in (FOUR, FIVE):
        exported(lake, hour, ("http://x.example/", 1, 0, 1))
    beside = lake.settings.reports / "exports" / NAME / "click_date=2026-03-01" / "click_hour=05" / "notes.txt"
    beside.touch()
    exported(lake, FIVE)
    hour = f"{NAME}/click_date=2026-03-01/click_hour="
    assert names_in(lake) == [f"{hour}04/{NAME}.csv", f"{hour}04/{NAME}.parquet", f"{hour}05/notes.txt"]


def test_an_hour_that_never_had_rows_is_nothing(lake: Lake) -> None:
    exported(lake, FIVE)
    assert names_in(lake) == []


def test_a_failed_export_leaves_the_old_file_and_no_other(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    _, text = exported(lake, FIVE, ("http://x.example/old", 1, 0, 1))
    before = names_in(lake)

    class FullDisk:
        def __init__(self, file: BinaryIO, schema: pa.Schema) -> None:
            file.write(b"half")
            raise OSError("disk full")

    monkeypatch.setattr("spark_jobs.publish.exports.pyarrow.csv.CSVWriter", FullDisk)
    with pytest.raises(OSError, match="disk full"):
        exported(lake, FIVE, ("http://x.example/new", 1, 0, 1))
    assert names_in(lake) == before
    assert "old" in text.read_text(encoding="utf-8")


def test_what_is_being_written_does_not_look_like_data(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    class Looking(pyarrow.csv.CSVWriter):
        def write_table(self, rows: pa.Table) -> None:
            super().write_table(rows)
            written.extend(names_in(lake))

    monkeypatch.setattr("spark_jobs.publish.exports.pyarrow.csv.CSVWriter", Looking)
    exported(lake, FIVE, ("http://x.example/", 1, 0, 1))
    assert len(written) == 2
    assert all(name.startswith(f"{NAME}/.") for name in written)


def test_a_job_that_has_lost_its_lock_puts_nothing_in_its_place(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    _, text = exported(lake, FIVE, ("http://x.example/old", 1, 0, 1))
    before = names_in(lake)
    with monkeypatch.context() as patch:

        def lose_the_lock(*_: object) -> None:
            patch.setattr(lake, "require_locks", lost)

        def lost() -> None:
            raise LockLostError("lost")

        patch.setattr("spark_jobs.publish.exports.work_on_files", lose_the_lock)
        with pytest.raises(LockLostError):
            exported(lake, FIVE, ("http://x.example/new", 1, 0, 1))
    assert "old" in text.read_text(encoding="utf-8")
    assert names_in(lake) == before


def test_what_a_killed_job_leaves_goes_with_the_next_export(lake: Lake) -> None:
    exported(lake, FIVE, ("http://x.example/old", 1, 0, 1))
    before = names_in(lake)
    left = lake.settings.reports / "exports" / NAME / ".written-by-one"
    left.mkdir()
    (left / "half").touch()
    exported(lake, FIVE, ("http://x.example/new", 1, 0, 1))
    assert names_in(lake) == before


def test_no_cell_can_be_taken_for_a_formula(lake: Lake) -> None:
    # URLs are http or https, countries two letters or 'unknown', numbers not negative: nothing is altered.
    files = exported(lake, FIVE, *((url, 10 - n, 0, 0) for n, url in enumerate(HOSTILE_URLS)))
    countries = [("DE", 2, 0, 0), (UNKNOWN_COUNTRY, 1, 0, 0)]
    files += exported(lake, FIVE, *countries, table=PUBLISHED_CLICKS_BY_COUNTRY_HOURLY)
    cells = [cell for file in files if file.suffix == ".csv" for row in lines_of(file) for cell in row]
    assert set(HOSTILE_URLS) | {"DE", UNKNOWN_COUNTRY} < set(cells)
    assert [cell for cell in cells if cell[0] in "=+-@\t\r"] == []
