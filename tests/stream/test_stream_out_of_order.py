"""Clicks that arrive out of order on a stream: their number is known, and no key is blamed for it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from include.job_arguments import JobArguments
from include.log_hours import Hour
from include.tables import OUT_OF_ORDER_KEYS
from tests.jobs.temporary_lake import click
from tests.stream.kafka_broker import Record
from tests.stream.streamed_lake import StreamedLake

HOUR = Hour.parse("2026-03-01T08")


@pytest.mark.slow
def test_streamed_clicks_out_of_order_are_counted_and_not_told_by_key(streamed: StreamedLake) -> None:
    from spark_jobs import find_out_of_order

    seconds = [10 * number for number in range(300)]
    # Two of them come late; all others in the order of their times, though they are not stored so.
    seconds += [5, 15]
    streamed.broker.produce(
        streamed.topic,
        [
            Record(
                0,
                int((HOUR.start + timedelta(seconds=3000 + number)).timestamp() * 1000),
                click(f"e{number}", (HOUR.start + timedelta(seconds=at)).isoformat(), f"http://shop.test/{number % 3}"),
            )
            for number, at in enumerate(seconds)
        ],
    )
    streamed.read_all()
    streamed.run("ingest", str(HOUR))
    arguments = JobArguments.of("web", str(HOUR), str(HOUR.plus(1)))
    (said,) = find_out_of_order.run(streamed.spark, streamed.settings, arguments, key="url")
    assert said.startswith(f"web {arguments.log_hours}, streamed: 2 of 302 clicks older than one before them in ")
    assert streamed.rows(OUT_OF_ORDER_KEYS) == []
