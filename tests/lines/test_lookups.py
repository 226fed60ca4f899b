"""What is looked up about clicks: crawlers, countries, visitors."""

from __future__ import annotations

import json
import pickle
import random
import struct
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import crawleruseragents
import pyarrow as pa
import pytest

from include.errors import UsageError
from include.source_fields import LineFields
from include.sources import Source
from include.tables import UNKNOWN_COUNTRY
from include.visitor_keys import VisitorKeys
from spark_jobs.lines import country_database
from spark_jobs.lines.country_database import country_database_note, country_reader
from spark_jobs.lines.lookups import MAX_AGENT_CHARACTERS, Lookups, is_crawler, visitors_of
from spark_jobs.lines.parse_lines import parse_lines
from tests.lines.lines import lines_table
from tests.lines.parsing import ISO, WEB, line
from tests.support.temporary_lake import make_settings

DAY = date(2026, 3, 1)
GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
CLIENTS = Source(
    name="clients",
    format="json",
    fields=LineFields(time="ts", url="url", client_address="ip", user_agent="ua", country="land", visitor="visitor"),
)
ADDRESSES = Source(
    name="addresses", format="json", fields=LineFields(time="ts", url="url", client_address="ip", user_agent="ua")
)
INSTANCES = [text for crawler in crawleruseragents.CRAWLER_USER_AGENTS_DATA for text in crawler.get("instances", [])]


_IV = [
    0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
    0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
]  # fmt: skip
_SIGMA = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4], [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13], [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11], [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5], [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
]  # fmt: skip
_MIXED = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)]
_MIXED += [(0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]


def _rfc_7693(key: bytes, message: bytes) -> str:
    """Keyed BLAKE2b in 16 bytes, from its definition."""
    data = (key.ljust(128, b"\x00") if key else b"") + message
    state = [_IV[0] ^ 0x01010000 ^ (len(key) << 8) ^ 16, *_IV[1:]]
    for start in range(0, max(len(data), 1), 128):
        words = struct.unpack("<16Q", data[start : start + 128].ljust(128, b"\x00"))
        v = [*state, *_IV]
        v[12] ^= min(start + 128, len(data))
        if start + 128 >= len(data):
            v[14] ^= 2**64 - 1
        for round_ in range(12):
            order = _SIGMA[round_ % 10]
            for number, (a, b, c, d) in enumerate(_MIXED):
                for word, turned, again in ((order[2 * number], 32, 24), (order[2 * number + 1], 16, 63)):
                    v[a] = (v[a] + v[b] + words[word]) % 2**64
                    v[d] = _turned(v[d] ^ v[a], turned)
                    v[c] = (v[c] + v[d]) % 2**64
                    v[b] = _turned(v[b] ^ v[c], again)
        state = [old ^ v[place] ^ v[place + 8] for place, old in enumerate(state)]
    return struct.pack("<8Q", *state)[:16].hex()


def _turned(word: int, bits: int) -> int:
    return (word >> bits | word << 64 - bits) % 2**64


@pytest.mark.parametrize("key", [b"k", b"k" * 64])
@pytest.mark.parametrize("agent", ["cürl/8", "x" * 1000])
def test_visitor_is_a_keyed_hash(key: bytes, agent: str, tmp_path: Path) -> None:
    (tmp_path / f"{DAY}").write_bytes(key + b"\n2026-03-01T00:00:00+00:00\n")
    columns = (pa.array([value]) for value in ("198.51.100.7", agent, DAY))
    (visitor,) = visitors_of(*columns, VisitorKeys(tmp_path)).to_pylist()
    assert visitor == _rfc_7693(key, f"198.51.100.7\x00{agent}\x00{DAY}".encode())


def _look_up(records: list[dict[str, Any]], lookups: Lookups, source: Source) -> list[dict[str, Any]]:
    lines = [json.dumps({"ts": ISO, "url": "http://shop.test/"} | record).encode() for record in records]
    table = lookups.look_up(parse_lines(lines_table(lines), source, ()))
    assert "client_address" not in table.column_names
    return table.to_pylist()


@pytest.fixture
def lookups(tmp_path: Path) -> Lookups:
    """Of a source that logs addresses; no key has been made yet."""
    return Lookups(_keys(tmp_path / "secrets"))


def _keys(folder: Path) -> VisitorKeys:
    folder.mkdir(parents=True, exist_ok=True)
    return VisitorKeys(folder / "visitor_keys")


def _made(lookups: Lookups) -> dict[str, bytes]:
    """The keys that there are by day, as the files have them."""
    assert lookups.visitor_keys
    return {file.name: file.read_bytes().split()[0] for file in lookups.visitor_keys.folder.glob("*")}


def test_visitor_changes_with_address_agent_day_and_key(lookups: Lookups, tmp_path: Path) -> None:
    record = {"ip": "198.51.100.7", "ua": "curl/8"}
    others: list[dict[str, Any]] = [
        record | {"ip": "198.51.100.8"}, record | {"ua": "curl/9"}, record | {"ua": None},
        record | {"ts": "2026-02-28T12:30:00Z"},
        {"ip": "198.51.100.7\x00", "ua": "curl/8"},
    ]  # fmt: skip
    records = [record, *others, record, record | {"ts": "2026-03-01T00:00:00Z"}]
    rows = _look_up(records, lookups, ADDRESSES)
    key = _made(lookups)["2026-03-01"]
    visitors = [row["visitor_id"] for row in rows]
    assert len(set(visitors)) == 6
    assert visitors[0] == visitors[-1] == visitors[-2]
    assert visitors[0] == _rfc_7693(key, b"198.51.100.7\x00curl/8\x002026-03-01")
    assert visitors[3] == _rfc_7693(key, b"198.51.100.7\x00\x002026-03-01"), "no user agent"
    other_key = _look_up([record], Lookups(_keys(tmp_path / "other")), ADDRESSES)
    assert other_key[0]["visitor_id"] not in visitors


def test_each_day_has_its_own_key_which_stays(lookups: Lookups) -> None:
    records = [{"ip": "198.51.100.7", "ts": f"2026-{day}T12:30:00Z"} for day in ("02-28", "03-01")]
    first = _look_up(records, lookups, ADDRESSES)
    keys = _made(lookups)
    assert keys.keys() == {"2026-02-28", "2026-03-01"}
    assert keys["2026-02-28"] != keys["2026-03-01"]
    assert [row["visitor_id"] for row in first] == [
        _rfc_7693(key, f"198.51.100.7\x00\x00{day}".encode()) for day, key in sorted(keys.items())
    ]
    again = _look_up(records[::-1], lookups, ADDRESSES)
    assert [row["visitor_id"] for row in again] == [row["visitor_id"] for row in first[::-1]]
    assert _made(lookups) == keys


def test_who_looks_for_visitors_finds_none_of_a_day_whose_key_is_gone_and_makes_none(lookups: Lookups) -> None:
    records = [{"ip": "198.51.100.7", "ts": f"2026-{day}T12:30:00Z"} for day in ("02-28", "03-01")]
    first, second = _look_up(records, lookups, ADDRESSES)
    assert lookups.visitor_keys
    (lookups.visitor_keys.folder / "2026-02-28").unlink()
    rows = _look_up(records, lookups.by_known_keys(), ADDRESSES)
    assert [row["visitor_id"] for row in rows] == [None, second["visitor_id"]]
    assert first["visitor_id"]
    assert _made(lookups).keys() == {"2026-03-01"}
    assert Lookups().by_known_keys() == Lookups()


def test_no_key_is_made_for_lines_without_a_derived_visitor(lookups: Lookups) -> None:
    record = {"ip": "198.51.100.7"}
    _look_up([record | {"visitor": "v"}, {"ua": "curl/8"}], lookups, CLIENTS)
    _look_up([record | {"url": "no"}], lookups, ADDRESSES)
    assert _made(lookups) == {}


def test_without_an_address_there_is_no_visitor_and_no_country(lookups: Lookups) -> None:
    (row,) = _look_up([{"ua": "curl/8"}], lookups, ADDRESSES)
    assert (row["visitor_id"], row["country_code"]) == (None, "unknown")


def test_country_and_visitor_of_a_click_are_looked_up_where_the_line_has_none(lookups: Lookups) -> None:
    rows = _look_up(
        [
            {"ip": "8.8.8.8", "ua": "curl/8", "visitor": "v", "land": "de"},
            {"ip": "8.8.8.8", "ua": "curl/8", "land": "Germany"},
        ],
        lookups,
        CLIENTS,
    )
    assert (rows[0]["country_code"], rows[0]["visitor_id"]) == ("DE", "v")
    # With a country mapped nothing is looked up: what is none is unknown.
    assert (rows[1]["country_code"], len(rows[1]["visitor_id"])) == ("unknown", 32)
    (row,) = _look_up([{"ip": "8.8.8.8"}], lookups, ADDRESSES)
    assert row["country_code"] == "US"


def test_quarantined_lines_have_nothing_looked_up(lookups: Lookups) -> None:
    record = {"ip": "8.8.8.8", "ua": GOOGLEBOT, "url": "no"}
    (row,) = _look_up([record], lookups, ADDRESSES)
    assert row["reason"] == "bad_url"
    assert {name: row[name] for name in ("country_code", "visitor_id", "is_bot")} == dict.fromkeys(
        ("country_code", "visitor_id", "is_bot")
    )


def test_bots_are_reported_and_without_an_agent_there_is_none() -> None:
    raw = [line(user_agent=agent) for agent in (GOOGLEBOT, FIREFOX, None, "")]
    table = Lookups().look_up(parse_lines(lines_table(raw), WEB, ()))
    assert table["is_bot"].to_pylist() == [True, False, False, False]
    assert table["country_code"].to_pylist() == [UNKNOWN_COUNTRY] * 4
    assert table["visitor_id"].null_count == 4
    assert table.schema.field("is_bot").type == pa.bool_()


def test_no_lines_have_no_rows(lookups: Lookups) -> None:
    for lookup, source in ((lookups, ADDRESSES), (Lookups(), WEB)):
        assert lookup.look_up(parse_lines(lines_table([]), source, ())).num_rows == 0


def test_only_a_source_with_addresses_looks_for_keys_and_none_goes_to_a_worker(tmp_path: Path) -> None:
    settings = make_settings(tmp_path / "home")
    assert Lookups.of(WEB, settings) == Lookups()
    access = Source(name="access", format="combined", base_url="http://www.test")
    for source in (ADDRESSES, access):
        lookups = Lookups.of(source, settings)
        _look_up([{"ip": "198.51.100.7"}], lookups, ADDRESSES)
        (key,) = _made(lookups).values()
        assert key.decode() not in repr(lookups)
        assert key not in pickle.dumps(lookups)


def test_day_of_a_visitor_is_the_utc_day(lookups: Lookups) -> None:
    times = ["2026-02-28T23:59:59.999999Z", "2026-03-01T00:00:00Z", "2026-03-01T00:30:00+01:00"]
    rows = _look_up([{"ip": "::1", "ua": "a", "ts": time} for time in times], lookups, ADDRESSES)
    keys = _made(lookups)
    days = [datetime(2026, 2, 28, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 2, 28, tzinfo=UTC)]
    expected = [_rfc_7693(keys[f"{day:%Y-%m-%d}"], f"::1\x00a\x00{day:%Y-%m-%d}".encode()) for day in days]
    assert [row["visitor_id"] for row in rows] == expected


@pytest.mark.parametrize("address", ["", "-", "host.example.com", "1.2.3", "999.1.1.1", "10.0.0.1", "::1", "\x00", "é"])
def test_what_has_no_country_is_unknown(address: str) -> None:
    assert country_reader(None)(address) == "unknown"


@pytest.mark.parametrize(("address", "country"), [("8.8.8.8", "US"), ("193.99.144.80", "DE"), ("133.11.0.1", "JP")])
def test_public_addresses_have_their_country(address: str, country: str) -> None:
    assert country_reader(None)(address) == country


@pytest.mark.parametrize(
    ("record", "country"),
    [
        ({"country": {"iso_code": "DE"}, "registered_country": {"iso_code": "FR"}}, "DE"),
        ({"country": {"iso_code": "XK"}}, "XK"),
        ({"country": {"iso_code": "EU"}}, "unknown"),
        ({"country": {"iso_code": "None"}}, "unknown"),
        ({"country_code": "de", "country": "Germany"}, "DE"),
        ({"country_code": "de"}, "DE"),
        ({"country": "UK", "continent": "EU"}, "GB"),
        ({"country": {}}, "unknown"),
        ({}, "unknown"),
        ("DE", "unknown"),
        (None, "unknown"),
    ],
)
def test_records_of_several_databases_are_read(record: Any, country: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(country_database, "_opened", lambda database: {"8.8.8.8": record})
    assert country_reader.__wrapped__(None)("8.8.8.8") == country


def test_the_age_of_the_database_is_told_where_addresses_are_looked_up(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    note = country_database_note(settings)
    assert note
    assert "country database of June 2024; country_database in config/pipeline.toml names" in note
    settings.sources_file.write_text('[sources.web]\nformat="json"\n[sources.web.fields]\ntime="t"\nurl="u"\n')
    assert country_database_note(settings) is None


def test_absent_database_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"country_database .*no\.mmdb cannot be read.*expected a MaxMind-format"):
        country_reader(tmp_path / "no.mmdb")


def test_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "some.mmdb").write_text("not a database")
    with pytest.raises(UsageError, match=r"some\.mmdb cannot be read"):
        country_reader(tmp_path / "some.mmdb")


def test_crawlers_are_reported_from_browsers() -> None:
    assert [agent for agent in (FIREFOX, GOOGLEBOT, "") if is_crawler(agent)] == [GOOGLEBOT]


def test_every_crawler_of_the_list_is_reported() -> None:
    assert len(INSTANCES) > 2000
    assert [agent for agent in INSTANCES if is_crawler(agent) != crawleruseragents.is_crawler(agent)] == []
    assert sum(map(is_crawler, INSTANCES)) > len(INSTANCES) * 0.99


def test_any_agent_is_what_the_list_says() -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    bots = 0
    for _ in range(4000):
        crawler, other = rng.choice(INSTANCES), rng.choice([*INSTANCES, FIREFOX])
        cut = rng.randrange(len(crawler) + 1)
        # No line feed at the end, where Python's $ is another than elsewhere.
        between = rng.choice(["", "", "\n", "\x00", "ü", "😀", " ", "-"])
        agent = rng.choice(
            [crawler[:cut] + between + other[rng.randrange(len(other)) :], crawler[cut:], crawler.swapcase()]
        )
        agent = agent[:MAX_AGENT_CHARACTERS].rstrip("\n")
        assert is_crawler(agent) == crawleruseragents.is_crawler(agent), agent
        bots += is_crawler(agent)
    assert 500 < bots < 3900


@pytest.mark.parametrize("text", ["Spider", "Current", "ContextualBot", "Mozilla/5.0 ", "ü"])
def test_only_the_first_of_an_agent_is_looked_at(text: str) -> None:
    long = (text * 65_536)[:65_536]
    assert is_crawler(long) == crawleruseragents.is_crawler(long[:MAX_AGENT_CHARACTERS])
    no_bot = "x" * MAX_AGENT_CHARACTERS
    assert not is_crawler(no_bot + GOOGLEBOT)
    assert is_crawler((GOOGLEBOT + no_bot) * 60)
