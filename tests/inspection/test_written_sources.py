"""clickmill inspect --write: what is in config/sources.toml stays as it is, and what cannot be done is one line."""

from __future__ import annotations

import os
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from include.errors import UsageError
from include.settings import Settings
from include.sources import load_sources, source_name_of
from include.storage import write_whole
from spark_jobs.inspection import source_toml
from spark_jobs.inspection.source_toml import add_source, as_toml

TABLE = as_toml("shop", {"preset": "combined", "base_url": "https://shop.example.com"})
EDGE = '# ours\n[sources.edge] # the first\nformat = "combined"\nbase_url = "https://edge.example"'


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "config" / "sources.toml"
    file.parent.mkdir()
    file.write_text(EDGE)
    monkeypatch.setenv("CLICKMILL_SOURCES", str(file))
    return file


@pytest.mark.parametrize(
    "content",
    [EDGE, f"{EDGE}\n", f"{EDGE}\n\n\n", f"{EDGE}\n# the last words, é", f"{EDGE}\n".replace("\n", "\r\n"),
     EDGE.replace("\n", "\r\n")],
)  # fmt: skip
def test_all_that_was_there_stays(sources: Path, content: str) -> None:
    sources.write_bytes(content.encode())
    settings = Settings.from_environment()

    add_source(settings, "shop", TABLE)
    add_source(settings, "blog", TABLE.replace("shop", "blog"))

    written = sources.read_bytes()
    assert written.startswith(content.encode())
    assert written.count(b"\n") == written.count(b"\r\n") or b"\r" not in content.encode()
    assert [*load_sources(settings)] == ["edge", "shop", "blog"]
    assert tomllib.loads(written.decode())["sources"]["blog"]["base_url"] == "https://blog.example.com"


def test_of_sources_that_are_added_at_the_same_time_none_is_lost(
    sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly(file: Path, content: bytes, **options: Any) -> None:
        time.sleep(0.05)
        write_whole(file, content, **options)

    monkeypatch.setattr(source_toml, "write_whole", slowly)
    names = [f"shop{number}" for number in range(4)]
    with ThreadPoolExecutor(len(names)) as together:
        adding = [
            together.submit(
                add_source, Settings.from_environment(), name, TABLE.replace("sources.shop", f"sources.{name}")
            )
            for name in names
        ]
    assert [each.exception() for each in adding] == [None] * len(names)
    assert {*load_sources(Settings.from_environment())} == {"edge", *names}
    assert [*sources.parent.iterdir()] == [sources]


def test_a_link_stays_one_and_so_does_the_mode(sources: Path) -> None:
    real = sources.with_name("real.toml")
    sources.rename(real)
    real.chmod(0o640)
    sources.symlink_to(real)
    add_source(Settings.from_environment(), "shop", TABLE)
    assert sources.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert "[sources.shop]" in real.read_text()


@pytest.mark.parametrize("name", ["Shop", "my-shop", "é", "1st", "a" * 64, "a b", "all", "a.b", "a\nb"])
def test_a_name_that_is_none_is_one_line(sources: Path, name: str) -> None:
    with pytest.raises(UsageError) as error:
        add_source(Settings.from_environment(), name, TABLE)
    assert repr(name) in str(error.value)
    assert "\n" not in str(error.value)
    assert sources.read_text() == EDGE


def test_a_name_that_is_taken_is_refused(sources: Path) -> None:
    with pytest.raises(UsageError, match=r"--source edge: .* has it already; expected a name that is new"):
        add_source(Settings.from_environment(), "edge", TABLE)
    assert sources.read_text() == EDGE


def test_a_file_that_may_not_be_written_is_one_line(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may
    with pytest.raises(UsageError, match="cannot be written: it is read-only; add what is shown"):
        add_source(Settings.from_environment(), "shop", TABLE)
    assert sources.read_text() == EDGE
    assert [*sources.parent.iterdir()] == [sources]


def test_a_file_with_all_sources_in_braces_is_one_line(sources: Path) -> None:
    sources.write_text('sources = { edge = { format = "combined", base_url = "https://edge.example" } }\n')
    with pytest.raises(UsageError, match="with the new source is not TOML"):
        add_source(Settings.from_environment(), "shop", TABLE)


@pytest.mark.parametrize(("file", "name"), [("all.log", "log_all"), (f"{'a' * 90}.log", "a" * 63), ("-.log", "log")])
def test_a_file_gives_a_name_that_a_source_may_have(file: str, name: str) -> None:
    assert source_name_of(Path(file)) == name
