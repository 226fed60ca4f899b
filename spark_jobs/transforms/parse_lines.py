"""Raw lines to clicks: each line becomes either a well-formed click or a reason for quarantine, never nothing."""

from __future__ import annotations

from typing import Any, NamedTuple

import pycountry
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.sources import Source
from include.tables import MAX_RAW_CHARACTERS, UNKNOWN_COUNTRY
from spark_jobs.transforms.drop_duplicates import log_hour_number
from spark_jobs.transforms.normalize_url import is_normal_url, normalize_url
from spark_jobs.transforms.sample_lines import is_sampled

COUNTRY_CODES = sorted(country.alpha_2 for country in pycountry.countries)

_ABSOLUTE_URL = r"^(?i)https?://[^/?#\s]++[^\s]*+\z"

# Quoted fields may hold backslash escapes; possessive quantifiers keep Java's matcher from recursing on long ones.
_QUOTED = r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"'
_COMMON = rf"^(\S+) \S+ .*?\[([^\]]+)\] {_QUOTED} (\d{{3}}|-) (?:\d+|-)"
ACCESS_LOG_PATTERNS = {
    "common": _COMMON + r"(?:\s.*)?$",
    "combined": rf"{_COMMON} {_QUOTED} {_QUOTED}(?:\s.*)?$",
}
_REQUEST = r"^[A-Za-z]+ (\S.*?)(?: HTTP/\d+(?:\.\d+)?)?$"
_HOUR = 3_600_000_000  # microseconds
_ACCESS_LOG_TIME = "dd/MMM/yyyy:HH:mm:ss Z"


class _Fields(NamedTuple):
    """The mapped texts of a line, and whether the line has the source's format at all."""

    is_formed: Column
    unformed_reason: str
    time: Column
    url: Column
    event_id: Column | None = None
    country: Column | None = None
    visitor: Column | None = None
    client_address: Column | None = None
    referrer: Column | None = None
    user_agent: Column | None = None
    status: Column | None = None


def parse_lines(lines: DataFrame, source: Source, tracking_parameters: tuple[str, ...]) -> DataFrame:
    """One row per line, in the lines' order and partitions.

    ``lines`` has ``value`` (the raw bytes as text, without the line end), ``log_date``, ``log_hour``, ``file``,
    ``line`` and a unique ``row_id``. Of the result, ``reason`` is null for a well-formed click and one of
    ``include.tables.QUARANTINE_REASONS`` else; ``raw`` is the text of quarantined lines
    only, ``clicked_at`` and ``url`` those of clicks. ``country_code`` is
    the mapped country, 'unknown' when missing or not ISO 3166-1 alpha-2, and null when the source maps none;
    ``client_address`` is for looking up country and visitor, and is not kept in any table. ``sampled`` is the line
    itself where it is a JSON object and one of the few whose fields are looked at; null else.
    """
    fields_of = _json_fields if source.fields else _access_log_fields
    with_fields, fields = fields_of(lines.withColumn("value", _without_marks()), source)
    clicked_at = _clicked_at(fields.time, source)
    parsed = with_fields.select(
        "row_id",
        "log_date",
        "log_hour",
        "file",
        "line",
        "value",
        fields.is_formed.alias("is_formed"),
        _text_or_null(fields.time).alias("time"),
        clicked_at.alias("clicked_at"),
        fields.url.alias("logged_url"),
        is_normal_url(fields.url, tracking_parameters).alias("is_normal_url"),
        _or_null(fields.event_id).alias("event_id"),
        _country_code(fields.country).alias("country_code"),
        _or_null(fields.visitor).alias("visitor_id"),
        _or_null(fields.client_address).alias("client_address"),
        _or_null(fields.referrer).alias("referrer"),
        _or_null(fields.user_agent).alias("user_agent"),
        F.lit(None).cast("int").alias("status")
        if fields.status is None
        else fields.status.try_cast("int").alias("status"),
    )
    reason = _reason(source, fields.unformed_reason)
    return parsed.withColumn("reason", reason).select(
        "row_id",
        "log_date",
        "log_hour",
        "file",
        "line",
        "reason",
        F.when(F.col("reason").isNotNull(), F.substring("value", 1, MAX_RAW_CHARACTERS)).alias("raw"),
        F.when(F.col("reason").isNull(), F.col("clicked_at")).alias("clicked_at"),
        # Most URLs are in normal form already: one look spares them the taking apart.
        F.when(F.col("reason").isNotNull(), None)
        .when(F.col("is_normal_url"), F.col("logged_url"))
        .otherwise(normalize_url(F.col("logged_url"), tracking_parameters))
        .alias("url"),
        "event_id",
        "country_code",
        "visitor_id",
        "client_address",
        "referrer",
        "user_agent",
        "status",
        _sampled(source).alias("sampled"),
    )


def _sampled(source: Source) -> Column:
    # Lines of an access log have no fields that could change; and only text can be fetched by a client.
    is_kept = is_sampled() & F.col("is_formed") & F.is_valid_utf8("value")
    return F.when(is_kept, F.col("value")) if source.fields else F.lit(None).cast("string")


def _reason(source: Source, unformed_reason: str) -> Column:
    # In whole microseconds: adding intervals to timestamps costs a time zone look-up a row.
    clicked, log_hour = F.unix_micros("clicked_at"), log_hour_number().cast("bigint") * _HOUR
    oldest = log_hour - source.oldest_hours * _HOUR
    newest = log_hour + _HOUR + source.newest_minutes * _HOUR // 60
    checks = [
        ("line_too_long", _is_too_long(source)),
        ("not_utf8", ~F.is_valid_utf8("value")),
        ("blank", ~F.col("is_formed") & F.col("value").rlike(r"^\s*$")),
        (unformed_reason, ~F.col("is_formed")),
        *([("missing_event_id", F.col("event_id").isNull())] if source.has_event_id else []),
        ("missing_time", F.col("time").isNull()),
        ("bad_time", F.col("clicked_at").isNull()),
        ("time_out_of_range", (clicked < oldest) | (clicked >= newest)),
        ("missing_url", F.coalesce(F.trim("logged_url"), F.lit("")) == ""),
        ("bad_url", ~F.col("is_normal_url") & ~F.col("logged_url").rlike(_ABSOLUTE_URL)),
    ]
    reason = F.lit(None).cast("string")
    for name, is_so in reversed(checks):
        reason = F.when(is_so, F.lit(name)).otherwise(reason)
    return reason


def _is_too_long(source: Source) -> Column:
    return F.octet_length("value") > source.max_line_bytes


def _without_marks() -> Column:
    """The line without a carriage return and, on the first line, a byte order mark.

    Both are rare: trimming every line for their sake costs as much as parsing it.
    """
    value = F.col("value")
    return (
        F.when(F.col("line") == 1, F.regexp_replace(value, "^\ufeff|\r$", ""))
        .when(value.endswith("\r"), F.regexp_replace(value, "\r$", ""))
        .otherwise(value)
    )


def _json_fields(lines: DataFrame, source: Source) -> tuple[DataFrame, _Fields]:
    assert source.fields is not None
    paths = source.fields.paths()
    # Everything is read as text, so that only what is not JSON fails to parse, and is judged field by field after.
    schema = _json_schema(sorted(set(paths.values())))
    options = {
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": "_malformed",
        # Strict JSON: by default Spark takes 'single quotes' and NaN too.
        "allowSingleQuotes": "false",
        "allowNonNumericNumbers": "false",
    }
    text = F.when(~_is_too_long(source), F.col("value"))
    parsed = lines.withColumn("json", F.from_json(text, f"{schema}, `_malformed` STRING", options))
    columns = {role: F.col(".".join(f"`{part}`" for part in ("json", *path))) for role, path in paths.items()}
    # A field of another type than expected (a number where an object should be) is marked as malformed too, but
    # leaves the other fields readable; what is not JSON leaves none.
    is_json = F.col("json._malformed").isNull() | F.coalesce(*columns.values()).isNotNull()
    # Space around the object is rare; trimming every line for its sake costs as much as parsing it.
    value = F.col("value")
    is_object = (value.startswith("{") & value.endswith("}")) | value.rlike(r"(?s)^\s*\{.*\}\s*$")
    return parsed, _Fields(
        is_formed=is_object & F.col("json").isNotNull() & is_json,
        unformed_reason="not_json",
        **columns,
    )


def _json_schema(paths: list[tuple[str, ...]]) -> str:
    tree: dict[str, Any] = {}
    for path in paths:
        node = tree
        for part in path:
            node = node.setdefault(part, {})
    return _ddl(tree)


def _ddl(tree: dict[str, Any]) -> str:
    return ", ".join(
        f"`{name}` STRUCT<{_ddl(children).replace('` ', '`: ')}>" if children else f"`{name}` STRING"
        for name, children in tree.items()
    )


def _access_log_fields(lines: DataFrame, source: Source) -> tuple[DataFrame, _Fields]:
    pattern = ACCESS_LOG_PATTERNS[source.format]
    groups = 6 if source.format == "combined" else 4
    # One match a line: the groups joined by a control character and split, not one match per group.
    joined = F.regexp_replace("value", pattern, "\x01".join(f"${i}" for i in range(1, groups + 1)))
    is_match = ~_is_too_long(source) & F.col("value").rlike(pattern)
    parsed = lines.withColumn("is_match", is_match).withColumn(
        "fields", F.when(F.col("is_match"), F.split(joined, "\x01"))
    )

    def field(index: int) -> Column:
        text = F.get("fields", F.lit(index))
        return F.when(text != "-", text)

    target = F.regexp_extract(field(2), _REQUEST, 1)
    url = F.when(target.startswith("/"), F.concat(F.lit(source.base_url), target)).otherwise(target)
    is_combined = source.format == "combined"
    return parsed, _Fields(
        is_formed=F.col("is_match"),
        unformed_reason="not_access_log",
        time=field(1),
        url=url,
        client_address=field(0),
        status=field(3),
        referrer=field(4) if is_combined else None,
        user_agent=field(5) if is_combined else None,
    )


def _clicked_at(time: Column, source: Source) -> Column:
    if source.fields is None:
        return F.try_to_timestamp(time, F.lit(_ACCESS_LOG_TIME))
    match source.fields.time_format:
        case "iso8601":
            # A bare year or a bare time of day would also cast, the latter to the day of the run.
            is_whole = (F.length(time) >= 16) & F.substring(time, 11, 1).isin("T", "t", " ")
            return F.when(is_whole, F.upper(time).try_cast("timestamp"))
        case "epoch_seconds":
            return _from_epoch(time, 1_000_000)
        case "epoch_milliseconds":
            return _from_epoch(time, 1_000)


def _from_epoch(time: Column, micros: int) -> Column:
    # Decimals: a double loses microseconds.
    return F.timestamp_micros((time.try_cast("decimal(20,6)") * micros).try_cast("bigint"))


def _country_code(country: Column | None) -> Column:
    if country is None:
        return F.lit(None).cast("string")
    code = F.upper(F.trim(country))
    return F.when(code.isin(COUNTRY_CODES), code).otherwise(F.lit(UNKNOWN_COUNTRY))


def _text_or_null(text: Column) -> Column:
    return F.when(F.trim(text) != "", text)


def _or_null(text: Column | None) -> Column:
    return F.lit(None).cast("string") if text is None else _text_or_null(text)
