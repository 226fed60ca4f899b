"""The receiver with real sockets: what it has acknowledged is stored once, whatever happens to it, disk and clients."""

from __future__ import annotations

import errno
import random
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path

import psutil
import pytest

from include.hours import Hour
from include.landing import hour_folder
from include.settings import REPOSITORY
from include.sources import load_sources
from tests.support.ports import claimed_port
from tests.support.received import PATIENCE, Client, Home
from tests.support.temporary_lake import SOURCES, make_settings
from tests.support.waiting import wait_until


@pytest.fixture
def home(tmp_path: Path) -> Home:
    settings = make_settings(tmp_path / "home")
    ports = [claimed_port(29990, "the receiver") for _ in range(3)]
    sockets = f"[sources.web.sockets]\nports = {ports}\nroll_seconds = 0.5\nmax_clients = 5\n"
    settings.sources_file.write_text(SOURCES + sockets, encoding="utf-8")
    return Home(settings, ports)


def ids_are_contiguous(home: Home, port: int) -> bool:
    """Each file's first id is that after the last one's last."""
    next_id = 1
    for name, content in home.files.items():
        if name.startswith(f"{port}-"):
            if int(name.partition("-")[2].removesuffix(".log")) != next_id:
                return False
            next_id += content.count(b"\n")
    return True


@pytest.mark.slow
def test_what_was_acknowledged_is_there_once_whenever_the_receiver_is_killed(home: Home) -> None:
    dice = random.Random(5)
    acknowledged: Counter[bytes] = Counter()
    sent: set[bytes] = set()

    def feed(name: str, port: int, rounds: int) -> None:
        lines = [f"{name}-{rounds}-{number}".encode() for number in range(200_000)]
        try:
            client, at = Client(port), 0
        except AssertionError:
            return  # the receiver was killed before it listened
        try:
            while at < len(lines):
                group = lines[at : at + dice.randint(1, 3000)]
                sent.update(group)
                client.send(*(line + b"\n" for line in group))
                at += len(group)
                client.wait_for(client.acknowledged + 1)
        except OSError:
            pass
        finally:
            # Answers that had come before the end count.
            with suppress(OSError, ConnectionError):
                client.socket.settimeout(1)
                client.wait_for(len(lines))
            client.close()
            acknowledged.update(lines[: client.acknowledged])

    for number in range(4):
        receiver = home.start()
        clients = [
            threading.Thread(target=feed, args=(f"{name}{port}", port, number)) for port in home.ports for name in "ab"
        ]
        for client in clients:
            client.start()
        before = len(home.files)
        wait_until(partial(home.has_more_files_than, before), "a file")
        time.sleep(dice.uniform(0, 1))
        receiver.kill()
        receiver.wait()
        for client in clients:
            client.join(PATIENCE)
    receiver = home.start()
    Client(home.ports[0]).close()
    receiver.terminate()
    assert receiver.wait(PATIENCE) == 0

    stored = Counter(home.lines())
    assert len(acknowledged) > 1000
    assert max(stored.values()) == 1, "no line was sent twice"
    assert not acknowledged - stored, "acknowledged and not there"
    assert stored.keys() <= sent, "a torn line"
    for port in home.ports:
        assert ids_are_contiguous(home, port)
    assert not list(home.settings.landing.rglob("*.unfinished"))


def test_two_clients_at_each_of_three_ports_are_answered_with_the_ids_of_their_lines(home: Home) -> None:
    with home.running():
        clients = [Client(port) for port in home.ports for _ in range(2)]
        for number in range(5):
            for place, client in enumerate(clients):
                client.send(*(f"{place}-{number}-{line}\n".encode() for line in range(place + 1)))
        for place, client in enumerate(clients):
            client.wait_for(5 * (place + 1))
    for place, client in enumerate(clients):
        lines = home.lines(client.port)
        own = [line for line in lines if line.startswith(f"{place}-".encode())]
        assert own == [f"{place}-{number}-{line}".encode() for number in range(5) for line in range(place + 1)]
        assert lines[client.last_id - 1] == own[-1], "the answer has the sequence id"
        client.close()


@pytest.mark.slow
def test_a_client_that_is_faster_than_the_disk_is_slowed_and_loses_nothing(home: Home) -> None:
    stored = threading.Semaphore(0)

    def slow(descriptor: int) -> None:
        stored.acquire(timeout=PATIENCE)

    line = b"x" * 999 + b"\n"
    with home.running(sync=slow):
        client = Client(home.ports[0])
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        client.socket.settimeout(1)
        sent, before = 0, psutil.Process().memory_info().rss
        with suppress(TimeoutError):
            while sent < 100_000_000:
                sent += client.socket.send(line[sent % 1000 :] + line * 100)
        # What the kernel takes for a receiver that does not read, and a group that is stored: not what was offered.
        assert sent < 20_000_000
        assert psutil.Process().memory_info().rss - before < 50_000_000
        stored.release(100_000)
        client.socket.settimeout(PATIENCE)
        client.socket.shutdown(socket.SHUT_WR)
        client.wait_for(-(-sent // 1000))
        client.close()
    assert sum(len(line) + 1 for line in home.lines()) >= sent


def test_a_long_line_and_one_without_end_take_no_memory_and_are_stored_as_too_long(home: Home) -> None:
    longest = load_sources(home.settings)["web"].max_line_bytes
    receiver = home.start()
    client = Client(home.ports[0])
    client.send(b"before\n")
    client.wait_for(1)
    before = psutil.Process(receiver.pid).memory_info().rss
    piece = b"x" * 1_000_000
    for _ in range(100):
        client.send(piece)
    assert psutil.Process(receiver.pid).memory_info().rss - before < 20_000_000
    client.send(b"\n", b"after\n", b"y" * longest + b"\n", b"torn")
    client.socket.shutdown(socket.SHUT_WR)
    client.wait_for(5)
    client.close()
    receiver.terminate()
    assert receiver.wait(PATIENCE) == 0
    lines = home.lines()
    assert [line[:6] for line in lines] == [b"before", b"xxxxxx", b"after", b"yyyyyy", b"torn"]
    assert longest + 4 < len(lines[1]) < 2 * longest, "more than what parse_lines lets pass, whatever it trims"
    assert len(lines[3]) == longest


def test_an_hour_is_closed_when_it_is_over_and_its_lines_are_in_files(home: Home) -> None:
    hour = Hour.parse("2026-03-01T08")
    now = [hour.end - timedelta(seconds=1)]
    first, second = (hour_folder(home.settings.landing, "web", log_hour) for log_hour in (hour, hour.plus(1)))
    with home.running(clock=lambda: now[0]):
        client = Client(home.ports[0])
        client.send(b"a\n")
        client.wait_for(1)
        time.sleep(0.5)
        assert not (first / "_SUCCESS").exists()
        now[0] = hour.end
        wait_until((first / "_SUCCESS").exists, "the hour is closed")
        assert [file.name for file in first.iterdir() if file.name[0] not in "._"] == [
            f"{home.ports[0]}-000000000000001.log"
        ]
        client.send(b"b\n")
        client.wait_for(2)
        client.close()
        now[0] = hour.plus(1).end + timedelta(minutes=5)
        wait_until((second / "_SUCCESS").exists, "the next one")
    assert (second / f"{home.ports[0]}-000000000000002.log").read_bytes() == b"b\n"
    assert not (hour_folder(home.settings.landing, "web", hour.plus(2)) / "_SUCCESS").exists()


def test_an_hour_that_ended_while_the_receiver_was_down_is_closed_by_the_next_start(home: Home) -> None:
    hour = Hour.parse("2026-03-01T08")
    folder = hour_folder(home.settings.landing, "web", hour)
    folder.mkdir(parents=True)
    (folder / f".{home.ports[0]}-000000000000007.log.unfinished").write_bytes(b"a\nb\ntorn")
    with home.running():
        assert (folder / f"{home.ports[0]}-000000000000007.log").read_bytes() == b"a\nb\n"
        assert (folder / "_SUCCESS").exists()
        client = Client(home.ports[0])
        client.send(b"c\n")
        assert client.wait_for(1).last_id == 9
        client.close()


@pytest.mark.slow
def test_a_full_disk_is_said_and_no_line_is_acknowledged_until_it_takes_it(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    is_full = threading.Event()

    def sync(descriptor: int) -> None:
        if is_full.is_set():
            raise OSError(errno.ENOSPC, "No space left on device")

    with home.running(sync=sync):
        client = Client(home.ports[0])
        client.send(b"a\n")
        client.wait_for(1)
        is_full.set()
        client.send(b"b\n")
        client.socket.settimeout(2)
        with pytest.raises(TimeoutError):
            client.socket.recv(100, socket.MSG_PEEK)
        is_full.clear()
        client.socket.settimeout(PATIENCE)
        client.wait_for(2)
        client.close()
    assert home.lines() == [b"a", b"b"]
    output = capsys.readouterr().out
    assert f"port {home.ports[0]}: the disk refuses ([Errno 28] No space left on device); clients wait" in output
    assert "takes lines again" in output


def test_a_port_that_is_taken_and_a_second_receiver_are_reported_in_one_line(home: Home) -> None:
    def told() -> str:
        done = subprocess.run(
            home.command, env=home.environment, cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE
        )
        assert done.returncode != 0
        (line,) = done.stderr.strip().splitlines()
        return line

    with socket.create_server(("127.0.0.1", home.ports[1])):
        assert f"port {home.ports[1]} of 127.0.0.1 is taken" in told()
    receiver = home.start()
    Client(home.ports[2]).close()
    assert "web is received already" in told()
    receiver.send_signal(signal.SIGINT)
    assert receiver.wait(PATIENCE) == 0


def test_ctrl_c_answers_and_stores_what_has_come(home: Home) -> None:
    receiver = home.start()
    client = Client(home.ports[0])
    client.send(b"a\n" * 1000)
    client.wait_for(1)
    receiver.send_signal(signal.SIGINT)
    with suppress(ConnectionError):
        client.wait_for(1000)
    assert receiver.wait(PATIENCE) == 0
    assert client.acknowledged <= len(home.lines())
    assert not list(home.settings.landing.rglob("*.unfinished"))
    client.close()


def last_word(client: Client) -> bytes:
    """The receiver's last word to a client."""
    with suppress(ConnectionError):
        client.socket.settimeout(PATIENCE)
        return client.socket.recv(1000)
    return b"nothing"


def test_for_one_client_more_than_allowed_the_one_that_was_quiet_longest_is_dropped(home: Home) -> None:
    with home.running():
        clients = [Client(home.ports[0]) for _ in range(5)]
        for number, client in enumerate([*clients, clients[0]]):
            client.send(f"{number}\n".encode())
            client.wait_for(client.acknowledged + 1)
        quietest = clients.pop(1)
        quietest.send(b"a half line, which is no click")
        clients += [Client(home.ports[0])]
        assert last_word(quietest).startswith(b"dropped: 5 clients are connected (max_clients)")
        assert last_word(quietest) in (b"", b"nothing")
        for client in clients:
            client.send(b"last\n")
            client.wait_for(client.acknowledged + 1)
            client.close()
    assert Counter(home.lines()) == Counter([b"0", b"1", b"2", b"3", b"4", b"5", *[b"last"] * 5])


def test_a_client_is_refused_while_lines_of_all_others_are_being_stored(home: Home) -> None:
    may_store, storing = threading.Event(), threading.Event()

    def sync(descriptor: int) -> None:
        storing.set()
        may_store.wait(PATIENCE)

    with home.running(sync=sync):
        clients = [Client(home.ports[0]) for _ in range(5)]
        for client in clients:
            client.send(b"a\n")
        assert storing.wait(PATIENCE)
        time.sleep(0.3)
        one_more = Client(home.ports[0])
        assert last_word(one_more).startswith(b"refused: lines of 5 clients are being stored")
        one_more.close()
        may_store.set()
        for client in clients:
            client.wait_for(1)
            client.close()
    assert home.lines() == [b"a"] * 5


@pytest.mark.slow
def test_a_client_without_whole_lines_is_dropped_and_one_that_sends_them_stays(home: Home) -> None:
    home.settings.sources_file.write_text(home.settings.sources_file.read_text() + "idle_seconds = 1\n")
    with home.running():
        silent, trickling, busy = (Client(home.ports[0]) for _ in range(3))
        began = time.monotonic()
        while time.monotonic() < began + 3:
            with suppress(ConnectionError):
                trickling.send(b"x")
            busy.send(b"a\n")
            busy.wait_for(busy.acknowledged + 1)
            time.sleep(0.2)
        for client in (silent, trickling):
            assert last_word(client).startswith(
                b"dropped: no whole line, or its last answer not read, for 1 s (idle_seconds)"
            )
        busy.close()
    assert home.lines() == [b"a"] * busy.acknowledged
