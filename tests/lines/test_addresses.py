"""Addresses in one form, however they are written; the oracle is Python's ipaddress."""

from __future__ import annotations

import random
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
import re2

from spark_jobs.lines.addresses import any_form, normal_address, written_forms
from spark_jobs.lines.masked_addresses import mask_addresses

RNG = random.Random(20261128)


def some_addresses(count: int) -> Iterator[IPv6Address]:
    """With zeros in many places, and IPv4 in some of them."""
    for _ in range(count):
        groups = [RNG.choice((0, 0, 0, 0xFFFF, 7, RNG.randrange(1 << 16))) for _ in range(8)]
        if RNG.random() < 0.3:
            groups[:6] = [0, 0, 0, 0, 0, 0xFFFF]
        groups[7] = groups[7] or 1
        yield IPv6Address(b"".join(group.to_bytes(2, "big") for group in groups))


def usual(address: IPv4Address | IPv6Address) -> str:
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


def forms(address: IPv6Address) -> list[str]:
    """All that a text may be that ipaddress reads as this one, but for mixed padding and case."""
    whole = address.exploded.split(":")
    dotted = str(IPv4Address(address.packed[12:]))
    texts = []
    for groups in (whole, [group.lstrip("0") or "0" for group in whole]):
        for parts in (groups, [*groups[:6], dotted]):
            texts.append(":".join(parts))
            texts += [
                f"{':'.join(parts[:start])}::{':'.join(parts[end:])}"
                for start in range(8)
                for end in range(start + 1, min(len(parts), 8) + 1)
                if all(not part.strip("0") for part in parts[start:end])
            ]
    texts += [text.upper() for text in texts]
    assert {ip_address(text) for text in texts} == {address}
    return texts


def test_every_form_becomes_the_one_and_is_found_in_a_text_and_masked_alike() -> None:
    for address in some_addresses(300):
        pattern = re2.compile(any_form(usual(address)).encode())
        for text in forms(address):
            assert normal_address(text) == normal_address(f"[{text}]:443") == usual(address)
            assert normal_address(f"{text}%eth0") == usual(address)
            for written in (text, f'"{text}"', f"[{text}]:443", f"client:{text} ", f"%3D{text}", f"{text}: "):
                assert pattern.search(written.encode()), (written, address)
            assert pattern.search(f"?ip={text.replace(':', '%3A')}&".encode())
            kept = address.packed[: 15 if address.ipv4_mapped else 5 if address.sixtofour else 6]
            assert ip_address(mask_addresses(text)).packed[:15].startswith(kept)
            assert mask_addresses(text) == mask_addresses(address.compressed)


def test_no_other_address_is_found() -> None:
    known = {address: forms(address) for address in some_addresses(150)}
    for address in known:
        pattern = re2.compile(any_form(usual(address)).encode())
        others = [other for other in known if other != address and usual(address) not in other.exploded]
        for text in (RNG.choice(known[other]) for other in others):
            assert "." in text or not pattern.search(text.encode()), (text, address)
    for text in ("2001:db8::7:1", "1:2001:db8::7", "2001:db8::77", "12001:db8::7", "2001:db8::7%3A1"):
        assert not re2.compile(any_form("2001:db8::7").encode()).search(text.encode())
    for text in ("192.0.2.77", "1192.0.2.7", "192x0.2.7"):
        assert not re2.compile(any_form("192.0.2.7").encode()).search(text.encode())


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("192.0.2.7:4711", "192.0.2.7"),
        ("[192.0.2.7]", "192.0.2.7"),
        ("192.000.002.007", "192.0.2.7"),
        ("::FFFF:192.000.002.007", "192.0.2.7"),
        ("0:0:0:0:0:ffff:c000:0207", "192.0.2.7"),
        ("2001:db8:0:0:0:0:0:7:4711", "2001:db8::7"),
        ("fe80::1%3", "fe80::1"),
        ("::192.0.2.7", "::c000:207"),
        ("192.0.2", None),
        ("192.0.2.777", None),
        ("[192.0.2.7", None),
        ("192.0.2.7\x00", None),
        ("2001:db8::7::1", None),
        ("host.example.com", None),
        ("fe80::\u0661", None),
        ("", None),
    ],
)
def test_what_is_and_what_is_no_part_of_an_address(text: str, address: str | None) -> None:
    assert normal_address(text) == address


@pytest.mark.parametrize(
    ("address", "written"),
    [
        ("2001:db8::7", {"2001:db8:0:0:0:0:0:7", "2001:DB8::7", "2001:0db8:0000:0000:0000:0000:0000:0007"}),
        ("203.0.113.5", {"203.0.113.5", "::ffff:203.0.113.5", "::FFFF:CB00:7105", "0:0:0:0:0:ffff:203.0.113.5"}),
        ("2001:db8:0:1::8", {"2001:db8::1:0:0:0:8", "2001:db8:0:1:0:0:0:8"}),
    ],
)
def test_forms_in_which_an_address_may_have_been_stored(address: str, written: set[str]) -> None:
    texts = written_forms(address)
    assert written <= set(texts)
    assert {normal_address(text) for text in texts} == {address}
