"""Client addresses in one form, however a server writes them: who has the same address is the same client.

IPv4 in decimal numbers, IPv6 in lower case with its longest zeros left out (RFC 5952); an IPv4 address that is mapped
into IPv6, as sockets for both see it, is the IPv4 address. Brackets, a port and a zone are no part of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv6Address
from itertools import groupby
from socket import AF_INET6, inet_ntop, inet_pton

import pyarrow as pa
import pyarrow.compute as pc

_OCTET = "(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]{1,2})"
_PORT, _ZONE, _H = "(?::[0-9]{1,5})?", "(?:%[0-9A-Za-z._~-]+)?", "[0-9A-Fa-f]{1,4}"
_V4 = re.compile(rf"(\[)?((?:{_OCTET}\.){{3}}{_OCTET})(?(1)\]){_PORT}")
#: Without brackets what follows eight groups is a port; what follows fewer is a group.
_V6 = re.compile(rf"\[([0-9A-Fa-f:.]+){_ZONE}\]{_PORT}|((?:{_H}:){{7}}{_H}){_ZONE}{_PORT}|([0-9A-Fa-f:.]+){_ZONE}")
#: As it is in its one form already, and nearly all of them are.
_USUAL_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_USUAL = rf"^{_USUAL_OCTET}(?:\.{_USUAL_OCTET}){{3}}$"
_MAPPED = bytes(10) + b"\xff\xff"


def normal_address(text: str) -> str | None:
    """An address in its one form; None if the text is none, such as the name of a host."""
    if match := _V4.fullmatch(text):
        return _without_zeros(match[2])
    if not (match := _V6.fullmatch(text)):
        return None
    groups, colon, last = (match[1] or match[2] or match[3]).rpartition(":")
    try:
        address = inet_pton(AF_INET6, groups + colon + (_without_zeros(last) if "." in last else last))
    except (OSError, ValueError):
        return None
    if address.startswith(_MAPPED):
        return ".".join(map(str, address[12:]))
    written = inet_ntop(AF_INET6, address)
    # The C library writes the last part of some others with points too.
    return str(IPv6Address(address)) if "." in written else written


def _without_zeros(dotted: str) -> str:
    return ".".join(str(int(octet)) for octet in dotted.split("."))


def are_usual(texts: pa.StringArray) -> pa.BooleanArray:
    """Which texts are IPv4 addresses in their one form already."""
    return pc.match_substring_regex(texts, _USUAL)


def without_port(texts: pa.StringArray) -> pa.StringArray:
    """The texts, IPv4 addresses without the port behind them."""
    return pc.replace_substring_regex(texts, rf"^([0-9.]+){_PORT}$", r"\1")


def any_form(address: str) -> str:
    """A regular expression (RE2) that finds an address, given in its one form, however it is written in a text.

    What goes on beside it, by a letter, a digit or a group of IPv6, is another address.
    """
    if ":" in address:
        return _any_form_of_v6(IPv6Address(address).packed)
    octets = bytes(map(int, address.split(".")))
    return f"{EDGE}{_dotted(octets)}{END}|{_any_form_of_v6(_MAPPED + octets)}"


#: Beside a word: no letter or digit, or a character that is percent-encoded, as in ``%3D203.0.113.5``.
EDGE, END = "(?:^|[^0-9A-Za-z]|%[0-9A-Fa-f]{2})", "(?:$|[^0-9A-Za-z])"
_COLON = "(?::|%3[Aa])"
_EDGE_OF_V6 = rf"(?:^|[^0-9A-Za-z:]|(?:^|[^0-9A-Fa-f:]){_COLON}|%[0-24-9A-Fa-f][0-9A-Fa-f]|%3[0-9B-Fb-f])"
_END_OF_V6 = rf"(?:$|[^0-9A-Za-z:%]|{_COLON}(?:$|[^0-9A-Fa-f:])|%(?:$|[^3]|3(?:$|[^Aa])))"


def _dotted(octets: bytes) -> str:
    return r"\.".join(f"0{{0,{3 - len(str(octet))}}}{octet}" for octet in octets)


def _any_form_of_v6(packed: bytes) -> str:
    groups = [packed[n : n + 2].hex().lstrip("0") for n in range(0, 16, 2)]
    written = [f"0{{0,{4 - len(group)}}}{group}" if group else "0{1,4}" for group in groups]
    pattern = f"{EDGE}{_COLON.join(written)}{END}"
    for end_of_groups, last, after in ((8, [], _END_OF_V6), (6, [_dotted(packed[12:])], END)):
        parts = [*written[:end_of_groups], *last]
        if last:
            pattern += f"|{EDGE}{_COLON.join(parts)}{END}"
        for start, end in _runs_of_zeros(groups[:end_of_groups]):
            before = "".join(part + _COLON for part in parts[:start])
            zeros = f"(?:0{{0,4}}{_COLON}){{1,{end - start + (not start)}}}"
            behind = _COLON.join(parts[end:]) or "0{0,4}"
            pattern += f"|{_EDGE_OF_V6}{before}{zeros}{behind}{after}"
    return f"(?i:{pattern})"


def _runs_of_zeros(groups: list[str]) -> Iterator[tuple[int, int]]:
    start = 0
    for is_zero, run in groupby(groups, lambda group: not group.strip("0")):
        end = start + len(list(run))
        if is_zero:
            yield start, end
        start = end


def written_forms(address: str) -> list[str]:
    """How servers and languages write an address, given in its one form: so it may be in what was stored before."""
    if ":" in address:
        return sorted(_forms_of_v6(IPv6Address(address).packed))
    octets = [int(octet) for octet in address.split(".")]
    padded = ".".join(f"{octet:03d}" for octet in octets)
    return sorted({address, padded, *_forms_of_v6(_MAPPED + bytes(octets))})


def _forms_of_v6(packed: bytes) -> Iterator[str]:
    groups = [int.from_bytes(packed[n : n + 2]) for n in range(0, 16, 2)]
    dotted = ".".join(map(str, packed[12:]))
    for width in (1, 4):
        whole = [f"{group:0{width}x}" for group in groups]
        for parts in (whole, [*whole[:6], dotted]) if packed.startswith(_MAPPED) else (whole,):
            for text in {":".join(parts), *_shortened(parts)}:
                yield from {text, text.upper(), f"[{text}]", f"[{text.upper()}]"}


def _shortened(parts: list[str]) -> Iterator[str]:
    """With one of the runs of zeros left out."""
    for start, end in _runs_of_zeros(parts):
        yield f"{':'.join(parts[:start])}::{':'.join(parts[end:])}"
