"""Lines that are left out: neither clicks nor bad lines, but such that a rule says are not counted.

On its way such a line has the reason ``left_out_`` and the rule's name; no table keeps it but the accounts, by number.
The settings: ``include.kept_lines``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_network
from socket import AF_INET, AF_INET6, inet_pton
from typing import Any
from urllib.parse import quote

import can_ada
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.kept_lines import NOT, NOT_KEPT, CountedLines, LineRule, field_condition
from spark_jobs.lines.columns import as_array, as_numpy, map_distinct
from spark_jobs.lines.lookups import is_crawler
from spark_jobs.lines.page_keys import any_hexadecimal

#: With it the reasons of such lines begin.
LEFT_OUT = "left_out_"

#: The parts of a URL in normal form; a rule on one of them cannot judge a line without a URL.
_URL_PARTS = re.compile(r"^https?://(?P<host>\[[^\]]*\]|[^/:]*)(?::[0-9]+)?(?P<path>/[^?]*)")
_PART_OF_URL = {"host": "host", "path": "path", "ending": "path", "url": "url"}
_ROLES = {"client": "client_address"}
#: What a browser percent-encodes in any part of a URL after its host, and in a path.
_ENCODED_IN_URLS, _ENCODED_IN_PATHS = re.compile(r"[^!#-;=?-~]"), re.compile(r"[^!#-;=?-_a-z|~]")
#: Compared without their case.
_ANY_CASE = ("method", "ending", "user_agent")


def reason_of_rule(rule: str) -> str:
    """The reason of lines that this rule leaves out."""
    return f"{LEFT_OUT}{rule}"


def rule_of_reason(reason: str) -> str | None:
    """The name of the rule that leaves such lines out; None for a reason for quarantine."""
    return reason.removeprefix(LEFT_OUT) if reason.startswith(LEFT_OUT) else None


def is_left_out(reasons: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Which lines a rule leaves out, by their reasons; false for clicks, whose reason is null."""
    return pc.starts_with(reasons, LEFT_OUT).fill_null(False)


def is_quarantined(reasons: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Which lines are quarantined, by their reasons."""
    return pc.and_(pc.is_valid(reasons), pc.invert(is_left_out(reasons)))


def left_out(settings: CountedLines, fields: Mapping[str, pa.Array]) -> dict[str, np.ndarray[Any, Any]]:
    """By rule, of those that come first, which lines it leaves out.

    ``fields`` are roles' texts, null where a line has none, and ``normal_url``; where that is the page's, ``asked_url``
    too, in whose place a page stands. A line without a URL is left out only
    by what it says itself: what a rule would make of its URL is not known.
    """
    if not settings.has_rules:
        return {}
    of_fields = {field_condition(name): fields[role] for role, name in settings.tested_fields.items()}
    judge = _Judge({**fields, **of_fields, "url": fields.get("asked_url", fields["normal_url"])})
    by_rule = {rule.name: _where(judge.fits(rule)) for rule in settings.drops}
    if settings.keep:
        is_kept = judge.fits(settings.keep[0])
        for rule in settings.keep[1:]:
            is_kept = pc.or_kleene(is_kept, judge.fits(rule))
        by_rule[NOT_KEPT] = _where(pc.invert(is_kept))
    return by_rule


def _where(fits: pa.Array) -> np.ndarray[Any, Any]:
    return as_numpy(fits.fill_null(False))


class _Judge:
    """Which of some lines rules fit; each text is looked at once, however many lines have it."""

    def __init__(self, fields: Mapping[str, pa.Array]) -> None:
        self._fields = fields
        self._encoded: dict[str, pa.DictionaryArray] = {}

    def fits(self, rule: LineRule) -> pa.Array:
        """Whether each line fits; null where that is not known."""
        fits = [self._condition(name, values) for name, values in rule.conditions().items()]
        if rule.crawler is not None:
            is_bot = map_distinct(self._fields["user_agent"], is_crawler, pa.bool_()).fill_null(False)
            fits.append(pc.equal(is_bot, rule.crawler))
        together = fits[0]
        for condition in fits[1:]:
            together = pc.and_kleene(together, condition)
        return together

    def _condition(self, name: str, values: Sequence[str]) -> pa.Array:
        encoded = self._texts(name)
        fits = _fits(name, encoded.dictionary, values).take(encoded.indices)
        # What a line does not say is none of these values. Of its URL it is not known.
        return fits if name in _PART_OF_URL else fits.fill_null(_are_all_negated(values))

    def _texts(self, name: str) -> pa.DictionaryArray:
        part = _PART_OF_URL.get(name, name)
        if part not in self._encoded:
            if part in ("host", "path"):
                self._encoded |= _parts_of(self._texts("url"))
            else:
                self._encoded[part] = as_array(self._fields[_ROLES.get(part, part)]).dictionary_encode()
        return self._encoded[part]


def _parts_of(urls: pa.DictionaryArray) -> dict[str, pa.DictionaryArray]:
    parts = pc.extract_regex(urls.dictionary, _URL_PARTS.pattern)
    return {name: pa.DictionaryArray.from_arrays(urls.indices, parts.field(name)) for name in ("host", "path")}


def _are_all_negated(values: Sequence[str]) -> bool:
    return all(value.startswith(NOT) for value in values)


def _fits(name: str, texts: pa.Array, values: Sequence[str]) -> pa.Array:
    """Which texts fit one of the values, and none of those with ``!`` before it."""
    wanted = [value for value in values if not value.startswith(NOT)]
    unwanted = [value.removeprefix(NOT) for value in values if value.startswith(NOT)]
    fits = _is_one_of(name, texts, wanted) if wanted else pc.is_valid(texts)
    return pc.and_(fits, pc.invert(_is_one_of(name, texts, unwanted))) if unwanted else fits


def _is_one_of(name: str, texts: pa.Array, values: Sequence[str]) -> pa.Array:
    if name == "client":
        return map_distinct(texts, _in_networks(values), pa.bool_())
    pattern = "|".join(map(_PATTERNS.get(name, _pattern), values))
    return pc.match_substring_regex(texts, f"(?s)^(?:{pattern})$", ignore_case=name in _ANY_CASE)


def _pattern(value: str) -> str:
    """The regular expression (RE2) of a text in which ``*`` stands for any characters."""
    return ".*".join(map(re.escape, value.split("*")))


def _of_path(value: str) -> str:
    """As paths are in URLs: what a browser percent-encodes is."""
    return any_hexadecimal(_pattern(_ENCODED_IN_PATHS.sub(_percent_encoded, value)))


def _of_url(value: str) -> str:
    return any_hexadecimal(_pattern(_ENCODED_IN_URLS.sub(_percent_encoded, value)))


def _percent_encoded(match: re.Match[str]) -> str:
    return quote(match[0], safe="")


def _of_status(value: str) -> str:
    return value.replace("x", "[0-9]")


def _of_ending(value: str) -> str:
    return f".*{re.escape(value)}"


def _of_host(value: str) -> str:
    """As hosts are in URLs: in lower case, and of letters of other scripts as punycode."""
    return _pattern(".".join(map(_label, value.lower().split("."))))


def _label(label: str) -> str:
    if label.isascii():
        return label
    try:
        host: str = can_ada.parse(f"http://{label}").hostname
    except ValueError:
        return label  # no host has it
    return host


_PATTERNS: dict[str, Callable[[str], str]] = {
    "status": _of_status,
    "ending": _of_ending,
    "host": _of_host,
    "path": _of_path,
    "url": _of_url,
}


def _in_networks(values: Sequence[str]) -> Callable[[str], bool]:
    networks = [
        (AF_INET if network.version == 4 else AF_INET6, int(network.netmask), int(network.network_address))
        for network in map(ip_network, values)
    ]

    def is_in(address: str) -> bool:
        family = AF_INET6 if ":" in address else AF_INET
        try:
            number = int.from_bytes(inet_pton(family, address))
        except (OSError, ValueError):  # the name of a host
            return False
        return any(network_family == family and number & mask == start for network_family, mask, start in networks)

    return is_in
