from __future__ import annotations

from datetime import timedelta

import pytest

from include.hours import Hour
from include.landing import hour_folder, hour_of_folder, is_ready, look_at
from include.settings import Settings
from include.sources import load_sources

HOUR = Hour.parse("2026-03-01T05")


def test_folder_names_source_date_and_hour(settings: Settings) -> None:
    folder = hour_folder(settings.landing, "web", HOUR)
    assert folder == settings.landing / "web" / "log_date=2026-03-01" / "log_hour=05"


def test_a_folder_that_names_no_hour_is_of_no_hour(settings: Settings) -> None:
    folder = hour_folder(settings.landing, "web", HOUR)
    assert hour_of_folder(folder) == HOUR
    for date, hour in (("0001-01-01", "00"), ("9999-12-31", "23"), ("today", "05"), ("2026-03-01", "24")):
        assert hour_of_folder(settings.landing / "web" / f"log_date={date}" / f"log_hour={hour}") is None


def test_hidden_names_and_folders_are_not_data(settings: Settings) -> None:
    folder = hour_folder(settings.landing, "web", HOUR)
    (folder / "deeper").mkdir(parents=True)
    for name, content in {
        "b.json": b"12345",
        "a.json.gz": b"123",
        "X.json": b"",
        ".c.json": b"1",
        "_d": b"1",
        "_SUCCESS": b"",
    }.items():
        (folder / name).write_bytes(content)
    landed = look_at(settings.landing, "web", HOUR)
    assert [file.name for file in landed.files] == ["X.json", "a.json.gz", "b.json"]
    assert (landed.folder, landed.hour, landed.others) == (folder, HOUR, (folder / "deeper",))
    assert landed.size_bytes == 8
    assert landed.is_closed
    (folder / "_SUCCESS").unlink()
    assert not look_at(settings.landing, "web", HOUR).is_closed


@pytest.mark.parametrize("is_file", [False, True])
def test_hour_that_never_came_has_nothing(settings: Settings, is_file: bool) -> None:
    if is_file:
        folder = hour_folder(settings.landing, "web", HOUR)
        folder.parent.mkdir(parents=True)
        folder.write_text("not a folder")
    landed = look_at(settings.landing, "web", HOUR)
    assert (landed.files, landed.size_bytes, landed.is_closed) == ((), 0, False)


def test_hour_is_ready_when_closed_or_after_its_grace_time(settings: Settings) -> None:
    source = load_sources(settings)["web"]
    end_of_grace = HOUR.end + timedelta(minutes=source.grace_minutes)
    just_before = end_of_grace - timedelta(microseconds=1)
    assert not is_ready(settings.landing, source, HOUR, just_before)
    assert is_ready(settings.landing, source, HOUR, end_of_grace)
    folder = hour_folder(settings.landing, "web", HOUR)
    folder.mkdir(parents=True)
    assert not is_ready(settings.landing, source, HOUR, just_before)
    (folder / "_SUCCESS").touch()
    assert is_ready(settings.landing, source, HOUR, HOUR.start)
