r"""Formats of access logs as servers' own configuration has them: nginx's ``log_format``, Apache httpd's ``LogFormat``.

Sources: https://nginx.org/en/docs/http/ngx_http_log_module.html#log_format, with the variables of nginx's core;
https://httpd.apache.org/docs/2.4/mod/mod_log_config.html#formats. ``apachelogs`` reads the latter, to slow regular
expressions of its own; to take a format apart is one pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Literal, cast

from include.time_formats import NamedTimeFormat, TimeFormat, TimePattern

Escape = Literal["default", "json", "none", "haproxy"]

#: What servers ship, and name so.
NAMED_FORMATS = {
    "common": '%h %l %u %t "%r" %>s %b',
    "combined": '%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-agent}i"',
    "combinedio": '%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-agent}i" %I %O',
    "vhost_common": '%v %h %l %u %t "%r" %>s %b',
    "vhost_combined": '%v:%p %h %l %u %t "%r" %>s %O "%{Referer}i" "%{User-agent}i"',
    "main": '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" '
    '"$http_user_agent" "$http_x_forwarded_for"',
    "ingress_nginx": '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" '
    '"$http_user_agent" $request_length $request_time [$proxy_upstream_name] [$proxy_alternative_upstream_name] '
    "$upstream_addr $upstream_response_length $upstream_response_time $upstream_status $req_id",
    "nginx_proxy_manager": "[$time_local] $upstream_cache_status $upstream_status $status - $request_method $scheme "
    '$host "$request_uri" [Client $remote_addr] [Length $body_bytes_sent] [Gzip $gzip_ratio] [Sent-to $server] '
    '"$http_user_agent" "$http_referer"',
}  # fmt: skip
NGINX_EXAMPLE = """log_format = '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent'"""
HTTPD_EXAMPLE = """log_format = '%h %l %u %t "%r" %>s %b'"""


@dataclass(frozen=True)
class Variable:
    """What a server fills in. ``role`` is what it is to Clickmill, '' for what is skipped; ``kind`` how it looks.

    Of several variables of one role that with the lowest ``rank`` counts, the first of them.
    """

    name: str
    role: str = ""
    kind: str = "word"
    rank: int = 0


@dataclass(frozen=True)
class LogFormat:
    """A format taken apart: literal texts and variables, as they follow each other; ``pattern`` is of the times."""

    parts: tuple[str | Variable, ...]
    escape: Escape = "default"
    time_format: str = "access_log"
    pattern: str = ""

    @property
    def has_backslashes(self) -> bool:
        """Whether bytes are written with a backslash."""
        return self.escape in ("default", "json")

    def with_tested(self, names: Mapping[str, str]) -> LogFormat:
        """The same with roles of variables that only rules look at, by role, such as ``field_0`` of ``$request_time``.

        Raises:
            ValueError: if the format has no such variable, or it is something to Clickmill already.
        """
        parts = list(self.parts)
        others = {part.name: place for place, part in enumerate(parts) if isinstance(part, Variable) and not part.role}
        for role, name in names.items():
            if name not in others:
                raise ValueError(
                    f"field {name!r}: expected a variable of log_format that nothing else is taken from, one of "
                    f"{', '.join(sorted(others)) or 'none'}"
                )
            variable = parts[others[name]]
            assert isinstance(variable, Variable)
            parts[others[name]] = replace(variable, role=role)
        return replace(self, parts=tuple(parts))

    @property
    def roles(self) -> dict[str, Variable]:
        """The variable of each role."""
        return {part.role: part for part in self.parts if isinstance(part, Variable) and part.role}

    def times_in(self, zone: str | None) -> tuple[TimeFormat, ...]:
        """How its times are written; the zone is that of local times, and of no others.

        Raises:
            ValueError: if they do not say a day, or an offset or the zone is missing.
        """
        if not self.pattern or "%z" in self.pattern:
            if zone is not None:
                raise ValueError("the times of log_format have their offset: expected no time_zone")
            return (TimePattern(pattern=self.pattern),) if self.pattern else (cast(NamedTimeFormat, self.time_format),)
        if zone is None:
            raise ValueError(
                f'the times of log_format ({self.pattern}) have no offset: expected time_zone = "Europe/Berlin", or %z'
            )
        return (TimePattern(pattern=self.pattern, zone=zone),)


def _named(names: str, role: str = "", kind: str = "word") -> dict[str, Variable]:
    """Variables of a role, the most telling first."""
    return {name: Variable(name, role, kind, rank) for rank, name in enumerate(names.split())}


#: By its name, without the $; https://nginx.org/en/docs/varindex.html
_NGINX = (
    _named("remote_addr proxy_protocol_addr realip_remote_addr", "client_address", "client")
    | _named(
        "http_x_forwarded_for proxy_add_x_forwarded_for http_forwarded http_cf_connecting_ip http_true_client_ip "
        "http_x_real_ip http_x_client_ip http_fastly_client_ip",
        "forwarded_for",
        "clients",
    )
    | _named("time_local", "time", "access_log")
    | _named("time_iso8601", "time", "iso8601")
    | _named("msec", "time", "epoch_seconds")
    | _named("request", "request", "free")
    | _named("request_uri", "url", "path")
    | _named("uri document_uri", "path", "path")
    | _named("args query_string", "query", "query")
    | _named("is_args", "", "is_args")
    | _named("request_method", "method")
    | _named("host http_host server_name http_x_forwarded_host", "host", "host")
    | _named("http_x_forwarded_proto scheme https http_x_forwarded_ssl", "scheme")
    | _named("status", "status", "status")
    | _named("http_referer", "referrer", "free")
    | _named("http_user_agent", "user_agent", "free")
    | _named("remote_user", "", "user")
    | _named("body_bytes_sent bytes_sent request_length server_port pid", "", "number")
)
#: By letter; https://httpd.apache.org/docs/2.4/mod/mod_log_config.html#formats
_HTTPD = (
    _named("h a", "client_address", "client")
    | _named("r", "request", "free")
    | _named("U", "path", "path")
    | _named("q", "query", "query")
    | _named("m", "method")
    | _named("V v", "host", "host")
    | _named("s", "status", "status")
    | _named("l", "", "logname")
    | _named("u", "", "user")
    | _named("b B I O S p", "", "number")
    | _named("A D f H k L P R T X ^FB ^FU")
)
#: By the header's name, of ``%{…}i`` and ``$http_…``, in lower case with dashes.
_HEADERS = {
    "host": Variable("host", "host", "host", -1),
    "referer": _NGINX["http_referer"],
    "user-agent": _NGINX["http_user_agent"],
    "x-forwarded-host": _NGINX["http_x_forwarded_host"],
} | {
    name.removeprefix("http_").replace("_", "-"): variable
    for name, variable in _NGINX.items()
    if variable.role in ("forwarded_for", "scheme") and name.startswith("http_")
}
#: ``$clientRealIp``, ``$remote_addr_anon``, ``X-Cluster-Client-IP``: taken where nothing that is known says the client.
_OWN_CLIENT = re.compile(
    r"(?:real|client|remote|visitor|user|src|anon\w*|masked|truncated)[_-]?(?:ip|addr(?:ess)?)"
    r"(?:[_-]?(?:anon\w*|masked|truncated))?\Z|\b_?ip_?(?:anon\w*|masked|truncated)\Z|forwarded[_-]for\Z"
)
_OWN_RANK = 50
_NO_CLIENTS = ("binary_", "upstream_", "sent_", "cookie_", "arg_", "server_")
_WITH_SPACES = ("sent_http_", "cookie_", "arg_", "geoip", "ssl_client_")
_WITH_PARAMETER = frozenset("C e i L n o p P T x c ^ti ^to a h".split())

_DIRECTIVE = re.compile(
    r"%(?P<marks>[0-9,!<>]*)(?:\{(?P<parameter>[^}]*)\})?[0-9,!<>]*(?P<letter>\^[a-zA-Z]{2}|[%a-zA-Z]?)"
)
_NGINX_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_COMMENT = r"#[^\n]*(?:\n|\Z)"
_OF_CONFIGURATION = re.compile(rf"(?i)(?:\s|{_COMMENT})*(log_?format|customlog)\s+")
_QUOTED = re.compile(rf"""(?:\s|{_COMMENT})*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")""", re.DOTALL)
#: Of nginx ``;`` and other directives, though not a second format; of httpd the format's name, or a condition.
_CUSTOM_LOG_END = re.compile(r"\s+(?:env|expr)=\S.*\s*\Z")
_AFTER_QUOTES = re.compile(
    rf"(?:\s|{_COMMENT})*(?:;(?!.*\blog_format\b).*)?|\s+[\w.-]+(?:\s|{_COMMENT})*|\s+(?:env|expr)=\S.*", re.DOTALL
)
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r"}

#: Of C's ``strftime`` what stands for several of ``strptime``.
_SHORT = {"T": "%H:%M:%S", "D": "%m/%d/%y", "F": "%Y-%m-%d", "R": "%H:%M", "h": "%b", "r": "%I:%M:%S %p", "e": "%-d",
          "k": "%-H", "l": "%-I", "c": "%a %b %-d %H:%M:%S %Y", "n": " ", "t": " "}  # fmt: skip
_SERVER_PORTS = ("$server_port", "%p", "%{canonical}p", "%{local}p")
_EPOCHS = {"sec": "epoch_seconds", "%s": "epoch_seconds", "msec": "epoch_milliseconds", "usec": "epoch_microseconds"}
_FRACTIONS = {"msec_frac": "%g", "usec_frac": "%f"}


@cache
def log_format(text: str) -> LogFormat:
    """The format that a person gives: a name, the line of a configuration, or what stands in its quotes.

    Raises:
        ValueError: saying all that is wrong with it.
    """
    written, escape, is_nginx = _unpacked(NAMED_FORMATS.get(text, text).strip())
    parts, problems = _nginx_parts(written) if is_nginx else _httpd_parts(written)
    times, parts = _joined_times(parts)
    chosen = _chosen(_joined_ports(parts))
    roles = {part.role for part in chosen if isinstance(part, Variable)}
    if "time" not in roles:
        problems.append("it has no time: expected $time_local, $time_iso8601, $msec, %t or %{…}t in it")
    if not roles & {"request", "url", "path"}:
        problems.append("it does not say what was asked for: expected $request, $request_uri, $uri, %r or %U in it")
    problems += [
        f"nothing separates {variable.name} and {following.name}: expected a text between them"
        for variable, following in pairwise(chosen)
        if isinstance(variable, Variable)
        and isinstance(following, Variable)
        and not _end_by_themselves(variable, following)
    ]
    if problems:
        raise ValueError("; ".join(problems))
    return LogFormat(tuple(chosen), escape, *times)


def _unpacked(text: str) -> tuple[str, Escape, bool]:
    """The format itself, how its values are escaped, and whether it is nginx's."""
    directive = _OF_CONFIGURATION.match(text)
    name = directive[1].lower() if directive else ""
    if name == "customlog" and (named := NAMED_FORMATS.get(_CUSTOM_LOG_END.sub("", text).split()[-1])):
        text, directive = named, None
    before, rest = "", text
    if directive and (quoted := re.search(r"['\"]", text)):
        before, rest = text[directive.end() : quoted.start()], text[quoted.start() :]
    elif directive:
        rest = text[directive.end() :].partition(" ")[2].partition(";")[0]
    elif match := re.match(r"escape=\w+\s+(?=['\"])", text):
        before, rest = match[0], text[match.end() :]
    match = re.search(r"escape=(default|json|none|haproxy)\b", before)
    escape: Escape = match[1] if match else "default"  # type: ignore[assignment]
    pieces, end = [], 0
    while match := _QUOTED.match(rest, end):
        pieces.append(match[1] if match[1] is not None else match[2])
        end = match.end()
    is_only_pieces = bool(pieces) and _AFTER_QUOTES.fullmatch(rest[end:]) is not None
    if directive and pieces and not is_only_pieces:
        raise ValueError(
            f"{rest[end:].strip()[:40]!r} follows the quotes of {directive[1]}: expected one directive alone"
        )
    if is_only_pieces and (directive or rest.startswith("'") or len(pieces) == 1):
        written = pieces[-1] if name == "customlog" else "".join(pieces)
    else:
        written = rest
    is_nginx = _NGINX_VARIABLE.search(written) is not None
    if not is_nginx and "%" not in written:
        names = ", ".join(NAMED_FORMATS)
        raise ValueError(
            f"{text!r} is no format: expected one of {names}, or the line of your server's configuration, such as "
            f"{NGINX_EXAMPLE} or {HTTPD_EXAMPLE}"
        )
    written = re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), written.replace("\\\n", ""))
    return written, escape, is_nginx


def _nginx_parts(text: str) -> tuple[list[str | Variable], list[str]]:
    parts: list[str | Variable] = []
    end = 0
    for match in _NGINX_VARIABLE.finditer(text):
        name = (match[1] or match[2]).lower()
        if match.start() > end:
            parts.append(text[end : match.start()])
        other = _own_client(name) or Variable(name, "", "clients" if name.startswith("upstream_") else "word")
        if name.startswith("http_"):
            other = _header(name.removeprefix("http_").replace("_", "-"))
        elif name.startswith(_WITH_SPACES):
            other = Variable(name, "", "free")
        parts.append(replace(_NGINX.get(name, other), name=f"${name}"))
        end = match.end()
    return [*parts, text[end:]] if text[end:] else parts, []


def _httpd_parts(text: str) -> tuple[list[str | Variable], list[str]]:
    parts: list[str | Variable] = []
    problems = []

    def add(part: str | Variable) -> None:
        if isinstance(part, str) and parts and isinstance(parts[-1], str):
            parts[-1] += part
        elif part:
            parts.append(part)

    end = 0
    for match in _DIRECTIVE.finditer(text):
        add(text[end : match.start()])
        end = match.end()
        letter, parameter = match["letter"], match["parameter"]
        if letter == "%":
            add("%")
        elif letter == "t" and parameter is None:
            for part in ("[", Variable("%t", "time", "access_log"), "]"):
                add(part)
        elif letter == "t":
            add(Variable(match[0], "time", f"%{parameter}"))
        elif variable := _httpd_variable(letter, parameter, match["marks"]):
            add(replace(variable, name=match[0]))
        else:
            problems.append(
                f"{match[0]!r} is no directive of httpd's LogFormat: expected one as %h, %>s or %{{Referer}}i"
            )
    add(text[end:])
    return parts, problems


def _httpd_variable(letter: str, parameter: str | None, marks: str) -> Variable | None:
    if parameter is None:
        variable = _HTTPD.get(letter)
        return replace(variable, rank=-1) if variable and ">" in marks and letter == "s" else variable
    if letter in ("a", "h"):  # %{c}a: who is connected, which may be a proxy
        return replace(_HTTPD[letter], rank=9)
    if letter == "i":
        return _header(parameter.lower())
    if letter not in _WITH_PARAMETER:
        return None
    if letter in ("e", "n") and (client := _own_client(parameter.lower())):
        return client
    return Variable(parameter, "", "number" if letter in ("p", "P", "T") else "free")


def _header(name: str) -> Variable:
    """A request's header."""
    is_client = _OWN_CLIENT.search(name) is not None
    other = Variable(name, "forwarded_for", "clients", _OWN_RANK) if is_client else Variable(name, "", "free")
    return _HEADERS.get(name, other)


def _own_client(name: str) -> Variable | None:
    """A variable of one's own (nginx's ``map``, httpd's ``SetEnvIf``) whose name says that it is the client."""
    is_client = _OWN_CLIENT.search(name) is not None and not name.startswith(_NO_CLIENTS)
    return Variable(name, "client_address", "client", _OWN_RANK) if is_client else None


def _joined_times(parts: list[str | Variable]) -> tuple[tuple[str, str], list[str | Variable]]:
    """How times are written, and the parts with one variable for a time that several directives write.

    https://httpd.apache.org/docs/2.4/mod/mod_log_config.html#examples: ``[%{%d/%b/%Y %T}t.%{msec_frac}t %{%z}t]``.
    """
    times = [place for place, part in enumerate(parts) if isinstance(part, Variable) and part.role == "time"]
    if not times:
        return ("access_log", ""), parts
    first = parts[times[0]]
    assert isinstance(first, Variable)
    if not first.kind.startswith("%"):
        return (first.kind, ""), parts
    last = times[0]
    while last + 1 in times or (last + 2 in times and isinstance(parts[last + 1], str)):
        last += 1 if last + 1 in times else 2
        if not parts[last].kind.startswith("%"):  # type: ignore[union-attr]
            break
    pieces = [part if isinstance(part, str) else part.kind[1:] for part in parts[times[0] : last + 1]]
    pieces = [piece.removeprefix("begin:").removeprefix("end:") for piece in pieces]
    kind = _EPOCHS.get(pieces[0], "")
    if not kind:
        kind = "".join(_FRACTIONS.get(piece, piece) for piece in pieces)
        kind = re.sub(r"%[EO-]?([TDFRhrekclnt])", lambda match: _SHORT[match[1]], kind)
    time = Variable(first.name, "time", kind)
    joined = [*parts[: times[0]], time, *parts[last + 1 :]]
    return (("pattern", kind) if "%" in kind else (kind, "")), joined


def _joined_ports(parts: list[str | Variable]) -> list[str | Variable]:
    """The parts with the port of a server in its host: ``%v:%p``."""
    joined: list[str | Variable] = []
    for part in parts:
        before = joined[-2] if len(joined) > 1 else None
        is_port = isinstance(part, Variable) and part.name in _SERVER_PORTS
        if is_port and joined[-1:] == [":"] and isinstance(before, Variable) and before.role == "host":
            joined[-2:] = [replace(before, kind="host_and_port")]
        else:
            joined.append(part)
    return joined


def _chosen(parts: list[str | Variable]) -> list[str | Variable]:
    """The parts, with one variable for each role; what was asked for is said once."""
    variables = sorted(
        (part for part in parts if isinstance(part, Variable) and part.role), key=lambda variable: variable.rank
    )
    best: dict[str, Variable] = {}
    for variable in variables:
        best.setdefault(variable.role, variable)
    if "url" in best:
        best = {role: variable for role, variable in best.items() if role not in ("request", "path", "query")}
    if "request" in best:
        best = {role: variable for role, variable in best.items() if role not in ("path", "query", "method")}
    chosen: list[str | Variable] = []
    for part in parts:
        if isinstance(part, Variable) and best.get(part.role) is not part:
            part = replace(part, role="")
        elif isinstance(part, Variable):
            del best[part.role]
        chosen.append(part)
    return chosen


def _end_by_themselves(variable: Variable, following: Variable) -> bool:
    """Whether it is seen where one variable ends and the other begins."""
    return (variable.kind, following.kind) in {
        ("path", "query"), ("path", "is_args"), ("is_args", "query"), ("host", "path"), ("number", "path"),
        ("host_and_port", "path"), ("method", "path"),
    }  # fmt: skip


def is_host_beside_client(format_: LogFormat) -> bool:
    """Whether only a blank is between a host and a client's address."""
    roles = [part if isinstance(part, str) else part.role for part in format_.parts]
    beside = list(zip(roles, roles[1:], roles[2:], strict=False))
    return ("host", " ", "client_address") in beside or ("client_address", " ", "host") in beside


def variables(format_: LogFormat) -> Iterator[Variable]:
    """All of a format."""
    return (part for part in format_.parts if isinstance(part, Variable))
