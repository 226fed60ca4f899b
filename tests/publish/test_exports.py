"""Exports: a click hour's files are replaced whole, hold what was published, and go when it is emptied."""

from __future__ import annotations

import csv
from datetime import date
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from include.hours import Hour, HourRange
from include.tables import UNKNOWN_COUNTRY
from spark_jobs.publish.exports import export_hours

NAME = "published_clicks_by_url_hourly"
FOUR, FIVE, SIX = (Hour.parse(f"2026-03-01T{hour:02d}") for hour in (4, 5, 6))
HOSTILE_URLS = [
    'http://x.example/"><script>alert(1)</script>',
    "http://x.example/,=cmd|' /C calc'!A0",
    "http://x.example/\n=1+1",
    "https://x.example/é?日本",
]
Row = tuple[Hour, str, int, int, int]


def published(*rows: Row, key: str = "url") -> pa.Table:
    """A published table with the types that Spark gives it."""
    return pa.table(
        {
            "click_date": pa.array([row[0].day for row in rows], pa.date32()),
            "click_hour": pa.array([row[0].hour for row in rows], pa.int32()),
            key: pa.array([row[1] for row in rows], pa.string()),
            "click_count": pa.array([row[2] for row in rows], pa.int64()),
            "bot_click_count": pa.array([row[3] for row in rows], pa.int64()),
            "visitor_count": pa.array([row[4] for row in rows], pa.int64()),
        }
    )


def names_in(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def test_each_hour_gets_its_rows_busiest_first(tmp_path: Path) -> None:
    table = published(
        (FIVE, "http://x.example/b", 5, 0, 2),
        (FOUR, "http://x.example/a", 1, 0, 1),
        (FIVE, "http://x.example/c", 9, 1, 3),
        (FIVE, "http://x.example/a", 5, 0, 2),
    )
    files = export_hours(table, tmp_path, NAME, [FOUR, FIVE])
    hour = f"{NAME}/click_date=2026-03-01/click_hour="
    assert [str(file.relative_to(tmp_path)) for file in files] == [
        f"{hour}04/{NAME}.parquet",
        f"{hour}04/{NAME}.csv",
        f"{hour}05/{NAME}.parquet",
        f"{hour}05/{NAME}.csv",
    ]
    assert names_in(tmp_path) == sorted(str(file.relative_to(tmp_path)) for file in files)
    with files[3].open(encoding="utf-8", newline="") as lines:
        assert list(csv.reader(lines)) == [
            ["click_date", "click_hour", "url", "click_count", "bot_click_count", "visitor_count"],
            ["2026-03-01", "5", "http://x.example/c", "9", "1", "3"],
            ["2026-03-01", "5", "http://x.example/a", "5", "0", "2"],
            ["2026-03-01", "5", "http://x.example/b", "5", "0", "2"],
        ]


def test_csv_read_back_equals_what_was_published(tmp_path: Path) -> None:
    table = published(*((FIVE, url, 10 - n, n, n) for n, url in enumerate(HOSTILE_URLS)))
    parquet, text = export_hours(table, tmp_path, NAME, [FIVE])
    read = pyarrow.csv.read_csv(
        text,
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(column_types=table.schema),
    )
    assert read.equals(table)
    read = pyarrow.parquet.ParquetFile(parquet).read()
    assert read.equals(table.drop_columns(["click_date", "click_hour"]))


def test_parquet_files_of_several_hours_are_read_as_one_table(tmp_path: Path) -> None:
    table = published((FOUR, "http://x.example/a", 1, 0, 1), (FIVE, "http://x.example/b", 2, 0, 1))
    files = export_hours(table, tmp_path, NAME, [FOUR, FIVE])
    read = pyarrow.parquet.read_table([file for file in files if file.suffix == ".parquet"]).to_pylist()
    assert [(row["click_date"], row["click_hour"], row["url"]) for row in read] == [
        ("2026-03-01", 4, "http://x.example/a"),
        ("2026-03-01", 5, "http://x.example/b"),
    ]


def test_exporting_again_replaces_the_files(tmp_path: Path) -> None:
    export_hours(published((FIVE, "http://x.example/old", 1, 0, 1)), tmp_path, NAME, [FIVE])
    before = names_in(tmp_path)
    parquet, text = export_hours(published((FIVE, "http://x.example/new", 2, 0, 1)), tmp_path, NAME, [FIVE])
    assert pyarrow.parquet.ParquetFile(parquet).read()["url"].to_pylist() == ["http://x.example/new"]
    assert "old" not in text.read_text(encoding="utf-8")
    assert names_in(tmp_path) == before


def test_an_emptied_hour_loses_its_files_and_no_others(tmp_path: Path) -> None:
    rows: list[Row] = [(hour, "http://x.example/", 1, 0, 1) for hour in (FOUR, FIVE, SIX)]
    export_hours(published(*rows), tmp_path, NAME, [FOUR, FIVE, SIX])
    beside = tmp_path / NAME / "click_date=2026-03-01" / "click_hour=05" / "notes.txt"
    beside.touch()
    assert export_hours(published(), tmp_path, NAME, [FIVE]) == []
    hour = f"{NAME}/click_date=2026-03-01/click_hour="
    assert names_in(tmp_path) == [
        f"{hour}04/{NAME}.csv",
        f"{hour}04/{NAME}.parquet",
        f"{hour}05/notes.txt",
        f"{hour}06/{NAME}.csv",
        f"{hour}06/{NAME}.parquet",
    ]


def test_an_hour_that_never_had_rows_is_nothing(tmp_path: Path) -> None:
    assert export_hours(published(), tmp_path, NAME, [FIVE]) == []
    assert names_in(tmp_path) == []


def test_rows_of_other_hours_are_left_alone(tmp_path: Path) -> None:
    late = Hour.of(date(2026, 2, 28), 5)
    table = published((late, "http://x.example/l", 1, 0, 1), (FIVE, "http://x.example/", 1, 0, 1))
    files = export_hours(table, tmp_path, NAME, HourRange(FOUR, SIX))
    assert {file.parent.name for file in files} == {"click_hour=05"}
    assert {file.parent.parent.name for file in files} == {"click_date=2026-03-01"}
    assert len(names_in(tmp_path)) == 2


def test_a_failed_export_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export_hours(published((FIVE, "http://x.example/old", 1, 0, 1)), tmp_path, NAME, [FIVE])
    before = names_in(tmp_path)

    def fail(table: pa.Table, file: BinaryIO) -> None:
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr("spark_jobs.publish.exports.pyarrow.csv.write_csv", fail)
    with pytest.raises(OSError, match="disk full"):
        export_hours(published((FIVE, "http://x.example/new", 1, 0, 1)), tmp_path, NAME, [FIVE])
    assert names_in(tmp_path) == before
    text = next(tmp_path.rglob("*.csv")).read_text(encoding="utf-8")
    assert "old" in text


def test_what_is_being_written_does_not_look_like_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[Path] = []
    write_csv = pyarrow.csv.write_csv

    def write_and_look(table: pa.Table, file: BinaryIO) -> None:
        write_csv(table, file)
        texts.extend(path for path in tmp_path.rglob("*") if ".csv" in path.name)

    monkeypatch.setattr("spark_jobs.publish.exports.pyarrow.csv.write_csv", write_and_look)
    _, text = export_hours(published((FIVE, "http://x.example/", 1, 0, 1)), tmp_path, NAME, [FIVE])
    assert [file.parent for file in texts] == [text.parent]
    assert texts[0].name.startswith(".")


def test_no_cell_can_be_taken_for_a_formula(tmp_path: Path) -> None:
    # URLs are http or https, countries two letters or 'unknown', numbers not negative: nothing is altered.
    urls = published(*((FIVE, url, 10 - n, 0, 0) for n, url in enumerate(HOSTILE_URLS)))
    countries = published((FIVE, "DE", 2, 0, 0), (FIVE, UNKNOWN_COUNTRY, 1, 0, 0), key="country_code")
    files = export_hours(urls, tmp_path, NAME, [FIVE])
    files += export_hours(countries, tmp_path, "published_clicks_by_country_hourly", [FIVE])
    cells = []
    for file in files:
        if file.suffix == ".csv":
            with file.open(encoding="utf-8", newline="") as lines:
                cells += [cell for row in csv.reader(lines) for cell in row]
    assert set(HOSTILE_URLS) | {"DE", UNKNOWN_COUNTRY} < set(cells)
    assert [cell for cell in cells if cell[0] in "=+-@\t\r"] == []


def test_a_table_that_was_not_published_is_refused(tmp_path: Path) -> None:
    table = published((FIVE, "http://x.example/", 1, 0, 1)).append_column("bucket", pa.array([3]))
    with pytest.raises(ValueError, match=r"visitor_count, bucket; expected click_date, click_hour, url, .* or "):
        export_hours(table, tmp_path, NAME, [FIVE])
