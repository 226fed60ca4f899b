"""Internet addresses in texts that are kept for people to read: the network stays, the host goes.

Of an IPv4 address the last octet becomes 0, of an IPv6 address all but the first 48 bits: still an address, of the same
country. An IPv4 address inside an IPv6 one (``::ffff:203.0.113.5``, or ``2002:cb00:7105::`` of 6to4) is masked as such.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from socket import AF_INET6, inet_ntop, inet_pton

from include.source_fields import Alternatives, sampled_path
from include.sources import Source
from spark_jobs.lines.credentials import without_credentials
from spark_jobs.lines.delimited_lines import clients_pattern

_H = "[0-9A-Fa-f]{1,4}"
_OCTET = "(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]{1,2})"
_END = r"(?![0-9])(?!\.[0-9])"
_DOTTED = rf"(?:{_OCTET}\.){{3}}{_OCTET}{_END}"
# Letters and digits may precede an address as the end of an escape: %3D203.0.113.5, \x20203.0.113.5, \n2001:db8::1
_ESCAPED = r"(?<=%[0-9A-Fa-f]{2})|(?<=\\x[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})|(?<=\\[bfnrtv])"
# Eight groups, or fewer around a "::", n of them before it; the last two may be written with points.
_AFTER = [*(rf"(?:(?:{_H}:){{0,{5 - n}}}{_DOTTED}|{_H}(?::{_H}){{0,{6 - n}}}|)" for n in range(6)), f"(?:{_H}|)", ""]
_GROUPS = [rf"(?:{_H}:){{6}}(?:{_DOTTED}|{_H}:{_H})", f"::{_AFTER[0]}"]
_GROUPS += [rf"(?:{_H}:){{{n}}}:{_AFTER[n]}" for n in range(1, 8)]

_NO_ESCAPE = r"(?!(?<=%)[0-9A-Fa-f]{2}|(?<=\\)[bf])"
_V6 = re.compile(
    rf"(?=[0-9A-Fa-f]{{0,4}}:[0-9A-Fa-f:])(?:(?<![0-9A-Za-z_]){_NO_ESCAPE}|{_ESCAPED})"
    rf"(?:{'|'.join(_GROUPS)})(?![0-9A-Za-z_])"
)
# Most lines have many digits and few points: what begins with a point is found in a third of the time.
_LIKE_V6 = re.compile(rf":(?::|(?:{_H}:){{5}})")
_V4_LESS_FIRST = re.compile(rf"(\.{_OCTET}\.{_OCTET}\.){_OCTET}{_END}")
_FIRST_OF_V4 = re.compile(rf"(?:(?<![0-9])(?<![0-9]\.)|{_ESCAPED}){_OCTET}\Z")
#: An address and nothing else, but for its zone, brackets and port.
_ONE_ADDRESS = re.compile(rf"\[?(?:{_V6.pattern}|{_DOTTED})(?:%[\w.~-]+)?\]?(?::[0-9]+)?", re.ASCII)

#: 0000:0000:0000:0000:0000:ffff:203.000.113.005
_LONGEST = 45
_MAPPED = bytes(10) + b"\xff\xff"
_6TO4 = b"\x20\x02"

_INSIDE_TEXT = r'[^"\\]*(?:\\.[^"\\]*)*'
_TEXT_IN_LIST = re.compile(rf'"({_INSIDE_TEXT})', re.DOTALL)
#: The first field of a line, and where another and a bracket follow: it is that of an access log.
_FIRST_FIELD = re.compile(r"(\S+)( \S+ [^\[]*\[)?")
#: The longest name of a host: RFC 1035, section 2.3.4.
_HOST = re.compile(r"(?=[^.:]*[.:])[\w.:%\[\]-]{1,253}", re.ASCII)
#: A name of a host wherever a format may have the client, but not in a longer text: behind a prefix, in a list.
_NAME = re.compile(r'(?<![^\s"\[(|,;=])(?:[\w-]{1,63}\.)+[A-Za-z][\w-]{0,62}\.?(?![^\s"\])|,;:])', re.ASCII)


def address_mask(source: Source, header: str | None = None) -> Callable[[str], str] | None:
    """A function from a line of the source to the same with all addresses masked; none if it logs no client addresses.

    The client's field becomes ``-`` if it is no address, such as the name of a host. ``header`` is the one in force.
    """
    if not source.has_client_address:
        return None
    mask = _mask_of_format(source, header)
    return _wrapped_mask(source.wrapper, mask) if source.wrapper else mask


def _mask_of_format(source: Source, header: str | None) -> Callable[[str], str]:
    if source.delimited is not None:
        return _delimited_mask(clients_pattern(source.delimited, header))
    return _json_mask(source.fields.paths()["client_address"]) if source.fields else _masked_access_log


def line_mask(source: Source) -> Callable[[str], str]:
    """The same, but whatever the mapping is; a masked line stays as it is, so it can be recognised by what is left.

    Users and passwords of URLs are gone too.
    """
    mask = mask_addresses if source.fields or source.delimited or source.wrapper else _masked_access_log
    return lambda line: mask(without_credentials(line))


def shortened(line: str, characters: int) -> str:
    """The beginning of a line, without what may be a part of an address at its end: a part would not be masked."""
    if len(line) <= characters:
        return line
    end = max(characters - _LONGEST, 0)
    return line[:end] + line[end:characters].rstrip("0123456789abcdefABCDEF:.")


def mask_addresses(text: str) -> str:
    """The text with all internet addresses in it masked; the rest of it stays as it is."""
    if _LIKE_V6.search(text):
        text = _V6.sub(_masked_v6, text)
    return _V4_LESS_FIRST.sub(_masked_v4, text)


def _masked_v4(match: re.Match[str]) -> str:
    before = match.string[max(match.start() - 9, 0) : match.start()]
    return match[1] + "0" if _FIRST_OF_V4.search(before) else match[0]


def _masked_v6(match: re.Match[str]) -> str:
    groups, colon, last = match[0].rpartition(":")
    if "." in last:  # inet_pton takes no zeros in front
        last = ".".join(str(int(octet)) for octet in last.split("."))
    address = inet_pton(AF_INET6, groups + colon + last)
    kept = 15 if address.startswith(_MAPPED) else 5 if address.startswith(_6TO4) else 6
    return inet_ntop(AF_INET6, address[:kept].ljust(16, b"\0"))


def _masked_client(text: str, otherwise: str = "-") -> str:
    return mask_addresses(text) if _ONE_ADDRESS.fullmatch(text) else otherwise


def _masked_access_log(line: str) -> str:
    first = _FIRST_FIELD.match(line)
    if first and (first[2] or _HOST.fullmatch(first[1])):
        line = _masked_client(first[1]) + line[len(first[1]) :]
    return mask_addresses(_NAME.sub("-", line))


@cache
def _delimited_mask(clients: str | None) -> Callable[[str], str]:
    if clients is None:
        return mask_addresses
    pattern = re.compile(clients, re.DOTALL)

    def masked_column(match: re.Match[str]) -> str:
        client = re.fullmatch(r"(?P<quote>[^\w\s:]?)(?P<text>.*)(?P=quote)", match["text"], re.DOTALL)
        assert client is not None
        quote, text = client["quote"], client["text"]
        return match["name"] + quote + (_masked_client(text) if text.strip() else text) + quote

    return lambda line: mask_addresses(pattern.sub(masked_column, line))


def _wrapped_mask(wrapper: Alternatives, mask: Callable[[str], str]) -> Callable[[str], str]:
    """The mask of lines inside JSON: they are masked as they would be by themselves."""
    names = {json.dumps(path[-1]) for fields in wrapper for path in fields if isinstance(path[-1], str)}
    inside = re.compile(rf'((?:{"|".join(sorted(map(re.escape, names)))})\s*:\s*")({_INSIDE_TEXT})', re.DOTALL)

    def masked_line(match: re.Match[str]) -> str:
        try:
            line = json.loads(f'"{match[2]}"', strict=False)
        except ValueError:  # what is left of it says nothing for sure
            return f"{match[1]}-"
        return match[1] + json.dumps(mask(line), ensure_ascii=False)[1:-1]

    return lambda line: mask_addresses(inside.sub(masked_line, line))


@cache
def _json_mask(client: Alternatives) -> Callable[[str], str]:
    paths = [path for fields in client for path in fields]
    last = {[step for step in path if isinstance(step, str)][-1] for path in paths} | set(map(sampled_path, paths))
    written = {json.dumps(name, ensure_ascii=is_ascii) for name in last for is_ascii in (True, False)}
    names = "|".join(sorted(map(re.escape, written)))
    # Wherever a field has this name: the line may be damaged. A text may have lost its end.
    value = re.compile(
        rf"(?P<name>(?:{names})\s*:\s*)"
        rf'(?:"(?P<text>{_INSIDE_TEXT})|(?P<bare>-?[0-9:][^\s,}}\]]*)|\[(?P<list>[^\]\[]*))',
        re.DOTALL,
    )
    # The same in JSON that is a text of JSON, which may be inside another.
    inside = "|".join(sorted(re.escape(json.dumps(name)[1:-1]) for name in last))
    inner = re.compile(rf'(?P<name>(?P<quote>\\+")(?:{inside})(?P=quote)\s*:\s*(?P=quote))(?P<text>[^"\\]*)', re.DOTALL)

    def masked_value(match: re.Match[str]) -> str:
        if match["bare"]:
            return match["name"] + _masked_client(match["bare"], "0")
        if match["list"] is not None:
            return f"{match['name']}[{_TEXT_IN_LIST.sub(_masked_text, match['list'])}"
        return f'{match["name"]}"{_masked_client(match["text"]) if match["text"].strip() else match["text"]}'

    def masked_line(line: str) -> str:
        if "\\" in line:
            line = inner.sub(lambda match: match["name"] + _masked_client(match["text"]), line)
        return mask_addresses(value.sub(masked_value, line))

    return masked_line


def _masked_text(match: re.Match[str]) -> str:
    """A text of a list, masked as a client."""
    return f'"{_masked_client(match[1]) if match[1].strip() else match[1]}'
