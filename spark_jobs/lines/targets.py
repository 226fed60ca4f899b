r"""The URL that a line asks for, from the parts that it has: host, scheme, path, query, a request line, or the whole.

* A whole URL stays as it is. A path is one of the line's host, or else of the source's ``base_url``.
* The scheme is the line's, or else ``base_url``'s; without both it is ``https``, unless the port is 80.
* Ports 80 and 443 go where the line does not say the scheme: it is the server's own, which may stand behind another.
* A query follows its ``?``, unless the path has it already.

A host that is none (``_``, nginx's name for any, or ``-``) is as if it were not there; one with characters that no host
has makes no URL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from include.duckdb_sql import quoted
from spark_jobs.lines.columns import as_array, map_distinct, may_contain

#: Between the parts of a URL; one in a part is what it would be in a URL, where no host has it.
_BETWEEN, _NO_PART = "\x1e", "%1E"

# A method is any token: RFC 9110, section 9.1. The target may have spaces, where a client did not encode them. Scanners
# and old clients write another protocol, HTTP in small letters, a blank after it. Only request lines have one: what
# looks so at the end of a URL is of its query.
_PROTOCOL = r"(?: +(?i:HTTPS?|RTSP|SIP|ICY)/\d+(?:\.\d+)? *)?"
_METHOD = "([!#$%&'*+.^_`|~0-9A-Za-z-]+)"
_REQUEST = rf"^{_METHOD} (\S.*?){_PROTOCOL}$"
# Nearly all are so, which RE2 reads in one pass: a quarter of the time.
_USUAL_REQUEST = rf"^{_METHOD} (\S+) HTTP/\d(?:\.\d)?$"

_HEXADECIMAL = re.compile(r"\\(?:x|u00)([0-9A-Fa-f]{2})")
_BYTES = {'"': "%22", "b": "%08", "t": "%09", "n": "%0A", "v": "%0B", "f": "%0C", "r": "%0D"}
# Stands for an escaped backslash meanwhile: half of a surrogate pair, which is in no text of UTF-8.
_BACKSLASH = "\udc5c"

_NO_HOST = ("", "-", "_")
_NO_QUERY = ("", "-")
_HOST = re.compile(r"[^\x00- \x7f/\\?#@,;<>\"]+(?<!:)")
_PORT = re.compile(r":(80|443)\Z")
#: As servers say it: ``$scheme``, ``$https``, CloudFront's ``cs-protocol``, ``x-forwarded-proto``.
_SCHEMES = {"on": "https", "off": "http"}
#: Of the protocol, which Heroku's router writes where the scheme was: ``http1.1``, ``http2.0``.
_VERSION = re.compile(r"(?:http/?|h)[0-9][0-9.]*")


def target_values(values: Mapping[str, str]) -> dict[str, str]:
    """The SQL of a line's roles with ``url`` for what it asks for: of the URL, the path and the request the first."""
    asked = [values[role] for role in ("url", "path") if role in values]
    if "request" in values:
        asked.append(f"nullif({part_of_request(values['request'], 2)}, '')")
    others = {role: value for role, value in values.items() if role not in ("url", "path", "request")}
    if not asked:
        return others
    return others | {"url": asked[0] if len(asked) == 1 else f"coalesce({', '.join(asked)})"}


def method_value(values: Mapping[str, str]) -> str:
    """The SQL of a line's method: its own, or that of its request."""
    methods = [values["method"]] if "method" in values else []
    if "request" in values:
        methods.append(f"nullif({part_of_request(values['request'], 1)}, '')")
    return f"coalesce({', '.join(methods)})"


def part_of_request(request: str, part: int) -> str:
    """The SQL of a request line's method (1) or target (2), empty where it is no such line."""
    usual, any_ = (f"regexp_extract({request}, {quoted(p)}, {part}, 's')" for p in (_USUAL_REQUEST, _REQUEST))
    return f"coalesce(nullif({usual}, ''), {any_})"


def normal_urls(
    fields: Mapping[str, pa.Array],
    base_url: str,
    normal_form: Callable[[str], str | None],
    *,
    is_escaped: bool,
    may_be_request: bool = False,
) -> pa.Array:
    """The normal form of each line's URL, null where there is none; computed once for each distinct one.

    ``fields`` are roles' texts: ``url``, and ``scheme``, ``host`` and ``query`` where the format has them. Where
    ``is_escaped``, bytes in them may be written with a backslash, see ``percent_encoded``; a ``url`` that
    ``may_be_request`` is the target of one.
    """
    written = _percent_encoded if is_escaped else as_array
    target = written(_targets(fields["url"]) if may_be_request else fields["url"])
    if "query" in fields:
        target = _with_queries(target, written(fields["query"]))
    if base_url or "host" in fields or "scheme" in fields:
        is_path = pc.starts_with(target, "/")
        target = pc.if_else(is_path, pc.binary_join_element_wise(_sites(fields, base_url), target, ""), target)
    return map_distinct(target, normal_form, pa.string())


def _percent_encoded(targets: pa.StringArray) -> pa.StringArray:
    if not may_contain(targets, "\\"):
        return targets
    is_escaped = pc.match_substring(targets, "\\").fill_null(False)
    return pc.replace_with_mask(
        targets, is_escaped, map_distinct(targets.filter(is_escaped), percent_encoded, pa.string())
    )


def _with_queries(targets: pa.StringArray, queries: pa.StringArray) -> pa.StringArray:
    has_query = pc.invert(pc.is_in(queries, pa.array([*_NO_QUERY, None])))
    # The target is last: what separates them may stand in it.
    before = pc.replace_substring(queries.filter(has_query), _BETWEEN, _NO_PART)
    joined = pc.binary_join_element_wise(before, targets.filter(has_query), _BETWEEN)

    def with_query(joined: str) -> str:
        query, _, target = joined.partition(_BETWEEN)
        return _with_query(target, query)

    return pc.replace_with_mask(targets, has_query, map_distinct(joined, with_query, pa.string()))


def _sites(fields: Mapping[str, pa.Array], base_url: str) -> pa.Array | pa.Scalar:
    """Scheme and host for each line's path, or one for all; null where the line's can be none."""
    parts = [role for role in ("host", "scheme") if role in fields]
    if not parts:
        return pa.scalar(base_url)
    texts = (pc.replace_substring(as_array(fields[part]).fill_null(""), _BETWEEN, _NO_PART) for part in parts)

    def site(joined: str) -> str | None:
        values = dict(zip(parts, joined.split(_BETWEEN), strict=True))
        return _site(base_url, values.get("host", ""), values.get("scheme", ""))

    return map_distinct(pc.binary_join_element_wise(*texts, _BETWEEN), site, pa.string())


def _targets(urls: pa.StringArray) -> pa.StringArray:
    """The URLs, of request lines their targets."""
    # These begin with a letter before those of http.
    may_be_request = pc.less(urls, "a").fill_null(False)
    if not pc.any(may_be_request).as_py():
        return urls
    return pc.if_else(may_be_request, pc.replace_substring_regex(urls, f"(?s){_REQUEST}", r"\2"), urls)


def url_of_parts(base_url: str, target: str, host: str = "", scheme: str = "") -> str:
    """A whole URL of a target and what else a line says; a target without a host, or of one that is none, is no URL."""
    if not target.startswith("/"):
        return target
    site = _site(base_url, host, scheme)
    return "" if site is None else site + target


def _site(base_url: str, host: str, scheme: str) -> str | None:
    """Scheme and host of a URL, empty where there is no host; None for one that can be none."""
    own, _, of_base = base_url.partition("://")
    port = None
    if host.partition(":")[0] in _NO_HOST:
        host = of_base
    elif _HOST.fullmatch(host):
        port = _PORT.search(host)
    else:
        return None
    scheme = scheme.lower().removesuffix("://").removesuffix(":")
    if scheme in _NO_HOST or _VERSION.fullmatch(scheme):
        scheme = own or ("http" if port and port[1] == "80" else "https")
        host = host[: port.start()] if port else host
    return f"{_SCHEMES.get(scheme, scheme)}://{host}" if host else ""


def _with_query(target: str, query: str) -> str:
    query = query.removeprefix("?")
    if query in _NO_QUERY or target.endswith(f"?{query}"):
        return target
    # A question mark in a path that has its query beside it was percent-encoded: nginx's $uri is decoded.
    return f"{target.replace('?', '%3F')}?{query}"


def percent_encoded(target: str) -> str:
    r"""A target whose bytes servers write with a backslash, as ``\"``, ``\t`` or ``\xC3``, with these percent-encoded.

    Source: https://httpd.apache.org/docs/2.4/mod/mod_log_config.html#format-notes, and nginx's ``escape=default`` and
    ``escape=json`` (``\u0001``).
    """
    if "\\" not in target:
        return target
    # Few passes over the whole: a call for each escape costs seconds where a client sends nothing else.
    target = target.replace("\\\\", _BACKSLASH)
    for letter, byte in _BYTES.items():
        target = target.replace(f"\\{letter}", byte)
    return _HEXADECIMAL.sub(lambda byte: f"%{byte[1].upper()}", target).replace(_BACKSLASH, "%5C")
