"""Logs whose files begin with a header, by hour in the landing zone: each file can be read alone."""

from __future__ import annotations

import gzip
import random
from collections import Counter
from pathlib import Path

import pytest

from include.hours import Hour
from include.sources import Source
from spark_jobs.lines.arrivals import LineParser, read_files, unique_ids
from spark_jobs.lines.lookups import Lookups
from spark_jobs.lines.read_lines import LandedFile
from tests.landing.landing_zone import NOW, land, write_log

CSV = Source.model_validate(
    {"name": "csv", "format": "csv", "base_url": "http://shop.test", "fields": {"time": "t", "path": "p"}}
)
W3C = Source.model_validate({"name": "w3c", "format": "w3c", "base_url": "http://shop.test"})
FIELDS = ("#Fields: date time cs-uri-stem sc-status", "#Fields: time date sc-status x-a cs-uri-stem")


def read(landing: Path, source: Source) -> Counter[tuple[Hour, str]]:
    """Reasons and URLs of the landed lines by log hour, each file read by a parser of its own."""
    counts: Counter[tuple[Hour, str]] = Counter()
    for path in (landing / source.name).glob("log_date=*/log_hour=*/*.gz"):
        hour = Hour.parse(f"{path.parent.parent.name[9:]}T{path.parent.name[9:]}")
        parser = LineParser(source, (), Lookups())
        for table in read_files([LandedFile(path, hour)], parser, unique_ids, []):
            counts.update((hour, row["reason"] or row["url"]) for row in table.to_pylist())
    return counts


def clicks(counts: Counter[tuple[Hour, str]]) -> Counter[str]:
    return Counter({outcome: count for (_, outcome), count in counts.items() if outcome.startswith("http")})


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_each_hour_of_a_csv_begins_with_its_header(tmp_path: Path, end: str) -> None:
    lines = ["t,p", *(f"2026-03-01T0{hour}:00:00Z,/{hour}" for hour in (5, 7, 5, 6)), "t,p", "2026-03-01T07:00:00Z,/8"]
    log = write_log(tmp_path / "a.csv", *(f"{line}{end}".encode() for line in lines))
    landed = land(CSV, log, tmp_path / "landing", NOW)
    assert landed is not None
    # What is copied is no line of the log.
    assert {str(hour)[-2:]: count for hour, count in landed.lines.items()} == {"05": 3, "06": 2, "07": 2}
    counts = read(tmp_path / "landing", CSV)
    assert clicks(counts) == {f"http://shop.test/{n}": 2 if n == 5 else 1 for n in (5, 6, 7, 8)}
    headers = {str(hour)[-2:]: count for (hour, outcome), count in counts.items() if outcome == "left_out_header"}
    assert headers == {"05": 1, "06": 2, "07": 1}
    assert set(Counter(outcome for _, outcome in counts)) == {"left_out_header", *clicks(counts)}


def test_a_log_that_grows_is_landed_in_place_of_what_was_landed(tmp_path: Path) -> None:
    header, first, second = b"t,p\n", b"2026-03-01T05:00:00Z,/1\n", b"2026-03-01T06:00:00Z,/2\n"
    for content in ([header, first[:-2]], [header, first], [header, first, second], [header, first]):
        log = write_log(tmp_path / "a.csv", *content)
        land(CSV, log, tmp_path / "landing", NOW)
    assert clicks(read(tmp_path / "landing", CSV)) == {"http://shop.test/1": 1, "http://shop.test/2": 1}
    assert len(list((tmp_path / "landing/csv/.logs").iterdir())) == 1
    rotated = write_log(tmp_path / "a.csv.1.gz", header, first, second)
    assert land(CSV, rotated, tmp_path / "landing", NOW).begins_as == {}  # type: ignore[union-attr]
    assert clicks(read(tmp_path / "landing", CSV)).total() == 2


@pytest.mark.parametrize("source", [CSV, W3C], ids=["csv", "w3c"])
def test_a_log_of_nothing_but_a_header_is_empty(tmp_path: Path, source: Source) -> None:
    log = write_log(tmp_path / "a.log", b"t,p\n" if source is CSV else b"#Version: 1.0\n#Fields: date time cs-uri\n")
    assert land(source, log, tmp_path / "landing", NOW) is None


def test_local_times_within_a_log_stay_so_in_each_hour(tmp_path: Path) -> None:
    local, utc = "#GMT-Offset: -0800", "#GMT-Offset: +0000"
    lines = [FIELDS[0], "2026-03-01 05:30:00 /5 200", "2026-03-01 06:30:00 /6 200", local, FIELDS[1],
             "05:31:00 2026-03-01 200 x /local", FIELDS[0], "2026-03-01 05:32:00 /local 200", utc,
             *(f"2026-03-01 0{hour}:33:00 /{hour} 200" for hour in (5, 6, 7))]  # fmt: skip
    log = write_log(tmp_path / "a.log", *(f"{line}\n".encode() for line in lines))
    land(W3C, log, tmp_path / "landing", NOW)
    counts = Counter({outcome: count for (_, outcome), count in read(tmp_path / "landing", W3C).items()})
    assert counts.pop("left_out_header") > 0
    assert counts == {"bad_time": 2, **{f"http://shop.test/{n}": 1 if n == 7 else 2 for n in (5, 6, 7)}}


def test_w3c_has_in_each_hour_the_header_in_force_where_it_changes(tmp_path: Path) -> None:
    rng = random.Random(7)
    header, lines, expected = 0, ["#Software: x", FIELDS[0]], Counter[str]()
    for number in range(3000):
        if rng.random() < 0.02:
            header = rng.randrange(2)
            lines += ["#Version: 1.0", "#Date: 2026-03-01 05:00:00", FIELDS[header]]
        hour = rng.choice((5, 6, 6, 7, 8))
        url = f"/{hour}/{number % 50}"
        time = f"0{hour}:30:00"
        lines.append(f"2026-03-01 {time} {url} 200" if header == 0 else f"{time} 2026-03-01 404 /x {url}")
        expected[f"http://shop.test{url}"] += 1
    log = write_log(tmp_path / "u_ex.log", *(f"{line}\r\n".encode() for line in lines))
    landed = land(W3C, log, tmp_path / "landing", NOW)
    assert landed is not None
    assert sum(landed.lines.values()) == len(lines)
    counts = read(tmp_path / "landing", W3C)
    assert clicks(counts) == expected
    assert all(f"/{hour.number % 24}/" in outcome for hour, outcome in counts if outcome.startswith("http"))
    assert {outcome for _, outcome in counts} == {"left_out_header", *expected}
    files = (tmp_path / "landing/w3c").glob("log_date=*/log_hour=*/*.gz")
    assert all(gzip.decompress(path.read_bytes()).startswith(b"#") for path in files)
