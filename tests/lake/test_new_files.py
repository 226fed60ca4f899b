"""Rows that tasks write as files of a table, and one commit of them: read back by delta-rs, without Spark."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from hypothesis import given, settings
from hypothesis import strategies as st

from include.stored_rows import arrow_schema
from include.tables import Column, Table
from spark_jobs.lake import new_files
from spark_jobs.lake.data_files import EVERY_FILE, TableVersion
from spark_jobs.lake.new_files import TaskFiles, files_of
from spark_jobs.lake.transactions import NOT_TRIED_AGAIN

TABLE = Table(
    name="things",
    grain="one thing",
    columns=(
        Column("day", "DATE", ""),
        Column("hour", "INT", ""),
        Column("name", "STRING", "", required=False),
        Column("seen_at", "TIMESTAMP", ""),
        Column("sketch", "BINARY", "", required=False),
        Column("parts", "ARRAY<STRING>", "", required=False),
    ),
    key=("name",),
    partitioned_by=("day", "hour"),
    statistics=("day", "name", "seen_at"),
)
SCHEMA = arrow_schema(TABLE, TABLE.column_names)

rows_of = st.lists(
    st.fixed_dictionaries(
        {
            "day": st.dates(date(2026, 2, 27), date(2026, 3, 2)),
            "hour": st.integers(0, 2),
            "name": st.none() | st.text("aé\u0000\U0001f600%/ '\"", max_size=3),
            "seen_at": st.datetimes(datetime(1969, 12, 31), datetime(2026, 3, 2), timezones=st.just(UTC)),
            "sketch": st.none() | st.binary(max_size=4),
            "parts": st.none() | st.lists(st.none() | st.text(max_size=2), max_size=2),
        }
    ),
    max_size=30,
)


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["day"], row["hour"]))


def as_texts(rows: list[dict[str, Any]]) -> list[list[str]]:
    texts = [thing | {"seen_at": thing["seen_at"].isoformat()} for thing in rows]
    return sorted([repr(thing[name]) for name in SCHEMA.names] for thing in texts)


def make(folder: Path) -> TableVersion:
    DeltaTable.create(str(folder), SCHEMA, partition_by=list(TABLE.partitioned_by))
    return newest(folder)


def newest(folder: Path) -> TableVersion:
    return TableVersion.newest(folder, TABLE)


def stored(folder: Path) -> list[dict[str, Any]]:
    return DeltaTable(str(folder)).to_pyarrow_table().to_pylist()


def add(folder: Path, *rows: dict[str, Any]) -> None:
    batch = pa.RecordBatch.from_pylist(in_order(list(rows)), SCHEMA)
    newest(folder).commit(list(files_of([batch], TABLE, folder)), [])


def row(hour: int, name: str | None = "a", day: date = date(2026, 3, 1)) -> dict[str, Any]:
    return {"day": day, "hour": hour, "name": name, "seen_at": datetime(2026, 3, 1, tzinfo=UTC)} | dict.fromkeys(
        ("sketch", "parts")
    )


def of_hour(hour: int) -> pc.Expression:
    return pc.field("partition.hour") == hour


@settings(deadline=None, max_examples=50)
@given(rows_of, st.lists(st.integers(0, 30)), st.sampled_from([1, 100, 1 << 20]))
def test_what_is_read_is_what_was_written_however_it_comes(
    rows: list[dict[str, Any]], cuts: list[int], group_bytes: int
) -> None:
    ordered = in_order(rows)
    places = sorted([0, len(ordered), *(cut for cut in cuts if cut < len(ordered))])
    batches = [pa.RecordBatch.from_pylist(ordered[start:end], SCHEMA) for start, end in pairwise(places)]
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(new_files, "_GROUP_BYTES", group_bytes)
        folder = Path(name) / "things"
        version = make(folder)
        files = list(files_of(batches, TABLE, folder))
        version.commit(files, [])
        assert as_texts(stored(folder)) == as_texts(rows)
        partitions = {(thing["day"], thing["hour"]) for thing in rows}
        assert len(files) == len(partitions)
        for known in newest(folder).files.to_pylist():
            of_file = [
                thing
                for thing in rows
                if (thing["day"], thing["hour"]) == (known["partition.day"], known["partition.hour"])
            ]
            assert known["num_records"] == len(of_file)
            names = [thing["name"] for thing in of_file if thing["name"] is not None]
            assert (known.get("min.name"), known.get("max.name")) == (
                min(names, default=None),
                max(names, default=None),
            )
            moments = [thing["seen_at"] for thing in of_file]
            assert (known["min.seen_at"], known["max.seen_at"]) == (min(moments), max(moments))
            assert known["null_count.name"] == len(of_file) - len(names)


@pytest.mark.parametrize("name", ["Europe/Berlin", "a b%2F", "é:=?#", ".."])
def test_a_text_of_a_partition_is_one_folder_and_its_files_are_removed_again(tmp_path: Path, name: str) -> None:
    table = replace(TABLE, partitioned_by=("name",), statistics=())
    folder = tmp_path / "things"
    DeltaTable.create(str(folder), SCHEMA, partition_by=["name"])
    batch = pa.RecordBatch.from_pylist([row(0, name)], SCHEMA)
    TableVersion.newest(folder, table).commit(list(files_of([batch], table, folder)), [])
    version = TableVersion.newest(folder, table)
    (file,) = version.chosen()
    assert (file.path.parent.parent, file.is_whole, file.partition) == (folder, True, {"name": name})
    assert [thing["name"] for thing in stored(folder)] == [name]
    version.commit([], [file])
    assert stored(folder) == []


def test_one_commit_adds_files_and_removes_those_that_are_chosen(tmp_path: Path) -> None:
    folder = tmp_path / "things"
    make(folder)
    add(folder, row(0), row(1), row(2))
    version = newest(folder)
    batch = pa.RecordBatch.from_pylist([row(1, "b"), row(1, "c")], SCHEMA)
    new = list(files_of([batch], TABLE, folder))
    assert version.not_chosen([file.partition for file in new], of_hour(1)) == []
    version.commit(new, version.chosen(of_hour(1)))
    assert sorted((thing["hour"], thing["name"]) for thing in stored(folder)) == [
        (0, "a"),
        (1, "b"),
        (1, "c"),
        (2, "a"),
    ]
    assert newest(folder).stored.version() == version.stored.version() + 1


def test_rows_of_a_partition_that_is_not_replaced_are_found(tmp_path: Path) -> None:
    version = make(tmp_path / "things")
    partitions = [{"day": "2026-03-01", "hour": "1"}, {"day": "2026-03-01", "hour": "2"}]
    assert version.not_chosen(partitions, of_hour(1)) == [partitions[1]]
    assert version.not_chosen(partitions, of_hour(1) | of_hour(2)) == []
    assert version.not_chosen(partitions, EVERY_FILE) == version.not_chosen([], of_hour(1)) == []


def test_what_another_has_replaced_is_not_replaced_again(tmp_path: Path) -> None:
    folder = tmp_path / "things"
    make(folder)
    add(folder, row(0), row(1))
    slow = newest(folder)
    chosen = slow.chosen(of_hour(0))
    quick = newest(folder)
    quick.commit([], quick.chosen(of_hour(0)))
    with pytest.raises(CommitFailedError):
        slow.commit([], chosen)
    assert [thing["hour"] for thing in stored(folder)] == [1]


def test_what_another_has_only_added_to_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "things"
    make(folder)
    add(folder, row(0), row(1))
    slow = newest(folder)
    add(folder, row(2))
    slow.commit([], slow.chosen(of_hour(0)))
    assert sorted(thing["hour"] for thing in stored(folder)) == [1, 2]


@pytest.mark.parametrize("column", ["seen_at", "hour"])
def test_a_required_column_is_never_null(tmp_path: Path, column: str) -> None:
    batch = pa.RecordBatch.from_pylist([row(0), row(0) | {column: None}], SCHEMA)
    with pytest.raises(ValueError, match=f"a row of things lacks {column}: required by include/tables"):
        list(files_of([batch], TABLE, tmp_path / "things"))


def test_of_two_that_write_an_empty_partition_at_once_one_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "things"
    make(folder)
    new = [
        list(files_of([pa.RecordBatch.from_pylist([row(0, name)], SCHEMA)], TABLE, folder)) for name in ("one", "two")
    ]
    versions = [newest(folder), newest(folder)]
    versions[0].commit(new[0], [], NOT_TRIED_AGAIN)
    with pytest.raises(CommitFailedError):
        versions[1].commit(new[1], [], NOT_TRIED_AGAIN)
    assert [thing["name"] for thing in stored(folder)] == ["one"]


def test_a_row_that_waits_keeps_no_other_rows_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_files, "_GROUP_BYTES", 1 << 21)
    files = TaskFiles(TABLE, tmp_path / "things", most_open=2)
    # Some 1 MB of one hour, which are written soon, and a row of the next.
    rows = [*(row(0, f"{number:01000}") for number in range(1000)), row(1)]
    before = pa.total_allocated_bytes()
    for _ in range(40):
        assert list(files.add(pa.RecordBatch.from_pylist(rows, SCHEMA))) == []
    assert pa.total_allocated_bytes() - before < 10 << 20
    assert [len(file.statistics) > 0 for file in files.end()] == [True, True]
