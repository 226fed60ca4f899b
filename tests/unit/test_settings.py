from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from include.errors import UsageError
from include.settings import REPOSITORY, PipelineSettings, Settings, read_toml


def test_environment_says_where_everything_is(tmp_path: Path) -> None:
    settings = Settings.from_environment(
        {"CLICKMILL_HOME": str(tmp_path), "CLICKMILL_SOURCES": "/etc/s.toml", "CLICKMILL_PIPELINE": "/etc/p.toml"}
    )
    assert (settings.home, settings.lake, settings.landing) == (tmp_path, tmp_path / "lake", tmp_path / "landing")
    assert (settings.sources_file, settings.pipeline_file) == (Path("/etc/s.toml"), Path("/etc/p.toml"))


def test_runs_are_scheduled_from_the_first_start_of_the_services() -> None:
    settings = Settings.from_environment({"CLICKMILL_SCHEDULE_START": "2026-11-21T15:31:07.123456+00:00"})
    assert settings.schedule_start == datetime(2026, 11, 21, 15, 31, 7, 123456, tzinfo=UTC)
    assert Settings.from_environment({}).schedule_start.utcoffset() is not None


@pytest.mark.parametrize("environment", [{}, {"CLICKMILL_HOME": "", "CLICKMILL_SOURCES": ""}])
def test_without_environment_home_is_var_beside_the_code(environment: dict[str, str]) -> None:
    settings = Settings.from_environment(environment)
    assert settings.home == REPOSITORY / "var"
    assert settings.sources_file == REPOSITORY / "config" / "sources.toml"


def test_home_is_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert Settings.from_environment({"CLICKMILL_HOME": "here"}).home == tmp_path / "here"


def test_every_wrong_setting_is_in_one_message(settings: Settings) -> None:
    settings.pipeline_file.write_text('buckets = 0\nreport_hours = "many"\nmax_top_key_share = 2\ncolour = "red"\n')
    with pytest.raises(UsageError) as raised:
        _ = settings.pipeline
    for part in ("buckets: ", "(got 0)", "report_hours: ", "'many'", "max_top_key_share: ", "colour: "):
        assert part in str(raised.value)


def test_a_setting_left_out_takes_what_the_shipped_file_says(settings: Settings) -> None:
    settings.pipeline_file.write_text("")
    assert settings.pipeline == read_toml(REPOSITORY / "config" / "pipeline.toml", PipelineSettings)


def test_visitor_key_is_read_without_its_line_end(settings: Settings) -> None:
    settings.visitor_key_file.write_bytes(b"secret\n")
    assert settings.visitor_key() == b"secret"


def test_absent_visitor_key_says_what_makes_it(settings: Settings) -> None:
    settings.visitor_key_file.unlink()
    with pytest.raises(UsageError, match=f"{settings.visitor_key_file}.*ops.services start"):
        settings.visitor_key()
