"""Who the client of a line was; of generated lists Python's ipaddress says which addresses are whose."""

from __future__ import annotations

import random
from ipaddress import ip_address, ip_network

import pyarrow as pa
import pytest

from include.source_fields import LineFields
from include.sources import Source
from spark_jobs.lines.clients import clients
from tests.lines.parsing import ACCESS, line, log_line, parse

#: A client that can be none.
NONE = "none"


def client_of(address: str | None, forwarded: str | None = None, *, trusted: tuple[str, ...] = ()) -> str | None:
    fields = {"client_address": pa.array([address], pa.string())}
    if forwarded is not None:
        fields["forwarded_for"] = pa.array([forwarded], pa.string())
    client, is_client = clients(fields, trusted)
    text = client.to_pylist()[0]
    assert text is None or isinstance(text, str)
    return text if is_client.to_pylist()[0] else NONE


@pytest.mark.parametrize(
    ("text", "client"),
    [
        # Addresses in one form.
        ("8.8.8.8", "8.8.8.8"),
        ("8.8.8.8:4711", "8.8.8.8"),
        ("2001:DB8:0:0::7", "2001:db8::7"),
        ("[2001:db8::7]:443", "2001:db8::7"),
        ("fe80::1%eth0", "fe80::1"),
        ("::FFFF:8.8.8.8", "8.8.8.8"),
        ("::ffff:808:808", "8.8.8.8"),
        ("[::ffff:8.8.8.8]:80", "8.8.8.8"),
        # Lists: the first public one.
        ("8.8.8.8, 10.0.0.1", "8.8.8.8"),
        ("8.8.8.8,10.0.0.1,172.16.0.1", "8.8.8.8"),
        ("10.0.0.1, 8.8.8.8", "8.8.8.8"),
        ("192.168.1.7, 100.64.0.1, 9.9.9.9, 8.8.8.8", "9.9.9.9"),
        ("fc00::1, 2001:DB8::7, 10.0.0.1", "2001:db8::7"),
        ("::ffff:10.0.0.1, ::ffff:8.8.8.8", "8.8.8.8"),
        ("203.0.113.5:4711, [2001:db8::1]:443", "203.0.113.5"),
        ("unknown, 8.8.8.8", "8.8.8.8"),
        ("-, 8.8.8.8", "8.8.8.8"),
        ("8.8.8.8,", "8.8.8.8"),
        ("10.0.0.2, 10.0.0.1", "10.0.0.2"),
        ("8.8.8.8 10.0.0.1", "8.8.8.8"),
        ("10.0.0.1;8.8.8.8 ; 9.9.9.9", "8.8.8.8"),
        ("for=8.8.8.8;proto=https;by=10.0.0.1", "8.8.8.8"),
        ('for="[2001:DB8::7]:4711", for=10.0.0.1', "2001:db8::7"),
        # Nobody.
        (None, None),
        ("-", None),
        ("unknown", None),
        ("null", None),
        ("undefined, 8.8.8.8", "8.8.8.8"),
        ("_hidden", None),
        ("unix:", None),
        ("unix", None),  # HAProxy's, without its port
        ("", None),
        # Names of hosts, where servers log them.
        ("host.example.com", "host.example.com"),
        ("Host.Example.COM.", "host.example.com"),
        ("localhost", "localhost"),
        ("ec2-1-2-3-4.example", "ec2-1-2-3-4.example"),
        ("a_b.example", "a_b.example"),
        # No clients.
        ("shop.example.com:443", NONE),
        ("999.1.1.1", NONE),
        ("1.2.3", NONE),
        ("1.2.3.4.5", NONE),
        ("12:30:00", NONE),
        ("\x00\x008.8.8.8", NONE),
        ("\x00", NONE),
        ("2026-03-10T12:30:00Z", NONE),
        ("nginx:", NONE),
        ("8.8.8.8, shop.example.com", NONE),
        ("host example", NONE),
        ("8.8.8.8 x", NONE),
        ("a..b", NONE),
        ("x" * 64 + ".example", NONE),
        ("::ffff:8.8.8.888", NONE),
        ("http://a", NONE),
    ],
)
def test_client_in_one_form(text: str | None, client: str | None) -> None:
    assert client_of(text) == client


@pytest.mark.parametrize(
    ("address", "forwarded", "trusted", "client"),
    [
        # Of a list the last that is not trusted: what is before it anybody may have sent.
        ("6.6.6.6, 8.8.8.8, 10.0.0.1", None, ("10.0.0.0/8",), "8.8.8.8"),
        ("6.6.6.6, 8.8.8.8, 203.0.113.9", None, ("203.0.113.9",), "8.8.8.8"),
        ("8.8.8.8, 2001:db8::9", None, ("2001:db8::/32",), "8.8.8.8"),
        ("8.8.8.8, ::ffff:10.0.0.1", None, ("10.0.0.1",), "8.8.8.8"),
        ("10.0.0.2, 10.0.0.1", None, ("10.0.0.0/8",), "10.0.0.2"),
        ("10.0.0.1", None, ("10.0.0.0/8",), "10.0.0.1"),
        # Whoever is connected comes after them.
        ("8.8.8.8", "6.6.6.6", (), "8.8.8.8"),
        ("8.8.8.8", "6.6.6.6", ("10.0.0.0/8",), "8.8.8.8"),
        ("10.0.0.1", "6.6.6.6", (), "6.6.6.6"),
        ("10.0.0.1", "8.8.8.8, 6.6.6.6", (), "8.8.8.8"),
        ("203.0.113.9", "6.6.6.6, 8.8.8.8", ("203.0.113.0/24",), "8.8.8.8"),
        ("8.8.8.8", "", (), "8.8.8.8"),
        ("8.8.8.8", "-", (), "8.8.8.8"),
        ("10.0.0.1", "10.0.0.7", (), "10.0.0.7"),
        (None, "8.8.8.8", (), "8.8.8.8"),
        ("host.example", "-", (), "host.example"),
        ("10.0.0.1", "shop.example.com:443", (), NONE),
    ],
)
def test_client_behind_proxies(
    address: str | None, forwarded: str | None, trusted: tuple[str, ...], client: str | None
) -> None:
    assert client_of(address, forwarded, trusted=trusted) == client


def test_any_list_has_the_client_that_ipaddress_says() -> None:
    rng = random.Random(20261129)
    trusted = ("10.0.0.0/8", "2001:db8::/32", "203.0.113.7")
    networks = [ip_network(text) for text in trusted]
    for _ in range(500):
        chain = [
            ip_address(
                rng.choice([rng.randbytes(4), b"\x0a" + rng.randbytes(3), rng.randbytes(16), bytes([203, 0, 113, 7])])
            )
            for _ in range(rng.randrange(1, 5))
        ]
        text = rng.choice([", ", ","]).join(rng.choice([str(each), each.exploded.upper()]) for each in chain)
        others = [each for each in chain if not any(each in network for network in networks)]
        if not any(each.version == 6 and (each.ipv4_mapped or "." in str(each)) for each in chain):
            assert client_of(text, trusted=trusted) == str(others[-1] if others else chain[0]), text


def test_a_column_has_each_row_s_client() -> None:
    texts = ["192.0.2.7", None, "2001:DB8::8", "host", "::ffff:192.0.2.7", "2001:DB8::8", "999.1.1.1", "-"]
    texts += ["192.0.2.7:443", "192.0.02.7:443", "192.0.2.7:", "192.0.2.7:1:2", "10.0.0.1:1"]
    client, is_client = clients({"client_address": pa.array(texts)}, ())
    assert client.to_pylist() == [
        "192.0.2.7",
        None,
        "2001:db8::8",
        "host",
        "192.0.2.7",
        "2001:db8::8",
        "999.1.1.1",
        None,
        "192.0.2.7",
        "192.0.2.7",
        "192.0.2.7:",
        "192.0.2.7:1:2",
        "10.0.0.1",
    ]
    assert is_client.to_pylist() == [True] * 6 + [False] + [True] * 3 + [False] * 2 + [True]
    for column in (pa.array([None], pa.string()), pa.array([], pa.string())):
        assert clients({"client_address": column}, ())[0].to_pylist() == column.to_pylist()


def test_what_is_no_client_is_no_access_log_line_but_any_text_of_json_is_one() -> None:
    (row,) = parse([log_line(rest=' "-" "curl/8"').replace(b"198.51.100.7", b"999.1.1.1")], ACCESS)
    assert (row["reason"], row["client_address"]) == ("not_access_log", None)
    source = Source(name="web", format="json", fields=LineFields(time="ts", url="url", client_address="ip"))
    rows = parse([line(ip="10.0.0.1, 8.8.8.8"), line(ip="user-17:3"), line(ip=" "), line(ip="-")], source)
    assert [row["client_address"] for row in rows] == ["8.8.8.8", "user-17:3", None, None]
    assert not any(row["reason"] for row in rows)


def test_lines_that_name_nobody_are_clicks_of_nobody() -> None:
    source = Source(name="x", format="access", base_url="https://b.test",
                    log_format='%{X-Forwarded-For}i %l %u %t "%r" %>s')  # fmt: skip
    rows = parse([b'- - - [01/Mar/2026:12:30:00 +0000] "GET /a HTTP/1.1" 200'] * 2, source)
    assert [(row["reason"], row["client_address"]) for row in rows] == [(None, None)] * 2
