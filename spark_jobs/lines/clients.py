"""Who the client of a line was: one address in its one form, whatever a server, a proxy or a balancer wrote there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from ipaddress import ip_address, ip_network

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.lines.addresses import are_usual, normal_address, without_port
from spark_jobs.lines.columns import as_array

#: Networks whose addresses no client on the internet has: loopback, link-local, and those of RFC 1918, 4193 and 6598.
_OWN = tuple(
    map(
        ip_network,
        "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.168.0.0/16 "
        "::/127 fc00::/7 fe80::/10".split(),
    )
)
#: RFC 7239: ``for=192.0.2.60;proto=http, for="[2001:db8::1]:4711"``; ``unknown`` and ``_name`` are nobody's address, as
#: are languages' words for no value.
_FORWARDED = re.compile(r'for="?([^";,\s]+)', re.IGNORECASE)
_UNKNOWN = re.compile(r"-?|(?i:unknown|null|\(null\)|undefined|none|nil)|_[\w.-]*|unix(?::.*)?", re.ASCII)
#: RFC 1123, section 2.1, with the ``_`` that some have; its last part is not all digits, or it would be an address.
_HOST = re.compile(r"(?=.{1,253}\Z)(?:[\w-]{1,63}\.)*(?=[^.]*[A-Za-z_-])[\w-]{1,63}\.?", re.ASCII)
_BETWEEN = "\x1e"
#: Without a port: a host with one was asked for as such.
_ADDRESS_ALONE = r"^(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)$"


def clients(fields: Mapping[str, pa.Array], trusted: tuple[str, ...]) -> tuple[pa.Array, pa.Array]:
    """The client of each line, null where it is not known; and whether what stands there can be one.

    ``fields`` are the roles ``client_address`` and ``forwarded_for``, or one of them: each an address (with a port,
    brackets, a zone), the name of a host, or a list from the client to the last proxy. Of several addresses it is the
    last that is in none of the ``trusted`` networks; without such networks that of ``client_address`` if it is public,
    or else the first public one. What can be no client stays as it is.
    """
    texts = [as_array(fields[role]) for role in ("forwarded_for", "client_address") if role in fields]
    joined = texts[0]
    if len(texts) == 2:
        joined = pc.binary_join_element_wise(*(text.fill_null("") for text in texts), _BETWEEN)
    encoded = joined.dictionary_encode()
    distinct = encoded.dictionary
    if pc.all(are_usual(distinct), min_count=0).as_py():
        return joined, pa.repeat(True, len(joined))
    # Balancers always write a port.
    client = without_port(distinct)
    is_other = pc.invert(are_usual(client))
    results = [*map(_reader(trusted), distinct.filter(is_other).to_pylist())]
    client = pc.replace_with_mask(client, is_other, pa.array([client for client, _ in results], pa.string()))
    are_clients = pa.array([is_client for _, is_client in results], pa.bool_())
    is_client = pc.replace_with_mask(pa.repeat(True, len(distinct)), is_other, are_clients)
    return client.take(encoded.indices), is_client.take(encoded.indices).fill_null(True)


def are_swapped(clients: pa.Array, hosts: pa.Array) -> pa.Array:
    """Where a host's name stands for the client and a client's address for the host: the format has them swapped."""
    has_address = pc.match_substring_regex(as_array(hosts), _ADDRESS_ALONE).fill_null(False)
    if not pc.any(has_address, min_count=0).as_py():
        return has_address
    return pc.and_(has_address, pc.invert(pc.match_substring_regex(as_array(clients), _ADDRESS_ALONE)).fill_null(False))


def _reader(trusted: tuple[str, ...]) -> Callable[[str], tuple[str | None, bool]]:
    networks = tuple(map(ip_network, trusted))

    def is_in(address: str, among: tuple) -> bool:  # type: ignore[type-arg]
        parsed = ip_address(address)
        return any(parsed in network for network in among)

    def read(text: str) -> tuple[str | None, bool]:
        forwarded, _, own = text.rpartition(_BETWEEN)
        if not forwarded and not own.strip(" "):
            return None, True
        if not forwarded and (address := normal_address(own)):
            return address, True
        peers, before = _addresses(own), _addresses(forwarded)
        if peers is None or before is None:
            host = None if before is None else _host(own)
            return host or own or forwarded, host is not None
        chain = before + peers
        if not chain:
            return None, True
        if trusted:
            untrusted = [address for address in chain if not is_in(address, networks)]
            return (untrusted[-1] if untrusted else chain[0]), True
        public = [address for address in (*peers[:1], *chain) if not is_in(address, _OWN)]
        return (public[0] if public else chain[0]), True

    return read


def _addresses(text: str) -> list[str] | None:
    """The addresses of a list, in their one form; None if something else stands there."""
    if _FORWARDED.search(text):
        parts = _FORWARDED.findall(text)
    else:
        parts = re.split(r"[\s,;]+", text.strip(" "))
    known = [part for part in parts if not _UNKNOWN.fullmatch(part)]
    addresses = [normal_address(part) for part in known]
    return None if None in addresses else [address for address in addresses if address]


def _host(text: str) -> str | None:
    return text.lower().removesuffix(".") if _HOST.fullmatch(text) else None
