"""Which arrivals are decided on: what plain Python finds in the same files, however they are shared over tasks."""

from __future__ import annotations

import random
import weakref
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from include.hours import Hour, HourRange
from spark_jobs.ids import repeated_ids
from spark_jobs.ids.duplicates import CANDIDATES, DECIDED, decide_duplicates
from spark_jobs.ids.hash_files import SortedHashes
from spark_jobs.ids.repeated_ids import ArrivalFile, _paths, _ranges, _Search, changed_hours, count_repeated
from spark_jobs.lines.arrivals import ARRIVALS
from spark_jobs.lines.columns import table_of

INGESTED = range(100, 103)
IDS = [*(f"e{number}" for number in range(300)), "", "x'y", "e\u0301", "e", "\U0001f600" * 50]


class Arrival(NamedTuple):
    """A row of ``CANDIDATES``; or of a click without an id."""

    event_id: str | None
    hour_number: int
    file: str
    line: int
    row_id: int | None
    first_hour: int | None


def _day(hour_number: int) -> date:
    return date(1970, 1, 1) + timedelta(hours=hour_number)


def _staged(path: Path, arrivals: Sequence[Arrival]) -> ArrivalFile:
    """As the workers stage arrivals, with lines in between that are none, or have no id."""
    kept = [a for arrival in arrivals for a in (arrival, arrival._replace(event_id="e1"), None)]
    rows = [a or arrivals[0] for a in kept]
    columns = {
        "event_id": pa.array([a and a.event_id for a in kept], pa.string()),
        "reason": pa.array([None if number % 3 != 1 else "bad_url" for number in range(len(kept))], pa.string()),
        "log_date": pa.array([_day(a.hour_number) for a in rows], pa.date32()),
        "log_hour": pa.array([a.hour_number % 24 for a in rows], pa.int32()),
        "file": pa.array([a.file for a in rows]),
        "line": pa.array([a.line for a in rows]),
        "row_id": pa.array([a.row_id for a in rows]),
    }
    parquet.write_table(table_of(ARRIVALS, columns, len(kept)), path, compression="lz4")
    return ArrivalFile.staged(path)


def _decision(folder: Path) -> _Search:
    decide = partial(decide_duplicates, ingested=INGESTED, lateness_hours=3)
    return _Search(folder, INGESTED, decide, DECIDED)


def _stored(path: Path, arrivals: Sequence[Arrival], hour: int, are_duplicates: bool) -> ArrivalFile:
    columns: dict[str, Any] = {name: [getattr(a, name) for a in arrivals] for name in ("event_id", "file", "line")}
    if are_duplicates:
        first = [a.first_hour or 0 for a in arrivals]
        columns["first_log_date"] = pa.array(map(_day, first), pa.date32())
        columns["first_log_hour"] = pa.array([hour % 24 for hour in first], pa.int32())
    parquet.write_table(pa.table(columns), path)
    return ArrivalFile(path, path.stat().st_size, hour, are_duplicates)


def _drawn(rng: random.Random, folder: Path) -> tuple[list[ArrivalFile], list[Arrival]]:
    """Files of each kind, and all of their arrivals."""
    files, everything = [], []
    for number in range(rng.randrange(5)):
        arrived = [
            Arrival(rng.choice(IDS), rng.choice(INGESTED), f"f{number}", line, number << 33 | line, None)
            for line in range(rng.randrange(1, 40))
        ]
        files.append(_staged(folder / f"a {number} [x].parquet", arrived))
        everything += arrived
    for number in range(rng.randrange(6)):
        hour = rng.choice([*range(95, 100), *range(103, 108)])
        are_duplicates = rng.random() < 0.5
        first = [rng.randrange(94, hour + 1) if are_duplicates else hour for _ in range(rng.randrange(1, 30))]
        stored = [Arrival(rng.choice(IDS), hour, f"s{number}", line, None, of) for line, of in enumerate(first)]
        files.append(_stored(folder / f"s{number}.parquet", stored, hour, are_duplicates))
        everything += stored
    return files, everything


def _repeated(everything: Sequence[Arrival]) -> Counter[Arrival]:
    arrived = Counter(a.event_id for a in everything if a.row_id is not None)
    stored = Counter(a.event_id for a in everything if a.row_id is None)
    ids = {event_id for event_id, times in arrived.items() if times > 1 or event_id in stored}
    ids |= {a.event_id for a in everything if a.row_id is None and a.first_hour in INGESTED}
    return Counter(a for a in everything if a.event_id in ids)


def _table(arrivals: Iterable[Arrival]) -> pa.Table:
    return pa.Table.from_pylist([arrival._asdict() for arrival in arrivals], CANDIDATES)


def _rows(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*table.to_pydict().values(), strict=True))


def _read(paths: Sequence[str], schema: pa.Schema) -> Counter[tuple[Any, ...]]:
    tables = [parquet.read_table(path) for path in paths]
    assert {table.schema for table in tables} <= {schema}
    return _rows(pa.concat_tables([schema.empty_table(), *tables]))


@pytest.mark.parametrize("seed", range(30))
def test_ids_that_come_again_are_found_and_decided(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    files, everything = _drawn(rng, tmp_path)
    search = _decision(tmp_path)
    repeated = _table(_repeated(everything).elements())
    decided = decide_duplicates(repeated, ingested=INGESTED, lateness_hours=3)
    if files:
        assert _read(_paths(search.whole(files))["decided"], DECIDED) == _rows(decided)

    monkeypatch.setattr(repeated_ids, "_RANGE_HASHES", rng.choice([3, 20, 1000]))
    rng.shuffle(files)
    shares = [files[:3], files[3:]]
    hashes = _paths([row for share in shares for row in search.hash_ids(share)])
    repeated_paths = _paths([row for share in search.compared(hashes) for row in search.compare(share)])["repeated"]
    rows = _paths([row for share in shares if repeated_paths for row in search.select((share, repeated_paths))])["rows"]
    assert _read(rows, CANDIDATES) == _rows(repeated)
    paths = _paths([row for share in search.decided(rows) for row in search.decide(share)])["decided"]
    assert _read(paths, DECIDED) == _rows(decided)
    changed = {hour for hour in decided["hour_number"].to_pylist() if hour is not None}
    assert changed_hours(list(map(Path, paths))) == sorted(changed)


def test_ids_of_one_hash_are_all_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_ids, "_HASH", "hash(length(event_id))")
    search = _decision(tmp_path)
    arrived = [Arrival(event_id, 100, "f", line, line, None) for line, event_id in enumerate(["a", "b", "long"])]
    files = [_staged(tmp_path / "a.parquet", arrived)]
    (every,) = _ranges(0)
    repeated_paths = _paths(search.compare((every, _paths(search.hash_ids(files)))))["repeated"]
    rows = _read(_paths(search.select((files, repeated_paths)))["rows"], CANDIDATES)
    assert {row[0] for row in rows} == {"a", "b"}
    assert search.whole(files) == []


def test_stored_hashes_are_held_a_file_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a day of lateness there are many files, mapped from a disk or whole in memory from an object store."""
    held: list[weakref.ref[Any]] = []
    most = 0

    def read(file: Path) -> SortedHashes:
        nonlocal most
        hashes = SortedHashes((np.arange(3, dtype=np.uint64),))
        if file.name.startswith("stored"):
            held.append(weakref.ref(hashes.hashes))
            most = max(most, sum(of_file() is not None for of_file in held))
        return hashes

    monkeypatch.setattr(SortedHashes, "read", read)
    paths = {"arrived": ["arrived"], "stored": [f"stored {n}" for n in range(9)], "duplicates of ingested": []}
    (every,) = _ranges(0)
    assert _decision(tmp_path).compare((every, paths))
    # The one that is looked at, and the next one.
    assert most <= 2


#: Of a check, and how many hours before it an id must not have come.
CHECKED, LATENESS = HourRange(Hour.of_number(INGESTED.start), Hour.of_number(INGESTED.stop)), 3


def _checked(folder: Path, rng: random.Random) -> tuple[list[ArrivalFile], Counter[int]]:
    """Files of clicks around these hours, and what plain Python finds to come again in them."""
    arrivals = [Arrival(rng.choice(IDS), rng.randrange(97, 103), "f", line, None, None) for line in range(300)]
    files = []
    for number in range(12):
        hour = 97 + number % 6
        of_file = [arrival for arrival in arrivals[number // 6 :: 2] if arrival.hour_number == hour]
        # Clicks of a source that had no ids once.
        stored = _stored(folder / f"{number}.parquet", [*of_file, Arrival(None, hour, "f", 0, None, None)], hour, False)
        files.append(replace(stored, is_new=hour in INGESTED, may_be_damaged=True))
    again, last = Counter[int](), dict[str, int]()
    for arrival in sorted(arrivals, key=lambda a: a.hour_number):
        before = last.get(arrival.event_id)
        if before is not None and arrival.hour_number - before <= LATENESS and arrival.hour_number in INGESTED:
            again[arrival.hour_number] += 1
        last[arrival.event_id] = arrival.hour_number
    return files, again


def _counts(spark: SparkSession | None, files: Sequence[ArrivalFile], folder: Path) -> Counter[int]:
    return count_repeated(spark, files, CHECKED, LATENESS, folder)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(10))
def test_ids_that_come_again_within_the_lateness_are_counted(seed: int, tmp_path: Path) -> None:
    files, again = _checked(tmp_path, random.Random(seed))
    assert again
    # Few files are read without Spark.
    assert _counts(None, files, tmp_path) == again
    assert _counts(None, [], tmp_path) == Counter()


def test_a_damaged_file_is_read_over_where_it_may_be_damaged(tmp_path: Path) -> None:
    (tmp_path / "alone").mkdir()
    files, again = _checked(tmp_path / "alone", random.Random(1))
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(b"PAR1" + bytes(5000) + b"PAR1")
    further = replace(files[0], path=damaged, size_bytes=5008)
    gone = replace(files[0], path=tmp_path / "gone.parquet")
    assert _counts(None, [*files, further, gone], tmp_path) == again
    with pytest.raises(OSError, match="thrift"):
        _counts(None, [*files, replace(further, may_be_damaged=False)], tmp_path)


@pytest.mark.spark
@pytest.mark.servers
def test_many_ids_are_counted_by_tasks(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_ids, "_TASK_BYTES", 20_000)
    monkeypatch.setattr(repeated_ids, "_RANGE_HASHES", 40)
    files, again = _checked(tmp_path, random.Random(5))
    assert len(repeated_ids.share_files(files, lambda file: file.size_bytes, 20_000)) > 1
    assert _counts(spark, files, tmp_path) == again
