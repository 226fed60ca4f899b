"""The embedded broker, the stream in the terminal and the stream's DAG, as a person uses them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from include.settings import REPOSITORY
from include.sources import load_sources
from ops.airflow_api import AirflowApi
from ops.broker import start_broker, stop_broker
from ops.home import find_home
from ops.services.programs import BROKER
from ops.services.running import Services
from ops.services.supervisor import Supervisor, end_marked, marked_processes
from ops.stream import MARK, make_topic
from samples.live_clicks import LiveClicks
from tests.support.ports import claimed_port
from tests.support.temporary_lake import SOURCES
from tests.support.waiting import wait_until

DAG_ID = "clicks_stream"
SOURCE = "web_stream"


def rows(services: Services, table: str, source: str = SOURCE) -> list[dict[str, Any]]:
    path = str(services.home / "lake" / table)
    there = DeltaTable.is_deltatable(path)
    all_rows: list[dict[str, Any]] = DeltaTable(path).to_pyarrow_table().to_pylist() if there else []
    return [row for row in all_rows if row["source"] == source]


def shown_stream(services: Services, arguments: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "clickmill", "show-stream", *arguments],
        cwd=REPOSITORY,
        env=os.environ | services.environment() | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture(scope="module")
def shown(services: Services) -> Iterator[subprocess.Popen[str]]:
    """`make stream`'s command in a terminal that is none, told to end by Ctrl-C once it has streamed clicks."""
    process = shown_stream(services, ["--rate", "50"], {})
    try:
        wait_until(lambda: process.poll() is not None or rows(services, "clicks_by_url_live"), "live counts are there")
        process.send_signal(signal.SIGINT)
        process.wait(120)
        yield process
    finally:
        process.kill()
        end_marked(find_home(services.home), 60, MARK)


def test_a_stream_is_shown_until_ctrl_c_which_ends_all_that_it_started(
    services: Services, shown: subprocess.Popen[str]
) -> None:
    assert shown.stdout is not None
    output = shown.stdout.read()
    assert shown.returncode == 0, output
    assert "stream of web_stream" in output
    assert "ending the stream" in output
    home = find_home(services.home)
    assert marked_processes(home, MARK) == []
    states = {program.name: program.state for program in Supervisor(home).states()}
    assert states[BROKER] == "STOPPED"
    assert states["spark-connect"] == "RUNNING", "it ran before"


def test_clicks_over_tcp_are_received_and_shown(services: Services, tmp_path: Path) -> None:
    ports = [claimed_port(29980, "the receiver") for _ in range(2)]
    sources = tmp_path / "sources.toml"
    collector = f"[sources.tcp.sockets]\nports = {ports}\nroll_seconds = 0.5\n[sources.tcp.files]\n"
    sources.write_text(SOURCES.replace("[sources.web", "[sources.tcp") + collector)
    process = shown_stream(services, ["--source", "tcp", "--rate", "50"], {"CLICKMILL_SOURCES": str(sources)})
    try:
        wait_until(lambda: process.poll() is not None or rows(services, "clicks", "tcp"), "clicks are there")
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=120)
    finally:
        process.kill()
        end_marked(find_home(services.home), 60, MARK)
    assert process.returncode == 0, output
    clicks = rows(services, "clicks", "tcp")
    assert {row["file"].partition("-")[0] for row in clicks} == {str(port) for port in ports}
    assert marked_processes(find_home(services.home), MARK) == []


def test_the_dag_catches_up_with_what_is_in_the_topic(services: Services, shown: subprocess.Popen[str]) -> None:
    api = AirflowApi(services)
    api.wait_for_dag(DAG_ID)
    api.unpause(DAG_ID)
    topic = load_sources(find_settings(services))[SOURCE].kafka
    assert topic is not None
    address = start_broker(services.home)
    try:
        make_topic(address, topic)
        lines = LiveClicks(rate=100, seed=3).lines(500, int(time.time() * 1000))
        send(address, topic.topic, lines)
        body = {"dag_run_id": "caught-up", "logical_date": None, "conf": {"source": SOURCE}}
        api.call("POST", f"/api/v2/dags/{DAG_ID}/dagRuns", body)
        path = f"/api/v2/dags/{DAG_ID}/dagRuns/caught-up"
        wait_until(lambda: api.call("GET", path)["state"] in ("success", "failed"), "the topic is read")
        assert api.call("GET", path)["state"] == "success"
        sent = {line for line in lines if b'"event_id"' in line}
        ids = {row["event_id"] for row in rows(services, "clicks")}
        assert len([line for line in sent if line.split(b'"')[3].decode() in ids]) >= len(sent) - len(
            rows(services, "quarantined_clicks")
        )
        batches = rows(services, "stream_batches")
        assert {row["partition"] for row in batches} == set(range(topic.partitions))
        read = {row["partition"]: 0 for row in batches}
        for row in batches:
            read[row["partition"]] = max(read[row["partition"]], row["last_offset"] + 1)
        assert sum(row["lines"] for row in batches) == sum(read.values()), "each record once, from the first on"
        assert len(rows(services, "clicks")) == sum(row["accepted"] for row in batches)
    finally:
        stop_broker(services.home)


def find_settings(services: Services) -> Any:
    from include.settings import Settings

    return Settings.from_environment(services.environment())


def send(address: str, topic: str, lines: list[bytes]) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address})
    for line in lines:
        producer.produce(topic, value=line)
    assert producer.flush(60) == 0
