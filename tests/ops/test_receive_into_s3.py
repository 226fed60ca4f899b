"""The receiver with a landing zone in a real S3 server: what it acknowledges gets there once, whatever is killed."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import psycopg2
import pytest

from include.hours import Hour
from include.landing import SUCCESS, closed_hours, hour_folder, look_at
from include.locks import locks_of
from include.settings import REPOSITORY
from include.storage import find, place
from ops.receive import is_received
from tests.support.ports import claimed_port
from tests.support.postgres_server import PostgresServer, postgres_server
from tests.support.received import PATIENCE, Client, Home
from tests.support.s3_server import S3Server
from tests.support.temporary_lake import SOURCES, make_settings
from tests.support.waiting import wait_until

HOUR = Hour.parse("2026-03-01T08")

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="module")
def locks(postgres: PostgresServer) -> str:
    return postgres.make_database("locks")


@pytest.fixture
def home(s3: S3Server, locks: str, tmp_path: Path) -> Home:
    data = place(s3.make_bucket(f"received-{uuid4().hex[:8]}"))
    settings = replace(make_settings(tmp_path / "home"), data_folder=data, locks_database=locks)
    ports = [claimed_port(29990, "the receiver") for _ in range(2)]
    sockets = f"[sources.web.sockets]\nports = {ports}\nroll_seconds = 0.5\n"
    settings.sources_file.write_text(SOURCES + sockets, encoding="utf-8")
    return Home(settings, ports)


def landed(home: Home) -> list[bytes]:
    """All lines in the store."""
    return [
        line
        for file in find(home.settings.landing / "web", "log_date=*/log_hour=*/*.log")
        for line in file.path.read_bytes().splitlines()
    ]


@pytest.mark.slow
def test_what_was_acknowledged_is_there_once_whenever_the_receiver_is_killed(home: Home) -> None:
    dice, acknowledged = random.Random(3), 0
    for _ in range(4):
        receiver = home.start()
        client = Client(home.ports[0])
        for _ in range(dice.randint(5, 20)):
            client.send(*(f"{acknowledged + number}\n".encode() for number in range(100)))
            client.wait_for(client.acknowledged + 100)
            acknowledged += 100
            time.sleep(dice.uniform(0, 0.2))
        receiver.kill()
        receiver.wait()
        client.close()
    receiver = home.start()
    Client(home.ports[0]).close()
    receiver.terminate()
    assert receiver.wait(PATIENCE) == 0

    assert sorted(map(int, landed(home))) == list(range(acknowledged))
    assert not list(home.settings.received.rglob("*.log*"))


def test_an_hour_is_closed_in_the_store_after_all_of_its_files(home: Home) -> None:
    now = [HOUR.end - timedelta(seconds=1)]
    with home.running(clock=lambda: now[0]):
        clients = [Client(port) for port in home.ports]
        for client in clients:
            client.send(b"a\n")
            client.wait_for(1)
        assert closed_hours(home.settings.landing, "web") == {}
        now[0] = HOUR.end
        wait_until(lambda: HOUR in closed_hours(home.settings.landing, "web"), "the hour is closed")
        landed_hour = look_at(home.settings.landing, "web", HOUR)
        assert [file.name for file in landed_hour.files] == [
            f"{port}-000000000000001.log" for port in sorted(home.ports)
        ]
        clients[0].send(b"b\n")
        assert clients[0].wait_for(2).last_id == 2
        for client in clients:
            client.close()
    # What comes at the end is there, and its hour goes on.
    assert sorted(landed(home)) == [b"a", b"a", b"b"]
    assert list(closed_hours(home.settings.landing, "web")) == [HOUR]
    with home.running(clock=lambda: HOUR.plus(2).start):
        wait_until(lambda: HOUR.plus(1) in closed_hours(home.settings.landing, "web"), "by the next start")
    assert not hour_folder(home.settings.received, "web", HOUR.plus(1)).exists()


def test_a_store_that_is_away_keeps_no_client_waiting(
    home: Home, s3: S3Server, capsys: pytest.CaptureFixture[str]
) -> None:
    bucket = f"later-{uuid4().hex[:8]}"
    away = Home(replace(home.settings, data_folder=place(f"s3://{bucket}")), home.ports)
    with away.running():
        client = Client(away.ports[0])
        client.send(b"a\n")
        client.wait_for(1)
        message = wait_until(lambda: capsys.readouterr().out.partition("refuses")[2], "that is said", PATIENCE)
        assert "what was acknowledged waits on this disk" in message
        s3.make_bucket(bucket)
        wait_until(lambda: landed(away) == [b"a"], "it is there")
        client.close()
    assert f"the landing zone s3://{bucket}/landing takes lines again" in capsys.readouterr().out


def test_of_two_machines_one_receives_a_source(home: Home, tmp_path: Path) -> None:
    receiver = home.start()
    client = Client(home.ports[0])
    client.send(b"a\n")
    client.wait_for(1)
    wait_until(lambda: landed(home) == [b"a"], "it has the source")
    assert is_received(home.settings, "web")
    other = make_settings(tmp_path / "other")
    port = claimed_port(29990, "the receiver")
    other.sources_file.write_text(f"{SOURCES}[sources.web.sockets]\nports = [{port}]\n", encoding="utf-8")
    second = Home(
        replace(other, data_folder=home.settings.data_folder, locks_database=home.settings.locks_database), [port]
    )
    refused = subprocess.run(
        second.command, env=second.environment, cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE
    )
    assert refused.returncode != 0
    assert "web is received already, the lock receiver-web is held by" in refused.stderr
    receiver.terminate()
    assert receiver.wait(PATIENCE) == 0
    client.close()


def test_a_receiver_that_has_lost_its_lock_forwards_when_it_has_it_again(home: Home) -> None:
    with home.running():
        client = Client(home.ports[0])
        client.send(b"a\n")
        client.wait_for(1)
        wait_until(lambda: landed(home) == [b"a"], "it is there")
        with closing(psycopg2.connect(home.settings.locks_database)) as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
            )
        with locks_of(home.settings).held("receiver-web", PATIENCE):
            client.send(b"b\n")
            client.wait_for(2)
            complete = home.settings.received / "web"
            wait_until(lambda: list(complete.glob("log_date=*/log_hour=*/[0-9]*.log")), "it is complete")
            time.sleep(1.5)  # it is tried meanwhile
            assert landed(home) == [b"a"]
        wait_until(lambda: sorted(landed(home)) == [b"a", b"b"], "it is there")
        client.close()


def test_started_without_the_database_of_the_locks_it_stores_and_forwards_later(
    home: Home, postgres: PostgresServer
) -> None:
    postgres.stop()
    try:
        receiver = home.start()
        client = Client(home.ports[0])
        client.send(b"a\n")
        client.wait_for(1)
        time.sleep(1.5)  # it is tried meanwhile
        assert landed(home) == []
    finally:
        postgres.start()
    wait_until(lambda: landed(home) == [b"a"], "it is there", PATIENCE)
    client.close()
    receiver.terminate()
    assert receiver.wait(PATIENCE) == 0


def test_without_locks_it_says_so_in_one_line_and_receives_nothing(home: Home) -> None:
    without = Home(replace(home.settings, locks_database=None), home.ports)
    refused = subprocess.run(
        without.command, env=without.environment, cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE
    )
    assert refused.returncode != 0
    (line,) = refused.stderr.strip().splitlines()
    assert "set CLICKMILL_LOCKS to a PostgreSQL database" in line
    assert "receiving web" not in refused.stdout


def test_another_receivers_file_stays_and_keeps_its_own_hour_open(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"{home.ports[0]}-000000000000001.log"
    there = hour_folder(home.settings.landing, "web", HOUR) / name
    there.write_bytes(b"others\n")
    now = [HOUR.start]
    with home.running(clock=lambda: now[0]):
        client = Client(home.ports[0])
        client.send(b"a\n")
        client.wait_for(1)
        now[0] = HOUR.plus(1).start
        mark = hour_folder(home.settings.received, "web", HOUR) / SUCCESS
        wait_until(mark.exists, "the hour is over", PATIENCE)
        client.send(b"b\n")
        client.wait_for(2)
        now[0] = HOUR.plus(2).start
        client.close()
        wait_until(
            lambda: HOUR.plus(1) in closed_hours(home.settings.landing, "web"), "the next hour is closed", PATIENCE
        )
    assert list(closed_hours(home.settings.landing, "web")) == [HOUR.plus(1)]
    assert sorted(landed(home)) == [b"b", b"others"]
    assert (hour_folder(home.settings.received, "web", HOUR) / name).read_bytes() == b"a\n"
    assert "another receiver, or one whose disk was lost, had the source and the port" in capsys.readouterr().out


def test_lines_of_a_port_that_is_no_more_get_there(home: Home) -> None:
    gone = max(home.ports) + 1
    folder = hour_folder(home.settings.received, "web", HOUR)
    folder.mkdir(parents=True)
    (folder / f".{gone}-000000000000001.log.unfinished").write_bytes(b"a\nb\ntorn")
    with home.running(clock=lambda: HOUR.plus(5).start):
        wait_until(lambda: HOUR in closed_hours(home.settings.landing, "web"), "the hour is closed")
    assert landed(home) == [b"a", b"b"]
    closed = closed_hours(home.settings.landing, "web")
    with home.running(clock=lambda: HOUR.plus(5).start):
        time.sleep(1)
    assert closed_hours(home.settings.landing, "web") == closed, "not once more"
