"""Fields of JSON as people have it: by paths of any kind, each line's value of them against what it says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from include.source_fields import Entry, LineFields, field_path, joined_fields
from include.sources import Source
from spark_jobs.lines.parse_lines import click_times
from tests.lines.lines import lines_table
from tests.lines.parsing import ISO, NOON, parse

FIELDS = {"time": "ts", "url": "url"}
PAGE = {"ts": ISO, "url": "http://shop.test/"}


def click(record: dict[str, Any], base_url: str | None = None, **fields: Any) -> dict[str, Any]:
    """What becomes of a line of a source that maps these fields."""
    source = Source(name="x", format="json", base_url=base_url, fields=LineFields(**(FIELDS | fields)))
    row: dict[str, Any]
    (row,) = parse([json.dumps(record).encode()], source)
    return row


def nested(value: Any, *names: str) -> dict[str, Any]:
    """The value in objects in objects."""
    for name in reversed(names):
        value = {name: value}
    return PAGE | value


PARAMS = [
    {"key": "page_title", "value": {"string_value": "x"}},
    {"key": "id", "value": {"int_value": 7}},
    {"key": "id", "value": {"int_value": 8}},
]
VISITORS: dict[str, tuple[str | list[str], dict[str, Any], str | None]] = {
    "nested": ("user.id", nested("v", "user", "id"), "v"),
    "five deep": ("a.b.c.d.e", nested("v", "a", "b", "c", "d", "e"), "v"),
    "a name with points": ('"user.name".first', nested("v", "user.name", "first"), "v"),
    "a flat name with points": ('"user.id"', nested("v", "user.id"), "v"),
    "a flat name without quotation marks": ("user.id", nested("v", "user.id"), "v"),
    "nested before flat": ("user.id", nested("v", "user", "id") | {"user.id": "w"}, "v"),
    "a name with a space": ('"user id"', nested("v", "user id"), "v"),
    "a name with brackets": ('"user[0]"', nested("v", "user[0]"), "v"),
    "a name with quotation marks": (r'"a\"b"', nested("v", 'a"b'), "v"),
    "a name with an apostrophe": ("it's", nested("v", "it's"), "v"),
    "an element": ("user[0]", nested(["v", "w"], "user"), "v"),
    "the last element": ("user[-1]", nested(["w", "v"], "user"), "v"),
    "no such element": ("user[2]", nested(["v", "w"], "user"), None),
    "an element of no list": ("user[0]", nested("v", "user"), None),
    "inside an element": ("users[1].id", nested([{"id": "w"}, {"id": "v"}], "users"), "v"),
    "an element of an element": ("users[0][1]", nested([["w", "v"]], "users"), "v"),
    "an entry": ("params[key=id].value.int_value", nested(PARAMS, "params"), "7"),
    "an entry of a name in quotation marks": ('params["key"="id"].value.int_value', nested(PARAMS, "params"), "7"),
    "no such entry": ("params[key=ID].value.int_value", nested(PARAMS, "params"), None),
    "two entries": (["params[key=x].value.int_value", "params[key=id].value.int_value"],
                    nested(PARAMS, "params"), "7"),
    "a list of one": ("user", nested(["v"], "user"), "v"),
    "a list of one inside": ("headers.User", nested(["v"], "headers", "User"), "v"),
    "a list of none": ("user", nested([], "user"), None),
    "a list of null": ("user", nested([None], "user"), None),
    "a list of two": ("user", nested(["v", "w"], "user"), '["v","w"]'),
    "a text like a list": ("user", nested('["v"]', "user"), '["v"]'),
    "a text like the beginning of a list": ("user", nested("[v", "user"), "[v"),
    "JSON in a text": ("log.id", nested(json.dumps({"id": "v"}), "log"), "v"),
    "JSON in a text, with spaces": ("log.id", nested('\n { "id" : "v" }\n', "log"), "v"),
    "JSON in a text, deeper": ("a.log.user.id", nested(json.dumps({"user": {"id": "v"}}), "a", "log"), "v"),
    "JSON in a text, flat": ("log.user.id", nested(json.dumps({"user.id": "v"}), "log"), "v"),
    "JSON in a text of JSON in a text": (
        "a.b.id", nested(json.dumps({"b": json.dumps({"id": "v"})}), "a"), "v"),
    "a list in a text": ("log[0].id", nested('[{"id": "v"}]', "log"), "v"),
    "JSON in a text of a list": ("Records[0].body.id", nested([{"body": '{"id": "v"}'}], "Records"), "v"),
    "a list of one in JSON in a text": ("log.id", nested('{"id": ["v"]}', "log"), "v"),
    "a text that is no JSON": ("log.id", nested('{"id": "v"', "log"), None),
    "a text with a number": ("log.id", nested("17", "log"), None),
    "of several the first": (["a", "b"], nested("v", "a") | {"b": "w"}, "v"),
    "of several the second": (["a", "b"], nested("v", "b"), "v"),
    "of several the first that is not blank": (["a", "b", "c"], nested("", "a") | {"b": "-", "c": "v"}, "v"),
    "of several one inside another": (["a.b", "a"], nested("v", "a"), "v"),
    "of several one inside another, the first": (["a.b", "a"], nested("v", "a", "b"), "v"),
    "of several none": (["a", "b.c"], PAGE, None),
    "what servers write for nothing": ("user", nested("-", "user"), None),
    "a name that is a star": ('"*".id', nested("v", "*", "id"), "v"),
    "no name that is a star": ('"*".id', nested("v", "b", "id"), None),
    "a name with a backslash": (r'"a\\b"."c\"d"', nested("v", "a\\b", 'c"d'), "v"),
    "a name like a path": ('"$.a[0]"."#-1"', nested("v", "$.a[0]", "#-1"), "v"),
    "no place in a list for a name": ("user.0", nested(["v"], "user"), None),
    "no place in a text": ("user[0]", nested("vw", "user"), None),
    "an entry of no list": ("params[key=id].value", nested("[no list", "params"), None),
    "an entry of an object": ("params[key=id].value", nested({"key": "id", "value": "v"}, "params"), None),
    "an entry of a list in a text": ("params[key=id].value", nested('[{"key": "id", "value": "v"}]', "params"), "v"),
    "an entry of an entry": ("a[k=x].b[k=1].c", nested([{"k": "x", "b": [7, {"k": 1, "c": ["v"]}]}], "a"), "v"),
    "names that differ in case": (["User", "user"], nested("v", "user"), "v"),
}  # fmt: skip


@pytest.mark.parametrize("name", VISITORS)
def test_a_path_leads_to_its_value(name: str) -> None:
    path, record, expected = VISITORS[name]
    row = click(record, visitor=path)
    assert (row["reason"], row["visitor_id"]) == (None, expected)


def test_a_path_leads_to_its_value_among_other_lines() -> None:
    raw = [json.dumps(record).encode() for _, record, _ in VISITORS.values()]
    for place, (path, _, expected) in enumerate(VISITORS.values()):
        source = Source(name="x", format="json", fields=LineFields(**FIELDS, visitor=path))
        assert parse(raw, source)[place]["visitor_id"] == expected


#: A name of points as JSON may write it, and the path that it is.
NAMES = {
    "a point": (rb'"user\u002eid"', "user.id"),
    "a slash": (rb'"a\/b.id"', '"a/b".id'),
    "a letter": (rb'"us\u00e9r.id"', '"us\u00e9r".id'),
    "a quotation mark": (rb'"a\"b.id"', r'"a\"b".id'),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_flat_name_is_one_however_json_writes_it(name: str) -> None:
    written, path = NAMES[name]
    source = Source(name="x", format="json", fields=LineFields(**FIELDS, visitor=path))
    other = json.dumps(PAGE).encode()
    rows = parse([other, other[:-1] + b", " + written + b': "v"}', other], source)
    assert [row["visitor_id"] for row in rows] == [None, "v", None]


def test_a_line_that_is_no_json_changes_nothing_of_others() -> None:
    source = Source(name="x", format="json", fields=LineFields(**FIELDS, visitor="user.id"))
    good = json.dumps(nested("v", "user", "id")).encode()
    raw = [good, b"  " + good + b" \r\n", b'{"a": }', good[:-1] + b', "b": "\\ud83d"}', good[:-1], b"[1]", b"7}", good]
    rows = parse(raw, source)
    assert [row["reason"] for row in rows] == [None, None, "not_json", None, *["not_json"] * 3, None]
    assert {row["visitor_id"] for row in rows if not row["reason"]} == {"v"}


def test_half_a_pair_inside_of_a_text_is_as_one_in_the_line() -> None:
    source = Source(name="x", format="json", fields=LineFields(time="at.ts", url="at.url", visitor="at.user.id"))
    inside = [
        {"ts": ISO, "url": "https://a.test/", "user": {"id": "v"}, "other": "\ud83d"},
        {"ts": ISO, "url": "https://a.test/", "user": {"id": "v\ud83d"}},
        {"ts": ISO, "url": "https://a.test/", "user": json.dumps({"id": "v", "other": "\udc00"})},
        {"ts": ISO, "url": "https://a.test/", "user": json.dumps({"id": "v\ud83d"})},
        {"ts": ISO, "url": "https://a.test/", "user": {"id": "\ud83d\ude00"}, "other": "\ud83d"},
    ]
    raw = [json.dumps({"at": json.dumps(each)}).encode() for each in inside]
    raw.append(json.dumps({"at": json.dumps(inside[0]).replace("\\ud83d", r"\x22")}).encode())
    rows = parse(raw, source)
    assert [(row["reason"], row["visitor_id"]) for row in rows] == [
        (None, "v"), ("not_json", None), (None, "v"), ("not_json", None), (None, "\U0001f600"), (None, "v"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "record", [nested(ISO, "at", "ts"), nested(ISO, "at.ts"), nested(json.dumps({"ts": ISO}), "at")]
)
def test_landing_finds_the_time_that_the_click_has(record: dict[str, Any]) -> None:
    source = Source(name="x", format="json", fields=LineFields(time="at.ts", url="url"))
    raw = [json.dumps(record).encode()]
    assert parse(raw, source)[0]["clicked_at"] == NOON
    assert click_times(lines_table(raw), source).to_pylist() == [int(NOON.timestamp()) * 1_000_000]


URLS: dict[str, tuple[dict[str, Any], str | None, dict[str, Any], str | None]] = {
    "host and path": ({"host": "h", "path": "p"}, None, {"h": "a.test", "p": "/x?y=1"}, "https://a.test/x?y=1"),
    "all parts": ({"scheme": "s", "host": "h", "path": "p", "query": "q"}, None,
                  {"s": "http", "h": "a.test:8080", "p": "/x", "q": "y=1"}, "http://a.test:8080/x?y=1"),
    "a request line": ({"request": "r"}, "https://b.test", {"r": "GET /x HTTP/1.1"}, "https://b.test/x"),
    "a request line of a host": ({"request": "r", "host": "h"}, None, {"r": "POST /x HTTP/2.0", "h": "a.test"},
                                 "https://a.test/x"),
    "a request line as the URL": ({"url": "r"}, "https://b.test", {"r": "GET /x HTTP/1.1"}, "https://b.test/x"),
    "a request line as the URL, without protocol": ({"url": "r"}, "https://b.test", {"r": "GET /x"}, "https://b.test/x"),
    "a whole URL in a request line": ({"url": "r"}, None, {"r": "GET http://a.test/x HTTP/1.1"}, "http://a.test/x"),
    "a path as the URL": ({"url": "p"}, "https://b.test", {"p": "/x"}, "https://b.test/x"),
    "a path as the URL, of nothing": ({"url": "p"}, None, {"p": "/x"}, None),
    "a URL in capitals": ({"url": "u"}, None, {"u": "HTTP://A.test/x y"}, "http://a.test/x%20y"),
    "a URL with what looks like a protocol": ({"url": "u"}, None, {"u": "HTTPS://a.test/?q=GET /x HTTP/1.1"},
                                              "https://a.test/?q=GET%20/x%20HTTP/1.1"),
    "a path with what looks like a protocol": ({"host": "h", "path": "p"}, None, {"h": "a.test", "p": "/x http/1.1"},
                                               "https://a.test/x%20http/1.1"),
    "a request line of another protocol": ({"url": "r"}, None, {"r": "GET http://a.test/x  rtsp/1.0 "}, "http://a.test/x"),
    "a host in a list": ({"host": "h", "path": "p"}, None, {"h": ["a.test"], "p": "/x"}, "https://a.test/x"),
}  # fmt: skip


@pytest.mark.parametrize("name", URLS)
def test_a_url_is_made_of_the_parts_that_a_line_has(name: str) -> None:
    fields, base_url, record, url = URLS[name]
    row = click({"ts": ISO} | record, base_url, **({"url": None} | fields))
    assert (row["url"], row["reason"]) == (url, None if url else "bad_url")


def test_addresses_of_several_header_lines_are_one_list() -> None:
    row = click(nested(["8.8.8.8", "10.0.0.1"], "headers", "X-Forwarded-For"), client_address="headers.X-Forwarded-For")
    assert row["client_address"] == "8.8.8.8"


def test_date_and_time_are_one_time() -> None:
    record = {"date": "2026-03-01", "clock": "12:30:00", "url": "http://shop.test/"}
    assert click(record, time="date clock")["clicked_at"] == click(PAGE)["clicked_at"]
    assert click({"date": "2026-03-01"} | {"url": "http://shop.test/"}, time="date clock")["reason"] == "missing_time"


@pytest.mark.parametrize("text", ["", "a..b", ".a", "a.", "a[", "a[x]", "a b", '"a', "[0]", "a`b", "a]", r'"\ud800"',
                                  "a[k=v]", "a[0]b", "a[=v].b", '""', 'a.""', 'a[""=v].b'])  # fmt: skip
def test_what_is_no_path_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected .*(such as|as JSON has it)"):
        field_path(text)


def test_paths_are_taken_apart() -> None:
    assert field_path('"a.b"[-1][k="x ]"].c') == ("a.b", -1, Entry("k", "x ]"), "c")
    assert joined_fields('"a b" c.d') == (("a b",), ("c", "d"))
