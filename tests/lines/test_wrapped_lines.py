"""Lines inside of JSON objects, as containers and shippers write them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from include.source_fields import LineFields
from include.sources import Source
from tests.lines.parsing import ACCESS, ISO, REST, log_line, parse

JSON = Source(name="x", format="json", inside=("log",), fields=LineFields(time="ts", url="url", client_address="ip"))
LOG = ACCESS.model_copy(update={"inside": ("log",)})
LINE = json.dumps({"ts": ISO, "url": "http://shop.test/a", "ip": "8.8.8.8"})
ACCESS_LINE = log_line(rest=REST).decode()


def reasons(source: Source, *records: Any) -> list[str | None]:
    """What becomes of these objects."""
    return [row["reason"] for row in parse([json.dumps(record).encode() for record in records], source)]


@pytest.mark.parametrize(
    ("inside", "record"),
    [
        ("log", {"log": "{}\n", "stream": "stdout", "time": ISO}),
        ("log", {"log": "{}\r\n"}),
        ("msg", {"msg": "{}", "host": "web1"}),
        ('"@message"', {"@message": "{}"}),
        ("kubernetes.log", {"kubernetes": {"log": "{}"}}),
        (("message", "log"), {"log": "{}"}),
        ("events[0].message", {"events": [{"message": "{}"}]}),
        ("msg", {"msg": " {}"}),  # rsyslog
    ],
)
def test_a_line_is_read_as_if_it_stood_by_itself(inside: str, record: dict[str, Any]) -> None:
    for line, source in ((LINE, JSON), (ACCESS_LINE, LOG)):
        wrapped = json.dumps(record).replace("{}", json.dumps(line)[1:-1]).encode()
        wrapping = Source.model_validate(source.model_dump() | {"inside": inside})
        (row,) = parse([wrapped], wrapping)
        (alone,) = parse([line.encode()], source.model_copy(update={"inside": None}))
        assert row["reason"] is None
        assert {name: row[name] for name in row if name not in ("bytes", "sampled")} == {
            name: alone[name] for name in row if name not in ("bytes", "sampled")
        }


def test_a_line_is_inside_of_json_in_a_text() -> None:
    outer = {"message": json.dumps({"log": f"{ACCESS_LINE}\n"})}
    source = Source.model_validate(LOG.model_dump() | {"inside": ("message.log",)})
    assert reasons(source, outer, {"message": {"log": ACCESS_LINE}}) == [None, None]


def test_what_has_no_line_inside_is_no_line_of_the_format() -> None:
    records = [{"log": "no"}, {"message": LINE}, {"log": None}, {"log": {"ts": ISO}}, [], {"log": ""}]
    assert set(reasons(LOG, *records)) == {"not_access_log"}
    (row,) = parse([b"no JSON"], LOG)
    assert row["reason"] == "not_access_log"


def test_parts_of_a_line_that_docker_has_cut_are_no_lines() -> None:
    line = LINE[:-1] + ', "pad": "' + "x" * 20_000 + '"}\n'
    parts = [{"log": line[: 1 << 14]}, {"log": line[1 << 14 :]}, {"log": LINE + "\n"}]
    assert reasons(JSON, *parts) == ["part_of_line", "part_of_line", None]
    for source in (JSON, LOG):
        longer = [{"log": "x" * (1 << 14)}] * 2 + [{"log": "x"}, {"log": "y"}, {"log": 3}]
        not_formed = "not_json" if source is JSON else "not_access_log"
        assert reasons(source, *longer) == ["part_of_line"] * 3 + [not_formed] * 2
    # Its end may look like a line.
    assert reasons(JSON, {"log": "x" * (1 << 14)}, {"log": LINE + "\n"}, {"log": LINE + "\n"}) == [
        "part_of_line", "part_of_line", None]  # fmt: skip


def test_parts_of_a_line_that_kubernetes_has_cut_are_no_lines() -> None:
    parts = [("P", LINE[:9]), ("P", LINE[9:20]), ("F", LINE[20:]), ("F", LINE), ("F", LINE[:9])]
    cri = [f"2026-03-01T12:30:00.1Z stdout {tag} {text}".encode() for tag, text in parts]
    source = JSON.model_copy(update={"inside": None})
    expected = ["part_of_line"] * 3 + [None, "not_json"]
    assert [row["reason"] for row in parse(cri, source)] == expected
    log = [record.replace(LINE.encode(), ACCESS_LINE.encode()) for record in cri]
    reasons = [row["reason"] for row in parse(log, ACCESS)]
    assert reasons == ["part_of_line"] * 3 + [None, "not_access_log"]


def test_clients_are_masked_as_in_the_line_itself() -> None:
    broken = {"log": 'dsl-7.isp.test - - [x] "GET /?from=198.51.100.7"\n', "host": "203.0.113.7"}
    (row,) = parse([json.dumps(broken).encode()], LOG)
    assert json.loads(row["raw"]) == {
        "log": '- - - [x] "GET /?from=198.51.100.0"\n', "host": "203.0.113.0"}  # fmt: skip
    (row,) = parse([json.dumps({"log": json.dumps({"ip": "dsl-7.isp.test"})}).encode()], JSON)
    assert json.loads(json.loads(row["raw"])["log"]) == {"ip": "-"}
    (row,) = parse([json.dumps(broken).encode()[:40]], LOG)
    assert "dsl-7" not in row["raw"]
