"""Client addresses in lines that are kept; Python's ipaddress says what an address and its network are."""

from __future__ import annotations

import json
import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.hours import Hour
from include.source_fields import LineFields
from include.sources import Source
from include.tables import MAX_RAW_CHARACTERS
from spark_jobs.lines.masked_addresses import mask_addresses
from spark_jobs.lines.sampled_lines import SampledLines
from tests.lines.lines import arrivals, lines_table
from tests.lines.parsing import ACCESS, WEB, parse

CLIENTS = Source(name="clients", format="json", fields=LineFields(time="ts", url="url", client_address="client.ip"))

#: None of them is part of an address, whatever is beside it but digits.
SEPARATORS = (
    " ",
    " - ",
    '"',
    "=",
    "&ip=",
    "%3D",
    "%20",
    r"\x20",
    r"\u0020",
    r"\n",
    r"\b",
    "(",
    ", ",
    "/",
    "|",
    "é",
    ";",
)
WORDS = (
    "12:30:00", "1.2.3.4.5", "std::string", "Chrome/118.0.5993.70", "256.1.1.1", "aa:bb:cc:dd:ee:ff", "GET", "1.2.3",
    "[01/Mar/2026:05:10:00 +0000]", "Foo::Bar", "2026-03-01T05:07:09.123Z", "\x00", "1:2:3:4:5:6:7", "a.b.c.d",
)  # fmt: skip


def masked(address: IPv4Address | IPv6Address) -> str:
    """The network of an address: an independent reading of the decision."""
    if isinstance(address, IPv4Address):
        return str(ip_network((address, 24), strict=False).network_address)
    if address.ipv4_mapped:
        return f"::ffff:{masked(address.ipv4_mapped)}"
    bits = 40 if address in ip_network("2002::/16") else 48
    return str(ip_network((address, bits), strict=False).network_address)


def _written(address: IPv6Address) -> list[str]:
    """An IPv6 address in the ways in which it may be written."""
    text, packed = address.compressed, address.packed
    dotted = ":".join(address.exploded.split(":")[:6]) + f":{IPv4Address(packed[12:])}"
    return [text, text.upper(), address.exploded, dotted]


v4 = st.ip_addresses(v=4)
v6 = st.one_of(
    st.ip_addresses(v=6),
    # Zeros somewhere, as most addresses have them, and addresses of IPv4 inside.
    st.tuples(*[st.sampled_from([0, 0, 0, 1, 0xDB8, 0xFFFF])] * 8).map(
        lambda groups: IPv6Address(":".join(f"{group:x}" for group in groups))
    ),
    v4.map(lambda address: IPv6Address(f"::ffff:{address}")),
    v4.map(lambda address: IPv6Address(f"2002:{address.packed[:2].hex()}:{address.packed[2:].hex()}::1")),
)
#: A text, and what becomes of it.
of_v4 = v4.map(lambda address: (str(address), masked(address)))
of_v6 = v6.flatmap(lambda address: st.sampled_from(_written(address)).map(lambda text: (text, masked(address))))
addresses = st.one_of(of_v4, of_v6)
parts = st.one_of(
    addresses,
    of_v4.map(lambda pair: (f"{pair[0]}:8080", f"{pair[1]}:8080")),
    addresses.map(lambda pair: (f"[{pair[0]}]:443", f"[{pair[1]}]:443")),
    of_v6.map(lambda pair: (f"{pair[0]}%eth0", f"{pair[1]}%eth0")),
    addresses.map(lambda pair: (f"{pair[0]}.", f"{pair[1]}.")),
    st.sampled_from(WORDS).map(lambda word: (word, word)),
)


@given(st.lists(st.tuples(st.sampled_from(SEPARATORS), parts), max_size=12))
def test_every_address_is_masked_and_other_text_unchanged(pieces: list[tuple[str, tuple[str, str]]]) -> None:
    # A separator of its own at the end: of %20 and 1.2.3 the digits are beside each other.
    line = "".join(f"{separator}{before} " for separator, (before, _) in pieces)
    expected = "".join(f"{separator}{after} " for separator, (_, after) in pieces)
    assert mask_addresses(line) == expected
    assert mask_addresses(expected) == expected


def _addresses_in(text: str) -> list[IPv4Address | IPv6Address]:
    valid_addresses: list[IPv4Address | IPv6Address] = []
    for word in re.split(r"[^0-9A-Za-z_:.]+", text):
        for kind in (IPv4Address, IPv6Address):
            try:
                valid_addresses.append(kind(word.removesuffix(".")))
            except AddressValueError:
                continue
    return valid_addresses


@given(st.text(alphabet="0123456789abcF:.: [/%x\\n", max_size=60))
def test_in_any_text_no_address_is_left_as_it_was(text: str) -> None:
    result = mask_addresses(text)
    assert mask_addresses(result) == result
    for address in _addresses_in(result):
        assert ip_address(masked(address)) == address


LOG = '{} - - [01/Mar/2026:12:10:00 +0000] "GET {} HTTP/1.1" 200 1 "-" "curl/8'  # without the last quote

FIRST_FIELDS = {
    "203.0.113.77": "203.0.113.0",
    "2001:db8:1:2::77": "2001:db8:1::",
    "[2001:db8:1:2::77]:443": "[2001:db8:1::]:443",
    "203.0.113.77:50123": "203.0.113.0:50123",
    "::ffff:203.0.113.77": "::ffff:203.0.113.0",
    "203.0.113.077": "203.0.113.0",
    "dsl-203-0-113-77.isp.test": "-",
    "localhost": "-",
    "2001:db8:1:2:3:77": "-",
    "-": "-",
}


@pytest.mark.parametrize(("client", "kept"), FIRST_FIELDS.items())
def test_the_first_field_of_an_access_log_is_masked_whatever_it_is(client: str, kept: str) -> None:
    (row,) = parse([LOG.format(client, "/?from=198.51.100.7").encode()], ACCESS)
    assert (row["reason"], row["raw"]) == ("not_access_log", LOG.format(kept, "/?from=198.51.100.0"))
    assert row["bytes"] == len(LOG.format(client, "/?from=198.51.100.7"))


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("dsl-203-0-113-77.isp.test -", "- -"),
        ("2001:db8:1:2:3", "-"),
        ("nonsense", "nonsense"),
        ('{"a":[{"b":"203.0.113.77"}', '{"a":[{"b":"203.0.113.0"}'),
        ("", ""),
    ],
)
def test_of_what_is_no_access_log_the_first_word_stays_unless_it_may_be_a_client(line: str, kept: str) -> None:
    assert [row["raw"] for row in parse([line.encode()], ACCESS)] == [kept]


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ('"203.0.113.77"', '"203.0.113.0"'),
        (' : "203.0.113.77"', ' : "203.0.113.0"'),
        ('"2001:DB8:1:2::77"', '"2001:db8:1::"'),
        ('"203.0.113.77, 198.51.100.7"', '"-"'),
        ('"host-77.isp.test"', '"-"'),
        (r'"\u0032\u0030\u0033.0.113.77 \"x"', '"-"'),
        ("3405803853", "0"),
        ("203.0.113.77", "203.0.113.0"),
        ('["203.0.113.77"]', '["203.0.113.0"]'),
        ("null", "null"),
        ('""', '""'),
        ('"2001:db8:1:2:3', '"-'),
    ],
)
def test_the_clients_value_in_json_is_masked_whatever_it_is(value: str, kept: str) -> None:
    before, after = (f'{{"client":{{"ip"{"" if " :" in text else ":"}{text}' for text in (value, kept))
    others = '},"x":"at [198.51.100.7]","ips":"host-7"}, lost'
    (row,) = parse([(before + others).encode()], CLIENTS)
    expected = after + ('},"x":"at [198.51.100.0]","ips":"host-7"}, lost')
    if value.count('"') == 1:  # the text ends where the next one begins
        before, expected = before, after
        (row,) = parse([before.encode()], CLIENTS)
    assert (row["reason"], row["raw"]) == ("not_json", expected)


def test_lines_stay_as_they_came_if_the_source_says_so_or_logs_no_client_addresses() -> None:
    line = b"203.0.113.77 - [ host"
    kept = [source.model_copy(update={"keep_raw": True}) for source in (ACCESS, CLIENTS)]
    for source in (*kept, WEB):
        assert [row["raw"] for row in parse([line], source)] == [line.decode()]


def test_what_is_left_of_an_address_where_a_line_is_cut_off_goes_too() -> None:
    address = "2001:db8:1:2:3:4:5:77"
    for cut in range(1, len(address)):
        line = "203.0.113.77 - x".ljust(MAX_RAW_CHARACTERS - cut) + address + " and more"
        (row,) = parse([line.encode()], ACCESS)
        assert row["raw"].rstrip() == "203.0.113.0 - x"
        (row,) = parse([line.encode()], ACCESS.model_copy(update={"keep_raw": True}))
        assert row["raw"] == line[:MAX_RAW_CHARACTERS]


def test_bytes_that_are_not_utf8_keep_no_address() -> None:
    (row,) = parse([b"203.0.113.77 - \xff198.51.100.7"], ACCESS)
    assert (row["reason"], row["raw"]) == ("not_utf8", "203.0.113.0 - \ufffd198.51.100.0")


def test_examples_of_sampled_fields_have_no_addresses_nor_have_their_names() -> None:
    line = {"client": {"ip": "203.0.113.77"}, "via": "for=203.0.113.77", "hits": {"198.51.100.7": 1}, "url": "no"}
    sampled = SampledLines(CLIENTS, ("log_hour",))
    sampled.add(arrivals(CLIENTS, [lines_table([json.dumps(line).encode()], hour=Hour.parse("2026-03-01T12"))]))
    (row,) = sampled.rows()
    examples = {field["path"]: field["example"] for field in row["sampled_fields"]}
    assert examples == {
        "client": None, "client.ip": None, "via": "for=203.0.113.0", "hits": None, "hits.198.51.100.0": "1", "url": "no"
    }  # fmt: skip
