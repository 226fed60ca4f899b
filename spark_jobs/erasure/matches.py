"""Which clicks, lines and texts are those that are to be erased."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import re2

from include.sources import Source
from spark_jobs.erasure.requests import Requests
from spark_jobs.lines.addresses import EDGE, END, any_form, normal_address, written_forms
from spark_jobs.lines.arrivals import LineParser
from spark_jobs.lines.columns import as_array, as_numpy
from spark_jobs.lines.headers import IS_HEADER
from spark_jobs.lines.lookups import Lookups, visitors_of
from spark_jobs.lines.parse_lines import parse_lines

#: Texts of a click in which a visitor may be named.
CLICK_TEXTS = ("visitor_id", "event_id", "url", "referrer", "user_agent")
#: So many bytes of compiled words: of thousands of visitors.
_MOST_MEMORY = 1 << 30

_FEW = 16
#: How JSON escapes characters and white space, and web servers bytes.
_CHARACTERS = re.compile(rb"\\u[0-9A-Fa-f]{4}(?:\\u[0-9A-Fa-f]{4})*")
_WHITE_SPACE, _BYTE = re.compile(rb"\\[bfnrt]"), re.compile(rb"\\x([0-9A-Fa-f]{2})")

#: What is around a host, or before a path, that is a field of a line.
_BEFORE, _BEHIND = r"[\s\"'=,|;(\[]", r"[\s\"',|;)\]]"

Mask = np.ndarray[Any, Any]


def _unescaped(data: bytes) -> bytes:
    """What bytes of JSON, or of an access log, mean."""
    data = _BYTE.sub(lambda byte: bytes.fromhex(byte[1].decode()), data)
    data = _CHARACTERS.sub(lambda characters: _of_utf16(characters[0].replace(b"\\u", b"").decode()), data)
    return _WHITE_SPACE.sub(b" ", data).replace(b"\\/", b"/")


def _unicode_name(host: str) -> str:
    """A host as people write it, if its normal form is another."""
    try:
        return host.encode().decode("idna")
    except UnicodeError:
        return host


def _as_bytes(line: str | bytes) -> bytes:
    return line.encode() if isinstance(line, str) else line


def _of_utf16(digits: str) -> bytes:
    return bytes.fromhex(digits).decode("utf-16-be", "replace").encode()


@dataclass(frozen=True)
class Words:
    """Visitors and addresses as whole words: between characters that are no letter or digit.

    An event id that begins with a visitor's has the visitor in it. An address is found however it is written.
    """

    words: tuple[str, ...]

    @cached_property
    def _addresses(self) -> list[str]:
        return sorted({address for word in self.words if (address := normal_address(word))})

    @cached_property
    def _forms(self) -> list[bytes]:
        """As those that are no addresses are written in texts, in JSON, in JSON that is a text of JSON, and in URLs."""
        forms: set[str] = set()
        for word in self.words:
            if not normal_address(word):
                escaped = json.dumps(word)[1:-1]
                forms |= {word, escaped, json.dumps(escaped)[1:-1], quote(word), quote(word, safe="")}
        return sorted(form.encode() for form in forms)

    @cached_property
    def _pattern(self) -> Any:
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.max_mem = _MOST_MEMORY
        any_of = [f"{EDGE}(?:".encode() + b"|".join(map(re2.escape, self._forms)) + f"){END}".encode()]
        return re2.compile(
            b"|".join([*any_of[: len(self._forms)], *map(str.encode, map(any_form, self._addresses))]), options
        )

    def is_in(self, data: bytes) -> bool:
        """Whether one of them is in these bytes, as it is or with characters escaped."""
        if not self.words:
            return False
        return self._is_in(data) or (b"\\" in data and self._is_in(_unescaped(data)))

    def _is_in(self, data: bytes) -> bool:
        # A few are looked for one by one, in a tenth of the time.
        if not self._addresses and len(self._forms) <= _FEW and not any(form in data for form in self._forms):
            return False
        return self._pattern.search(data) is not None

    def of_texts(self, texts: pa.ChunkedArray | pa.Array) -> Mask:
        """In which texts, or bytes, one of them is."""
        array = as_array(texts)
        if array.type not in (pa.string(), pa.binary()):
            array = array.cast(pa.string())
        # All together first: nearly always there is none.
        if not self.is_in(joined(array)):
            return np.zeros(len(array), bool)
        encoded = array.cast(pa.binary()).dictionary_encode()
        named = pa.array(map(self.is_in, encoded.dictionary.to_pylist()), pa.bool_())
        return as_numpy(named.take(encoded.indices).fill_null(False))


def joined(texts: pa.Array) -> bytes:
    """All of the texts, a line end after each."""
    if not len(texts):
        return b""
    array = pc.fill_null(texts.cast(pa.large_binary()), b"")
    as_list = pa.LargeListArray.from_arrays(pa.array([0, len(array)], pa.int64()), array)
    text: bytes = pc.binary_join(as_list, pa.scalar(b"\n", pa.large_binary()))[0].as_py()
    return text


@dataclass(frozen=True)
class Matcher:
    """What of one source is to be erased."""

    requests: Requests
    source: Source
    parser: LineParser
    words: Words = field(repr=False)

    @classmethod
    def of(cls, requests: Requests, parser: LineParser) -> Matcher:
        """That of a source's lines; what it looks for makes no key for visitors."""
        parser = replace(parser, lookups=parser.lookups.by_known_keys())
        return cls(requests, parser.source, parser, Words(tuple(requests.words())))

    def also(self, visitors: frozenset[str]) -> Matcher:
        """The same for more visitors."""
        return Matcher.of(replace(self.requests, visitors=self.requests.visitors | visitors), self.parser)

    def of_clicks(self, clicks: pa.Table) -> Mask:
        """Which rows with the columns of ``clicks`` are to go."""
        mask = np.zeros(len(clicks), bool)
        for name in CLICK_TEXTS:
            mask |= self.words.of_texts(clicks[name])
        mask |= self._has_prefix(clicks["url"])
        if self.requests.addresses and self.source.has_client_address:
            mask |= self.is_derived(clicks)
        return mask

    def is_derived(self, clicks: pa.Table) -> Mask:
        """Of which rows the visitor follows from an address that is asked for."""
        derived = derived_visitors(self.parser.lookups, self._forms_of_addresses, clicks)
        return as_numpy(pc.is_in(as_array(clicks["visitor_id"]), derived))

    @cached_property
    def _forms_of_addresses(self) -> list[str]:
        return [form for address in sorted(self.requests.addresses) for form in written_forms(address)]

    def of_quarantined(self, raw: pa.ChunkedArray) -> Mask:
        """Which raw texts of rejected lines are to go: a URL's beginning anywhere in them counts.

        So do its host and its path, each by itself.
        """
        mask = self.words.of_texts(raw) | self._has_parts(raw)
        base = self.source.base_url
        prefixes = {prefix.removeprefix(base) if base else prefix for prefix in self.requests.url_prefixes}
        for prefix in prefixes - {"/"}:
            for written in {prefix, prefix.replace("/", r"\/")}:
                mask |= as_numpy(pc.match_substring(raw, written).fill_null(False))
        return mask

    def _has_parts(self, lines: pa.ChunkedArray | pa.Array) -> Mask:
        """Which have the host and the path of a prefix beside each other, as lines of many formats do."""
        mask = np.zeros(len(lines), bool)
        for host, path in self._parts:
            has_host = as_numpy(pc.match_substring_regex(as_array(lines), host).fill_null(False)) & ~mask
            for place in np.flatnonzero(has_host):
                mask[place] = path.search(_as_bytes(lines[int(place)].as_py())) is not None
        return mask

    @cached_property
    def _parts(self) -> list[tuple[str, re.Pattern[bytes]]]:
        """Of each prefix the patterns of its host, and of its path where one begins or the host ends."""
        patterns = []
        for prefix in self.requests.url_prefixes:
            parts = urlsplit(prefix)
            name = parts.hostname or ""
            forms = sorted({name, _unicode_name(name)})
            host = rf"(?:{'|'.join(map(re.escape, forms))})\.?(?::[0-9]+)?"
            path = prefix.partition("://")[2][len(parts.netloc) :]
            paths = {path, unquote(path)}
            paths |= {form.replace("/", r"\/") for form in paths}
            any_path = "|".join(map(re.escape, sorted(paths)))
            patterns.append(
                (
                    rf"(?i)(?:^|{_BEFORE}){host}(?:{_BEHIND}|\\|/|$)",
                    re.compile(rf"(?:^|{_BEFORE}|{_BEFORE}(?i:{host}))(?:{any_path})".encode()),
                )
            )
        return patterns

    def of_lines(self, lines: pa.Table) -> Mask:
        """Which lines of a landed file are to go: what the ingest makes of them is, or they name it."""
        mask = self.words.of_texts(lines["value"])
        if IS_HEADER in lines.column_names:  # without it nobody could read the others
            mask &= ~as_numpy(lines[IS_HEADER])
        if (self.requests.url_prefixes or self.source.has_client_address) and not mask.all():
            mask[~mask] = self._of_read(lines.filter(pa.array(~mask)))
        return mask

    def _of_read(self, lines: pa.Table) -> Mask:
        # Also of what is left out: it is in the landing zone all the same.
        parsed = parse_lines(lines, self.source.without_rules(), self.parser.tracking_parameters)
        seen = self.parser.lookups.look_up(parsed)
        visitors = pa.array(sorted(self.requests.visitors), pa.string())
        mask = as_numpy(pc.is_in(as_array(seen["visitor_id"]), visitors)).copy()
        mask |= self._has_prefix(parsed["url"])
        if self.requests.url_prefixes and self.source.pages:  # stored under a page's key, whose prefix is another
            as_asked_for = self.source.model_copy(update={"pages": None})
            mask |= self._has_prefix(parse_lines(lines, as_asked_for, self.parser.tracking_parameters)["url"])
        mask |= self.of_quarantined(parsed["raw"])
        if self.requests.url_prefixes:  # the names of hosts are masked there
            mask |= self._has_parts(lines["value"]) & as_numpy(pc.is_valid(as_array(parsed["raw"])))
        if self.requests.addresses:
            mask |= self._is_asked(parsed)
        return mask

    def _is_asked(self, parsed: pa.Table) -> Mask:
        addresses = pa.array(sorted(self.requests.addresses), pa.string())
        return as_numpy(pc.is_in(as_array(parsed["client_address"]), addresses))

    def gives_visitor(self, parsed: pa.Table) -> Mask:
        """Which lines are of an address that is asked for, from which their visitor follows."""
        mask: Mask = self._is_asked(parsed) & as_numpy(pc.is_null(parsed["visitor_id"]))
        return mask

    def of_texts(self, texts: pa.ChunkedArray | pa.Array) -> Mask:
        """Which other texts name what is to go."""
        mask = self.words.of_texts(texts)
        for prefix in self.requests.url_prefixes:
            mask |= as_numpy(pc.match_substring(as_array(texts), prefix).fill_null(False))
        return mask

    def _has_prefix(self, urls: pa.ChunkedArray | pa.Array) -> Mask:
        mask = np.zeros(len(urls), bool)
        for prefix in self.requests.url_prefixes:
            mask |= as_numpy(pc.starts_with(as_array(urls), prefix).fill_null(False))
        return mask


def derived_visitors(lookups: Lookups, addresses: Sequence[str], clicks: pa.Table) -> pa.Array:
    """The visitors that these addresses have with the user agents and days of the clicks; of none without a key."""
    first = pa.table(
        {"agent": clicks["user_agent"], "day": clicks["clicked_at"].cast(pa.timestamp("us")).cast(pa.date32())}
    )
    days = first.group_by(["agent", "day"]).aggregate([])
    if not len(days) or lookups.visitor_keys is None:
        return pa.array([], pa.string())
    return pa.concat_arrays(
        as_array(
            visitors_of(pa.array([address] * len(days), pa.string()), days["agent"], days["day"], lookups.visitor_keys)
        )
        for address in addresses
    ).drop_null()
