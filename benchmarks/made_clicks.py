"""Clicks by the million: JSON lines of a log hour, made by DuckDB, with what they come to.

In a day there are so many of them that drawing each as ``samples`` does would take longer than all that is measured.
As in a log, lines follow in their time, but for half a second. Of 100 lines one is sent twice; of 2,500 one is broken;
of 20 one is late, by an hour, but for the day's first hour. A visitor has ten clicks.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from backports import zstd

from include.duckdb_sql import closed_connection
from include.hours import Hour
from include.landing import SUCCESS, hour_folder

#: Of what source they are.
SOURCE = "web"
#: What URLs there are: pages, Zipf-distributed; one for each click; the same of 2 KiB.
URLS = {
    "pages": "'page-' || exp((a // 2048) / 9007199254740992.0 * ln(5001))::INTEGER",
    "distinct": "'visit-' || hex(a)",
    "long": "'visit-' || repeat(md5(hex(a)), 62)",
}
_URL = " ".join(f"WHEN '{name}' THEN {page}" for name, page in URLS.items())
_COUNTRIES = "US IN BR ID DE JP GB FR MX VN IT ES PL NG CA EG AU NL".split()
_LINES_OF_A_FILE = 500_000
_BATCH_LINES = 50_000
#: Of the lines with these numbers: ``line``, whether it is late, and whether it counts.
_LINES = f"""
WITH numbered AS (SELECT range AS n, range - (range % 100 = 99)::BIGINT AS id FROM range($first, $end)),
drawn AS (
    SELECT n, id, hash(id) AS a, hash(-id) AS b, id % 20 = 7 AND $may_be_late AS is_late,
        ((id - $first_of_hour) * 3599500 // $lines + hash(-id) % 500)::BIGINT AS ms
    FROM numbered
),
clicks AS (
    SELECT n, is_late, n % 2500 <> 1234 AS is_whole, n = id AS is_first,
        '{{"event_id":"' || hex(a) || '","ts":"' || CASE WHEN is_late THEN $hour_before ELSE $hour END
        || ':' || lpad((ms // 60000)::VARCHAR, 2, '0') || ':' || lpad((ms // 1000 % 60)::VARCHAR, 2, '0')
        || '.' || lpad((ms % 1000)::VARCHAR, 3, '0') || 'Z","visitor_id":"v' || id // 10
        || '","url":"https://shop.example/catalogue/' || CASE $urls {_URL} END
        || CASE WHEN b % 8 = 0 THEN '?utm_source=mail' ELSE '' END
        || '","geo":{{"country":"' || {_COUNTRIES}[(a % {len(_COUNTRIES)})::INTEGER + 1]
        || '"}},"user_agent":"Mozilla/5.0 (X11; Linux x86_64; rv:' || 100 + b % 40 || '.0) Gecko/20100101 Firefox"}}'
        AS line
    FROM drawn
)
SELECT CASE WHEN is_whole THEN line ELSE line[:40] END || chr(10) AS line, is_late, is_whole AND is_first AS counts
FROM clicks ORDER BY n
"""


@dataclass(frozen=True)
class MadeHour:
    """What a log hour has: its lines, their bytes before compression, and clicks by click hour."""

    lines: int
    bytes: int
    clicks: Counter[str]


def land_hours(landing: Path, start: Hour, sizes: Sequence[int], urls: str = "pages", first: int = 0) -> list[MadeHour]:
    """Land so many lines in each of these log hours, in the place of what it has, and close it; by all cores.

    Lines are numbered from ``first`` on, without gaps; ``urls`` is one of ``URLS``.
    """
    firsts = list(accumulate(sizes[:-1], initial=first))
    hours = [start.plus(number) for number in range(len(sizes))]
    with ProcessPoolExecutor(os.cpu_count()) as processes:
        landed = [
            processes.submit(_land_hour, landing, hour, of_hour, lines, urls)
            for hour, of_hour, lines in zip(hours, firsts, sizes, strict=True)
        ]
    return [hour.result() for hour in landed]


def _land_hour(landing: Path, hour: Hour, first: int, lines: int, urls: str) -> MadeHour:
    folder = hour_folder(landing, SOURCE, hour)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SUCCESS).unlink(missing_ok=True)
    clicks, size = Counter[str](), 0
    of_hour = {"hour": str(hour), "hour_before": str(hour.plus(-1)), "may_be_late": hour.start.hour > 0}
    of_hour |= {"first_of_hour": first, "lines": lines, "urls": urls}
    with closed_connection() as connection:
        for start in range(first, first + lines, _LINES_OF_A_FILE):
            span = {"first": start, "end": min(start + _LINES_OF_A_FILE, first + lines)}
            batches = connection.execute(_LINES, of_hour | span).to_arrow_reader(_BATCH_LINES)
            with zstd.open(folder / f"{start - first:09d}.json.zst", "wb", level=1) as file:
                for batch in batches:
                    line, is_late, counts = batch.columns
                    size += file.write("".join(line.to_pylist()).encode())
                    late = int(counts.filter(is_late).cast("int8").to_numpy().sum())
                    clicks[str(hour.plus(-1))] += late
                    clicks[str(hour)] += int(counts.cast("int8").to_numpy().sum()) - late
    (folder / SUCCESS).touch()
    return MadeHour(lines, size, +clicks)
