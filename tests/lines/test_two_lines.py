"""Two lines in one: by two times, of numbers told from those that are none; or half of one without a time."""

from __future__ import annotations

import pytest

from include.sources import Source
from tests.lines.parsing import PREFIXES, log_line, parse

SQUID = Source.model_validate({"name": "proxy", "preset": "squid"})
LINE = "1772368200.123    100 8.8.8.8 TCP_MISS/200 5123 GET http://shop.test/{} - HIER_DIRECT/93.184.216.34 text/html"


@pytest.mark.parametrize("page", ["", "a?id=1234567890", "1772368200", "1772368200.5"])
def test_a_number_is_no_second_time(page: str) -> None:
    (row,) = parse([LINE.format(page).encode()], SQUID)
    assert (row["reason"], row["url"]) == (None, f"http://shop.test/{page}")


def test_two_times_are_two_lines() -> None:
    (row,) = parse([(LINE.format("a")[:50] + LINE.format("b")).encode()], SQUID)
    assert row["reason"] is not None


ACCESS = Source(name="access", format="combined", base_url="http://www.test")
REST = log_line(rest=' "-" "curl/8"').decode().partition(" [")[2]
USERS = ["frank", "-", "a b", "John Smith - admin", "John A. Smith", "-x", "x-", "a-b -c", '\\"x', '""', "a@b.example"]


@pytest.mark.parametrize("client", ["198.51.100.7", "2001:db8::7", "-", "pc-7.example"])
@pytest.mark.parametrize("prefix", ["", "shop.example.com:443 ", *PREFIXES[:3]])
def test_half_a_line_and_one_without_a_client_are_none(prefix: str, client: str) -> None:
    first = f"{prefix}{client} - {{}}".format
    halves = [
        first(user)[:length] for user in USERS for length in range(len(prefix + client) + 1, len(first(user)) + 1)
    ]
    halves += [f"{half} " for half in halves if not half.endswith(" ")]
    second = [f"- - {user} [{REST}" for user in ("frank", "-", "a b")]
    rows = parse([f"{half}{line}".encode() for half in halves for line in second], ACCESS)
    assert {row["reason"] for row in rows} == {"not_access_log"}


@pytest.mark.parametrize("client", ["198.51.100.7", "2001:db8::7", "-"])
@pytest.mark.parametrize("user", USERS)
def test_a_user_may_have_blanks_and_dashes(user: str, client: str) -> None:
    for prefix in ("", PREFIXES[0], "shop.example.com:443 ")[: 1 if client == "-" else 3]:
        (row,) = parse([f"{prefix}{client} - {user} [{REST}".encode()], ACCESS)
        assert (row["reason"], row["client_address"]) == (None, None if client == "-" else client)
