"""What may be asked, which lines it finds, and how a landed file is written again: without Spark."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from backports import zstd

from include.errors import UsageError
from include.holds import DROPPED, Failure, event_row, findings_text, histories_of
from include.hours import Hour, HourRange
from include.journal import REPLAY, Act, journal_row, read_events
from include.page_settings import PageSettings
from include.settings import Settings
from include.source_fields import LineFields
from include.sources import Source, load_sources
from include.tables import JOURNAL
from spark_jobs.erasure.landing import landed_files, matching_lines, write_without
from spark_jobs.erasure.matches import Matcher, Words
from spark_jobs.erasure.requests import Requests
from spark_jobs.erasure.search import search
from spark_jobs.erasure.tables import ERASED, redact_others
from spark_jobs.lake.journal import append_events
from spark_jobs.lake.lake import Lake
from spark_jobs.lines.arrivals import LineParser
from spark_jobs.lines.decompress import decompressed
from spark_jobs.lines.read_lines import LandedFile
from tests.lines.lines import lines_table
from tests.support.temporary_lake import click, make_settings

HOUR = Hour.parse("2026-03-01T10")
WEB = Source(name="web", format="json", fields=LineFields(time="ts", url="url"))


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"visitors": ["v1"]},
        {"visitors": ["     ok"]},
        {"visitors": ["visitor\nof two lines"]},
        {"addresses": ["192.0.2"]},
        {"addresses": ["example.com"]},
        {"prefixes": [""]},
        {"prefixes": ["http"]},
        {"prefixes": ["https://"]},
        {"prefixes": ["https://shop.test"]},
    ],
)
def test_what_would_find_too_much_is_refused(arguments: dict[str, list[str]]) -> None:
    with pytest.raises(UsageError, match="expected"):
        Requests.of(**arguments)


def test_a_file_of_requests_has_json_and_toml(tmp_path: Path) -> None:
    file = tmp_path / "requests"
    file.write_text('# two\n{"visitor": "visitor-1"}\n\naddress = "192.0.2.7"\n', encoding="utf-8")
    assert Requests.read(file) == [("visitor", "visitor-1"), ("address", "192.0.2.7")]
    for line in ("visitor-2", '{"visitor": 7}', '{"name": "visitor-3"}', '{"visitor": "a", "address": "b"}', "[1]"):
        file.write_text(f'{{"visitor": "visitor-1"}}\n{line}\n', encoding="utf-8")
        with pytest.raises(UsageError, match="line 2 is no request") as error:
            Requests.read(file)
        assert "visitor-2" not in str(error.value)


def test_a_word_is_found_whole_only_whatever_is_around_it() -> None:
    words = Words(("192.0.2.7", "visitör-1", "a.b(c)"))
    for text in (
        "192.0.2.7",
        "x 192.0.2.7:",
        'x"visitör-1"',
        "\xff\n192.0.2.7",
        json.dumps("visitör-1"),
        # As the quality index has findings of the journal.
        json.dumps({"findings": findings_text([Failure("web 2026-03-01T05", "x", "found visitör-1; more")])}),
        "=a.b(c)&",
        "192.0.2.7-8",
        r"as Apache writes it: visit\xC3\xB6r-1",
    ):
        assert words.is_in(text.encode("utf-8"))
        assert words.is_in(b"\xff" + text.encode("utf-8") + b"\xfe\xfe")
    for other in ("192.0.2.77", "1192.0.2.7", "192x0.2.7", "visitör-12", "myvisitör-1", "aab(c)"):
        assert not words.is_in(other.encode("utf-8"))


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(character):04x}" for character in text)


COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: gzip.compress(data[: len(data) // 2]) + gzip.compress(data[len(data) // 2 :]),
    ".zst": zstd.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".json": bytes,
}


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_a_file_keeps_all_other_bytes_in_their_order(tmp_path: Path, suffix: str) -> None:
    settings = make_settings(tmp_path / "home")
    matcher = Matcher.of(Requests.of(["visitor-1"]), LineParser.of(load_sources(settings)["web"], settings))
    theirs = [
        click("e1", "2026-03-01T10:00:00Z", visitor_id="visitor-1"),
        click("e2", "2026-03-01T10:00:00Z", visitor_id="visitor-1").replace(
            b"visitor-1", escaped("visitor-1").encode()
        ),
        b"no JSON of visitor-1\r\n",
        click("e3", "2026-03-01T10:00:00Z", "http://shop.test/?from=visitor-1", visitor_id="visitor-2"),
    ]
    others = [
        click("e4", "2026-03-01T10:00:00Z", visitor_id="visitor-12"),
        b"\xff\xfe not UTF-8\r\n",
        b"\n",
        click("e5", "2026-03-01T10:00:00Z", visitor_id="visitor-3").removesuffix(b"\n"),
    ]
    lines = [line for pair in zip(theirs, others, strict=True) for line in pair]
    folder = settings.landing / "web" / "log_date=2026-03-01" / "log_hour=10"
    folder.mkdir(parents=True)
    path = folder / f"a{suffix}"
    path.write_bytes(COMPRESSED[suffix](b"".join(lines)))
    changed = path.stat().st_mtime_ns
    assert search([settings.landing], matcher.words).matches == [path]
    (file,) = landed_files(settings.landing, "web")
    assert file == LandedFile(path, HOUR)
    numbers, count = matching_lines(file, matcher)
    assert count == 8
    assert numbers == {1, 3, 5, 7}
    write_without(file, numbers)
    with path.open("rb") as stream:
        assert b"".join(decompressed(stream, path.name)) == b"".join(others)
    assert path.stat().st_mtime_ns == changed
    assert [entry.name for entry in folder.iterdir()] == [path.name]
    assert search([settings.landing], matcher.words).matches == []


@pytest.mark.parametrize(
    "write",
    [
        lambda lines: b"".join(lines).decode().encode("utf-16"),
        lambda lines: b"".join(lines).decode().encode("utf-16-be"),
        lambda lines: (b"\0" * 5000).join(lines),
        lambda lines: b"".join(b"\xef\xbb\xbf" + line for line in lines),
        lambda lines: gzip.compress(b"".join(lines)),
    ],
    ids=["UTF-16", "UTF-16 without a mark", "holes", "byte order marks", "gzip of another name"],
)
def test_lines_are_erased_however_the_file_was_written(tmp_path: Path, write: Callable[[list[bytes]], bytes]) -> None:
    settings = make_settings(tmp_path / "home")
    matcher = Matcher.of(Requests.of(["visitor-1"]), LineParser.of(load_sources(settings)["web"], settings))
    lines = [click(f"e{n}", "2026-03-01T10:00:00Z", visitor_id=f"visitor-{n}") for n in range(4)]
    folder = settings.landing / "web" / "log_date=2026-03-01" / "log_hour=10"
    folder.mkdir(parents=True)
    path = folder / "part-0001"
    path.write_bytes(write(lines))
    assert search([settings.landing], matcher.words).matches == [path]
    (file,) = landed_files(settings.landing, "web")
    numbers, _ = matching_lines(file, matcher)
    assert numbers == {2}
    write_without(file, numbers)
    assert path.read_bytes() == b"".join([lines[0], *lines[2:]])
    assert search([settings.landing], matcher.words).matches == []


@pytest.mark.parametrize(
    ("visitor", "written"),
    [("visitor-1", escaped("visitor-1")), ("user/12345", r"user\/12345"), ("visitör-1", r"visit\u00F6r-1")],
)
def test_an_id_that_is_nowhere_written_out_is_found(tmp_path: Path, visitor: str, written: str) -> None:
    """In a click, in one of another, in a line that is cut off, behind a line end."""
    settings = make_settings(tmp_path / "home")
    matcher = Matcher.of(Requests.of([visitor]), LineParser.of(load_sources(settings)["web"], settings))
    folder = settings.landing / "web" / "log_date=2026-03-01" / "log_hour=10"
    folder.mkdir(parents=True)
    other = click("e1", "2026-03-01T10:00:00Z", visitor_id="$", referrer="http://x.test/?$")
    lines = [
        other,
        click("e2", "2026-03-01T10:00:00Z", visitor_id="$").replace(b"$", written.encode()),
        other.replace(b"?$", b"?" + written.encode()),
        other.replace(b"?$", rb"\n" + written.encode())[:-3] + b"\n",
    ]
    (folder / "a.json").write_bytes(b"".join(lines))
    (file,) = landed_files(settings.landing, "web")
    assert matching_lines(file, matcher) == ({2, 3, 4}, 4)
    assert search([settings.landing], matcher.words).matches == [folder / "a.json"]
    write_without(file, {2, 3, 4})
    assert search([settings.landing], matcher.words).matches == []


def test_lines_that_are_left_out_go_like_others(tmp_path: Path) -> None:
    settings = make_settings(tmp_path / "home")
    fields = LineFields(time="ts", url="url", client_address="ip", user_agent="ua")
    source = Source(name="web", format="json", fields=fields, drop=({"name": "static", "ending": ".png"},))
    requests = Requests.of(addresses=["192.0.2.7"], prefixes=["http://shop.test/account/"])
    matcher = Matcher.of(requests, LineParser.of(source, settings))
    folder = settings.landing / "web" / "log_date=2026-03-01" / "log_hour=10"
    folder.mkdir(parents=True)
    urls = ["HTTP://SHOP.test/account/a.png", "http://shop.test/a.png", "http://shop.test/b.png"]
    addresses = ["198.51.100.1", "[192.0.2.007]:80", "198.51.100.1"]
    lines = [{"ts": "2026-03-01T10:00:00Z", "url": url, "ip": ip} for url, ip in zip(urls, addresses, strict=True)]
    (folder / "a.json").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (file,) = landed_files(settings.landing, "web")
    assert matching_lines(file, matcher) == ({1, 2}, 3)


def test_a_url_is_found_in_landed_files_as_it_was_asked_for_and_as_its_page(tmp_path: Path) -> None:
    settings = make_settings(tmp_path / "home")
    source = WEB.model_copy(update={"pages": PageSettings(keep_parameters=(), paths=("/user/{id}",))})
    folder = settings.landing / "web" / "log_date=2026-03-01" / "log_hour=10"
    folder.mkdir(parents=True)
    urls = ["http://shop.test/user/42?a=1", "http://shop.test/user/43", "http://shop.test/?user=42"]
    lines = [{"ts": "2026-03-01T10:00:00Z", "url": url} for url in urls]
    (folder / "a.json").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (file,) = landed_files(settings.landing, "web")
    for prefix, numbers in {
        "http://shop.test/user/42": {1},
        "http://shop.test/user/{id}": {1, 2},
        "http://shop.test/?user=42": {3},
    }.items():
        matcher = Matcher.of(Requests.of(prefixes=[prefix]), LineParser.of(source, settings))
        assert matching_lines(file, matcher) == (numbers, 3), prefix


def test_a_url_in_a_line_that_is_no_click_is_found_as_programs_write_it(tmp_path: Path) -> None:
    settings = make_settings(tmp_path / "home")
    requests = Requests.of(prefixes=["http://shop.test/account/"])
    matcher = Matcher.of(requests, LineParser.of(load_sources(settings)["web"], settings))
    raw = [
        '{"url": "http://shop.test/account/7',
        r'{"url": "http:\/\/shop.test\/account\/7',
        "http://shop.test/accounts",
    ]
    assert matcher.of_quarantined(pa.chunked_array([raw])).tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("prefix", "line", "is_found"),
    [
        ("http://shop.test/account/", '{"host":"shop.test","uri":"/account/7","ts":"x"}', True),
        ("http://shop.test/account/", r'{"ts":"x","uri":"\/account\/7","host":"SHOP.test:8080"}', True),
        ("http://shop.test/account/", r'{"log":"{\"host\":\"shop.test\",\"uri\":\"/account/7\"}"}', True),
        ("http://shop.test/account/", 'shop.test:443 192.0.2.7 - - [x] "GET /account/7 HTTP/1.1" 200', True),
        ("http://shop.test/account/", '192.0.2.7 - - [x] "GET /account/7 HTTP/1.1" 200 5 shop.test', True),
        ("http://shop.test/account/", "192.0.2.7 [x] shop.test:80/account/7", True),
        ("http://shop.test/account/", "ts=x host=shop.test. path=/account/7", True),
        ("http://shop.test/account/", "2026-03-01\tx\tshop.test\t/account/7", True),
        ("http://shop.test/", '{"host":"shop.test","uri":"/"}', True),
        ("http://xn--mnchen-3ya.test/caf%C3%A9", '{"host":"m\u00fcnchen.test","uri":"/caf\u00e9/1"}', True),
        ("http://shop.test/account/", '{"host":"www.shop.test","uri":"/account/7"}', False),
        ("http://shop.test/account/", '{"host":"shop.test.example","uri":"/account/7"}', False),
        ("http://shop.test/account/", '{"host":"shop.test","uri":"/accounts"}', False),
        ("http://shop.test/account/", '{"host":"shop.test","uri":"/my/account/7"}', False),
        ("http://shop.test/account/", '{"host":"x.test","uri":"/account/7","from":"http://shop.test/a"}', False),
    ],
)
def test_a_host_beside_a_path_in_a_line_that_is_no_click_is_found(
    tmp_path: Path, prefix: str, line: str, is_found: bool
) -> None:
    settings = make_settings(tmp_path / "home")
    # The hosts of access logs are masked in the quarantine.
    for source in (WEB, Source(name="access", format="access", log_format="vhost_combined")):
        matcher = Matcher.of(Requests.of(prefixes=[prefix]), LineParser.of(source, settings))
        if source == WEB:
            assert matcher.of_quarantined(pa.chunked_array([[line]])).tolist() == [is_found]
        assert matcher.of_lines(lines_table([line.encode()])).tolist() == [is_found]


def test_a_replay_whose_rule_names_somebody_has_none_any_more(settings: Settings) -> None:
    lake, matcher = Lake(None, settings), Matcher.of(Requests.of(["visitor-1"]), LineParser.of(WEB, settings))
    begun, hours = datetime(2026, 3, 1, tzinfo=UTC), HourRange.single(Hour.parse("2026-03-01T10"))
    rules = {"one": "replace(raw, 'visitor-1', '')", "two": "replace(raw, 'visitor-12', '')", "three": None}
    rows = [
        journal_row(
            Act(id, "replay_quarantined"), REPLAY, id, "begun", begun,
            hours=hours, source="web", actor="Ada", because=f"asked: {rule}", details={"rule": rule, "lines": 1},
        )
        for id, rule in rules.items()
    ]  # fmt: skip
    append_events(lake, rows)
    assert redact_others(lake, matcher, set()) == {JOURNAL.name: 1}
    events = {
        row["subject"]: (row["details"].get("rule"), row["details"]["lines"], row["because"])
        for row in read_events(lake.settings.lake, [])
    }
    assert events == {id: (rule, "1", f"asked: {rule}") for id, rule in rules.items()} | {"one": (None, "1", ERASED)}


def test_what_is_found_of_somebody_is_masked_in_the_journal_and_covers_nothing(settings: Settings) -> None:
    lake, matcher = Lake(None, settings), Matcher.of(Requests.of(["visitor-1"]), LineParser.of(WEB, settings))
    hour, act = Hour.parse("2026-03-01T10"), Act("run", "decide_held", "Ada", "seen")
    for visitor in ("visitor-1", "visitor-12"):
        failures = [Failure("web 2026-03-01T10", "one_visitor", f"all of {visitor}")]
        at = datetime(2026, 3, 1, 11, len(visitor), tzinfo=UTC)
        append_events(lake, [event_row(act, at, hour, DROPPED, "seen", findings=failures, actor="Ada")])
    assert redact_others(lake, matcher, set()) == {JOURNAL.name: 1}
    masked, left = histories_of(read_events(lake.settings.lake, []))[hour]
    assert [event.outcome for event in (masked, left)] == [DROPPED, DROPPED]
    assert (masked.findings, [failure.described for failure in left.findings]) == ((), ["all of visitor-12"])
    assert {file.partition["year"] for file in lake.data_files(JOURNAL)} == {2026}


def test_many_words_are_found_as_few_are() -> None:
    many = [f"visitor-{number}" for number in range(3000)]
    words = Words(tuple(many))
    assert all(words.is_in(f'x="{word}"'.encode()) for word in many[::100])
    assert not words.is_in(b"visitor-3000 and visitor- and xvisitor-1")
    assert words.of_texts(pa.array(["a", None, "visitor-7", "visitor-7x"])).tolist() == [False, False, True, False]
