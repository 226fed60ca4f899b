from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from include.errors import UsageError
from include.settings import REPOSITORY, PipelineSettings, Settings, read_toml
from ops.home import find_home


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


def test_jobs_and_services_find_the_same_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for environment in ({}, {"CLICKMILL_HOME": "~/clicks"}):
        settings, home = Settings.from_environment(environment), find_home(environment=environment)
        assert settings.home == home.path
        assert settings.report == home.report
    assert settings.home == tmp_path / "clicks"


def test_every_wrong_setting_is_in_one_message(settings: Settings) -> None:
    settings.pipeline_file.write_text(
        'buckets = 0\nreport_hours = "many"\ncolour = "red"\n[thresholds]\ntop_url_share = {warning = 2}\n'
    )
    with pytest.raises(UsageError) as raised:
        _ = settings.pipeline
    for part in ("buckets: ", "(got 0)", "report_hours: ", "'many'", "thresholds: ", "colour: "):
        assert part in str(raised.value)


def test_a_setting_left_out_takes_what_the_shipped_file_says(settings: Settings) -> None:
    settings.pipeline_file.write_text("")
    assert settings.pipeline == read_toml(REPOSITORY / "config" / "pipeline.toml", PipelineSettings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[thresholds]\ntop_share = {warning = 1}",
            "unknown threshold 'top_share'; expected one of quarantined_share, ",
        ),
        ("[thresholds]\nbot_share = {warning = 1.5}", "bot_share has the bound 1.5; expected a share, 0 to 1"),
        ("[thresholds]\nbot_share = {}", "bot_share has no bound; expected warning, critical or both"),
        ("[thresholds]\nbot_share = {warning = 0.5, critical = 0.4}", "critical = 0.4 is below warning = 0.5"),
        ("[thresholds]\nbot_share = {critical = 0.4}", "critical = 0.4 is below warning = 0.5 (the bound that is left"),
        ("[[checks]]\nmetric = 'clicks'", "unknown metric 'clicks'; expected one of lines, accepted, "),
        ("[[checks]]\nmetric = 'null_share'", "column belongs to the metrics null_share, matching_share"),
        ("[[checks]]\nmetric = 'null_share'\ncolumn = 'colour'", "unknown column 'colour'; expected one of click_date"),
        ("[[checks]]\nmetric = 'matching_share'\ncolumn = 'url'", "pattern belongs to the metric matching_share"),
        ("[[checks]]\nmetric = 'matching_share'\ncolumn = 'url'\npattern = '('", "'(' is no regular expression"),
        ("[[checks]]\nmetric = 'lines'\nlowest = 2\nhighest = 1", "highest = 1 is below lowest = 2"),
        ("[[checks]]\nmetric = 'lines'\nseverity = 'fatal'", "Input should be 'critical' or 'warning' (got 'fatal')"),
    ],
)
def test_wrong_thresholds_and_checks_say_what_is_allowed(settings: Settings, text: str, message: str) -> None:
    bounds = "" if "lowest" in text else "\nhighest = 1"
    check = f"\nname = 'x'\nreason = 'why'{bounds}" if "[[checks]]" in text else ""
    settings.pipeline_file.write_text(text + check)
    with pytest.raises(UsageError) as raised:
        _ = settings.pipeline
    assert message in str(raised.value)


def test_checks_need_names_of_their_own(settings: Settings) -> None:
    settings.pipeline_file.write_text(2 * "[[checks]]\nname = 'x'\nmetric = 'lines'\nlowest = 1\nreason = 'why'\n")
    with pytest.raises(UsageError, match="the check 'x' is there twice"):
        _ = settings.pipeline


def test_bounds_left_out_stay_as_built_in(settings: Settings) -> None:
    settings.pipeline_file.write_text("[thresholds]\nquarantined_share = {warning = 0.2}\n")
    quarantined = settings.pipeline.thresholds["quarantined_share"]
    assert (quarantined.warning, quarantined.critical) == (0.2, 0.5)
    assert settings.pipeline.thresholds["skew"].warning == 2.5


def test_the_key_of_releases_is_made_once_for_its_owner_alone(settings: Settings) -> None:
    key = settings.release_key()
    assert settings.release_key() == key
    assert len(key) == 64
    assert settings.release_key_file.stat().st_mode & 0o777 == 0o600
    assert settings.release_key_file.parent.stat().st_mode & 0o777 == 0o700
