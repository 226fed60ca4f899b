"""Raw lines to clicks: each line becomes either a well-formed click or a reason for quarantine, never nothing.

Pure functions of Arrow tables. Nothing else in Clickmill parses lines: landed files in batch and stream, records of a
topic and logs on their way into the landing zone all come here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.countries import country_code
from include.field_roles import NO_IDS
from include.sources import Source
from include.tables import MAX_RAW_CHARACTERS, QUARANTINE_REASONS, UNKNOWN_COUNTRY
from spark_jobs.lines import delimited_lines
from spark_jobs.lines.clients import are_swapped, clients
from spark_jobs.lines.columns import as_array, as_numpy, is_null, map_distinct, table_of
from spark_jobs.lines.credentials import texts_without_credentials, without_credentials
from spark_jobs.lines.extraction import LESS, ONLY_BLANKS, Extraction, take_apart
from spark_jobs.lines.formats import extraction_of, time_extraction_of
from spark_jobs.lines.headers import HEADER, IS_HEADER, by_header, says_local_times
from spark_jobs.lines.json_fields import FIRST_SAMPLED_LINES, SAMPLED_EVERY
from spark_jobs.lines.json_repairs import has_schema_id, without_prefix, without_schema_id
from spark_jobs.lines.kept import is_left_out, is_quarantined, left_out, reason_of_rule
from spark_jobs.lines.masked_addresses import address_mask, shortened
from spark_jobs.lines.targets import method_value, normal_urls, target_values
from spark_jobs.lines.times import HOUR_MICROS, OFFSET_AT_END, UTC_BY_DEFAULT, read_times, usual_moment
from spark_jobs.lines.urls import url_normalizer
from spark_jobs.lines.wrapped_lines import are_parts

_TIMESTAMP = pa.timestamp("us", "UTC")
_MINUTE = 60_000_000
_TEXTS = ("event_id", "visitor_id", "client_address", "referrer", "user_agent")
#: Reasons for which no field of a line is looked at; they come before the rules that leave lines out.
_OF_WHOLE_LINES = (
    *("line_too_long", "binary_record", "not_utf8", "blank", "part_of_line", "not_json", "not_access_log"),
    *delimited_lines.FAULTS,
)

_CODE = re.compile(r" *([1-9][0-9]{2})(?:\.0+)?(?: .*)?", re.DOTALL)

#: Parsed lines, as ``parse_lines`` gives them.
PARSED = pa.schema(
    [
        ("row_id", pa.int64()),
        ("log_date", pa.date32()),
        ("log_hour", pa.int32()),
        ("file", pa.string()),
        ("line", pa.int64()),
        ("bytes", pa.int64()),
        ("reason", pa.string()),
        ("raw", pa.string()),
        ("clicked_at", _TIMESTAMP),
        ("url", pa.string()),
        ("event_id", pa.string()),
        ("country_code", pa.string()),
        ("visitor_id", pa.string()),
        ("client_address", pa.string()),
        ("referrer", pa.string()),
        ("user_agent", pa.string()),
        ("status", pa.int32()),
        ("sampled", pa.string()),
    ]
)

#: Of a quarantined line so many bytes have all of its text that is kept, and a line end.
_RAW_BYTES = 4 * MAX_RAW_CHARACTERS + 2


def parse_lines(lines: pa.Table, source: Source, tracking_parameters: tuple[str, ...]) -> pa.Table:
    """One row per line, in the lines' order: ``PARSED``'s columns of ``spark_jobs.lines.read_lines.LINES``.

    ``reason`` is null for a well-formed click, of a line that a rule leaves out the rule's (``spark_jobs.lines.kept``),
    and one of ``include.tables.QUARANTINE_REASONS`` else. ``raw`` is the text of quarantined lines only, with addresses
    masked where the source logs clients', unless it keeps them; the
    fields from ``clicked_at`` on are those of clicks only. ``country_code`` is the mapped country, 'unknown' when
    missing or not ISO 3166-1 alpha-2, and null when the source maps none; ``client_address``, in its one form, is for
    looking up country and visitor, and is not kept in any table. ``sampled`` is the line itself where it is a JSON
    object and one of the few whose fields are looked at; null else, and of lines that are left out.
    """
    lines = lines.combine_chunks()
    texts, is_utf8 = _texts(lines, source)
    extraction = extraction_of(source)
    fields = _fields(texts, lines, source, extraction)
    urls = partial(
        normal_urls,
        fields,
        source.base_url or "",
        is_escaped=extraction.is_escaped,
        may_be_request=source.fields is not None and source.fields.url is not None,
    )
    fields["normal_url"] = urls(url_normalizer(tracking_parameters, source.pages))
    if source.has_rules and source.pages:  # rules look at what was asked for
        fields["asked_url"] = urls(url_normalizer(tracking_parameters))
    reason = _reasons(lines, source, is_utf8, texts, fields, extraction.not_formed)
    is_click = pc.is_null(reason)
    hour = as_numpy(lines["hour"])
    columns = {name: lines[name] for name in ("row_id", "file", "line", "bytes")} | {
        "log_date": pa.array(hour // 24).cast(pa.date32()),
        "log_hour": pa.array(hour % 24),
        "reason": reason,
        "raw": _raw_texts(lines, as_numpy(is_quarantined(reason)), source),
    }
    if source.fields is not None:  # lines of an access log have no fields that could change
        may_be_sampled = pc.and_not(fields["is_formed"], is_left_out(reason))
        columns["sampled"] = _sampled(texts, as_numpy(lines["line"]), as_numpy(may_be_sampled))
    columns |= {name: pc.if_else(is_click, column, None) for name, column in _of_clicks(fields).items()}
    return table_of(PARSED, columns, len(lines))


def click_times(lines: pa.Table, source: Source) -> pa.Int64Array:
    """When the click of each line happened, in the lines' order: microseconds since 1970, as ``parse_lines`` reads it.

    Null for a line without a time that can be read, and for one that is too long or not UTF-8; a line that is
    quarantined for anything else has its time. Of ``lines`` only ``value`` and ``bytes`` are needed.
    """
    lines = lines.combine_chunks()
    texts, _ = _texts(lines, source)

    def take(header: str | None, texts: pa.StringArray) -> dict[str, pa.Array]:
        return take_apart(texts, time_extraction_of(source, header), lambda extraction: _query(extraction, {}, source))

    fields = by_header(texts, lines, take)
    if IS_HEADER in lines.column_names:
        fields = {name: pc.if_else(as_array(lines[IS_HEADER]), None, column) for name, column in fields.items()}
    return _moments(fields, lines, source)


def _moments(fields: Mapping[str, pa.Array], lines: pa.Table, source: Source) -> pa.Array:
    """When each line's time was; null of a local one that is said to be of a zone which nothing names."""
    moments = read_times(fields["time"], fields["clicked_at"], source.time_formats)
    if UTC_BY_DEFAULT not in source.time_formats or not (is_local := says_local_times(lines)).any():
        return moments
    others = [format_ for format_ in source.time_formats if format_ != UTC_BY_DEFAULT]
    texts = pc.if_else(pa.array(is_local), fields["time"], None)
    is_local &= ~as_numpy(pc.match_substring_regex(texts, OFFSET_AT_END).fill_null(False))
    again = read_times(texts, pa.nulls(len(texts), moments.type), others) if others else None
    return pc.if_else(pa.array(is_local), again, moments)


def _texts(lines: pa.Table, source: Source) -> tuple[pa.StringArray, np.ndarray]:
    """The lines as texts, null for those that are too long or not UTF-8; and which are UTF-8."""
    values = as_array(lines["value"])
    texts = (without_schema_id(values) if source.fields or source.inside else values).view(pa.string())
    is_utf8 = np.ones(len(texts), bool)
    is_utf8[_not_utf8(texts)] = False
    is_read = is_utf8 & ~_is_too_long(lines, source)
    if not is_read.all():
        texts = pc.if_else(pa.array(is_read), texts, None)
    return (without_prefix(texts) if source.fields or source.inside else texts), is_utf8


def most_line_bytes(source: Source) -> int:
    """So much of a line's beginning is enough to parse it: a longer one is no click, and kept as much as is shown."""
    return max(source.max_line_bytes, _RAW_BYTES)


def _is_too_long(lines: pa.Table, source: Source) -> np.ndarray:
    return as_numpy(lines["bytes"]) > source.max_line_bytes


def _reasons(
    lines: pa.Table,
    source: Source,
    is_utf8: np.ndarray,
    texts: pa.StringArray,
    fields: Mapping[str, pa.Array],
    not_formed: str,
) -> pa.Array:
    """Why each line is quarantined or left out: the first reason that fits; null for clicks.

    Rules leave out lines of the format only, and whatever of their fields cannot be read.
    """
    log_hour = as_numpy(lines["hour"]).astype(np.int64) * HOUR_MICROS
    moment = as_numpy(fields["clicked_at"].fill_null(0))
    is_formed = as_numpy(fields["is_formed"])
    checks = {
        "line_too_long": _is_too_long(lines, source),
        "binary_record": ~is_formed & as_numpy(has_schema_id(as_array(lines["value"]))),
        "not_utf8": ~is_utf8,
        "blank": _is_blank(texts, is_formed),
        "part_of_line": are_parts(texts, ~is_formed, source.wrapper),
        "missing_time": is_null(fields["time"]),
        "bad_time": is_null(fields["clicked_at"]),
        "time_out_of_range": (moment < log_hour - source.oldest_hours * HOUR_MICROS)
        | (moment >= log_hour + HOUR_MICROS + source.newest_minutes * _MINUTE),
        "missing_url": is_null(fields["url"]),
        "bad_url": is_null(fields["normal_url"]),
    }
    if "fault" in fields:
        checks |= {name: as_numpy(pc.equal(fields["fault"], name).fill_null(False)) for name in delimited_lines.FAULTS}
    else:
        checks[not_formed] = ~is_formed
    if source.has_event_id:
        checks["missing_event_id"] = is_null(fields["event_id"])
    headers = {"header": as_numpy(fields[IS_HEADER])} if IS_HEADER in fields else {}
    rules = {reason_of_rule(rule): is_its for rule, is_its in (headers | left_out(source, fields)).items()}
    checks |= rules
    reasons = [*_OF_WHOLE_LINES, *rules, *(name for name in QUARANTINE_REASONS if name not in _OF_WHOLE_LINES)]
    number = np.full(len(lines), -1, np.int16)
    for place, name in reversed([*enumerate(reasons)]):
        if name in checks:
            number[checks[name]] = place
    numbers = pa.array(number, pa.int16(), mask=number < 0)
    return pa.DictionaryArray.from_arrays(numbers, pa.array(reasons)).dictionary_decode()


def _of_clicks(fields: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """The columns that clicks have, those that the source maps."""
    columns = {name: fields[name] for name in _TEXTS if name in fields}
    columns |= {"clicked_at": fields["clicked_at"].cast(_TIMESTAMP), "url": fields["normal_url"]}
    if "referrer" in fields:
        columns["referrer"] = texts_without_credentials(fields["referrer"])
    if "country" in fields:
        columns["country_code"] = map_distinct(fields["country"], country_code, pa.string()).fill_null(UNKNOWN_COUNTRY)
    if "status" in fields:
        columns["status"] = map_distinct(fields["status"], _status, pa.int32())
    return columns


def _fields(texts: pa.StringArray, lines: pa.Table, source: Source, without_header: Extraction) -> dict[str, pa.Array]:
    """The mapped roles' texts, null where absent or only blanks; ``is_formed``; ``clicked_at`` in microseconds.

    Of delimited lines ``fault`` too: why one is not formed. In files with headers ``is_header`` is true for these
    lines, which are formed and have no roles.
    """

    def select(extraction: Extraction) -> str:
        return _query(extraction, _values(extraction, source), source)

    def take(header: str | None, texts: pa.StringArray) -> dict[str, pa.Array]:
        extraction = without_header if header is None else extraction_of(source, header)
        return take_apart(texts, extraction, select)

    fields = by_header(texts, lines, take)
    if IS_HEADER in lines.column_names:
        is_header = as_array(lines[IS_HEADER])
        fields = {name: pc.if_else(is_header, None, column) for name, column in fields.items()}
        fields |= {IS_HEADER: is_header, "is_formed": fields["is_formed"].fill_null(True)}
    fields["clicked_at"] = _moments(fields, lines, source)
    if "visitor" in fields:
        fields["visitor_id"] = fields.pop("visitor")
    texts_of = {name: _or_null(column) for name, column in fields.items() if pa.types.is_string(column.type)}
    fields |= texts_of
    if "visitor_id" in fields:
        fields["visitor_id"] = _ids(fields["visitor_id"])
    if "status" in fields:
        fields["status"] = _status_codes(fields["status"])
    if source.has_client_address:
        if {"forwarded_for", "client_address"} <= fields.keys() and fields["forwarded_for"].null_count == len(texts):
            del fields["forwarded_for"]  # then nearly all clients are as they are kept
        fields["client_address"], is_client = clients(fields, source.trusted_proxies)
        if source.is_access_log:
            if "host" in fields:
                is_client = pc.and_(is_client, pc.invert(are_swapped(fields["client_address"], fields["host"])))
            fields["is_formed"] = pc.and_(fields["is_formed"], is_client)
    return fields


def _values(extraction: Extraction, source: Source) -> dict[str, str]:
    """The SQL of the roles that are needed; the method, where a rule looks at it."""
    values = target_values(extraction.values)
    values.pop("method", None)
    return values | ({"method": method_value(extraction.values)} if source.tests("method") else {})


def _query(extraction: Extraction, values: Mapping[str, str], source: Source) -> str:
    """The SQL for these roles' texts, whether each line is formed, why not if that is said, and usual times."""
    always = {role: extraction.values[role] for role in ("time", LESS) if role in extraction.values}
    values = {**always, **values}
    if extraction.fault is not None:
        values = {**values, "fault": extraction.fault}
    parts = ", ".join(f"{value} AS {role}" for role, value in values.items())
    return (
        f", parts AS (SELECT {extraction.is_formed} AS is_formed, {parts} FROM taken)"
        f" SELECT *, {usual_moment('time', source.time_formats)} AS clicked_at FROM parts"
    )


def _or_null(texts: pa.StringArray) -> pa.StringArray:
    """The texts, null for those of nothing but blanks, of whatever kind."""
    # What begins as ASCII is seen does not.
    may_be_blank = pc.or_(pc.less(texts, "!"), pc.greater_equal(texts, "\x7f")).fill_null(False)
    if not pc.any(may_be_blank).as_py():  # trimming costs more than reading
        return texts
    is_blank = pc.match_substring_regex(texts.filter(may_be_blank), ONLY_BLANKS)
    return pc.if_else(pc.replace_with_mask(may_be_blank, may_be_blank, is_blank), None, texts)


def _ids(texts: pa.StringArray) -> pa.StringArray:
    """The texts, null for those that say that there is no id."""
    are_none = pc.is_in(texts, pa.array(NO_IDS))
    return pc.if_else(are_none, None, texts) if pc.any(are_none, min_count=0).as_py() else texts


def _not_utf8(texts: pa.StringArray) -> list[int]:
    """The places of texts that are not UTF-8: few, so all are looked at at once, then halves."""
    places = []
    parts = [(0, len(texts))]
    while parts:
        first, count = parts.pop()
        try:
            texts.slice(first, count).validate(full=True)
        except pa.ArrowInvalid:
            if count == 1:
                places.append(first)
            else:
                half = count // 2
                parts += [(first, half), (first + half, count - half)]
    return places


def _is_blank(texts: pa.StringArray, is_formed: np.ndarray) -> np.ndarray:
    blank = np.zeros(len(texts), bool)
    for index in np.flatnonzero(~is_formed):
        text = texts[int(index)].as_py()
        blank[index] = text is not None and not text.strip(" \t\n\v\f\r")
    return blank


def _raw_texts(lines: pa.Table, is_kept: np.ndarray, source: Source) -> pa.Array:
    """The texts of quarantined lines, without their ends, as much as is kept of them."""
    quarantined = np.flatnonzero(is_kept)
    values = lines["value"].take(pa.array(quarantined)).to_pylist()
    headers: list[str | None] = [None] * len(values)
    if HEADER in lines.column_names:
        headers = lines[HEADER].take(pa.array(quarantined)).to_pylist()
    masks = {header: None if source.keep_raw else address_mask(source, header) for header in set(headers)}
    raw = [_raw_text(value, masks[header], source.keep_raw) for value, header in zip(values, headers, strict=True)]
    place = np.zeros(len(lines), np.int32)
    place[quarantined] = np.arange(len(quarantined), dtype=np.int32)
    return pa.array(raw, pa.string()).take(pa.array(place, mask=~is_kept))


def _raw_text(value: bytes, mask: Callable[[str], str] | None, keep_raw: bool) -> str:
    text = value[:_RAW_BYTES].removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "replace")
    if not keep_raw:  # before it is cut: of a URL that lost its end nobody knows what is a password
        text = without_credentials(text)
    return (mask(shortened(text, MAX_RAW_CHARACTERS)) if mask else text)[:MAX_RAW_CHARACTERS]


def _sampled(texts: pa.StringArray, line: np.ndarray, may_be: np.ndarray) -> pa.Array:
    """The lines whose fields are looked at: by their number in their file, so that a second run takes the same ones."""
    is_sampled = may_be & ((line <= FIRST_SAMPLED_LINES) | (line % SAMPLED_EVERY == 0))
    return pc.if_else(pa.array(is_sampled), texts, None)


def _status_codes(texts: pa.StringArray) -> pa.StringArray:
    """The texts; only the code of those that have more: ``200 OK``, and ``200.0``, as pandas writes it."""
    if pc.all(pc.equal(pc.binary_length(texts), 3), min_count=0).as_py():
        return texts
    return map_distinct(texts, lambda text: code[1] if (code := _CODE.fullmatch(text)) else text, pa.string())


def _status(text: str) -> int | None:
    """RFC 9110, section 15. What servers write without an answer (-1, 0, 000) is none; 499 of nginx is one."""
    try:
        status = int(text) if text.isascii() and "_" not in text else None
    except ValueError:
        return None
    return status if status is not None and 100 <= status <= 999 else None
