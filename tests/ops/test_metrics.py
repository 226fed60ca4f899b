"""What Prometheus reads: the state of a lake as numbers, by a real process and Prometheus's own parser of its text."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from deltalake import write_deltalake
from prometheus_client.parser import text_string_to_metric_families

from include.hours import Hour
from include.landing import SUCCESS, hour_folder
from include.locks import locks_of
from include.settings import REPOSITORY, Settings
from include.storage import Entry, find
from include.streams.signs_of_life import say_alive
from include.tables import INGEST_ACCOUNTING, STREAM_BATCHES
from ops.metrics import ClickmillMetrics
from spark_jobs.lake.declared import as_arrow
from tests.stream.streamed_source import streamed_source
from tests.support.ports import claimed_port
from tests.support.quality_rows import append, event

NOW = datetime.now(UTC)
#: Two hours ago, so that it is over.
NEWEST = Hour.containing(NOW).plus(-2)


@contextmanager
def served(settings: Settings) -> Iterator[str]:
    """The address of the metrics of a home."""
    port = claimed_port(19464, "metrics")
    environment = os.environ | {
        "CLICKMILL_HOME": str(settings.home),
        "CLICKMILL_SOURCES": str(settings.sources_file),
        "CLICKMILL_METRICS_PORT": str(port),
    }
    command = [sys.executable, "-m", "ops.metrics"]
    with subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == f"metrics at http://127.0.0.1:{port}/metrics\n"
            yield f"http://127.0.0.1:{port}/metrics"
        finally:
            process.terminate()
            assert process.wait(30) == 0


def read(address: str) -> dict[str, dict[str, float]]:
    """By name, the values by source, service or lock."""
    values: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(httpx.get(address, timeout=60).raise_for_status().text):
        values[family.name] = {
            "".join(value for label, value in sample.labels.items() if label != "host"): sample.value
            for sample in family.samples
        }
    return values


def land(settings: Settings, source: str, *hours: Hour) -> None:
    for hour in hours:
        folder = hour_folder(settings.landing, source, hour)
        folder.mkdir(parents=True)
        (folder / SUCCESS).touch()


def test_metrics_say_what_is_in_the_lake_now(settings: Settings) -> None:
    with served(settings) as address:
        assert read(address)["clickmill_newest_hour_end_seconds"] == {"web": 0}
    land(settings, "web", NEWEST.plus(-1), NEWEST)
    append(settings.lake, [event(str(NEWEST.plus(-4)), "published"), event(str(NEWEST.plus(-3)), "held", "a check")])
    append(settings.lake, [event(str(NEWEST.plus(-2)), "held", "a check"), event(str(NEWEST), "dropped")])
    with served(settings) as address:
        metrics = read(address)
        assert metrics["clickmill_held_hours"] == {"": 2}
        assert metrics["clickmill_unpublished_hours"] == {"web": 2}, "access is not scheduled"
        assert metrics["clickmill_newest_hour_end_seconds"] == {"web": NEWEST.end.timestamp()}
        assert metrics["clickmill_newest_published_end_seconds"] == {"": NEWEST.plus(-4).end.timestamp()}
        assert metrics["clickmill_service_unwell"] == {"all": 1}
        assert metrics["clickmill_lock_held"] == {}
        assert metrics["clickmill_stream_lag_records"] == {}
        # Asked again, it looks again.
        decided = event(str(NEWEST.plus(-2)), "published", at=NOW, run_id="run-2")
        append(settings.lake, [decided])
        land(settings, "access", NEWEST)
        land(settings, "web", NEWEST.plus(-9))
        with locks_of(settings).held("spark-server"):
            metrics = read(address)
        assert metrics["clickmill_held_hours"] == {"": 1}
        assert metrics["clickmill_newest_published_end_seconds"] == {"": NEWEST.plus(-2).end.timestamp()}
        assert metrics["clickmill_unpublished_hours"] == {"web": 3}
        assert metrics["clickmill_lock_held"] == {"spark-server": 1}
        assert metrics["clickmill_late_files"] == {"web": 0}
        hour = {"source": "web", "log_date": NEWEST.day, "log_hour": NEWEST.hour, "click_hours": [], "landed_files": []}
        account = dict.fromkeys(INGEST_ACCOUNTING.column_names) | hour | {"ingested_at": NOW}
        write_deltalake(settings.lake / INGEST_ACCOUNTING.name, as_arrow(INGEST_ACCOUNTING, [account]))
        for name in ("a.json", "b.json.gz", ".c.json"):
            (hour_folder(settings.landing, "web", NEWEST) / name).write_text("{}")
        assert read(address)["clickmill_late_files"] == {"web": 2}


def test_a_scrape_lists_a_sources_hours_once(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    land(settings, "web", NEWEST)
    listed: list[Path] = []

    def listing(folder: Path, pattern: str) -> Iterable[Entry]:
        listed.append(folder)
        return find(folder, pattern)

    monkeypatch.setattr("include.landing.find", listing)
    metrics = {
        family.name: family.samples[0].value for family in ClickmillMetrics(settings).collect() if family.samples
    }
    assert metrics["clickmill_newest_hour_end_seconds"] == NEWEST.end.timestamp()
    assert metrics["clickmill_unpublished_hours"] == 1
    assert listed == [settings.landing / "web"]


def test_the_hour_that_a_stream_is_in_is_its_newest_and_not_yet_to_be_published(settings: Settings) -> None:
    settings.sources_file.write_text(streamed_source("kafka", {"topic": "clicks"}), encoding="utf-8")
    running = Hour.containing(datetime.now(UTC)).plus(1)
    types = {"STRING": "", "DATE": running.day, "TIMESTAMP": NOW, "MAP<STRING, BIGINT>": {}}
    for hour in (NEWEST, running):
        values = {
            column.name: [] if "ARRAY" in column.type else types.get(column.type, 1)
            for column in STREAM_BATCHES.columns
        }
        row = values | {"source": "web", "log_date": hour.day, "log_hour": hour.hour}
        folder = str(settings.lake / STREAM_BATCHES.name)
        write_deltalake(folder, as_arrow(STREAM_BATCHES, [row]), mode="append")
    with served(settings) as address:
        metrics = read(address)
    assert metrics["clickmill_newest_hour_end_seconds"] == {"web": running.end.timestamp()}
    assert metrics["clickmill_unpublished_hours"] == {"web": 1}


@pytest.mark.parametrize("run", ["supervised", "catch_up"])
def test_of_a_stream_lag_and_silence(settings: Settings, run: str) -> None:
    declared = streamed_source("kafka", {"topic": "clicks", "run": run})
    settings.sources_file.write_text(declared, encoding="utf-8")
    with served(settings) as address:
        metrics = read(address)
        assert (metrics["clickmill_stream_lag_records"], metrics["clickmill_stream_silent_seconds"]) == ({}, {})
        began = datetime.now(UTC)
        say_alive(settings, "web", 42)
        metrics = read(address)
        ended = datetime.now(UTC)
    assert metrics["clickmill_stream_lag_records"] == {"web": 42}
    silent = metrics["clickmill_stream_silent_seconds"]
    assert silent.keys() == ({"web"} if run == "supervised" else set())
    assert all(0 <= seconds <= (ended - began).total_seconds() for seconds in silent.values())


def test_what_cannot_be_read_is_no_answer(settings: Settings) -> None:
    with served(settings) as address:
        settings.sources_file.write_text("no TOML", encoding="utf-8")
        answer = httpx.get(address, timeout=60)
        assert answer.status_code == 500
        assert "clickmill" not in answer.text


@pytest.mark.parametrize("port", ["no port", "0", "65536"])
def test_a_wrong_port_is_one_line(port: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ops.metrics"], cwd=REPOSITORY, env=os.environ | {"CLICKMILL_METRICS_PORT": port},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == f"metrics: CLICKMILL_METRICS_PORT={port!r}: expected a port, such as 9464\n"


def test_rules_and_dashboard_name_metrics_that_there_are(settings: Settings) -> None:
    with served(settings) as address:
        names = set(re.findall(r"^# TYPE (\w+)", httpx.get(address, timeout=60).text, re.MULTILINE))
    # Without any publication, the one of the newest is not there.
    names.add("clickmill_newest_published_end_seconds")
    rules = (REPOSITORY / "config/prometheus/alerts.yml").read_text(encoding="utf-8")
    board = json.loads((REPOSITORY / "config/grafana/running.json").read_text(encoding="utf-8"))
    asked = rules + " " + " ".join(target["expr"] for panel in board["panels"] for target in panel["targets"])
    assert set(re.findall(r"clickmill_\w+", asked)) == names
