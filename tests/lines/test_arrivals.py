"""Arrivals: parsed lines in the order of their files, and what was read of each file or topic partition."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from include.hours import Hour
from include.sources import Source
from spark_jobs.lines.arrivals import (
    ARRIVALS,
    LineParser,
    hour_of_arrival,
    read_files,
    read_records,
    rows_of_files,
    unique_ids,
)
from spark_jobs.lines.lookups import Lookups
from spark_jobs.lines.read_lines import LandedFile, ReadFile
from tests.lines.lines import HOUR, TRACKING, arrivals, lines_table
from tests.lines.parsing import ACCESS, REST, WEB, line, log_line

PARSER = LineParser(WEB, TRACKING, Lookups())


def _line(number: int, moment: datetime) -> bytes:
    return json.dumps({"event_id": f"e{number}", "ts": moment.isoformat(), "url": "http://shop.test/"}).encode()


def test_a_click_is_out_of_order_if_a_well_formed_line_before_it_in_its_file_is_newer() -> None:
    rng = random.Random(4)
    tables: list[pa.Table] = []
    expected: list[bool | None] = []
    latest: dict[tuple[Hour, str], datetime] = defaultdict(lambda: datetime.min.replace(tzinfo=UTC))
    # Files go on in later tables, and two hours have files of the same names.
    for _ in range(40):
        place = rng.choice([HOUR, HOUR.plus(-1)]), rng.choice(["a.log", "b.log"])
        raw = []
        for number in range(rng.randrange(1, 30)):
            if rng.random() < 0.2:
                raw.append(b"nonsense")
                expected.append(None)
                continue
            moment = HOUR.start + timedelta(seconds=rng.randrange(-3600, 600))
            raw.append(_line(number, moment))
            expected.append(moment < latest[place])
            latest[place] = max(moment, latest[place])
        tables.append(lines_table(raw, hour=place[0], file=place[1]))
    assert arrivals(WEB, tables)["is_out_of_order"].to_pylist() == expected
    assert {True, False, None} == set(expected)


def test_what_was_read_of_each_file_is_reported_and_ids_are_unique(tmp_path: Path) -> None:
    contents = {"a.log": b"x\r\ny\n", "empty.log": b"", "b.log": _line(1, HOUR.start) + b"\n"}
    files = []
    for number, (name, content) in enumerate(contents.items()):
        (tmp_path / name).write_bytes(content)
        files.append(LandedFile(tmp_path / name, HOUR, number))
    done: list[ReadFile] = []
    table = pa.concat_tables(read_files(files, PARSER, unique_ids, done))
    assert table.schema == ARRIVALS
    assert table["file"].to_pylist() == ["a.log", "a.log", "b.log"]
    assert len(set(table["row_id"].to_pylist())) == 3
    assert table["read"].null_count == 3
    told, length = rows_of_files(done).to_pylist(), len(_line(1, HOUR.start))
    assert [(row["file"], row["log_hour"], row["read"]) for row in told] == [
        ("a.log", 12, {"lines": 2, "bytes": 2, "first_line": 1, "last_line": 2, "damage": None}),
        ("empty.log", 12, {"lines": 0, "bytes": 0, "first_line": None, "last_line": None, "damage": None}),
        ("b.log", 12, {"lines": 1, "bytes": length, "first_line": 1, "last_line": 1, "damage": None}),
    ]
    of_stream = pa.concat_tables(read_files(files, PARSER, hour_of_arrival, []))
    assert set(of_stream["row_id"].to_pylist()) == {int(HOUR.start.timestamp()) * 1_000_000}


def test_what_was_read_of_each_topic_partition_is_reported_last() -> None:
    tables = [
        lines_table([b"x", b"yy"], 7, file="clicks/0"),
        lines_table([b"zzz"], 1, file="clicks/1"),
        lines_table([b"x"], 9, file="clicks/0", hour=HOUR.plus(1)),
        lines_table([b"x"], 10, file="clicks/0"),
    ]
    rows = pa.concat_tables(read_records(tables, PARSER)).to_pylist()
    assert [row["reason"] for row in rows] == ["not_json"] * 5 + [None] * 3
    told = {(row["file"], row["log_hour"]): row["read"] for row in rows[5:]}
    assert told == {
        ("clicks/0", 12): {"lines": 3, "bytes": 4, "first_line": 7, "last_line": 10, "damage": None},
        ("clicks/1", 12): {"lines": 1, "bytes": 3, "first_line": 1, "last_line": 1, "damage": None},
        ("clicks/0", 13): {"lines": 1, "bytes": 1, "first_line": 9, "last_line": 9, "damage": None},
    }
    assert list(read_records([], PARSER)) == []


@pytest.mark.parametrize(("source", "text"), [(WEB, line()), (ACCESS, log_line(rest=REST))])
def test_marks_and_other_encodings_in_records_do_no_harm(source: Source, text: bytes) -> None:
    mark, wide = b"\xef\xbb\xbf", text.decode()
    whole = [text, mark + text, mark * 2 + text, b"\0" + text, bytes(40) + text, text + b"\0", bytes(16) + mark + text]
    whole += [wide.encode("utf-16"), wide.encode("utf-16-le"), wide.encode("utf-16-be"),
              ("\ufeff" + wide).encode("utf-16-be")]  # fmt: skip
    schema = b"\0\0\0\x01\x8f"
    broken = {
        mark: "blank",
        bytes(40): "blank",
        schema + b"\x02\x1chttp://shop.test/": "binary_record",  # Avro
        schema + b"\0\x0a\x1c" + text: "binary_record",  # Protobuf
        schema[:4] + b"a\x02\x1c" + text: "binary_record",
        schema + text: None if source is WEB else "binary_record",
    }
    records = [*whole, *broken]
    rows = pa.concat_tables(read_records([lines_table(records)], LineParser(source, TRACKING, Lookups()))).to_pylist()
    clicks, others = rows[: len(whole)], rows[len(whole) : len(records)]
    assert {row["reason"] for row in clicks} == {None}
    assert len({(row["url"], row["bytes"], row["visitor_id"], row["country_code"]) for row in clicks}) == 1
    assert [row["reason"] for row in others] == [*broken.values()]
    half = wide.encode("utf-16")[:-1]
    rows = pa.concat_tables(read_records([lines_table([half])], LineParser(source, TRACKING, Lookups()))).to_pylist()
    assert rows[0]["reason"] == "not_utf8"
