"""What becomes of a line, in plain Python and slowly: what the parse is held to. They share no code."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from ipaddress import IPv6Address, ip_address
from itertools import pairwise
from typing import Any
from urllib.parse import unquote
from zoneinfo import ZoneInfo

import can_ada
import pycountry

from include.source_fields import Alternatives, FieldPath, LineFields
from include.sources import Source
from include.time_formats import TimeFormat, TimePattern

_EPOCH = datetime(1970, 1, 1)
_HOUR = 3_600_000_000  # microseconds
#: Languages' words for no value, where a client is logged.
_NOBODY = ("-", "unknown", "null", "(null)", "undefined", "none", "nil")
_COUNTRIES = {country.alpha_2 for country in pycountry.countries} | {"XK"}
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
_NO_IDS = {
    *("undefined", "null", "Null", "NULL", "(null)", "none", "None", "NONE", "nil", "nan", "NaN", "{}", "[]", "-"),
    *("unknown", "[object Object]", "00000000-0000-0000-0000-000000000000"),
}
_ROLES = ("event_id", "country", "visitor", "client_address", "referrer", "user_agent", "status")
#: ASCII white space as regular expressions have it.
_SPACE = " \t\n\f\r"


@dataclass(frozen=True)
class Outcome:
    """A reason, or a click's fields; ``is_object`` says whether the line is a JSON object."""

    reason: str | None
    fields: dict[str, Any] = field(default_factory=dict)
    is_object: bool = False


@dataclass(frozen=True)
class _Unformed:
    pass


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with all that is in it, names that come twice too."""


@dataclass(frozen=True)
class _Number:
    text: str


def outcome_of(raw: bytes, source: Source, hour: int, tracking_parameters: tuple[str, ...]) -> Outcome:
    """What becomes of a line, given without its end, of the log hour that many hours after 1970."""
    if len(raw) > source.max_line_bytes:
        return Outcome("line_too_long")
    is_framed = raw.startswith(b"\0") and len(raw) > 5
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return Outcome("binary_record" if is_framed else "not_utf8")
    values = _json_fields(text, source.fields) if source.fields else _log_fields(text, source)
    if isinstance(values, _Unformed):
        if is_framed:
            return Outcome("binary_record")
        if not text.strip(" \t\n\v\f\r"):
            return Outcome("blank")
        return Outcome("not_json" if source.fields else "not_access_log")
    values = {role: value if value is None or not _is_blank(value) else None for role, value in values.items()}
    values |= {"visitor": None} if values.get("visitor") in _NO_IDS else {}
    reason, fields = _click(values, source, hour, tracking_parameters)
    return Outcome(reason, {} if reason else fields, is_object=source.fields is not None)


def _click(
    values: dict[str, str | None], source: Source, hour: int, tracking_parameters: tuple[str, ...]
) -> tuple[str | None, dict[str, Any]]:
    if source.has_event_id and values["event_id"] is None:
        return "missing_event_id", {}
    time, url = values["time"], values["url"]
    if time is None:
        return "missing_time", {}
    micros = _micros(time, source)
    if micros is None:
        return "bad_time", {}
    end = (hour + 1) * _HOUR + source.newest_minutes * 60_000_000
    if not (hour - source.oldest_hours) * _HOUR <= micros < end:
        return "time_out_of_range", {}
    if url is None:
        return "missing_url", {}
    normal = normal_url(url, tracking_parameters)
    if normal is None:
        return "bad_url", {}
    fields: dict[str, Any] = {role: values.get(role) for role in _ROLES}
    fields |= {"clicked_at": micros, "url": normal, "status": _status(fields["status"])}
    fields["visitor_id"], country = fields.pop("visitor"), fields.pop("country")
    client = fields["client_address"]
    if client and (client.strip().lower() in _NOBODY or re.fullmatch(r"_[\w.-]*", client.strip(), re.ASCII)):
        client = None
    if client and "," in client and all(part == "-" or _is_address(part.strip(" ")) for part in client.split(",")):
        client = next(part for part in client.split(",") if part != "-")
    client = _client(client)
    if client and not _is_address(client) and _may_be_client(client):
        client = client.lower().removesuffix(".")
    fields["client_address"] = client
    maps_country = source.fields is not None and source.fields.country is not None
    fields["country_code"] = _country(country) if maps_country else None
    return None, fields


def _client(text: str | None) -> str | None:
    """An address in one form, without brackets, port, zone and zeros in front of decimal numbers; else as it is."""
    host = text or ""
    if bracketed := re.fullmatch(r"\[([^\]]*)\](:[0-9]{1,5})?", host):
        host = bracketed[1]
    elif host.count(":") in (1, 8) and "::" not in host and re.fullmatch("[0-9]{1,5}", host.rpartition(":")[2]):
        host = host.rpartition(":")[0]
    if ":" in host:
        host = re.sub("%[0-9A-Za-z._~-]+$", "", host)
    groups, colon, last = host.rpartition(":")
    if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,3}){3}", last):
        host = groups + colon + ".".join(str(int(octet)) for octet in last.split("."))
    try:
        address = ip_address(host)
    except ValueError:
        return text
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)


def normal_url(url: str, tracking_parameters: tuple[str, ...]) -> str | None:
    """The normal form: as the WHATWG URL standard writes it, without user, fragment and tracking parameters."""
    try:
        href = str(can_ada.parse(url).href)
    except ValueError:
        return None
    if not re.match("https?://", href):
        return None
    whole, _, _ = href.partition("#")
    page, _, query = whole.partition("?")
    scheme, empty, host, *path = page.split("/")
    page = "/".join([scheme, empty, host.split("@")[-1], *path])
    kept = [each for each in query.split("&") if not _is_tracking(each.partition("=")[0], tracking_parameters)]
    whole = page + ("?" + "&".join(kept) if any(kept) or len(kept) > 1 else "")
    # A URL inside of another has a user too, and a password, which may have a slash in it.
    user = r"(?:[^/\\?#]*(?:@|%(?:25)*40)[/\\]*)+|[^/\\?#:@\[]+:[0-9]*[^0-9/\\?#@].*@"
    bare = re.sub(rf"(?i)(https?:(?:[/\\]|%2f|%5c)*|[a-z][a-z0-9+.-]*://)(?:{user})", r"\1", whole)
    bare = re.sub(r"(?i)(['=(,]//)[^/\\?#:@\[]*:[^/\\?#]*(?:@|%(?:25)*40)", r"\1", bare)
    return whole if bare == whole else normal_url(bare, tracking_parameters)


def _is_tracking(name: str, tracking_parameters: tuple[str, ...]) -> bool:
    name = unquote(name).lower()
    while name.startswith("amp;"):
        name = name[4:]
    for parameter in tracking_parameters:
        is_prefix = parameter.endswith("*")
        wanted = parameter.removesuffix("*").lower()
        if name == wanted or (is_prefix and name.startswith(wanted)):
            return True
    return False


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _json_fields(text: str, roles: LineFields) -> dict[str, str | None] | _Unformed:
    try:
        value = json.loads(
            re.sub(r"(?:\\x[0-9A-Fa-f]{2})+|\\.", _of_nginx, text),
            object_pairs_hook=_Pairs,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_refuse,
        )
        value = _with_lists(value)
        if not isinstance(value, _Pairs):
            return _Unformed()
        texts = {role: _role(role, value, alternatives) for role, alternatives in roles.paths().items()}
        "".join(text for text in texts.values() if text).encode()  # lone surrogates cannot be
    except ValueError:
        return _Unformed()
    return texts


def _of_nginx(escapes: re.Match[str]) -> str:
    """The text of bytes that nginx escapes, as JSON has it; other escapes as they are."""
    if not escapes[0].startswith("\\x") or len(escapes[0]) < 4:
        return escapes[0]
    return json.dumps(bytes.fromhex(escapes[0].replace("\\x", "")).decode())[1:-1]


def _role(role: str, value: _Pairs, alternatives: Alternatives) -> str | None:
    readings = []
    for joined in alternatives:
        texts = [_text_at(value, path, joins=role == "client_address") for path in joined]
        readings.append(None if None in texts or "-" in texts else " ".join(text or "" for text in texts))
    if len(readings) > 1:
        readings = [text for text in readings if text and not _is_blank(text)]
    text = readings[0] if readings else None
    if role != "url" or text is None:
        return text
    request = re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+ (\S.*)", text, re.ASCII | re.DOTALL)
    return _without_protocol(request[1]) if request and text < "a" else text


def _without_protocol(target: str) -> str:
    """Scanners and old clients write other protocols behind a target, or a blank behind that."""
    protocol = re.search(r"(?i)(?<! ) +(?:https?|rtsp|sip|icy)/[0-9]+(?:\.[0-9]+)? *\Z", target)
    return target[: protocol.start()] if protocol else target


def _is_blank(text: str) -> bool:
    return all(unicodedata.category(letter) in ("Zs", "Zl", "Zp", "Cc", "Cf") for letter in text)


def _text_at(value: Any, path: FieldPath, *, joins: bool) -> str | None:
    for candidate in _candidates(value, path):
        if isinstance(candidate, _List) and len(candidate) < 2:
            candidate = candidate[0] if candidate else None
        elif isinstance(candidate, _List) and joins:
            candidate = ", ".join(text for text in map(_as_text, candidate) if text is not None)
        if (text := _as_text(candidate)) is not None:
            return text
    return None


def _candidates(value: Any, path: FieldPath) -> Iterator[Any]:
    """What may be at the path: inside objects and lists, at the whole of its names, and inside a text of JSON."""
    yield _at(value, path)
    if all(isinstance(step, str) for step in path):
        yield _at(value, (".".join(map(str, path)),))
    for length in range(1, len(path)):
        inside = _at(value, path[:length])
        if isinstance(inside, str):
            try:
                document = json.loads(inside, object_pairs_hook=_Pairs, parse_int=_Number, parse_float=_Number)
            except ValueError:
                continue
            yield from _candidates(_with_lists(document), path[length:])


class _List(list[Any]):
    """A JSON list, which is no object."""


def _with_lists(value: Any) -> Any:
    match value:
        case _Pairs():
            return _Pairs((name, _with_lists(inside)) for name, inside in value)
        case list():
            return _List(map(_with_lists, value))
        case _:
            return value


def _at(value: Any, path: FieldPath) -> Any:
    for step in path:
        if isinstance(step, str):
            inside = value if isinstance(value, _Pairs) else _Pairs()
            value = next((each for name, each in inside if name == step), None)
        elif not isinstance(value, _List):
            return None
        elif isinstance(step, int):
            value = value[step] if -len(value) <= step < len(value) else None
        else:
            value = next((each for each in value if _as_text(_at(each, (step.key,))) == step.value), None)
    return value


def _as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else _as_json(value)


def _as_json(value: Any) -> str:
    match value:
        case None | bool():
            return json.dumps(value)
        case _Number(text):
            return _as_number(text)
        case str():
            return json.dumps(value, ensure_ascii=False)
        case _Pairs():
            return "{" + ",".join(f"{_as_json(name)}:{_as_json(inside)}" for name, inside in value) + "}"
        case _:
            return "[" + ",".join(map(_as_json, value)) + "]"


def _as_number(text: str) -> str:
    """Whole numbers as they are; of others the double that is meant."""
    if re.fullmatch(r"-?\d+", text, re.ASCII):
        return "0" if text == "-0" else text
    number = float(text)
    return text if math.isinf(number) else repr(number)


#: A user's name may have blanks, but none between a point or a colon and more: these are in another line's client.
_USER = re.compile(r'(?!.* -[.:])[^".:]*(?:[.:][^\t\n\f\r "]* ?)?', re.DOTALL)


def _log_fields(text: str, source: Source) -> dict[str, str | None] | _Unformed:
    """The first reading that fits: as servers write it, with a client in another form or by name, or badly quoted."""
    is_combined = source.format == "combined"
    client, _, rest = text.partition(" ")
    while client.endswith(",") and rest:
        more, _, rest = rest.partition(" ")
        client += more
    identity, _, rest = rest.partition(" ")
    if not client or not identity or set(identity) & set(".:\t\n\f\r"):
        return _Unformed()
    reading = None
    words = rest[: rest.find("[")].split()
    may_be_plain = _is_plain(client) and not ("-" in words and len(words) > 1)
    if may_be_plain and _USER.fullmatch(rest[: rest.find("[")]) and not _has_another_time(rest):
        reading = _taken(rest, rest.find("["), is_combined)
    if reading is None and _has_two_times(text):
        return _Unformed()
    if reading is None and (_are_addresses(client) or client == "-"):
        places = [each.start() for each in re.finditer(r" \[", " " + rest)]
        places = [place for place in places if re.fullmatch(r'(?s:[^"\\]|\\.|"")*', rest[: place - 1])]
        readings = (_taken(rest, place, is_combined) for place in places if place > 0)
        reading = next((each for each in readings if each), None)
    if reading is None and _is_name(client):
        reading = _taken(rest, _after_word(rest), is_combined)
    if reading is None and (_is_name(client) or _are_addresses(client)):
        reading = _badly_quoted(rest, _after_word(rest), is_combined)
    known = None if client == "-" else client.strip()
    if reading is None or (known and not _may_be_client(known)):
        return _Unformed()
    parts = {"client_address": client} | reading
    request = parts.pop("request")
    fields = {name: None if part == "-" else part for name, part in parts.items()}
    return fields | {"url": None if request == "-" else _asked_for(request, source.base_url or "")}


def _has_two_times(text: str) -> bool:
    """Half of a line, and another after it."""
    return len(re.findall(r"\[[0-9]{2}/[A-Za-z]{3}/[0-9]{4}:", text)) > 1


def _has_another_time(rest: str) -> bool:
    """Whether one may begin behind the first, but in quotation marks."""
    behind = rest[rest.find("]", rest.find("[")) + 1 :]
    # Of one that is cut off there, one cannot say that it is none.
    return re.search(r"\[(?:[0-9]{2}/|[0-9]{0,2}\Z)", re.sub(r'(?s)"[^"\\]*(?:\\.[^"\\]*)*"', "_", behind)) is not None


def _is_plain(client: str) -> bool:
    return client == "-" or re.fullmatch("[0-9A-Fa-f]*[.:][0-9A-Fa-f:.]+", client) is not None


def _are_addresses(client: str) -> bool:
    def is_one(part: str) -> bool:
        return (
            re.fullmatch(r"\[?[0-9A-Fa-f]*[.:][0-9A-Fa-f:.]+(%[\w.~-]+)?\]?(:[0-9]{1,5})?", part, re.ASCII) is not None
        )

    parts = client.split(",")
    return any(map(is_one, parts)) and all(is_one(part) or part == "-" for part in parts)


def _is_name(client: str) -> bool:
    return client == "-" or re.fullmatch(r"[\w.-]*[A-Za-z_][\w.-]*", client, re.ASCII) is not None


def _may_be_client(client: str) -> bool:
    parts = [part for part in client.split(",") if part != "-"]
    if all(map(_is_address, parts)):
        return True
    labels = client.removesuffix(".").split(".")
    are_short = all(0 < len(label) < 64 for label in labels) and len(client) < 254
    return are_short and _is_name(client) and not labels[-1].isdigit()


def _is_address(text: str) -> bool:
    try:
        return bool(ip_address(_client(text) or ""))
    except ValueError:
        return False


def _after_word(rest: str) -> int:
    """Where the bracket after one word is; -1 if there is none."""
    match = re.match(r'(?s)(?:[^ \t\n\f\r"\\]|\\.|"")+ \[', rest)
    return match.end() - 1 if match else -1


def _taken(rest: str, bracket: int, is_combined: bool) -> dict[str, str] | None:
    """With the time in the brackets there."""
    end = rest.find("]", bracket)
    if bracket < 0 or end <= bracket + 1 or not rest[end + 1 :].startswith(' "'):
        return None
    words = [word for word in rest[:bracket].split(" ") if word]
    if words[:1] == ["-"] != words or any(a.endswith("-") and b == "-" for a, b in pairwise(words)):
        return None  # of two lines
    parts = _after_time(rest[end + 1 :], is_combined)
    return parts and {"time": rest[bracket + 1 : end]} | parts


def _badly_quoted(rest: str, bracket: int, is_combined: bool) -> dict[str, str] | None:
    """Texts that end at any quotation mark, if there is one way only to read them all."""
    end = rest.find("]", bracket)
    if bracket < 0 or end <= bracket + 1 or not rest[end + 1 :].startswith(' "'):
        return None
    text, ways = rest[end + 3 :], []
    marks = [place for place, letter in enumerate(text) if letter == '"']
    for first in marks:
        match = re.match(r'" ([0-9]{3}|-1|-|0) (?:[0-9]+|-)', text[first:])
        after = first + match.end() if match else 0
        if match and not is_combined and _may_follow(text[after:]):
            ways.append({"request": text[:first], "status": match[1]})
        if match and is_combined and text[after:].startswith(' "'):
            for second in (mark for mark in marks if mark >= after + 2 and text[mark:].startswith('" "')):
                for last in (mark for mark in marks if mark >= second + 3 and _may_follow(text[mark + 1 :])):
                    ways.append({"request": text[:first], "status": match[1], "referrer": text[after + 2 : second],
                                 "user_agent": text[second + 3 : last]})  # fmt: skip
    parts = {"time": rest[bracket + 1 : end]} | (ways[0] if ways else {})
    return None if len(ways) != 1 or any(map(_opens_another, parts.values())) else parts


def _opens_another(text: str) -> bool:
    """Whether the last quotation mark begins a text, whose end is taken for that of this one."""
    before, mark, after = text.rpartition('"')
    return mark != "" and before.endswith((" ", "\t")) and not (after and after[0].isspace())


def _after_time(text: str, is_combined: bool) -> dict[str, str] | None:
    request, text = _quoted(text)
    match = re.match(r" ([0-9]{3}|-1|-|0) (?:[0-9]+|-)", text)
    if request is None or match is None:
        return None
    text = text[match.end() :]
    parts = {"request": request, "status": match[1]}
    for name in ("referrer", "user_agent") if is_combined else ():
        part, text = _quoted(text)
        if part is None:
            return None
        parts[name] = part
    return parts if _may_follow(text) else None


def _may_follow(text: str) -> bool:
    """Whether what is behind the last field has its quotation marks in pairs, whose first is not behind a word."""
    if text and text[0] not in _SPACE:
        return False
    while '"' in text:
        before, _, text = text.partition('"')
        part, text = _quoted(f' "{text}')
        if part is None or re.search(r"[A-Za-z0-9_.!?)}%\x80-\U0010ffff-]\Z", before):
            return False
    return True


def _quoted(text: str) -> tuple[str | None, str]:
    """A space and a text in quotes at the beginning, and what comes after it."""
    if not text.startswith(' "'):
        return None, ""
    place = 2
    while place < len(text):
        if text[place] == '"':
            return text[2:place], text[place + 1 :]
        place += 2 if text[place] == "\\" else 1
    return None, ""


def _asked_for(request: str, base_url: str) -> str | None:
    method, space, rest = request.partition(" ")
    is_method = bool(re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", method))
    if not is_method or not space or not rest or rest[0] in _SPACE:
        return None
    target = _without_protocol(rest)
    escaped = ""
    while target:
        size, byte = _escape(target)
        escaped, target = escaped + (byte or target[:size]), target[size:]
    return base_url + escaped if escaped.startswith("/") else escaped


def _escape(text: str) -> tuple[int, str | None]:
    r"""How long the text's first character or escape is, and what stands for it in a URL if it is one of these."""
    if text[0] != "\\":
        return 1, None
    if re.match(r"\\x[0-9A-Fa-f]{2}", text):
        return 4, "%" + text[2:4].upper()
    if re.match(r"\\u00[0-9A-Fa-f]{2}", text):
        return 6, "%" + text[4:6].upper()
    byte = {"b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}.get(text[1:2])
    return (2, f"%{byte:02X}") if byte else (1, None)


def _micros(time: str, source: Source) -> int | None:
    epochs = [format_ for format_ in source.time_formats if str(format_).startswith("epoch")]
    for format_ in source.time_formats:
        micros = _in_format(time, format_)
        if micros is not None and format_ in epochs and len(epochs) > 1 and format_ != _epoch_by_size(time):
            continue
        if micros is not None:
            return micros
    return None


_EPOCHS = {"epoch_seconds": 10**6, "epoch_milliseconds": 10**3, "epoch_microseconds": 1, "epoch_nanoseconds": 0}


def _epoch_by_size(time: str) -> str:
    number = abs(Decimal(time.strip()).quantize(Decimal("1e-6"), ROUND_HALF_UP))
    return list(_EPOCHS)[(number >= 10**11) + (number >= 10**14) + (number >= 10**17)]


def _in_format(time: str, format_: TimeFormat) -> int | None:
    if isinstance(format_, TimePattern):
        return _local_time(time, format_)
    if format_ in _EPOCHS:
        return _epoch(time, _EPOCHS[format_])
    named = {"iso8601": _iso_8601, "access_log": _access_log_time, "rfc1123": _rfc_1123}[format_]
    micros = named(time)
    return named(_alone(time)) if micros is None else micros


def _alone(time: str) -> str:
    """A time without blanks and brackets around it, and without its zone's name after its offset."""
    time = time.lstrip(" [").rstrip(" ]")
    before, bracket, zone = time.partition("[")
    if bracket and re.fullmatch(r"[A-Za-z0-9_+/-]+", zone, re.ASCII) and re.search(r"([+-]\d\d:?\d\d|[Zz])\Z", before):
        return before
    named = re.fullmatch(r"(.*[+-]\d\d:?\d\d) [A-Z]{3,5}", time, re.ASCII | re.DOTALL)
    return named[1] if named else time


def _local_time(text: str, format_: TimePattern) -> int | None:
    """A local time that is there once."""
    try:
        clock = datetime.strptime(text, format_.pattern)
    except ValueError:
        return None
    if format_.zone is None:
        return moment_micros(clock)
    zone = ZoneInfo(format_.zone)
    moments = {clock.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
    moments = {moment for moment in moments if moment.astimezone(zone).replace(tzinfo=None) == clock}
    return moment_micros(moments.pop()) if len(moments) == 1 else None


def _rfc_1123(text: str) -> int | None:
    match = re.fullmatch(
        r"(?:[A-Za-z]{3}, ?)?(\d\d?) ([A-Za-z]{3}) (\d{4}) (\d\d):(\d\d)(?::(\d\d))?"
        r" (?:GMT|UTC?|Z|([+-])(\d\d)(\d\d))(?: \([^()]*\))?",
        text,
        re.ASCII,
    )
    if match is None or match[2].title() not in _MONTHS or int(match[4]) > 23 or int(match[5]) > 59:
        return None
    numbers = [int(match[3]), _MONTHS.index(match[2].title()) + 1, *(int(match[group]) for group in (1, 4, 5))]
    return _moment(numbers, int(match[6] or 0), "", match[7], int(match[8] or 0), int(match[9] or 0))


def _iso_8601(text: str) -> int | None:
    text = re.sub("(?<=[0-9]) ?([+-]00:?00 ?)?(UTC|GMT)$", "Z", text)
    match = re.fullmatch(
        r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?(?: ?(?:[Zz]|([+-])(\d\d):?(\d\d)?))?",
        text,
        re.ASCII,
    )
    if match is None or (match[8] and text.endswith(":")):
        return None
    numbers = [int(match[group]) for group in range(1, 6)]
    return _moment(numbers, int(match[6] or 0), match[7] or "", match[8], int(match[9] or 0), int(match[10] or 0))


def _access_log_time(text: str) -> int | None:
    match = re.fullmatch(r"(\d\d)/([A-Z][a-z]{2})/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)", text, re.ASCII)
    if match is None or match[2] not in _MONTHS:
        return None
    numbers = [int(match[3]), _MONTHS.index(match[2]) + 1, *(int(match[group]) for group in (1, 4, 5))]
    return _moment(numbers, int(match[6]), "", match[7], int(match[8]), int(match[9]))


def _moment(numbers: list[int], second: int, decimals: str, sign: str | None, hours: int, minutes: int) -> int | None:
    if hours > 23 or minutes > 59 or second > 60:
        return None
    year, month, day, hour, minute = numbers
    try:
        # The year 0 of ISO 8601 has as many days as 4.
        whole = datetime(year or 4, month, day, hour, minute, min(second, 59)) - _EPOCH
    except ValueError:
        return None
    before = 0 if year else 1461
    offset = timedelta(hours=hours, minutes=minutes) * (-1 if sign == "-" else 1)
    seconds = whole - offset - timedelta(days=before)
    return seconds // timedelta(microseconds=1) + int(decimals[:6].ljust(6, "0"))


def _epoch(text: str, micros: int) -> int | None:
    if not re.fullmatch(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", text, re.ASCII):
        return None
    # DuckDB takes exponents of 16 bits.
    exponent = re.search(r"[eE]([+-]?\d+)", text)
    if exponent and not -(2**15) <= int(exponent[1]) < 2**15:
        return None
    digits = 14 if micros > 1 else 18 if micros else 22
    # An exponent makes no time of a number that is too long for one before it.
    if re.match(rf"\d{{{digits + 1}}}", text.strip().lstrip("+-0"), re.ASCII):
        return None
    with localcontext(prec=80):
        number = Decimal(text.strip())
        if not -(10**digits) < number < 10**digits:
            return None
        rounded = number.quantize(Decimal("1e-6"), ROUND_HALF_UP)
        moment = int(rounded * micros if micros else rounded / 1000)
        return moment if abs(moment) < 2**63 else None  # 292,000 years


def _status(text: str | None) -> int | None:
    text = re.sub(r"\A( *[1-9][0-9]{2})(\.0+)?( .*)?\Z", r"\1", text or "", flags=re.DOTALL)
    if not re.fullmatch(r"[+-]?[0-9]{1,4000}", text.strip(" \t\n\r\f\v\x1c\x1d\x1e\x1f")):
        return None
    return int(text) if 100 <= int(text) < 1000 else None


def _country(text: str | None) -> str:
    code = (text or "").strip(" ").upper()
    code = {"UK": "GB", "EL": "GR", "FX": "FR"}.get(code, code)
    return code if text is not None and text.isascii() and code in _COUNTRIES else "unknown"


def moment_micros(moment: datetime) -> int:
    """Microseconds since 1970 of a time with a zone."""
    return (moment - _EPOCH.replace(tzinfo=UTC)) // timedelta(microseconds=1)
