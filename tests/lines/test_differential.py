"""The parse held to an oracle in plain Python, on generated and damaged lines.

20,000 lines; a million others each time where CLICKMILL_FAULT_ROUNDS is set, as by make test-faults.
CLICKMILL_FAULT_SEED draws the same ones again.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from include.source_fields import LineFields
from include.sources import Source
from include.tables import MAX_RAW_CHARACTERS, QUARANTINE_REASONS
from spark_jobs.lines.delimited_lines import FAULTS
from spark_jobs.lines.parse_lines import parse_lines
from tests.lines.lines import HOUR, TRACKING, lines_table
from tests.lines.oracle import Outcome, moment_micros, outcome_of
from tests.lines.parsing import FIELDS
from tests.support.fault_rounds import ARE_MANY, SEED

pytestmark = pytest.mark.faults

LINES = 1_000_000 if ARE_MANY else 20_000
AT_ONCE = 10_000
FIRST_LINE = 90
LIMIT = 700
CLICK_FIELDS = ("clicked_at", "url", "event_id", "country_code", "visitor_id", "client_address", "referrer",
                "user_agent", "status")  # fmt: skip

SOURCES = {
    "json": Source(name="json", format="json", fields=LineFields(**FIELDS), max_line_bytes=LIMIT),
    "epoch seconds": Source(
        name="seconds",
        format="json",
        fields=LineFields(time="ts", url="url", client_address="visitor_id", time_format="epoch_seconds"),
        max_line_bytes=LIMIT,
    ),
    "epoch milliseconds": Source(
        name="milliseconds",
        format="json",
        fields=LineFields(time="ts", url="url", event_id="geo.country", time_format="epoch_milliseconds"),
        max_line_bytes=LIMIT,
    ),
    "combined": Source(name="combined", format="combined", base_url="http://www.test", max_line_bytes=LIMIT),
    "common": Source(name="common", format="common", base_url="https://www.test:443", max_line_bytes=LIMIT),
}
#: So many of the lines are of the sources, one by one.
SHARES = {"json": 0.45, "epoch seconds": 0.1, "epoch milliseconds": 0.1, "combined": 0.25, "common": 0.1}

_NOON = HOUR.number * 3600 + 1800
_TEXTS = ["", " ", "  ", "a", "é", "\u2028", "\x00", "\t", "😀", '"', "\\", "-", "curl/8", "null", ",]", ":NaN", "{}",
          "v" * 40, "\x7f", "ß", "%20", "&utm_x=1"]  # fmt: skip

_HOSTS = ["Shop.TEST", "ü.de", "Ü.de", "xn--tda.de", "1.2.3.4", "0x7f.1", "[::1]", "[2001:DB8::1]", "a b", "", "a_b",
          "faß.de", "h.", "a%41", "\uff11.2"]  # fmt: skip


def _text(rng: random.Random) -> str:
    return "".join(rng.choices(_TEXTS, k=rng.randrange(4)))


def _url(rng: random.Random) -> str:
    scheme = rng.choice(
        ["http://"] * 9 + ["https://"] * 6 + ["HTTP://", "http:", "https:\\\\", "http:///", "", "ftp://"]
    )
    user = rng.choice([""] * 12 + ["u@", "u:p@", "a@B@", "@", ":@"])
    host = rng.choice(["shop.test"] * 6 + _HOSTS)
    port = rng.choice([""] * 8 + [":", ":80", ":443", ":8080", ":0", ":99999", ":x"])
    path = "".join(rng.choices(["/", "/a", "/B", "/..", "/.", "/%2e", " ", "\t", "\\", "é", "%zz", ";", "//", "|"],
                               k=rng.randrange(5)))  # fmt: skip
    names = ["utm_source", "UTM_x", "gclid", "gclids", "q", "", "a b", "é", "utm", "x'"]
    query = "&".join(
        rng.choice(names) + rng.choice(["", "=", "=1", "=a=b", "=?/", "=é ", "='"]) for _ in range(rng.randrange(4))
    )
    return scheme + user + host + port + path + rng.choice(["", "?" + query]) + rng.choice(["", "", "#", "#a?b"])


def _day_and_clock(rng: random.Random) -> tuple[str, str]:
    day = rng.choice(["2026-03-01"] * 8 + ["2026-02-28", "2026-02-29", "2026-02-22", "2026-03-02", "0000-01-01",
                                           "1969-12-31", "9999-12-31", "2026-13-01", "2026-3-1"])  # fmt: skip
    hour = rng.choice(["12"] * 8 + ["11", "13", "00", "23", "24", "9"])
    return day, f"{hour}:{rng.choice(['30', '00', '59', '09', '10', '60'])}"


def _iso_time(rng: random.Random) -> str:
    if rng.random() < 0.4:
        return f"2026-03-01T12:{rng.randrange(60):02d}:{rng.randrange(60):02d}.{rng.randrange(1000):03d}Z"
    day, clock = _day_and_clock(rng)
    second = rng.choice(["", *[f":{rng.choice(['00', '59', '30', '60', '61'])}"] * 4])
    decimals = rng.choice(["", "", ".0", ".5", ",25", ".123456", ".9999999", ".", f".{rng.randrange(10**9)}"])
    offset = rng.choice(["Z"] * 6 + ["", "", "z", "+00:00", "-00:00", "+01:00", "-0130", "+05", " Z", " +01:00", "+1",
                                     " PST", "+24:00", "+01:60", "[UTC]", "  Z", "+01:"])  # fmt: skip
    return day + rng.choice("TTTTTTt _") + clock + second + (decimals if second else "") + offset


def _epoch_time(rng: random.Random, scale: int) -> Any:
    whole = _NOON * scale + rng.choice([0, 1, -1, 2399, -3000, 2400, 10**6, -(10**6)]) * scale
    return rng.choice([
        whole, whole, str(whole), f"{whole}.5", f"{whole}.{rng.randrange(10**6):06d}", f" {whole} ", f"+{whole}.",
        f"{whole}e0", f"{whole}0E-1", "NaN", "", "1_0", f"-{whole}", "9" * 20, whole * 1000, f"{whole}.0000004",
    ])  # fmt: skip


def _log_time(rng: random.Random) -> str:
    if rng.random() < 0.7:
        return rng.choice(["01/Mar/2026:12:30:00 +0000", "01/Mar/2026:13:59:60 +0100"] * 20 + ["-", " "])
    day = rng.choice(["01/Mar/2026"] * 9 + ["28/Feb/2026", "29/Feb/2026", "02/Mar/2026", "01/Foo/2026", "00/Mar/2026"])
    _, clock = _day_and_clock(rng)
    zone = rng.choice([" +0000"] * 9 + [" -0000", " +0100", " -0730", " +1400", "", " GMT"])
    return f"{day}:{clock}:{rng.choice(['00', '30', '59', '60', '61'])}{zone}"


def _value(rng: random.Random) -> Any:
    return rng.choice([None, True, False, 0, -1, 17, 1.5, 12345678901234567890, "", " ", [], {}, [1, {"a": None}],
                       {"country": "DE"}, {"a": "é\n"}, "text", _text(rng)])  # fmt: skip


def _json_line(rng: random.Random, time: Callable[[random.Random], Any]) -> bytes:
    record: dict[str, Any] = {
        "event_id": rng.choice([f"e{rng.randrange(10**6)}"] * 4 + [rng.randrange(10**12), _text(rng)]),
        "ts": time(rng),
        "url": rng.choice(["http://shop.test/", "http://shop.test/?utm_source=x&q=1", _url(rng), _url(rng), _url(rng)]),
        "geo": {"country": rng.choice(["DE", "de", " FR ", "ß", "\u0131t", "\ufb01", "XX", None, "", 7, "u\u017f"])},
        "visitor_id": rng.choice(["v1", _text(rng)]),
        "referrer": rng.choice(["http://from.test/", _text(rng)]),
        "user_agent": rng.choice(["Mozilla/5.0 (X11; Linux x86_64)", _text(rng)]),
        "status": rng.choice([200, 200, 404, "200", " 200", "ok", None, 2**31, "+5"]),
    }
    for name in list(record):
        match rng.randrange(40):
            case 0:
                del record[name]
            case 1:
                record[name] = _value(rng)
    pairs = list(record.items())
    if rng.random() < 0.1:
        rng.shuffle(pairs)
    if rng.random() < 0.1:
        pairs.insert(rng.randrange(len(pairs) + 1), (rng.choice([*record, "other", "geo", "URL"]), _value(rng)))
    is_ascii, separators = rng.random() < 0.5, rng.choice([(", ", ": "), (",", ":"), (" ,\t", " : ")])
    written = [
        json.dumps(name) + separators[1] + json.dumps(value, ensure_ascii=is_ascii, separators=separators)
        for name, value in pairs
    ]
    return rng.choice(["", "", "", " ", "\t"]).encode() + ("{" + separators[0].join(written) + "}").encode()


def _quoted(rng: random.Random, *texts: str) -> str:
    text = rng.choice([*texts, _text(rng)])
    return '"' + (text if rng.random() < 0.1 else text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _log_line(rng: random.Random) -> bytes:
    target = rng.choice(["/", "/a?utm_source=x&b=2", "/\\xC3\\xA9", '/a\\"b', "/a b", "*", _url(rng), "/" + _url(rng)])
    method = rng.choice(["GET"] * 9 + ["POST", "M-SEARCH", "PROPFIND", "g\x01t", "", "G T"])
    protocol = rng.choice([" HTTP/1.1"] * 6 + [" HTTP/2", "", " HTTP/1.1 ", " HTTP/x"])
    request = rng.choice([f"{method} {target}{protocol}"] * 20 + ["-", "", "\\x16\\x03", "GET"])
    parts = [
        rng.choice(["198.51.100.7", "::1", "-", "host.test"]),
        rng.choice(["-", "x"]),
        rng.choice(["frank", "-", "a b", "a - b", "- x", "x-", "-a -b", "[x]", '[x] "', "\u00a0", "[a\x01"]),
        f"[{_log_time(rng)}]",
        f'"{request}"',
        rng.choice(["200"] * 30 + ["404", "-", "20", "2000", "OK"]),
        rng.choice(["2326"] * 9 + ["17", "-", "0", "x", ""]),
        _quoted(rng, "-", "http://from.test/"),
        _quoted(rng, "-", "curl/8"),
        *rng.choice([[], [], ['"more" 17'], ["\u2028"], [""]]),
    ]
    return rng.choice([" "] * 60 + ["  ", "\t"]).join(parts).encode()


def _damaged(rng: random.Random, raw: bytes) -> bytes:
    """The line with a few bytes changed, cut off, doubled or blown up; mostly as it is."""
    match rng.randrange(24):
        case 0 | 1 | 2 | 3 | 4:
            damaged = bytearray(raw)
            for _ in range(rng.choice([1, 1, 2, 5])):
                place = rng.randrange(len(damaged) + 1)
                damaged[place : place + rng.randrange(2)] = rng.choice(
                    [b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b" ", b"\t", b"-", b"0", b"e", b".", b"\x00",
                     b"\x01", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\\ud800", b"\\u0000", b"NaN", b",]", b"\n", b"\r"]
                )  # fmt: skip
            return bytes(damaged)
        case 5:
            return raw[: rng.randrange(len(raw) + 1)]
        case 6:
            return raw + rng.choice([b"", b" ", b",", b"\n"]) + rng.choice([raw, b"}", b"garbage", b"\x00", b"//"])
        case 7:
            return rng.choice([b"", b" ", b"\t\v\f", b"\r\r", b"[]", b"1", b'"a"', b"null", rng.randbytes(20)])
        case 8:
            return raw + b" " * rng.randrange(LIMIT - 300, LIMIT)
        case _:
            return raw


_WRITERS: dict[str, Callable[[random.Random], bytes]] = {
    "json": lambda rng: _json_line(rng, _iso_time),
    "epoch seconds": lambda rng: _json_line(rng, lambda rng: _epoch_time(rng, 1)),
    "epoch milliseconds": lambda rng: _json_line(rng, lambda rng: _epoch_time(rng, 1000)),
    "combined": _log_line,
    "common": _log_line,
}


def _line(rng: random.Random, name: str) -> bytes:
    return _damaged(rng, _WRITERS[name](rng)).rstrip(b"\r\n")


def _parsed(raw: list[bytes], end: bytes, source: Source) -> Iterator[tuple[Outcome, dict[str, Any]]]:
    """What has become of each line, and its whole row."""
    table = lines_table([line + end for line in raw], FIRST_LINE)
    for row in parse_lines(table, source, TRACKING).to_pylist():
        fields: dict[str, Any] = {}
        if row["reason"] is None:
            fields = {name: row[name] for name in CLICK_FIELDS} | {"clicked_at": moment_micros(row["clicked_at"])}
        else:
            assert all(row[name] is None for name in CLICK_FIELDS), row
        yield Outcome(row["reason"], fields, is_object=row["sampled"] is not None), row


@pytest.mark.parametrize("name", SOURCES)
def test_each_line_is_the_click_or_the_rejected_line_that_it_should_be(name: str) -> None:
    source, lines = SOURCES[name].model_copy(update={"keep_raw": True}), round(LINES * SHARES[name])
    print(f"CLICKMILL_FAULT_SEED={SEED} {lines} lines")
    rng = random.Random(f"{SEED} {name}")
    reasons: Counter[str | None] = Counter()
    for start in range(0, lines, AT_ONCE):
        raw = [_line(rng, name) for _ in range(min(AT_ONCE, lines - start))]
        end = rng.choice([b"", b"\n", b"\r\n"])
        for place, (value, (outcome, row)) in enumerate(zip(raw, _parsed(raw, end, source), strict=True), FIRST_LINE):
            expected = outcome_of(value, source, HOUR.number, TRACKING)
            is_sampled = expected.is_object and (place <= 100 or place % 100 == 0)
            assert (outcome.reason, outcome.fields) == (expected.reason, expected.fields), value
            sampled = row["sampled"] and row["sampled"].removesuffix(end.decode())
            assert sampled == (value.decode() if is_sampled else None), value
            assert row["raw"] == (value.decode(errors="replace")[:MAX_RAW_CHARACTERS] if outcome.reason else None), (
                value
            )
            assert (row["line"], row["bytes"]) == (place, len(value))
            reasons[outcome.reason] += 1
    print(dict(reasons))
    unformed = "not_access_log" if source.fields is None else "not_json"
    of_others = {"part_of_line", "not_json", "not_access_log", *FAULTS}
    possible = QUARANTINE_REASONS.keys() - (of_others - {unformed})
    assert reasons.keys() | {"binary_record"} == {None, *possible} - (
        set() if source.has_event_id else {"missing_event_id"}
    )
    assert reasons[None] > lines / 10
