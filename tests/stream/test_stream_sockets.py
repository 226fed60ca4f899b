"""From three ports to clicks: lines are received, landed, streamed and finalised, all under the source's name."""

from __future__ import annotations

import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from include.hours import Hour
from include.tables import CLICKS, QUARANTINED_CLICKS, STREAM_BATCHES
from tests.stream.files_lake import FilesLake
from tests.support.ports import claimed_port
from tests.support.received import Client, Home
from tests.support.temporary_lake import SOURCES, click, make_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_lines_of_three_ports_become_clicks_of_their_source(tmp_path: Path, spark: SparkSession) -> None:
    lake = FilesLake(spark, make_settings(tmp_path / "home"))
    ports = [claimed_port(29990, "the receiver") for _ in range(3)]
    lake.settings.sources_file.write_text(
        f"{SOURCES}\n[sources.web.sockets]\nports = {ports}\nroll_seconds = 0.5\n[sources.web.files]\n"
    )
    home = Home(lake.settings, ports)
    now = datetime.now(UTC)
    receiver = home.start()
    try:
        for place, port in enumerate(ports):
            client = Client(port)
            lines = [click(f"{place}-{number}", now.isoformat()) for number in range(100)]
            client.send(*lines, lines[0], b"no click\n", b"x" * 200_000)
            client.socket.shutdown(socket.SHUT_WR)
            client.wait_for(103).close()
    finally:
        receiver.terminate()
        assert receiver.wait(60) == 0

    lake.read_all()

    clicks = lake.rows(CLICKS)
    assert {row["source"] for row in clicks} == {"web"}
    assert sorted(row["event_id"] for row in clicks) == sorted(f"{place}-{n}" for place in range(3) for n in range(100))
    assert all(Hour.of(row["log_date"], row["log_hour"]) >= Hour.of(now.date(), now.hour) for row in clicks)
    assert {row["line"] for row in lake.rows(QUARANTINED_CLICKS)} == {102, 103}
    reasons = sorted((row["file"].partition("-")[0], row["reason"]) for row in lake.rows(QUARANTINED_CLICKS))
    assert reasons == sorted((str(port), reason) for port in ports for reason in ("line_too_long", "not_json"))
    batches = lake.rows(STREAM_BATCHES)
    assert (sum(row["lines"] for row in batches), sum(row["accepted"] for row in batches)) == (309, 300)
