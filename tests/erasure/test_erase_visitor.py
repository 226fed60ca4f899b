"""Erased from a lake of sample logs: what is left is what a lake has to which the lines had never come."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from backports import zstd

from include.errors import ClickmillError
from include.log_hours import Hour
from include.tables import CLICKS, INGEST_ACCOUNTING
from samples.sample_logs import make_sample
from samples.sample_spec import SampleSpec
from spark_jobs import erase_visitor
from spark_jobs.erasure.requests import Requests
from tests.support.log_files import content_of
from tests.support.temporary_lake import TemporaryLake, assert_same_tables

pytestmark = pytest.mark.spark

SPEC = SampleSpec(start=Hour.parse("2026-03-01T10"), hours=3, clicks_per_hour=1200, seed=7)
START, END = str(SPEC.log_hours.start), str(SPEC.log_hours.end)


def run_all(lake: TemporaryLake) -> None:
    lake.run_jobs(START, END, "ingest", "aggregate", "validate", "publish")


@pytest.fixture(scope="module")
def sample_lake(make_lake: Callable[[str], TemporaryLake]) -> TemporaryLake:
    lake = make_lake("erasure")
    make_sample(SPEC, lake.settings.landing)
    run_all(lake)
    return lake


def landed(lake: TemporaryLake) -> Iterator[Path]:
    return (file for file in lake.settings.landing.rglob("*") if file.is_file() and file.name[0] not in "._")


def busiest_visitors(lake: TemporaryLake, count: int) -> list[str]:
    visitors = Counter(row["visitor_id"] for row in lake.rows(CLICKS) if row["visitor_id"])
    return [visitor for visitor, _ in visitors.most_common(count)]


def lake_without(lake: TemporaryLake, home: Path, *words: str) -> TemporaryLake:
    """A lake that ingested the same logs without the lines that have one of the words."""
    fresh = lake.copy(home)
    for folder in ("lake", "reports", "run"):
        shutil.rmtree(home / folder, ignore_errors=True)
    (home / "quality_index.sqlite").unlink(missing_ok=True)
    for file in landed(fresh):
        lines = content_of(file).splitlines(keepends=True)
        kept = b"".join(line for line in lines if not any(word.encode() in line for word in words))
        content = {".gz": gzip.compress, ".zst": zstd.compress}.get(file.suffix, bytes)(kept)
        file.write_bytes(content)
    run_all(fresh)
    return fresh


def files_with(folder: Path, word: str) -> list[str]:
    """The files below a folder that have a word: as grep finds it, decompressed, or in a column of Parquet."""
    grep = subprocess.run(["grep", "-rlaF", "--", word, str(folder)], capture_output=True, text=True, check=False)
    found = grep.stdout.splitlines()
    for path in folder.rglob("*"):
        if path.suffix == ".parquet":
            texts = (str(row) for row in pq.ParquetFile(path).read().to_pylist())
            found += [str(path)] if any(word in text for text in texts) else []
        elif path.suffix in (".gz", ".zst") and word.encode() in content_of(path):
            found.append(str(path))
    return found


def comparable(lake: TemporaryLake) -> dict[str, list[dict[str, Any]]]:
    """All tables but those of what was done when; what is touched stays touched, and files are compressed again."""
    tables = lake.tables()
    for name in ("audit", "stream_progress"):
        del tables[name]
    for row in tables[INGEST_ACCOUNTING.name]:
        del row["bytes"], row["click_hours"]
    return tables


def erase(lake: TemporaryLake, requests: Requests, **options: Any) -> list[str]:
    return erase_visitor.run(lake.spark, lake.settings, requests, "Ada", "asked for by letter", **options)


def certificate(lake: TemporaryLake) -> dict[str, Any]:
    (file,) = (lake.settings.reports / "erasures").glob("*.json")
    said: dict[str, Any] = json.loads(file.read_text())
    return said


def test_an_erased_visitor_is_as_if_never_come(sample_lake: TemporaryLake, tmp_path: Path) -> None:
    lake = sample_lake.copy(tmp_path / "erased")
    (visitor,) = busiest_visitors(lake, 1)
    clicks = sum(row["visitor_id"] == visitor for row in lake.rows(CLICKS))
    assert clicks > 3
    assert files_with(lake.settings.home, visitor)
    said = erase(lake, Requests.of([visitor]))
    assert files_with(lake.settings.home, visitor) == []
    assert_same_tables(comparable(lake), comparable(lake_without(sample_lake, tmp_path / "fresh", visitor)))
    on_record = certificate(lake)
    assert on_record["state"] == "completed"
    assert on_record["gone"]["clicks"] == clicks == on_record["found"]["clicks"]
    assert visitor not in "\n".join(said)
    with pytest.raises(ClickmillError, match="nothing found"):
        erase(lake, Requests.of([visitor]))
