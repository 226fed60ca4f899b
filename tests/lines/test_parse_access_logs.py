"""Each line of an access log becomes a well-formed click or a reason for quarantine."""

from __future__ import annotations

import pytest

from tests.lines.parsing import ACCESS, COMMON, NOON, REST, line, log_line, parse

LOG_LINES: dict[str, tuple[bytes, str | None, str | None]] = {
    "fine": (log_line(rest=REST), None, "http://www.test/a"),
    "line feed": (log_line(rest=REST) + b"\n", None, "http://www.test/a"),
    "carriage return": (log_line(rest=REST) + b"\r\n", None, "http://www.test/a"),
    "more at the end": (log_line(rest=REST + ' "1.2.3.4" 17'), None, "http://www.test/a"),
    "other line ends at the end": (log_line(rest=REST + ' "a\u2028b\u2029c\x85d" 17'), None, "http://www.test/a"),
    "absolute target": (log_line("GET http://Other.test/x HTTP/1.1", rest=REST), None, "http://other.test/x"),
    "absolute target without a host": (log_line("GET http://:80/ HTTP/1.1", rest=REST), "bad_url", None),
    "HTTP/0.9": (log_line("GET /a", rest=REST), None, "http://www.test/a"),
    "HTTP/2": (log_line("GET /a HTTP/2", rest=REST), None, "http://www.test/a"),
    "a blank after the protocol": (log_line("GET /a HTTP/1.1 ", rest=REST), None, "http://www.test/a"),
    "the protocol in small letters": (log_line("GET /a http/1.1", rest=REST), None, "http://www.test/a"),
    "another protocol": (log_line("OPTIONS / RTSP/1.0", rest=REST), None, "http://www.test/"),
    "many blanks": (log_line(f"GET /a{' ' * 5000}b HTTP/1.1", rest=REST), None, f"http://www.test/a{'%20' * 5000}b"),
    "an empty user's name": (log_line(rest=REST).replace(b"frank", b'""'), None, "http://www.test/a"),
    "a quotation mark in a user's name": (log_line(rest=REST).replace(b"frank", rb"fr\"nk"), None, "http://www.test/a"),
    "a method with a dash": (log_line("M-SEARCH /a HTTP/1.1", rest=REST), None, "http://www.test/a"),
    "a method of WebDAV": (log_line("PROPFIND /a HTTP/1.1", rest=REST), None, "http://www.test/a"),
    "a method that none has": (log_line("x!#$%&'*+.^_`|~9 /a HTTP/1.1", rest=REST), None, "http://www.test/a"),
    "query": (log_line("GET /a?utm_source=1&b=2 HTTP/1.1", rest=REST), None, "http://www.test/a?b=2"),
    "spaces in the path": (log_line("GET /a b c HTTP/1.1", rest=REST), None, "http://www.test/a%20b%20c"),
    "two slashes": (log_line("GET //b/c HTTP/1.1", rest=REST), None, "http://www.test//b/c"),
    "dots": (log_line("GET /a/../../b/./c HTTP/1.1", rest=REST), None, "http://www.test/b/c"),
    "escaped quotes": (log_line(rest=' "-" "a \\"quoted\\" agent \\\\"'), None, "http://www.test/a"),
    "escaped quote in the path": (log_line('GET /a\\"b HTTP/1.1', rest=REST), None, "http://www.test/a%22b"),
    "escaped bytes in the path": (log_line(r"GET /\xC3\xa9\t\\ HTTP/1.1", rest=REST), None, "http://www.test/%C3%A9%09%5C"),
    "a control character in the path": (log_line("GET /a\x01b HTTP/1.1", rest=REST), None, "http://www.test/a%01b"),
    "a control character in the method": (log_line("G\x01T /a HTTP/1.1", rest=REST), "missing_url", None),
    "control characters all over": (
        log_line("GET /a HTTP/1.1", rest=' "f\x01r" "a\x01\x02b"').replace(b"frank", b"fr\x01nk"), None,
        "http://www.test/a"),
    "dashes": (log_line(rest=' "-" "-"').replace(b"2326", b"-"), None, "http://www.test/a"),
    "offset": (log_line(time="01/Mar/2026:05:30:00 -0700", rest=REST), None, "http://www.test/a"),
    "leap second": (log_line(time="01/Mar/2026:12:29:60 +0000", rest=REST), None, "http://www.test/a"),
    "missing closing quote": (log_line(rest=' "http://from.test/" "curl/8'), "not_access_log", None),
    "no agent": (log_line(rest=' "http://from.test/"'), "not_access_log", None),
    "no time": (b'198.51.100.7 - - "GET /a HTTP/1.1" 200 1 "-" "-"', "not_access_log", None),
    "status that is none": (log_line(status="OK", rest=REST), "not_access_log", None),
    "JSON": (line(), "not_access_log", None),
    "blank": (b"  ", "blank", None),
    "month that is none": (log_line(time="01/Foo/2026:12:30:00 +0000", rest=REST), "bad_time", None),
    "31 February": (log_line(time="31/Feb/2026:12:30:00 +0000", rest=REST), "bad_time", None),
    "time without an offset": (log_line(time="01/Mar/2026:12:30:00", rest=REST), "bad_time", None),
    "time with a zone's name": (log_line(time="01/Mar/2026:12:30:00 PST", rest=REST), "bad_time", None),
    "time with an offset of days": (log_line(time="01/Mar/2026:12:30:00 +9999", rest=REST), "bad_time", None),
    "time with an offset of 60 minutes": (log_line(time="01/Mar/2026:12:30:00 +0060", rest=REST), "bad_time", None),
    "tomorrow": (log_line(time="02/Mar/2026:12:30:00 +0000", rest=REST), "time_out_of_range", None),
    "bytes of a handshake": (log_line("\\x16\\x03\\x01", rest=REST), "missing_url", None),
    "request is a dash": (log_line("-", rest=REST), "missing_url", None),
    "empty request": (log_line("", rest=REST), "missing_url", None),
    "asterisk": (log_line("OPTIONS * HTTP/1.0", rest=REST), "bad_url", None),
    "host and port": (log_line("CONNECT shop.test:443 HTTP/1.1", rest=REST), "bad_url", None),
    "not UTF-8": (log_line(rest=REST).replace(b"curl", b"c\xfcrl"), "not_utf8", None),
}  # fmt: skip


def test_reason_and_url_of_every_combined_line() -> None:
    rows = parse([raw for raw, _, _ in LOG_LINES.values()], ACCESS)
    outcomes = {name: (row["reason"], row["url"]) for name, row in zip(LOG_LINES, rows, strict=True)}
    assert outcomes == {name: (reason, url) for name, (_, reason, url) in LOG_LINES.items()}
    by_name = dict(zip(LOG_LINES, rows, strict=True))
    assert by_name["offset"]["clicked_at"] == NOON
    assert by_name["leap second"]["clicked_at"] == NOON.replace(minute=29, second=59)
    dashes = by_name["dashes"]
    assert (dashes["referrer"], dashes["user_agent"]) == (None, None)
    assert by_name["escaped quotes"]["user_agent"] == r"a \"quoted\" agent \\"
    assert all(row["country_code"] is None and row["event_id"] is None for row in rows)


@pytest.mark.parametrize("name", ["fine", "other line ends at the end", "a control character in the path", "HTTP/0.9"])
def test_nothing_in_a_line_shifts_its_fields(name: str) -> None:
    (row,) = parse([LOG_LINES[name][0]], ACCESS)
    fields = (row["client_address"], row["referrer"], row["user_agent"], row["status"], row["clicked_at"])
    assert fields == ("198.51.100.7", "http://from.test/", "curl/8", 200, NOON)


def test_control_characters_stay_in_their_fields() -> None:
    (row,) = parse([LOG_LINES["control characters all over"][0]], ACCESS)
    assert (row["referrer"], row["user_agent"], row["status"]) == ("f\x01r", "a\x01\x02b", 200)


def test_common_lines_have_no_referrer() -> None:
    rows = parse([log_line(), log_line(rest=REST), log_line() + b"\r\n", log_line()[:40]], COMMON)
    assert [row["reason"] for row in rows] == [None, None, None, "not_access_log"]
    assert [(row["url"], row["referrer"], row["status"]) for row in rows[:3]] == [("http://www.test/a", None, 200)] * 3


@pytest.mark.parametrize(
    ("status", "expected"), [("-1", None), ("0", None), ("000", None), ("-", None), ("499", 499), ("099", None)]
)
def test_a_request_without_an_answer_is_a_click_without_a_status(status: str, expected: int | None) -> None:
    (row,) = parse([log_line(status=status, rest=REST)], ACCESS)
    assert (row["reason"], row["status"]) == (None, expected)
