"""The lines of a landing zone as the records of a topic, so that batch and stream are given the same."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from pathlib import Path

import zstandard

from include.landing import look_at
from include.log_hours import Hour
from tests.stream.kafka_broker import Record


def landed_records(landing: Path, source: str, hours: list[Hour], partitions: int) -> Iterator[Record]:
    """Every line, hour by hour, file by file, in its order; a file's records go to one partition.

    Record times rise over the whole log hour, later files being later, as the batch orders arrivals.
    """
    for hour in hours:
        lines = [
            (number % partitions, line)
            for number, file in enumerate(look_at(landing, source, hour).files)
            for line in lines_of(file)
        ]
        start = int(hour.start.timestamp() * 1000)
        for place, (partition, line) in enumerate(lines):
            yield Record(partition, start + place * 3_600_000 // len(lines), line)


def lines_of(file: Path) -> list[bytes]:
    """The lines of a plain, gzip or zstd file, without their ends."""
    content = file.read_bytes()
    if file.suffix == ".gz":
        content = gzip.decompress(content)
    elif file.suffix == ".zst":
        content = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(content), read_across_frames=True).read()
    return content.removesuffix(b"\n").split(b"\n")
