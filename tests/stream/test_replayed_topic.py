"""Quarantined records of a topic, recovered while its stream runs: they are clicks then, and it goes on as ever."""

from __future__ import annotations

import shutil
from collections import Counter
from datetime import timedelta
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from include.hours import Hour, HourRange
from include.tables import CLICKS, INGEST_ACCOUNTING, PUBLISHED_CLICKS_BY_URL_HOURLY, QUARANTINED_CLICKS, STREAM_BATCHES
from spark_jobs.replay import job as replay_job
from spark_jobs.replay.job import Request
from tests.stream.kafka_broker import Record
from tests.stream.streamed_home import StreamedHome
from tests.support.temporary_lake import click
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from tests.stream.streamed_lake import StreamedLake

pytestmark = pytest.mark.slow

FIRST = Hour.parse("2026-03-01T08")
SECOND, THIRD = FIRST.plus(1), FIRST.plus(2)
CLICKS_OF_AN_HOUR = 40


def record(name: str, hour: Hour, minute: float, *, is_old: bool, partition: int | None = None) -> Record:
    """Of the old app, or of the new one, whose URL is where the first mapping does not look for it."""
    at = hour.start + timedelta(minutes=minute)
    url = f"http://shop.test/{name}"
    line = click(name, at.isoformat(), url, **({"link": url} if is_old else {}))
    where = sum(name.encode()) % 3 if partition is None else partition
    return Record(where, int(at.timestamp() * 1000), line.rstrip(b"\n"))


def nonsense(hour: Hour) -> Record:
    return Record(2, int(hour.start.timestamp() * 1000) + 1, b"nonsense")


def map_url(lake: StreamedLake, known: str, path: str) -> None:
    file = lake.settings.sources_file
    file.write_text(file.read_text(encoding="utf-8").replace(f'url = "{known}"', f'url = "{path}"'), encoding="utf-8")


#: By the records themselves. ``both`` is first in a line of the new app, which comes to the clicks last; ``twice`` is
#: in two lines of the new app.
OLD = {f"o{hour}-{number}" for hour in (FIRST, SECOND) for number in range(CLICKS_OF_AN_HOUR)} | {"both"}
NEW = {f"n{hour}-{number}" for hour in (FIRST, SECOND) for number in range(CLICKS_OF_AN_HOUR)} | {"twice"}


def records() -> list[Record]:
    all_records = []
    for hour in (FIRST, SECOND):
        all_records += [record(f"o{hour}-{number}", hour, number, is_old=True) for number in range(CLICKS_OF_AN_HOUR)]
        all_records += [
            record(f"n{hour}-{number}", hour, number + 0.5, is_old=False) for number in range(CLICKS_OF_AN_HOUR)
        ]
        all_records += [record("twice", hour, 45, is_old=False), nonsense(hour)]
    all_records += [record("both", FIRST, 50, is_old=False), record("both", SECOND, 50, is_old=True)]
    return sorted(all_records, key=lambda item: item.timestamp)


def accounts(lake: StreamedLake) -> dict[int, tuple[int, ...]]:
    """Lines, accepted, duplicates, quarantined, by log hour."""
    names = ("lines", "accepted", "duplicates", "quarantined")
    return {row["log_hour"]: tuple(row[name] for name in names) for row in lake.rows(INGEST_ACCOUNTING)}


def ids(lake: StreamedLake) -> dict[bool, Counter[str]]:
    """The event ids of the clicks, by whether a replay has recovered them."""
    counts: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}
    for row in lake.rows(CLICKS):
        counts[row["replay_id"] is not None][row["event_id"]] += 1
    return counts


def test_quarantined_records_are_recovered_while_the_stream_runs(streamed: StreamedLake, spark_remote: str) -> None:
    lake, broker = streamed, streamed.broker
    lake.configure(max_rows_per_batch=70)
    map_url(lake, "url", "link")
    broker.produce(lake.topic, records())
    lake.read_all()
    lake.run_jobs(str(FIRST), str(THIRD), "ingest", "aggregate", "validate", "publish")
    each, n = CLICKS_OF_AN_HOUR, 2 * CLICKS_OF_AN_HOUR
    assert accounts(lake) == {8: (n + 3, each, 0, each + 3), 9: (n + 3, each + 1, 0, each + 2)}

    map_url(lake, "link", "url")
    stream = StreamedHome(lake.settings, broker, lake.topic).start_stream(spark_remote)
    produced, is_over = [], Event()

    def produce() -> None:
        while not is_over.wait(0.2):
            produced.append(record(f"later-{len(produced)}", THIRD, len(produced) / 100, is_old=False))
            broker.produce(lake.topic, produced[-1:])

    producer = Thread(target=produce)
    try:
        producer.start()
        wait_until(lambda: 10 in {row["log_hour"] for row in lake.rows(CLICKS)}, "the stream reads what comes", 120)
        request = Request("web", HourRange(FIRST, THIRD))
        report = replay_job.replay(lake.spark, lake.settings, request, by="Ada", because="the mapping is fixed")
        is_over.set()
        producer.join()
        everything = len(records()) + len(produced)
        wait_until(lambda: sum(row["lines"] for row in lake.rows(STREAM_BATCHES)) == everything, "all is read", 120)
        assert stream.terminate() == 0, stream.output[-2000:]
    finally:
        is_over.set()
        stream.kill()
    assert report[0].startswith(f"web 2026-03-01T08..2026-03-01T10: {n + 3} quarantined lines recovered")

    expected = {8: (n + 3, n + 1, 1, 1), 9: (n + 3, n + 1, 1, 1)}
    later = Counter(f"later-{number}" for number in range(len(produced)))
    assert accounts(lake) == expected
    assert ids(lake) == {False: Counter(OLD) + later, True: Counter(NEW)}
    assert [row["raw"] for row in lake.rows(QUARANTINED_CLICKS)] == ["nonsense"] * 2
    published = {row["url"].rpartition("/")[2]: row["click_count"] for row in lake.rows(PUBLISHED_CLICKS_BY_URL_HOURLY)}
    assert published == dict.fromkeys(OLD | NEW, 1)

    # A copy of what the stream knows; then the checkpoint is lost: what was replayed does not say how far it has read.
    broker.produce(lake.topic, [record(f"o{FIRST}-0", FIRST, 59, is_old=True), nonsense(FIRST)])
    lake.read_all()
    shutil.rmtree(StreamedHome(lake.settings, broker, lake.topic).checkpoint)
    lake.read_all()
    lake.run("ingest", str(FIRST), str(THIRD.plus(1)))
    lines, accepted, duplicates, quarantined = expected[8]
    expected[8] = (lines + 2, accepted, duplicates + 1, quarantined + 1)
    assert accounts(lake) == expected | {10: (len(produced), len(produced), 0, 0)}
    assert ids(lake) == {False: Counter(OLD) + later, True: Counter(NEW)}
