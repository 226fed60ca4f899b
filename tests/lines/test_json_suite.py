"""What is JSON, as JSONTestSuite has it: https://github.com/nst/JSONTestSuite."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lines.parsing import WEB, line, parse, with_value

SUITE = {
    name: text.encode("latin-1")
    for name, text in json.loads((Path(__file__).parent / "data/json_test_suite.json").read_text()).items()
}
# Too large to keep.
SUITE["n_structure_100000_opening_arrays"] = b"[" * 100_000
SUITE["n_structure_open_array_object"] = b'[{"":' * 50_000 + b"\n"
#: Lines of a file hold no line end; a space in its place is the same but inside a text, as a topic's record may have.
_LINE_ENDS_MATTER = {"n_string_unescaped_newline"}
_UNREADABLE = {"not_json", "not_utf8"}


def _as_line(name: str) -> bytes:
    return SUITE[name] if name in _LINE_ENDS_MATTER else SUITE[name].replace(b"\n", b" ")


def _named(prefix: str) -> list[str]:
    return [name for name in SUITE if name.startswith(prefix)]


def _reasons(raw: list[bytes]) -> list[str | None]:
    # Long enough for the two of 100 kB and more.
    return [row["reason"] for row in parse(raw, WEB.model_copy(update={"max_line_bytes": 1 << 20}))]


def test_the_suite_is_whole() -> None:
    assert (len(_named("n_")), len(_named("y_")), len(_named("i_"))) == (188, 95, 35)


def test_what_is_no_json_is_quarantined() -> None:
    names = _named("n_")
    reasons = dict(zip(names, _reasons([_as_line(name) for name in names]), strict=True))
    blank = {name for name, reason in reasons.items() if reason == "blank"}
    assert blank == {"n_single_space", "n_structure_no_data"}
    assert {name: reason for name, reason in reasons.items() if reason not in {*_UNREADABLE, "blank"}} == {}


def test_an_object_with_what_is_no_json_in_it_is_quarantined() -> None:
    # nginx's way to write a byte.
    names = [name for name in _named("n_") if name != "n_string_escape_x"]
    reasons = dict(zip(names, _reasons([with_value(_as_line(name)) for name in names]), strict=True))
    assert {name: reason for name, reason in reasons.items() if reason not in _UNREADABLE} == {}


def test_an_object_with_json_in_it_is_read() -> None:
    names = _named("y_")
    reasons = dict(zip(names, _reasons([with_value(_as_line(name)) for name in names]), strict=True))
    assert {name: reason for name, reason in reasons.items() if reason is not None} == {}


def test_objects_are_read_and_other_values_are_no_lines() -> None:
    names = _named("y_")
    reasons = dict(zip(names, _reasons([_as_line(name) for name in names]), strict=True))
    objects = {name for name in names if isinstance(json.loads(SUITE[name]), dict)}
    assert len(objects) > 10
    # An object it is; there is no click in it.
    assert {name for name, reason in reasons.items() if reason == "missing_event_id"} == objects
    assert {reason for name, reason in reasons.items() if name not in objects} == {"not_json"}


@pytest.mark.parametrize("name", _named("i_"))
def test_what_parsers_may_differ_on_is_a_click_or_quarantined(name: str) -> None:
    (reason,) = _reasons([with_value(_as_line(name))])
    if b"\\u" in SUITE[name] or "number" in name or name == "i_structure_500_nested_arrays":
        # Half a surrogate pair in a field that nobody maps harms nothing.
        assert reason is None
    else:
        # Bytes that are not UTF-8, and a byte order mark inside a line.
        assert reason in _UNREADABLE


def test_the_helper_makes_lines_that_are_read() -> None:
    assert _reasons([line(), with_value(b"1")]) == [None, None]
