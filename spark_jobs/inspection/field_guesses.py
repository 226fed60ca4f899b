"""Which field of a record has which role, guessed from names and values of a sample: JSON objects, or rows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address
from typing import Any

#: If so large a share of its values is like a role's, a field is taken for it.
NEARLY_ALL = 0.9
#: So many values of a field are looked at.
_VALUES = 200


@dataclass
class Field:
    """A field of the sample by its path, and the texts that it has; of numbers their text."""

    path: str
    values: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The last part of the path, in lower case, without what separates words."""
        last = re.split(r"[.\]]", self.path.rstrip("\"'[]0123456789"))[-1]
        return re.sub(r"[^a-z0-9]", "", last.lower())

    def share(self, fits: Callable[[str], object]) -> float:
        """Of its values those that fit."""
        return sum(1 for value in self.values if fits(value)) / len(self.values) if self.values else 0.0


def fields_of_records(records: Iterable[Mapping[str, Any]]) -> list[Field]:
    """The fields of records, those inside of others by a dotted path, the first element of a list as ``[0]``."""
    fields: dict[str, Field] = {}
    for record in records:
        for path, value in _leaves(record, ""):
            each = fields.setdefault(path, Field(path))
            if len(each.values) < _VALUES and value not in (None, ""):
                each.values.append(value if isinstance(value, str) else str(value))
    return [each for each in fields.values() if each.values]


def texts_of_records(records: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The texts at each path of records; an object inside of one is its JSON too."""
    texts: dict[str, list[str]] = {}
    for record in records:
        for path, value in _leaves(record, "", with_objects=True):
            if isinstance(value, (str, dict)):
                texts.setdefault(path, []).append(value if isinstance(value, str) else json.dumps(value))
    return texts


def fields_of_rows(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[Field]:
    """The fields of rows of columns, by the columns' names."""
    fields = [Field(column) for column in columns]
    for row in rows:
        for each, value in zip(fields, row, strict=False):
            if len(each.values) < _VALUES and value not in ("", "-"):
                each.values.append(value)
    return [each for each in fields if each.values]


def _leaves(value: Mapping[str, Any], path: str, *, with_objects: bool = False) -> Iterable[tuple[str, Any]]:
    for name, inner in value.items():
        quoted = f'"{name}"' if re.search(r"[.\s\[\]\"']", name) else name
        inner_path = f"{path}.{quoted}" if path else quoted
        if isinstance(inner, dict):
            if with_objects:
                yield inner_path, inner
            yield from _leaves(inner, inner_path, with_objects=with_objects)
        elif isinstance(inner, list):
            if len(inner) == 1 and not isinstance(inner[0], (dict, list)):
                yield f"{inner_path}[0]", inner[0]
        elif not isinstance(inner, bool):
            yield inner_path, inner


_WEB_URL = re.compile(r"https?://[^\s/]")
_REQUEST = re.compile(r"[A-Z]+ (?:\S.* HTTP/\d(?:\.\d)?|/.*)")
#: Names of machines, as clouds and own networks give them: no site's.
_MACHINE = re.compile(r"ip-\d+-\d+-\d+-\d+\b|.*\.(?:internal|local|localdomain|lan|corp|intranet)(?::\d+)?$")
#: How machines are numbered, under the name of what they belong to, ``web-1.corp.example``: may be a site's, too.
MAY_BE_MACHINE = re.compile(r"(?!www)[\w-]*[a-z][\w-]*\d(?:\.[\w-]+){2,}(?::\d+)?", re.ASCII)
_HOST = re.compile(r"(?=.*[a-zA-Z])[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)+(:\d+)?|localhost(:\d+)?")
_METHOD = re.compile(r"GET|POST|HEAD|PUT|DELETE|OPTIONS|PATCH")
_COUNTRY = re.compile(r"[A-Za-z]{2}")
_QUERY = re.compile(r"\??[^\s?=]+=\S*")
_ADDRESS_ALONE = re.compile(
    r"""(?:^|[\s",\[(+])((?:\d{1,3}\.){3}\d{1,3}|[0-9A-Fa-f]{1,4}:[0-9A-Fa-f:]*:[0-9A-Fa-f:]*)(?=[\s",:\])+\\]|$)"""
)
_STATUS = re.compile(r"[1-5]\d\d")

_TIMES = (
    "ts", "time", "timestamp", "timelocal", "timeiso8601", "datetime", "date", "dt", "eventtime", "eventtimestamp",
    "collectortstamp", "derivedtstamp", "originaltimestamp", "sentat", "startutc", "starttime", "requesttime",
    "clickedat", "createdat", "receivedat", "t", "msec", "epoch", "logtime", "when", "at",
)  # fmt: skip
_URLS = (
    "url", "pageurl", "pagelocation", "href", "location", "fullurl", "requesturl", "uri", "requesturi", "requestpath",
    "link", "path", "pagepath", "pathname", "urlpath", "pathinfo", "target", "csuristem", "page", "request",
)  # fmt: skip
#: Those of a request alone come first: collectors write the machine's name as ``host``, and Elastic's as ``hostname``.
_HOSTS = (
    *("xhostheader", "httphost", "requesthost", "cshost", "authority", "vhost"),
    *("host", "hostname", "servername", "domain"),
)
#: Paths of fields that have a site in some logs, and in others the machine that wrote the line.
SITE_OR_MACHINE = re.compile(
    r"(?:host\.)?(?:host|hostname|host_name|name|server|servername|server_name|domain)", re.IGNORECASE
)
#: Where a click goes to; the page that it is on may be beside it.
_LINKS = ("href", "link", "target")
#: What follows the path, where that has none of it.
_QUERIES = ("query", "querystring", "uriquery", "urlquery", "csuriquery", "requestquery", "args")
#: Other pages than the one that was asked for, where a name has one of these beside ``url``.
_OTHER_PAGES = re.compile(
    "referr?er|^ref$|prev|last|first|initial|entry|landing|link(?:url|href)|outbound|target|dest|redirect|image|img|"
    "icon|avatar|callback|upstream"
)
_CLIENTS = (
    "clientip", "clientaddress", "remoteaddr", "remoteip", "remotehost", "ip", "ipaddress", "clienthost", "cip",
    "useripaddress", "sourceip", "xforwardedfor", "httpxforwardedfor", "realip", "client", "ipaddr", "clientaddr",
    "remoteaddress", "remoteclientip", "cliip", "origh",
)  # fmt: skip
#: What proxies write before their own addresses.
_FORWARDED = ("xforwardedfor", "httpxforwardedfor", "forwardedfor", "xff", "xrealip", "httpxrealip", "realip")
_AGENTS = ("useragent", "httpuseragent", "agent", "ua", "csuseragent", "requestuseragent", "rawuseragent")
_REFERRERS = (
    "referrer",
    "referer",
    "httpreferer",
    "httpreferrer",
    "pagereferrer",
    "csreferer",
    "requestreferer",
    "ref",
)
_STATUSES = ("status", "statuscode", "responsestatus", "httpstatus", "response", "code", "downstreamstatus", "scstatus")
_COUNTRIES = ("country", "countrycode", "geocountry", "cfipcountry", "clientcountry")
_IDS = ("eventid", "messageid", "clickid", "insertid", "eventuuid")
_VISITORS = ("visitorid", "anonymousid", "userpseudoid", "domainuserid", "visitor", "cookieid", "deviceid", "clientid")
_METHODS = ("method", "requestmethod", "httpmethod", "verb", "csmethod")


def guess_fields(fields: Sequence[Field], time_formats: Callable[[Sequence[str]], Any]) -> dict[str, Any]:
    """Paths by role, as ``[sources.NAME.fields]`` has them; without ``time`` or ``url`` where none is like one.

    ``time_formats`` says in which format texts are times, if in any; ``time_format`` is what it says of the chosen.
    """
    guesses: dict[str, Any] = {}
    for each in _ranked(fields, _TIMES):
        if (format_ := time_formats(each.values)) and not _is_small_number(each):
            guesses |= {"time": each.path, "time_format": format_}
            break
    if "time" not in guesses:
        guesses |= _day_and_clock(fields, time_formats)
    guesses |= _url_roles(fields)
    by_value: list[tuple[str, tuple[str, ...], Callable[[str], object]]] = [
        ("client_address", _CLIENTS, is_address),
        ("user_agent", _AGENTS, lambda text: len(text) > 2),
        ("referrer", _REFERRERS, lambda text: text == "-" or "/" in text),
        ("status", _STATUSES, _STATUS.fullmatch),
        ("country", _COUNTRIES, _COUNTRY.fullmatch),
        ("visitor", _VISITORS, lambda text: len(text) > 2),
    ]
    for role, names, fits in by_value:
        for each in _ranked(fields, names):
            if each.name in names and each.share(fits) >= NEARLY_ALL and each.path not in guesses.values():
                guesses[role] = each.path
                break
    if isinstance(client := guesses.get("client_address"), str):
        guesses["client_address"] = _behind_proxies(fields, client)
    for each in _ranked(fields, _IDS):
        if each.name in _IDS and len(set(each.values)) > NEARLY_ALL * len(each.values):
            guesses["event_id"] = each.path
            break
    return guesses


_DAY = re.compile(r"\d{4}[-/.]\d\d[-/.]\d\d|\d\d?[-/.](?:\d\d|\w{3})[-/.]\d{4}")
_CLOCK = re.compile(r"\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?")


def _day_and_clock(fields: Sequence[Field], time_formats: Callable[[Sequence[str]], Any]) -> dict[str, Any]:
    """The fields of the day and of the time of it, where these are two; nothing if there are no such two."""
    day, clock = _first(fields, _DAY.fullmatch), _first(fields, _CLOCK.fullmatch)
    if day is None or clock is None or len(day.values) != len(clock.values):
        return {}
    format_ = time_formats([" ".join(both) for both in zip(day.values, clock.values, strict=True)])
    return {"date": day.path, "time": clock.path, "time_format": format_} if format_ else {}


def _behind_proxies(fields: Sequence[Field], client: str) -> str | list[str]:
    """The client's field; where all of its addresses are a network's own, with the field that proxies wrote before."""
    own = next(each for each in fields if each.path == client)
    if own.name in _FORWARDED or not all(is_own_address(text) for text in own.values):
        return client
    for each in _ranked(fields, _FORWARDED):
        if each.name in _FORWARDED and each.share(lambda text: text in ("", "-") or is_address(text)) >= NEARLY_ALL:
            return [each.path, client]
    return client


def _url_roles(fields: Sequence[Field]) -> dict[str, str]:
    """The field of the URL; or else of a request line or a path, with the host and the method beside it."""
    candidates = [each for each in _ranked(fields, _URLS) if each.name in _URLS or not _OTHER_PAGES.search(each.name)]
    paths = [each for each in candidates if each.share(lambda text: text.startswith("/")) >= NEARLY_ALL]
    known = [each for each in paths if each.name in _URLS]
    if any(each.name not in _LINKS for each in known):
        candidates = [each for each in candidates if each.name not in _LINKS]
    named = [each for each in candidates if each.name in _URLS or "url" in each.name]
    if url := _first(named, _WEB_URL.match) or _first(candidates, _WEB_URL.match):
        return {"url": url.path}
    if request := _first(candidates, _REQUEST.fullmatch):
        beside = _beside(fields, request)
        return {"request": request.path} | {role: beside[role] for role in ("host",) if role in beside}
    # Under a name that nobody knows only if no other may be meant.
    for path in known[:1] or (paths if len(paths) == 1 else []):
        return {"url": path.path} | _beside(fields, path)
    return {}


def _beside(fields: Sequence[Field], target: Field) -> dict[str, str]:
    """The fields of what else says the URL: those that are in the same object as the target before all others."""
    outer = target.path.rpartition(".")[0]

    def named(names: Sequence[str]) -> list[Field]:
        known = [each for each in _ranked(fields, names) if each.name in names]
        return sorted(known, key=lambda each: not each.path.startswith(f"{outer}." if outer else ""))

    others = {
        "host": _first(named(_HOSTS), lambda text: _HOST.fullmatch(text) and not _MACHINE.match(text)),
        "method": _first(_ranked(fields, _METHODS), _METHOD.fullmatch),
    }
    if not any("?" in text for text in target.values):
        others["query"] = _first(named(_QUERIES), _QUERY.fullmatch)
    return {role: each.path for role, each in others.items() if each}


def _first(fields: Iterable[Field], fits: Callable[[str], object]) -> Field | None:
    """The first field nearly all of whose values fit."""
    return next((each for each in fields if each.share(fits) >= NEARLY_ALL), None)


@lru_cache(maxsize=1 << 14)
def is_address(text: str) -> bool:
    """Whether a text is an internet address, or a list that begins with one; a port and brackets may be there."""
    first = text.split(",")[0].strip()
    first = re.sub(r"^\[(.*)\](:\d+)?$|^(\d+\.\d+\.\d+\.\d+):\d+$", r"\1\3", first)
    try:
        ip_address(first)
    except ValueError:
        return False
    return True


def is_own_address(text: str) -> bool:
    """Whether a text is an address of a network's own, and none on the internet."""
    return bool(
        re.match(r"10\.|127\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|\[?(?:::1\b|f[cd]|fe80:)", text, re.IGNORECASE)
    )


def public_addresses(line: str) -> set[str]:
    """The addresses on the internet that stand by themselves in a line, not in a URL or a version."""
    return {text for text in _ADDRESS_ALONE.findall(line) if is_address(text) and not is_own_address(text)}


def _ranked(fields: Sequence[Field], names: Sequence[str]) -> list[Field]:
    """The fields in the order of these names, then those whose name has one of them, then the others."""

    def rank(each: Field) -> tuple[int, int]:
        if each.name in names:
            return names.index(each.name), each.path.count(".")
        return len(names) + (not any(len(name) > 3 and name in each.name for name in names)), each.path.count(".")

    return sorted(fields, key=rank)


def _is_small_number(each: Field) -> bool:
    """Whether its values are numbers that are no times: a duration, a size, a count."""
    return each.share(lambda text: re.fullmatch(r"-?\d+(\.\d+)?", text) and float(text) < 10**8) > 0.5
