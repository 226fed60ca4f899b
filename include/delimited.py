"""Sources of delimited lines: W3C extended, CSV, TSV, logfmt, and access logs of AWS; settings in ``sources.toml``.

In the file they stand beside the source's others; ``Source.delimited`` has them together.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from include.field_roles import FieldRoles
from include.time_formats import TimeFormat

DelimitedFormat = Literal["w3c", "csv", "tsv", "logfmt", "alb", "elb", "s3"]
DELIMITED_FORMATS: tuple[str, ...] = get_args(DelimitedFormat)

_DELIMITERS = {"csv": ",", "tsv": "\t"}
#: Control characters that stand for others while lines are taken apart.
_TAKEN = "\x1c\x1d\x1e\x1f\r\n"


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


#: The name of a column, or several: the first of them that has a value.
ColumnNames = Annotated[
    tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1), BeforeValidator(_as_tuple)
]


class ColumnFields(FieldRoles[ColumnNames]):
    """Which column of a line is what. Columns left out are those that the format has for it, or null in the clicks.

    ``date`` is for a day in a column of its own: it is put before ``time``, with a blank between them.
    """

    time: ColumnNames | None = None
    date: ColumnNames | None = None


#: Columns of formats whose lines do not name them; more may follow, as AWS adds some.
#: https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html
#: https://docs.aws.amazon.com/elasticloadbalancing/latest/classic/access-log-collection.html
#: https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html (the time has a blank in its brackets)
COLUMNS = {
    "alb": "type time elb client target request_processing_time target_processing_time response_processing_time "
    "elb_status_code target_status_code received_bytes sent_bytes request user_agent ssl_cipher ssl_protocol "
    "target_group_arn trace_id domain_name chosen_cert_arn matched_rule_priority request_creation_time "
    "actions_executed redirect_url error_reason target_port_list target_status_code_list classification "
    "classification_reason conn_trace_id",
    "elb": "time elb client backend request_processing_time backend_processing_time response_processing_time "
    "elb_status_code backend_status_code received_bytes sent_bytes request user_agent ssl_cipher ssl_protocol",
    "s3": "bucket_owner bucket time time_zone remote_ip requester request_id operation key request_uri http_status "
    "error_code bytes_sent object_size total_time turn_around_time referer user_agent version_id host_id "
    "signature_version cipher_suite authentication_type host_header tls_version access_point_arn acl_required",
}

#: What the columns of a format are, unless [fields] says otherwise. Names of W3C are compared without their case.
#: https://www.w3.org/TR/WD-logfile.html; IIS, CloudFront and others add their own.
_ROLES = {
    "w3c": ColumnFields(
        date="date",
        time="time",
        url="cs-uri",
        path="cs-uri-stem",
        query="cs-uri-query",
        scheme=("cs-protocol", "cs-uri-scheme"),
        host=("x-host-header", "cs(host)", "cs-host"),
        method="cs-method",
        status=("sc-status", "c-status"),
        client_address="c-ip",
        referrer=("cs(referer)", "cs(referrer)", "c-referrer"),
        user_agent=("cs(user-agent)", "c-user-agent"),
    ),
    "alb": ColumnFields(
        time="time", client_address="client", status="elb_status_code", request="request", user_agent="user_agent"
    ),
    "elb": ColumnFields(
        time="time", client_address="client", status="elb_status_code", request="request", user_agent="user_agent"
    ),
    "s3": ColumnFields(
        date="time",
        time="time_zone",
        time_format=("access_log",),
        client_address="remote_ip",
        host="host_header",
        request="request_uri",
        status="http_status",
        referrer="referer",
        user_agent="user_agent",
    ),
}


class DelimitedLines(BaseModel):
    """How a source's lines are cut into columns, and what these are; commented in ``config/sources.toml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: DelimitedFormat
    columns: tuple[str, ...] | None = Field(None, min_length=1)
    header: bool | None = None
    delimiter: str | None = Field(None, min_length=1, max_length=1)
    quote: str | None = Field(None, max_length=1)
    escape: str | None = Field(None, min_length=1, max_length=1)
    fields: ColumnFields = ColumnFields()

    @property
    def has_header(self) -> bool:
        """Whether lines of its files say what the columns of the others are, or are to be skipped as such."""
        return self.format == "w3c" or bool(self.header)

    @property
    def is_read_without_header(self) -> bool:
        """Whether lines can be read that have none before them, as those of a topic."""
        return self.format not in (*_DELIMITERS, "w3c") or (self.columns is not None and not self.header)

    @property
    def separator(self) -> str:
        """What stands between two columns; a blank where a tab may stand instead."""
        return self.delimiter or _DELIMITERS.get(self.format, " ")

    @property
    def quotation(self) -> str:
        """What a quoted column begins and ends with; empty if none is."""
        return '"' if self.quote is None else self.quote

    @property
    def named_columns(self) -> tuple[str, ...] | None:
        """The columns of lines without a header before them, in their order; None if it is not known."""
        return tuple(COLUMNS[self.format].split()) if self.format in COLUMNS else self.columns

    @property
    def time_formats(self) -> tuple[TimeFormat, ...]:
        """How the time is written."""
        default = _ROLES[self.format].time_format if self.format in _ROLES else None
        return self.fields.time_format or default or ("iso8601",)

    def roles(self) -> dict[str, tuple[str, ...]]:
        """Role to the names of its columns: the format's, and in their place those that are given."""
        configured = self.fields.names()
        of_format = _ROLES[self.format].names() if self.format in _ROLES else {}
        if "time" in configured:
            of_format.pop("date", None)
        if configured.keys() & {"url", "path", "request"}:
            of_format = {role: names for role, names in of_format.items() if role not in ("url", "path", "request")}
        return of_format | configured

    @model_validator(mode="before")
    @classmethod
    def names_its_columns(cls, value: Any) -> Any:
        """Those of a CSV are in its first line, unless they are listed."""
        if isinstance(value, dict) and value.get("format") in _DELIMITERS and value.get("header") is None:
            return value | {"header": value.get("columns") is None}
        return value

    @model_validator(mode="after")
    def fits_its_format(self) -> DelimitedLines:
        """Each format takes the settings that it needs."""
        taken: tuple[str, ...] = ("header", "delimiter", "quote", "escape") if self.format in _DELIMITERS else ()
        taken += ("columns",) if self.format in (*_DELIMITERS, "w3c") else ()
        for name in ("columns", "header", "delimiter", "quote", "escape"):
            if name not in taken and getattr(self, name) is not None:
                raise ValueError(f"{name} belongs to {'csv, tsv or w3c' if name == 'columns' else 'csv or tsv'}")
        if self.format in _DELIMITERS and not self.header and self.columns is None:
            raise ValueError('header = false needs columns: expected columns = ["time", "url", …], in their order')
        signs = [sign for sign in (self.separator, self.quotation, self.escape) if sign]
        if len(set(signs)) < len(signs) or any(sign in _TAKEN for sign in signs):
            raise ValueError("delimiter, quote and escape: expected different characters that can be seen, or a tab")
        if self.escape and not self.quotation:
            raise ValueError('escape is for quotation marks: expected none with quote = ""')
        return self

    @model_validator(mode="after")
    def fields_are_columns(self) -> DelimitedLines:
        """Time and URL are mapped, and what is mapped is a column, where these are named."""
        roles = self.roles()
        if "time" not in roles or not roles.keys() & {"url", "path", "request"}:
            raise ValueError(
                f"a {self.format} source needs [fields] with time, and url, path or request: the names of their columns"
            )
        if self.columns is not None:
            named = [name for name in self.columns if name]
            if len(set(named)) < len(named):
                raise ValueError('columns: expected each name once, and "" for those without a name')
        self.require_columns(name for names in self.fields.names().values() for name in names)
        return self

    def require_columns(self, names: Iterable[str]) -> None:
        """See to it that these are columns, where they are known without a header.

        Raises:
            ValueError: naming the first that is none.
        """
        known = self.named_columns
        if known is not None and self.format != "w3c":
            for name in names:
                if name not in known:
                    raise ValueError(f"no column {name!r}: expected one of {', '.join(filter(None, known))}")


#: Settings of ``DelimitedLines`` that stand beside the source's others.
DELIMITED_SETTINGS = ("columns", "header", "delimiter", "quote", "escape", "fields")


def with_delimited(settings: Any) -> Any:
    """Settings of a source as they are given, those of delimited lines together as ``delimited``."""
    if not isinstance(settings, dict) or settings.get("format") not in DELIMITED_FORMATS or "delimited" in settings:
        return settings
    delimited = {name: settings[name] for name in ("format", *DELIMITED_SETTINGS) if name in settings}
    return {name: value for name, value in settings.items() if name not in DELIMITED_SETTINGS} | {
        "delimited": delimited
    }
