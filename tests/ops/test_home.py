"""The home: its folders and secrets, closed to others; clean removes that and nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from include.errors import ClickmillError, UsageError
from ops import clean
from ops.bootstrap import REPOSITORY
from ops.home import Home, find_home, first_start, load_secrets


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_secrets_are_readable_by_their_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.make()
    load_secrets(home)

    assert home.secrets.stat().st_mode & 0o777 == 0o700
    assert home.run.stat().st_mode & 0o777 == 0o700
    assert home.received.stat().st_mode & 0o777 == 0o700
    assert home.visitor_keys.stat().st_mode & 0o777 == 0o700
    modes = {file.name: file.stat().st_mode & 0o777 for file in home.secrets.rglob("*") if file.is_file()}
    assert set(modes.values()) == {0o600}, modes
    assert {"spark_connect_token", "airflow_admin_password", f"{datetime.now(UTC):%Y-%m-%d}"} <= set(modes)


def test_open_secret_is_closed_again(home: Home) -> None:
    load_secrets(home)
    (key,) = home.visitor_keys.iterdir()
    for file in (key, home.secrets / "spark_connect_token"):
        file.chmod(0o644)
    home.secrets.chmod(0o755)

    home.make()
    load_secrets(home)

    for file in (key, home.secrets / "spark_connect_token"):
        assert file.stat().st_mode & 0o777 == 0o600
    assert home.secrets.stat().st_mode & 0o777 == 0o700


@pytest.mark.usefixtures("umask")
def test_folders_are_their_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.make()

    modes = {folder.name: folder.stat().st_mode & 0o7777 for folder in home.path.iterdir()}
    assert set(modes.values()) == {0o700}, modes
    assert {"landing", "lake", "reports", "logs", "streams", "kafka"} <= set(modes)


@pytest.mark.parametrize(
    ("was", "then"),
    [
        (0o755, 0o700),  # as earlier versions made it
        (0o775, 0o770),
        (0o1777, 0o1770),
        (0o2770, 0o2770),
        (0o750, 0o750),
    ],
)
def test_a_folder_that_is_open_to_everyone_is_closed_and_one_that_is_given_to_a_group_stays(
    home: Home, was: int, then: int
) -> None:
    home.landing.chmod(was)
    home.make()

    assert home.landing.stat().st_mode & 0o7777 == then


def test_a_landing_zone_elsewhere_and_the_home_itself_keep_their_modes(tmp_path: Path, home: Home) -> None:
    elsewhere = tmp_path / "uploads"
    elsewhere.mkdir()
    home.landing.rmdir()
    home.landing.symlink_to(elsewhere)
    for folder in (elsewhere, home.path):
        folder.chmod(0o755)
    home.make()

    assert [folder.stat().st_mode & 0o777 for folder in (elsewhere, home.path)] == [0o755, 0o755]


def test_secrets_are_made_once_and_differ_between_homes(tmp_path: Path, home: Home) -> None:
    other = Home(tmp_path / "other")
    other.make()

    first, again, others = load_secrets(home), load_secrets(home), load_secrets(other)

    assert first == again
    for name in ("spark_token", "airflow_password", "airflow_jwt_secret"):
        assert getattr(first, name) != getattr(others, name)
        assert len(getattr(first, name)) >= 16
    assert len(first.airflow_jwt_secret) >= 64


def test_airflow_reads_the_very_password_that_is_shown(home: Home) -> None:
    secrets = load_secrets(home)

    assert json.loads(secrets.airflow_passwords_file.read_text()) == {"admin": secrets.airflow_password}


def test_secrets_do_not_show_when_printed(home: Home) -> None:
    secrets = load_secrets(home)

    assert secrets.spark_token not in repr(secrets)
    assert secrets.airflow_password not in str(secrets)


def test_empty_secret_is_an_error_that_names_the_file(home: Home) -> None:
    (home.secrets / "spark_connect_token").write_text("\n")

    with pytest.raises(ClickmillError, match=r"spark_connect_token is empty: expected one line; delete it"):
        load_secrets(home)


def test_first_start_stays_the_first(home: Home) -> None:
    before = datetime.now(UTC)
    first = first_start(home)

    assert before <= datetime.fromisoformat(first) <= datetime.now(UTC)
    assert first_start(home) == first


def test_home_is_the_argument_else_the_variable_else_var_in_the_repository(tmp_path: Path) -> None:
    variable = {"CLICKMILL_HOME": str(tmp_path / "b")}

    assert find_home(tmp_path / "a", variable).path == tmp_path / "a"
    assert find_home(None, variable).path == tmp_path / "b"
    assert find_home(None, {}).path == REPOSITORY / "var"
    assert find_home(None, {"CLICKMILL_HOME": ""}).path == REPOSITORY / "var"
    assert find_home("relative", {}).path == Path.cwd() / "relative"


def test_home_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ClickmillError) as error:
        Home(tmp_path / "file" / "home").make()

    assert error.value.exit_code == 2
    assert str(error.value).startswith(f"cannot write CLICKMILL_HOME {tmp_path}/file/home: ")
    assert "\n" not in str(error.value)


# --- clean ----------------------------------------------------------------------------------------


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Where stop was called."""
    calls: list[Path] = []
    monkeypatch.setattr(clean, "stop", calls.append)
    return calls


def test_clean_ends_the_services_and_removes_the_home(
    home: Home, monkeypatch: pytest.MonkeyPatch, stopped: list[Path]
) -> None:
    monkeypatch.setenv("CLICKMILL_HOME", str(home.path))
    load_secrets(home)
    (home.lake / "clicks").mkdir()

    assert clean.clean() == f"removed {home.path}"
    assert stopped == [home.path]
    assert not home.path.exists()
    assert clean.clean() == f"nothing to clean: there is no {home.path}"


def test_clean_leaves_data_that_others_may_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: list[Path]
) -> None:
    home = Home(tmp_path / "home", tmp_path / "data")
    home.make()
    load_secrets(home)
    (home.lake / "clicks").mkdir()
    monkeypatch.setenv("CLICKMILL_HOME", str(home.path))
    monkeypatch.setenv("CLICKMILL_DATA", str(home.data))

    assert clean.clean() == f"removed {home.path}; the data in {home.data} stays"
    assert not home.path.exists()
    assert (home.lake / "clicks").is_dir()
    assert list(home.visitor_keys.iterdir())

    # Nor is another folder a home because the data has a key.
    monkeypatch.setenv("CLICKMILL_HOME", str(tmp_path))
    with pytest.raises(ClickmillError, match="is not a Clickmill home"):
        clean.clean()


def test_clean_refuses_while_lines_that_were_acknowledged_are_nowhere_else(
    home: Home, monkeypatch: pytest.MonkeyPatch, stopped: list[Path]
) -> None:
    monkeypatch.setenv("CLICKMILL_HOME", str(home.path))
    load_secrets(home)
    waiting = home.received / "web" / "log_date=2026-03-01" / "log_hour=08" / ".9990-000000000000001.log.unfinished"
    waiting.parent.mkdir(parents=True)
    waiting.write_bytes(b"a\n")

    with pytest.raises(UsageError, match="acknowledged and are nowhere else"):
        clean.clean()
    assert waiting.exists()
    waiting.unlink()
    assert clean.clean() == f"removed {home.path}"


def test_clean_leaves_what_is_not_clickmills(home: Home, monkeypatch: pytest.MonkeyPatch, stopped: list[Path]) -> None:
    monkeypatch.setenv("CLICKMILL_HOME", str(home.path))
    load_secrets(home)
    (home.path / "thesis.tex").write_text("years of work")

    assert clean.clean().endswith("left there, not Clickmill's: thesis.tex")
    assert (home.path / "thesis.tex").read_text() == "years of work"
    assert not home.lake.exists()


def test_clean_refuses_a_folder_that_is_no_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: list[Path]
) -> None:
    monkeypatch.setenv("CLICKMILL_HOME", str(tmp_path))
    (tmp_path / "logs").mkdir()

    with pytest.raises(ClickmillError, match="is not a Clickmill home"):
        clean.clean()

    assert (tmp_path / "logs").is_dir()
    assert stopped == []


def test_clean_does_not_follow_a_link(
    tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch, stopped: list[Path]
) -> None:
    monkeypatch.setenv("CLICKMILL_HOME", str(home.path))
    load_secrets(home)
    archive = tmp_path / "archive"
    archive.mkdir()
    (archive / "old.log").write_text("kept")
    home.landing.rmdir()
    home.landing.symlink_to(archive)

    clean.clean()

    assert (archive / "old.log").read_text() == "kept"
