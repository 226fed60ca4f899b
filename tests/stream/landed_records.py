"""The lines of a landing zone as the records of a topic, so that batch and stream are given the same."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from include.hours import Hour
from include.landing import look_at
from tests.stream.kafka_broker import Record
from tests.support.log_files import content_of

_EVENT_ID = re.compile(rb'"event_id"\s*:\s*"([^"]*)"')


def landed_records(landing: Path, source: str, hours: list[Hour], partitions: int) -> Iterator[Record]:
    """Every line, hour by hour, file by file, in its order; all copies of an event go to one partition.

    So does a producer that sends by key, and only so the first copy is read first, however far a stream has come with
    each partition. Record times rise over the whole log hour, later files being later, as the batch orders arrivals.
    """
    for hour in hours:
        lines = [line for file in look_at(landing, source, hour).files for line in lines_of(file)]
        start = int(hour.start.timestamp() * 1000)
        for place, line in enumerate(lines):
            event_id = _EVENT_ID.search(line)
            partition = (zlib.crc32(event_id[1]) if event_id else place) % partitions
            yield Record(partition, start + place * 3_600_000 // len(lines), line)


def lines_of(file: Path) -> list[bytes]:
    """The lines of a plain, gzip or zstd file, without their ends."""
    return content_of(file).removesuffix(b"\n").split(b"\n")
