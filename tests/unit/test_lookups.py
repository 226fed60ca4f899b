from __future__ import annotations

import hashlib
import hmac
from datetime import date
from pathlib import Path

import pytest

from include.errors import UsageError
from spark_jobs.lookups import CountryDatabase, crawler_user_agents, look_up_clients, visitor_id

DAY = date(2026, 3, 1)
GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def _rfc_2104(key: bytes, message: bytes) -> str:
    """HMAC-SHA256 from its definition."""
    block = (hashlib.sha256(key).digest() if len(key) > 64 else key).ljust(64, b"\x00")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block) + message).digest()
    return hashlib.sha256(bytes(byte ^ 0x5C for byte in block) + inner).hexdigest()


@pytest.mark.parametrize("key", [b"k", b"k" * 100])
def test_visitor_is_a_keyed_hash(key: bytes) -> None:
    message = b"198.51.100.7\x00curl/8\x002026-03-01"
    assert _rfc_2104(key, message) == hmac.new(key, message, hashlib.sha256).hexdigest()
    assert visitor_id(key, "198.51.100.7", "curl/8", DAY) == _rfc_2104(key, message)[:32]


def test_visitor_changes_with_address_agent_day_and_key() -> None:
    given = (b"key", "198.51.100.7", "curl/8", DAY)
    others = [(b"other", *given[1:]), (b"key", "198.51.100.8", "curl/8", DAY), (*given[:2], "curl/9", DAY),
              (*given[:3], date(2026, 3, 2)), (*given[:2], None, DAY)]  # fmt: skip
    visitors = {visitor_id(*given), *(visitor_id(*other) for other in others)}
    assert len(visitors) == 6
    assert visitor_id(*given) == visitor_id(*given)
    assert all(visitor and "198" not in visitor[:3] + "." for visitor in visitors)


def test_without_an_address_there_is_no_visitor() -> None:
    assert visitor_id(b"key", None, "curl/8", DAY) is None


@pytest.mark.parametrize(
    "address", [None, "", "-", "host.example.com", "1.2.3", "999.1.1.1", "10.0.0.1", "::1", "\x00"]
)
def test_what_has_no_country_is_unknown(address: str | None) -> None:
    assert CountryDatabase().country_code(address) == "unknown"


@pytest.mark.parametrize(("address", "country"), [("8.8.8.8", "US"), ("193.99.144.80", "DE"), ("133.11.0.1", "JP")])
def test_public_addresses_have_their_country(address: str, country: str) -> None:
    assert CountryDatabase().country_code(address) == country


def test_absent_database_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"country_database .*no\.mmdb cannot be read.*expected a MaxMind-format"):
        CountryDatabase(tmp_path / "no.mmdb")


def test_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "some.mmdb").write_text("not a database")
    with pytest.raises(UsageError, match=r"some\.mmdb cannot be read"):
        CountryDatabase(tmp_path / "some.mmdb")


def test_clients_are_given_back_with_country_and_visitor() -> None:
    clients = [("8.8.8.8", "curl/8", DAY), (None, None, DAY)]
    found = list(look_up_clients(clients, CountryDatabase(), b"key"))
    assert found == [
        ("8.8.8.8", "curl/8", DAY, "US", visitor_id(b"key", "8.8.8.8", "curl/8", DAY)),
        (None, None, DAY, "unknown", None),
    ]


def test_crawlers_are_told_from_browsers() -> None:
    assert crawler_user_agents([FIREFOX, GOOGLEBOT, ""]) == [GOOGLEBOT]
