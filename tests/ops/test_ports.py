"""Ports: a free one near the usual one, never one that is taken, and never the same one twice."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from include.errors import ClickmillError
from ops.services import ports
from ops.services.ports import PortChooser, port_is_free, private_temp_folder


@contextmanager
def listening(address: str = "127.0.0.1") -> Iterator[int]:
    """A port on which something listens."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as server:
        server.bind((address, 0))
        server.listen()
        yield server.getsockname()[1]


def has_ipv6_loopback() -> bool:
    try:
        with listening("::1"):
            return True
    except OSError:
        return False


def test_next_free_port_is_taken_when_the_usual_one_is_not_free(tmp_path: Path) -> None:
    with listening() as taken, PortChooser({}, tmp_path) as chooser:
        chosen = chooser.choose("CLICKMILL_SPARK_PORT", taken, "Spark Connect")

        assert taken < chosen < taken + ports.HOW_FAR
        assert port_is_free(chosen)


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_port_is_taken_when_something_listens_on_loopback_or_everywhere(address: str) -> None:
    with listening(address) as taken:
        assert not port_is_free(taken)
    assert port_is_free(taken)


@pytest.mark.skipif(not has_ipv6_loopback(), reason="this machine has no IPv6 loopback address")
def test_port_is_taken_when_a_stranger_listens_where_localhost_may_lead_first() -> None:
    with listening("::1") as taken:
        assert not port_is_free(taken)


def test_fixed_port_that_is_taken_is_an_error_that_names_what_to_set(tmp_path: Path) -> None:
    with listening() as taken, PortChooser({"CLICKMILL_AIRFLOW_PORT": str(taken)}, tmp_path) as chooser:
        with pytest.raises(ClickmillError) as error:
            chooser.choose("CLICKMILL_AIRFLOW_PORT", 8080, "Airflow")

    assert error.value.exit_code == 2
    assert str(error.value) == (
        f"port {taken} for Airflow is taken: set CLICKMILL_AIRFLOW_PORT to a free port, or unset it to have one chosen"
    )


@pytest.mark.parametrize("value", ["eighty", "0", "65536", "-1", "80.5", "²"])
def test_fixed_port_must_be_a_port_number(tmp_path: Path, value: str) -> None:
    with PortChooser({"CLICKMILL_SPARK_PORT": value}, tmp_path) as chooser:
        with pytest.raises(ClickmillError, match=r"CLICKMILL_SPARK_PORT=.*: expected a port number from 1 to 65535"):
            chooser.choose("CLICKMILL_SPARK_PORT", 15002, "Spark Connect")


def test_two_starts_at_once_choose_different_ports_until_one_lets_go(tmp_path: Path) -> None:
    with listening() as near:
        pass
    with PortChooser({}, tmp_path) as first, PortChooser({}, tmp_path) as second:
        ours = first.choose("CLICKMILL_SPARK_PORT", near, "Spark Connect")
        theirs = second.choose("CLICKMILL_SPARK_PORT", near, "Spark Connect")
        assert ours != theirs
    with PortChooser({}, tmp_path) as third:
        assert third.choose("CLICKMILL_SPARK_PORT", ours, "Spark Connect") == ours


def test_no_free_port_at_all_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "port_is_free", lambda port: False)
    with PortChooser({}, tmp_path) as chooser, pytest.raises(ClickmillError, match="set CLICKMILL_SPARK_UI_PORT"):
        chooser.choose("CLICKMILL_SPARK_UI_PORT", 4040, "Spark's UI")


def test_private_temp_folder_is_closed_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops.services.ports.tempfile.gettempdir", lambda: str(tmp_path))

    assert private_temp_folder().stat().st_mode & 0o777 == 0o700


def test_private_temp_folder_that_is_a_link_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops.services.ports.tempfile.gettempdir", lambda: str(tmp_path))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / f"clickmill-{os.getuid()}").symlink_to(elsewhere)

    with pytest.raises(ClickmillError, match="is not a folder of yours"):
        private_temp_folder()
