"""Lakes from which something is erased, an independent search, and what two lakes must have in common."""

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
from backports import zstd

from include.tables import AGGREGATES, CLICKS, DUPLICATE_CLICKS, INGEST_ACCOUNTING, QUARANTINED_CLICKS, STREAM_BATCHES
from spark_jobs.erasure.erase import erase as erase_visitors
from spark_jobs.erasure.erase import plan
from spark_jobs.erasure.requests import Requests
from tests.support.log_files import content_of
from tests.support.temporary_lake import TemporaryLake

#: Of streamed lines: places and what follows from them, sizes, examples, and what is touched.
_OF_LINES = {"file", "line", "is_out_of_order", "out_of_order", "bytes", "click_hours"}
_OF_LINES |= {"sampled_lines", "sampled_fields"}


def landed(lake: TemporaryLake) -> Iterator[Path]:
    return (file for file in lake.settings.landing.rglob("*") if file.is_file() and file.name[0] not in "._")


def busiest_visitors(lake: TemporaryLake, count: int) -> list[str]:
    visitors = Counter(row["visitor_id"] for row in lake.rows(CLICKS) if row["visitor_id"])
    return [visitor for visitor, _ in visitors.most_common(count)]


def lake_without(
    lake: TemporaryLake, home: Path, words: list[str], run_all: Callable[[TemporaryLake], None]
) -> TemporaryLake:
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


def files_with(folder: Path, *words: str) -> list[str]:
    """The files below a folder that have one of these: as grep finds it, decompressed, or in a column of Parquet."""
    options = [argument for word in words for argument in ("-e", word)]
    grep = subprocess.run(["grep", "-rlaF", *options, str(folder)], capture_output=True, text=True, check=False)
    paths = grep.stdout.splitlines()
    for path in folder.rglob("*"):
        if path.suffix == ".parquet":
            text = str(pq.ParquetFile(path).read().to_pydict())
        elif path.suffix in (".gz", ".zst"):
            text = content_of(path).decode(errors="replace")
        else:
            continue
        paths += [str(path)] if any(word in text for word in words) else []
    return paths


def comparable(lake: TemporaryLake) -> dict[str, list[dict[str, Any]]]:
    """All tables but those of what was done when; what is touched stays touched, and files are compressed again."""
    tables = lake.tables()
    for name in ("stream_progress",):
        del tables[name]
    for row in tables[INGEST_ACCOUNTING.name]:
        del row["bytes"], row["click_hours"]
    return tables


def erase(lake: TemporaryLake, requests: Requests, *, dry_run: bool = False, **options: Any) -> list[str]:
    asked = (lake.spark, lake.settings, requests, "Ada", "asked for by letter")
    return plan(*asked).lines if dry_run else erase_visitors(*asked, **options)


def certificate(lake: TemporaryLake) -> dict[str, Any]:
    (file,) = (lake.settings.reports / "erasures").glob("*.json")
    content: dict[str, Any] = json.loads(file.read_text())
    return content


def move_landing_away(lake: TemporaryLake, *hours: str) -> None:
    for hour in hours:
        day, number = hour.split("T")
        shutil.rmtree(lake.settings.landing / "web" / f"log_date={day}" / f"log_hour={number}")


def without_lines(tables: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Where the landing is gone, line numbers are those of the files that were, and examples are not found again."""
    for rows in tables.values():
        for row in rows:
            for name in ("line", "sampled_lines", "sampled_fields"):
                row.pop(name, None)
    return {name: sorted(rows, key=repr) for name, rows in tables.items()}


def of_streams(lake: TemporaryLake) -> dict[str, list[dict[str, Any]]]:
    """The tables of a lake whose clicks came by a stream, without the places of lines."""
    tables = (CLICKS, QUARANTINED_CLICKS, INGEST_ACCOUNTING, *AGGREGATES, *AGGREGATES.values())
    return {
        table.name: sorted(
            ({name: value for name, value in row.items() if name not in _OF_LINES} for row in lake.rows(table)),
            key=repr,
        )
        for table in tables
    }


def batch_sums(lake: TemporaryLake) -> Counter[tuple[int, str]]:
    """What the micro-batches of each log hour add up to."""
    sums: Counter[tuple[int, str]] = Counter()
    for row in lake.rows(STREAM_BATCHES):
        sums.update({(row["log_hour"], name): row[name] for name in ("lines", "accepted", "late")})
    return sums


def but_of_replays(lake: TemporaryLake) -> dict[str, list[dict[str, Any]]]:
    """As ``without_lines``; without what says that there was a replay."""
    tables = {name: rows for name, rows in without_lines(comparable(lake)).items() if not name.startswith("replay")}
    for name in (CLICKS.name, DUPLICATE_CLICKS.name):
        for row in tables[name]:
            del row["replay_id"]
    return {name: sorted(rows, key=repr) for name, rows in tables.items()}
