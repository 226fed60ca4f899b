"""Clients of the receiver that read no answers, as log shippers do: what they have sent is landed, however they end."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import termios
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.ports import claimed_port
from tests.support.received import PATIENCE, Home
from tests.support.temporary_lake import SOURCES, make_settings
from tests.support.waiting import wait_until


@pytest.fixture
def home(tmp_path: Path) -> Home:
    settings = make_settings(tmp_path / "home")
    return with_sockets(Home(settings, [claimed_port(29990, "the receiver")]))


def with_sockets(home: Home, **more: str) -> Home:
    sockets = f"[sources.web.sockets]\nports = {home.ports}\nroll_seconds = 0.5\nmax_clients = 3\n"
    sockets += "".join(f"{name} = {value}\n" for name, value in more.items())
    home.settings.sources_file.write_text(SOURCES + sockets, encoding="utf-8")
    return home


def connected(home: Home, **options: int) -> socket.socket:
    def connect() -> socket.socket | None:
        client = socket.socket()
        for name, value in options.items():
            client.setsockopt(socket.SOL_SOCKET, getattr(socket, name), value)
        client.settimeout(PATIENCE)
        try:
            client.connect(("127.0.0.1", home.ports[0]))
        except ConnectionRefusedError:
            client.close()
            return None
        return client

    return wait_until(connect, "somebody listens")


def lines(count: int, name: str = "line") -> list[bytes]:
    return [f"{name} {number}".encode() for number in range(count)]


def as_bytes(sent: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in sent)


def unacknowledged_bytes(client: socket.socket) -> int:
    """What the receiver's kernel has not said that it has."""
    return int(struct.unpack("i", fcntl.ioctl(client, termios.TIOCOUTQ, b"\0" * 4))[0])


def has_answers(client: socket.socket) -> bool:
    with suppress(BlockingIOError):
        return bool(client.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    return False


@pytest.mark.parametrize("last", [b"", b"half a li"])
def test_what_has_reached_the_receiver_is_landed_though_the_client_closes_with_answers_unread(
    home: Home, last: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    may_store = threading.Event()
    first, more = lines(3, "first"), lines(3_000, "more")
    with home.running(sync=lambda descriptor: may_store.wait(PATIENCE)):
        client = connected(home)
        name = "{}:{}".format(*client.getsockname())
        client.sendall(as_bytes(first))
        may_store.set()
        wait_until(lambda: has_answers(client), "an answer")
        may_store.clear()
        client.sendall(as_bytes(more) + last)
        wait_until(lambda: unacknowledged_bytes(client) == 0, "all is there")
        client.close()
        time.sleep(0.3)
        may_store.set()
        # It is there without the receiver's end, too.
        wait_until(lambda: len(home.lines()) == 3_003 + bool(last), "all is landed")
    assert home.lines() == [*first, *more, *([last] if last else [])]
    messages = [line for line in capsys.readouterr().out.splitlines() if name in line]
    assert len(messages) == 1, messages
    assert f"{name}, {len(home.lines())} lines stored: broke off" in messages[0]
    assert "answers = false" in messages[0]


def test_a_client_that_never_reads_is_neither_slowed_nor_dropped_and_loses_nothing(home: Home) -> None:
    with_sockets(home, idle_seconds="1")
    sent = lines(30_000)
    with home.running():
        client = connected(home, SO_RCVBUF=2304)
        until = time.monotonic() + 3
        for start in range(0, len(sent), 100):
            client.sendall(as_bytes(sent[start : start + 100]))
            time.sleep(max(0.0, (until - time.monotonic()) / (len(sent) - start) * 100))
        client.shutdown(socket.SHUT_WR)
        wait_until(lambda: len(home.lines()) == len(sent), "all is landed")
        client.close()
    assert home.lines() == sent


def test_the_newest_answer_comes_when_a_client_reads_again_that_had_left_many_unread(home: Home) -> None:
    with home.running():
        client = connected(home, SO_RCVBUF=2304)
        for number in range(3_000):
            client.sendall(b"%d\n" % number)
            if number % 100 == 0:
                time.sleep(0.01)
        answers = client.makefile("rb")
        newest = 0
        while newest < 3_000:
            word, count, _ = answers.readline().split()
            assert word == b"stored"
            assert int(count) > newest
            newest = int(count)
        answers.close()
        client.close()


def test_with_answers_false_a_client_may_close_at_once_and_is_told_nothing(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    with_sockets(home, answers="false", idle_seconds="1")
    sent = lines(200_000)
    with home.running():
        client = connected(home)
        client.sendall(as_bytes(sent))
        client.close()
        wait_until(lambda: len(home.lines()) == len(sent), "all is landed")
        silent = connected(home)
        silent.sendall(b"half")
        assert silent.recv(100) == b"", "dropped for its silence, without a word"
        silent_name = "{}:{}".format(*silent.getsockname())
        silent.close()
    assert home.lines() == sent
    (message,) = [line for line in capsys.readouterr().out.splitlines() if "127.0.0.1:" in line]
    assert f"{silent_name}, 0 lines stored, 4 bytes of a line without end not: dropped: no whole line" in message


def test_what_was_on_its_way_when_the_receiver_ends_is_stored(home: Home) -> None:
    with_sockets(home, answers="false")
    may_store = threading.Event()
    before, behind = lines(2_000, "before"), lines(2_000, "behind")
    with home.running(sync=lambda descriptor: may_store.wait(PATIENCE)):
        client = connected(home)
        client.sendall(as_bytes(before))
        time.sleep(0.3)
        client.sendall(as_bytes(behind))
        wait_until(lambda: unacknowledged_bytes(client) == 0, "all is there")
        threading.Timer(0.5, may_store.set).start()
    assert home.lines() == [*before, *behind]
    client.close()


def program(name: str) -> str:
    """Where it is; skips the test where it is not installed, and fails in CI."""
    path = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if path:
        return path
    reason = f"no {name}; on Debian: apt-get install rsyslog netcat-openbsd"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def test_netcat_that_ends_at_once_loses_nothing(home: Home) -> None:
    netcat = program("nc")
    with_sockets(home, answers="false")
    sent = lines(50_000)
    with home.running():
        connected(home).close()
        command = [netcat, "-q", "0", "127.0.0.1", str(home.ports[0])]
        subprocess.run(command, input=as_bytes(sent), check=True, timeout=PATIENCE)
        wait_until(lambda: len(home.lines()) == len(sent), "all is landed")
    assert home.lines() == sent


def test_rsyslog_as_the_guide_sets_it_up_ships_each_line_of_a_growing_file_once(home: Home, tmp_path: Path) -> None:
    rsyslog = program("rsyslogd")
    with_sockets(home, answers="false")
    guide = (Path(__file__).parents[2] / "docs/guides/tcp.md").read_text(encoding="utf-8")
    configuration = guide.partition("```rsyslog\n")[2].partition("```")[0]
    log, work = tmp_path / "access.log", tmp_path / "work"
    work.mkdir()
    for there, here in {
        "/var/log/nginx/access.log": str(log),
        "/var/spool/rsyslog": str(work),
        '"9990"': f'"{home.ports[0]}"',
    }.items():
        assert there in configuration
        configuration = configuration.replace(there, here)
    (tmp_path / "rsyslog.conf").write_text(configuration, encoding="utf-8")
    sent = [*lines(2_000), b'{"url": "http://a.example/\\"x\\"", "t": "\xc3\xa4 %percent%"}', b"x" * 40_000]
    log.write_bytes(as_bytes(sent[:1_000]))
    command = [rsyslog, "-n", "-f", str(tmp_path / "rsyslog.conf"), "-i", str(tmp_path / "rsyslog.pid")]
    with home.running():
        running = subprocess.Popen(command)
        try:
            wait_until(lambda: len(home.lines()) == 1_000, "what was there is landed", PATIENCE)
            with log.open("ab") as stream:
                stream.write(as_bytes(sent[1_000:]))
            wait_until(lambda: len(home.lines()) == len(sent), "what came later, too", PATIENCE)
        finally:
            running.terminate()
            running.wait(PATIENCE)
    assert Counter(home.lines()) == Counter(sent), "rsyslog does not keep the order"
