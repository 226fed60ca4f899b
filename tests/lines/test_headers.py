"""Headers in force: over pieces of any size, several files in one, and a file that goes on in another piece."""

from __future__ import annotations

import csv
import io
import random
from typing import Any

import pyarrow as pa
import pytest

from include.sources import Source
from spark_jobs.landing.file_kinds import kind_of
from spark_jobs.lines import extraction
from spark_jobs.lines.arrivals import LineParser
from spark_jobs.lines.headers import HEADER, IS_HEADER, with_headers
from spark_jobs.lines.lookups import Lookups
from spark_jobs.lines.parse_lines import click_times, parse_lines
from tests.lines.lines import HOUR, TRACKING, lines_table

W3C = Source.model_validate({"name": "w3c", "format": "w3c", "newest_minutes": 120, "base_url": "http://shop.test"})
CSV = Source.model_validate(
    {"name": "csv", "format": "csv", "newest_minutes": 120, "base_url": "http://shop.test", "header": True,
     "fields": {"time": "t", "path": "p", "user_agent": "a"}}
)  # fmt: skip
NAMES = ["date", "time", "cs-uri-stem", "sc-status", "x-a", "x-b"]


def _w3c_file(rng: random.Random, number: int) -> tuple[list[str], list[str]]:
    """Lines of a file, and what each is."""
    lines, expected = [], []
    columns: list[str] | None = None
    for place in range(rng.randrange(40)):
        roll = rng.random()
        if roll < 0.15:
            columns = ["date", "time", "cs-uri-stem", *rng.sample(NAMES[3:], rng.randrange(4))]
            rng.shuffle(columns)
            lines.append(f"#Fields: {' '.join(columns)}")
            expected.append("left_out_header")
        elif roll < 0.2:
            lines.append("#Remark: cs-uri-stem")
            expected.append("left_out_header")
        else:
            cells = {name: "x" for name in NAMES} | {
                "date": "2026-03-01", "time": "12:30:00", "cs-uri-stem": f"/{number}/{place}",
            }  # fmt: skip
            is_broken = rng.random() < 0.1
            lines.append(" ".join(cells[name] for name in columns or NAMES) + (" more" if is_broken else ""))
            url = f"http://shop.test/{number}/{place}"
            expected.append("no_header" if columns is None else "wrong_columns" if is_broken else url)
    return lines, expected


FIELDS, LINE = "#Fields: date time cs-uri-stem", "2026-03-01 12:30:00 /a"
LOCAL, UTC = "#GMT-Offset: +0200", "#GMT-Offset: +0000"


def _outcomes(lines: list[str], source: Source = W3C, pieces_of: int = 100) -> list[str]:
    """The reason of each line that is no header, or the time of its click; by files in pieces, and all in one."""
    raw = [f"{line}\r\n".encode() for line in lines]
    tables = [lines_table(raw[at : at + pieces_of], at + 1) for at in range(0, len(raw), pieces_of)]
    rows = [row for table in with_headers(tables, source) for row in parse_lines(table, source, TRACKING).to_pylist()]
    times = [time for table in with_headers(tables, source) for time in click_times(table, source).to_pylist()]
    for row, time in zip(rows, times, strict=True):
        assert time == (None if row["reason"] else int(row["clicked_at"].timestamp() * 1_000_000))
    return [row["reason"] or f"{row['clicked_at']:%H:%M}" for row in rows if row["reason"] != "left_out_header"]


@pytest.mark.parametrize(
    ("says", "is_local"),
    {
        **dict.fromkeys(
            [LOCAL, "#GMT-Offset: -0800", "#gmt-offset:+05:30", "#GMT-Offset: 2", "#GMT-Offset: 0030"], True
        ),
        **dict.fromkeys(["#GMT-Offset: UTC+2", "#GMT-Offset: CET", "# GMT-Offset : -1", "#Time Format: Local"], True),
        **dict.fromkeys([UTC, "#GMT-Offset: -00:00", "#GMT-Offset: 0", "#GMT-Offset:", "#GMT-Offset: -"], False),
        **dict.fromkeys(
            ["#GMT-Offset: GMT", "#Time Format: UTC", "#GMT-Offset: UTC+0", "#Remark: GMT-Offset: +2"], False
        ),
    }.items(),
)
@pytest.mark.parametrize("pieces_of", [1, 2, 100])
def test_local_times_by_the_header_are_not_taken_for_utc(says: str, is_local: bool, pieces_of: int) -> None:
    expected = ["bad_time" if is_local else "12:30"] * 2
    for header in ([says, FIELDS], [FIELDS, says], ["#Version: 1.0", says, "#Software: x", FIELDS]):
        assert _outcomes([*header, LINE, LINE], pieces_of=pieces_of) == expected
    kind = kind_of("\n".join(["#Version: 1.0", says, FIELDS, LINE]).encode())
    assert (kind is not None) == is_local


@pytest.mark.parametrize("pieces_of", [1, 3, 100])
def test_the_zone_of_a_header_holds_until_the_next_that_says_one(pieces_of: int) -> None:
    lines = [FIELDS, LINE, LOCAL, LINE, "#Version: 1.0", FIELDS, LINE, UTC, FIELDS, LINE, FIELDS, LOCAL, LINE]
    assert _outcomes(lines, pieces_of=pieces_of) == ["12:30", "bad_time", "bad_time", "12:30", "bad_time"]


def test_local_times_are_read_where_the_source_or_the_line_says_the_zone() -> None:
    settings = {"name": "w3c", "format": "w3c", "base_url": "http://shop.test", "newest_minutes": 120}
    local = {"pattern": "%Y-%m-%d %H:%M:%S", "zone": "Africa/Cairo"}
    for formats in (local, ["iso8601", local], [local, "iso8601"]):
        assert _outcomes([LOCAL, FIELDS, LINE], Source.model_validate(
            settings | {"oldest_hours": 9, "fields": {"time_format": formats}})) == ["10:30"]  # fmt: skip
    fields = {"time": "x-time", "time_format": ["iso8601", "epoch_seconds"]}
    times = ["2026-03-01T14:30:00+02:00", "2026-03-01T12:30Z", "1772368200", "2026-03-01T12:30:00", "2026-03-01T12:30"]
    lines = [LOCAL, "#Fields: x-time cs-uri-stem", *(f"{time} /a" for time in times)]
    outcomes = ["12:30"] * 3 + ["bad_time"] * 2
    assert _outcomes(lines, Source.model_validate(settings | {"fields": fields})) == outcomes
    listed = Source.model_validate(settings | {"columns": ["date", "time", "cs-uri-stem"]})
    assert _outcomes([LINE, LOCAL, LINE, UTC, LINE], listed) == ["12:30", "bad_time", "12:30"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("says", ["sep=,", "SEP=,", '"sep=,"'])
@pytest.mark.parametrize("columns", [None, ["t", "p", "a"]])
def test_excels_word_for_the_delimiter_is_no_header(says: str, end: str, columns: list[str] | None) -> None:
    source = Source.model_validate(CSV.model_dump(exclude_none=True) if columns is None else
                                   {"name": "csv", "format": "csv", "base_url": "http://shop.test", "columns": columns,
                                    "header": True, "fields": {"time": "t", "path": "p"}})  # fmt: skip
    raw = [f"{line}{end}".encode() for line in (says, "t,p,a", "2026-03-01T12:30:00Z,/x,b", says)]
    (table,) = with_headers([lines_table(raw, 1)], source)
    rows = parse_lines(table, source, TRACKING).to_pylist()
    assert [row["reason"] or row["url"] for row in rows] == [
        "left_out_header", "left_out_header", "http://shop.test/x", "wrong_columns"]  # fmt: skip


def _csv_file(rng: random.Random, number: int) -> tuple[list[str], list[str]]:
    columns = rng.sample(["t", "p", "a", "b", "c"], 5)
    if rng.random() < 0.2:
        columns.remove("t")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    expected = []
    for place in range(rng.randrange(30)):
        if place == 0 or rng.random() < 0.05:
            writer.writerow(columns)
            expected.append("left_out_header" if "t" in columns else "no_header")
        else:
            agent = "".join(rng.choices([",", '"', " ", "a", "é", "|"], k=rng.randrange(6)))
            cells = {"t": "2026-03-01T12:30:00Z", "p": f"/{number}/{place}", "a": agent, "b": "", "c": "-"}
            writer.writerow([cells[name] for name in columns])
            expected.append(f"http://shop.test/{number}/{place}" if "t" in columns else "no_header")
    return text.getvalue().splitlines(), expected


@pytest.mark.parametrize("source", [W3C, CSV], ids=["w3c", "csv"])
def test_headers_go_on_over_pieces_and_end_with_their_file(source: Source) -> None:
    rng = random.Random(11)
    tables, expected = [], []
    for number in range(25):
        lines, outcomes = (_w3c_file if source is W3C else _csv_file)(rng, number)
        hour = HOUR.plus(-rng.randrange(2))
        start = 0
        while start < len(lines):  # pieces that begin in the middle of a file
            end = start + rng.randrange(1, 30)
            raw = [f"{line}\n".encode() for line in lines[start:end]]
            tables.append(lines_table(raw, start + 1, file=f"{number % 7}.log", hour=hour))
            start = end
        expected += outcomes
    pieces: list[pa.Table] = []
    while tables:  # several files in one piece
        count = rng.randrange(1, 6)
        pieces.append(pa.concat_tables(tables[:count]))
        tables = tables[count:]
    parser = LineParser(source, TRACKING, Lookups())
    rows: list[dict[str, Any]] = []
    for piece in with_headers(pieces, source):
        rows += parser._parsed(piece).to_pylist()
    assert [row["reason"] or row["url"] for row in rows] == expected
    together = pa.concat_tables(parser.arrivals(pieces)).to_pylist()
    assert [row["reason"] or row["url"] for row in together] == expected
    assert {"left_out_header", "no_header"} < set(expected)
    assert all(row["raw"] is None for row in rows if row["reason"] == "left_out_header")


def test_files_without_headers_are_as_they_were() -> None:
    source = Source.model_validate(CSV.model_dump(exclude={"delimited"}) | {
        "fields": {"time": "t", "path": "p"}, "columns": ["t", "p"]})  # fmt: skip
    table = lines_table([b"x"])
    (same,) = with_headers([table], source)
    assert same.schema == table.schema
    (empty,) = with_headers([lines_table([])], CSV)
    assert {HEADER, IS_HEADER} < set(empty.column_names)
    assert LineParser(CSV, TRACKING, Lookups())._parsed(empty).num_rows == 0


def test_a_hundred_thousand_small_files_take_one_query_a_distinct_header(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    lines = [b"#Fields: date time cs-uri-stem\n", b"2026-03-01 12:30:00 /a\n"]
    tables = [lines_table(lines, 1, file=f"{number}.log") for number in range(2000)]
    run_on_lines = extraction.run_on_lines
    monkeypatch.setattr(extraction, "run_on_lines", lambda sql, lines: asked.append(sql) or run_on_lines(sql, lines))
    table = pa.concat_tables(LineParser(W3C, TRACKING, Lookups()).arrivals(tables))
    assert table["url"].drop_null().to_pylist() == ["http://shop.test/a"] * 2000
    assert len(asked) == 1
