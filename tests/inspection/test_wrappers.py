"""Lines inside of JSON, as containers, shippers and clouds write them: found, written, and read by what is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from include.settings import Settings
from include.sources import load_sources
from spark_jobs.inspection.inspection import Inspection, inspect
from spark_jobs.inspection.source_toml import add_source, as_toml
from spark_jobs.inspection.wrappers import wrapped_texts

Wrap = Callable[[str], Mapping[str, Any]]
TIME = "2026-03-10T12:30:00.123456789Z"
KUBERNETES = {"namespace_name": "shop", "pod_name": "web-0", "container_name": "nginx"}

#: Where each has the line, and the object around it.
WRAPPERS: dict[str, tuple[str, Wrap]] = {
    "docker": ("log", lambda line: {"log": f"{line}\n", "stream": "stdout", "time": TIME}),
    "kubernetes": ("log", lambda line: {"log": line, "stream": "stdout", "kubernetes": KUBERNETES, "time": TIME}),
    "rsyslog": ("msg", lambda line: {"timegenerated": TIME, "host": "web1", "syslogtag": "nginx:", "msg": f" {line}"}),
    "vector": ("message", lambda line: {"file": "/var/log/a.log", "message": line, "timestamp": TIME}),
    "filebeat": (
        "message",
        lambda line: {"@timestamp": TIME, "log": {"offset": 1, "file": {"path": "/a.log"}}, "message": line},
    ),
    "elastic": ("event.original", lambda line: {"@timestamp": TIME, "event": {"original": line, "kind": "event"}}),
    "cloudwatch": ("message", lambda line: {"id": "38", "timestamp": 1773145800123, "message": line}),
    "journald": (
        "MESSAGE",
        lambda line: {"__REALTIME_TIMESTAMP": "1773145800123456", "_PID": "7", "MESSAGE": line, "PRIORITY": "6"},
    ),
    "gcp": ("textPayload", lambda line: {"insertId": "a1", "textPayload": line, "timestamp": TIME}),
    "loki": ("line", lambda line: {"labels": {"app": "web"}, "line": line, "timestamp": TIME}),
    "unnamed": ('"the text"', lambda line: {"the text": line}),
    "docker in filebeat": ("message.log", lambda line: {"message": json.dumps({"log": f"{line}\n"}), "input": "log"}),
}
_AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:137.0) Gecko/20100101 Firefox/137.0"
_REQUEST = '"GET /p{n} HTTP/1.1" 200 5 "-" "' + _AGENT + '"'
LINES = {
    "combined": '8.8.8.8 - - [10/Mar/2026:12:30:00 +0000] ' + _REQUEST,
    "json": '{"at": "2026-03-10T12:30:00Z", "url": "http://localhost/p{n}", "ip": "8.8.8.8", "status": 200}',
    "logfmt": 'time=2026-03-10T12:30:00Z level=info path=/p{n} status=200 ip=8.8.8.8',
    "caddy": '{"ts": 1773145800.5, "logger": "http.log.access", "status": 200, "request": {"remote_ip": "8.8.8.8", '
    '"host": "localhost", "uri": "/p{n}", "method": "GET", "headers": {}}}',
    "envoy": '[2026-03-10T12:30:00.000Z] "GET /p{n} HTTP/1.1" 200 - 0 5 3 2 "8.8.8.8" "curl/8" "id" "localhost" "-"',
}  # fmt: skip


def pages(inspection: Inspection) -> list[str]:
    return [row["url"].split("://", 1)[1] for row in inspection.rows]


def written(file: Path, wrap: Wrap, line: str) -> Path:
    objects = [wrap(line.replace("{n}", str(number))) for number in range(5)]
    file.write_text("".join(json.dumps(each) + "\n" for each in objects))
    return file


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_where_the_lines_are_is_found(wrapper: str) -> None:
    inside, wrap = WRAPPERS[wrapper]
    lines = [LINES["combined"].replace("{n}", str(n)) for n in range(5)]
    texts = dict(wrapped_texts([json.dumps(wrap(line)) for line in lines]))
    assert texts[inside] == lines


@pytest.mark.parametrize("kind", LINES)
def test_a_line_inside_of_json_is_known(kind: str, tmp_path: Path) -> None:
    inspection = inspect(written(tmp_path / "web.log", WRAPPERS["docker"][1], LINES[kind]), Settings.from_environment())
    assert inspection.settings.get("inside") == "log"
    assert inspection.is_sure
    assert pages(inspection) == [f"localhost/p{n}" for n in range(5)]
    assert {row["country_code"] for row in inspection.rows} == {"US"}


def test_an_object_inside_of_an_object_is_read_by_its_preset(tmp_path: Path) -> None:
    log = written(tmp_path / "web.log", lambda line: {"insertId": "a", "jsonPayload": json.loads(line)}, LINES["caddy"])
    inspection = inspect(log, Settings.from_environment())
    assert dict(inspection.settings) == {"preset": "caddy", "inside": "jsonPayload"}
    assert pages(inspection) == [f"localhost/p{n}" for n in range(5)]


def test_what_is_written_reads_the_lines_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = tmp_path / "sources.toml"
    sources.write_text("[sources]\n")
    monkeypatch.setenv("CLICKMILL_SOURCES", str(sources))
    settings = Settings.from_environment()
    log = written(tmp_path / "web.log", WRAPPERS["elastic"][1], LINES["combined"])

    add_source(settings, "web", as_toml("web", inspect(log, settings).settings))

    source = load_sources(settings)["web"]
    assert source.inside == ("event.original",)
    declared = inspect(log, settings, "web")
    assert declared.is_declared
    assert pages(declared) == [f"localhost/p{n}" for n in range(5)]


def test_a_text_that_is_no_line_is_none(tmp_path: Path) -> None:
    log = written(
        tmp_path / "app.log",
        lambda line: {"time": TIME, "message": "started by somebody at 12:30:00, path /p1, all is well"},
        "",
    )
    assert not inspect(log, Settings.from_environment()).settings


def test_a_long_text_without_a_time_is_looked_through_once() -> None:
    assert dict(wrapped_texts([json.dumps({"message": "a b" * 200_000})])) == {}
