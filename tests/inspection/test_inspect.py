"""clickmill inspect: what a file is, what to write for it, and what of it would be no click."""

from __future__ import annotations

import gzip
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clickmill.app import run
from include.errors import UsageError
from include.settings import Settings
from include.sources import load_sources

AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:137.0) Gecko/20100101 Firefox/137.0"
BOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"


def combined(path: str, second: int = 0, client: str = "8.8.8.8", agent: str = AGENT) -> str:
    minute = f"{second // 3600 + 10:02}:{second // 60 % 60:02}:{second % 60:02}"
    return f'{client} - - [10/Mar/2026:{minute} +0000] "GET {path} HTTP/1.1" 200 512 "-" "{agent}"'


Inspect = Callable[..., dict[str, Any]]


@pytest.fixture
def inspect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Inspect:
    sources = tmp_path / "config" / "sources.toml"
    sources.parent.mkdir()
    sources.write_text('# ours\n[sources.edge]\nformat = "combined"\nbase_url = "https://edge.example"\n')
    monkeypatch.setenv("CLICKMILL_SOURCES", str(sources))
    monkeypatch.setenv("CLICKMILL_HOME", str(tmp_path / "home"))

    def inspected(*arguments: str | Path, code: int = 0) -> dict[str, Any]:
        assert run(["inspect", "--json", *map(str, arguments)]) == code
        report: dict[str, Any] = json.loads(capfd.readouterr().out)
        return report

    return inspected


def test_a_sample_says_what_the_whole_is(inspect: Inspect, tmp_path: Path) -> None:
    log = tmp_path / "shop-access.log"
    lines = [combined(f"/p{n % 7}?session={n}", n, agent=BOT if n % 10 == 0 else AGENT) for n in range(20_000)]
    lines[1] = "no line of a log"
    log.write_text("\n".join(lines) + "\n")

    (file,) = inspect(log)["files"]

    assert file["settings"] == {"preset": "combined", "base_url": "http://localhost"}
    assert file["is_sure"]
    assert not file["is_whole"]
    assert (file["lines"], file["end"]) == (6_000, 1_000)
    assert file["first_hour"] == "2026-03-10T10"
    assert file["last_hour"] == "2026-03-10T15", "the end is looked at too"
    assert file["countries"] == {"US": 5_999}
    assert file["crawlers"] == 600
    assert {outcome["reason"]: (outcome["lines"], outcome["number"]) for outcome in file["outcomes"]} == {
        None: (5_999, 1),
        "not_access_log": (1, 2),
    }
    assert file["many_values"] == [{"kind": "parameter", "name": "session", "values": 5_999, "lines": 5_999}]
    assert file["rows"][0]["url"] == "http://localhost/p0?session=0"


@pytest.mark.parametrize(
    ("path", "clicks", "line"),
    [
        (
            "/p{page}?session={n}",
            2_000,
            "pages: 2,000 different URLs: nearly all are different, because of the parameter session (2,000 values in "
            '2,000 lines): [sources.shop.pages] drop_parameters = ["session"]',
        ),
        ("/user/{n}/orders", 2_000, '2,000 lines): [sources.shop.pages] paths = ["/user/{id:number}/*"]'),
        ("/p{page};sid={n}", 2_000, '2,000 lines): tracking_parameters = ["sid"] in config/pipeline.toml'),
        ("/p{page}?session={n}", 900, "pages: 900 different URLs\n  parameter session: 900 values in 900 lines\n"),
        ("/p{page};jsessionid={n}", 2_000, "pages: 7 different URLs\n"),
    ],
)
def test_why_urls_are_nearly_all_different_is_said_with_the_setting_that_ends_it(
    inspect: Inspect, tmp_path: Path, capfd: pytest.CaptureFixture[str], path: str, clicks: int, line: str
) -> None:
    log = tmp_path / "shop.log"
    lines = [combined(path.format(page=n % 7, n=n), n) for n in range(clicks)]
    log.write_text("\n".join(lines) + "\n")
    assert run(["inspect", str(log)]) == 0
    assert line in capfd.readouterr().out
    (file,) = inspect(log)["files"]
    assert bool(file["many_because"]) == ("nearly" in line or "2,000 lines" in line)


def test_what_is_written_is_read_and_kept(inspect: Inspect, tmp_path: Path) -> None:
    log = tmp_path / "shop.log.gz"
    log.write_bytes(gzip.compress(f"{combined('/a')}\n".encode()))
    sources = Settings.from_environment().sources_file
    before = sources.read_text()

    assert inspect(log, "--base-url", "https://shop.example.com", "--write")["is_new"]
    assert sources.read_text().startswith(before.rstrip())
    assert tomllib.loads(sources.read_text())["sources"]["shop"] == {
        "preset": "combined",
        "base_url": "https://shop.example.com",
    }
    assert load_sources(Settings.from_environment())["shop"].log_format == "combined"

    written = sources.read_text()
    again = inspect(log, "--write")
    assert not again["is_new"]
    assert again["files"][0]["is_declared"]
    assert again["files"][0]["rows"][0]["url"] == "https://shop.example.com/a", "as it is declared"
    assert sources.read_text() == written
    with pytest.raises(UsageError, match="has it already; expected a name that is new"):
        inspect(log, "--base-url", "https://other.example.com", "--write")


def test_what_nobody_knows_is_not_declared(inspect: Inspect, tmp_path: Path) -> None:
    log = tmp_path / "what.log"
    log.write_text("alpha beta\ngamma\n")
    (file,) = inspect(log, code=1)["files"]
    assert not file["settings"]
    assert not file["is_sure"]
    with pytest.raises(UsageError, match="--write: expected files that are surely of one format"):
        inspect(log, "--write")


@pytest.mark.parametrize("is_known", [True, False])
def test_nothing_that_is_shown_has_a_password(inspect: Inspect, tmp_path: Path, is_known: bool) -> None:
    log = tmp_path / "what.log"
    asked = "https://ada:s3cret@shop.test/a?u=https%3A//ada%3As3cret%40shop.test"
    lines = [combined(asked, second) for second in range(9)] if is_known else []
    log.write_text("\n".join([*lines, f"no line of any format {asked}", ""]))
    shown = inspect(log, code=0 if is_known else 1)
    assert "shop.test" in json.dumps(shown)
    assert "s3cret" not in json.dumps(shown)


@pytest.mark.parametrize("site", ["shop.example.com", "https://shop.example.com/a", ""])
def test_a_site_that_is_none_is_one_line(inspect: Inspect, site: str, tmp_path: Path) -> None:
    log = tmp_path / "shop.log"
    log.write_text(f"{combined('/a')}\n")
    with pytest.raises(UsageError, match=f"--base-url '{site}': expected a site without a path"):
        inspect(log, "--base-url", site)


def test_a_file_that_is_not_there_is_said_to_be_none(inspect: Inspect, tmp_path: Path) -> None:
    (file,) = inspect(tmp_path / "no.log", "--base-url", "https://shop.example.com/", code=1)["files"]
    assert file["refused"] == f"no file {tmp_path / 'no.log'}; expected a log file or a folder of them"


def test_what_is_no_log_is_refused_by_its_name(inspect: Inspect, tmp_path: Path) -> None:
    log = tmp_path / "export.json"
    log.write_text('[{"ts": 1, "url": "http://a.example/"},\n{"ts": 2, "url": "http://a.example/"}]\n')
    (file,) = inspect(log, code=1)["files"]
    assert "is a JSON array" in file["refused"]


@pytest.mark.parametrize(
    ("name", "source"), [("Access Log-2026.03.log", "access_log_2026"), ("2026.log", "log_2026"), ("é.log", "log")]
)
def test_a_source_is_named_after_its_file(inspect: Inspect, tmp_path: Path, name: str, source: str) -> None:
    log = tmp_path / name
    log.write_text(f"{combined('/')}\n")
    assert inspect(log)["source"] == source
