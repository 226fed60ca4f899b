"""Lines of access logs, common and combined: the SQL by which DuckDB takes them apart.

Format: https://httpd.apache.org/docs/2.4/logs.html#accesslog, and what nginx writes under the same name.
"""

from __future__ import annotations

import re

from include.duckdb_sql import quoted
from spark_jobs.lines.extraction import Extraction

# Quoted fields may hold backslash escapes.
_QUOTED = r'"([^"\\]*(?:\\.[^"\\]*)*)"'
# In two steps, so that at each character of the second, the long one, there is one way on: RE2 then takes it in one
# pass, which is a tenth of the time. Before the request there is no quotation mark: servers escape those of users.
_BEFORE_REQUEST = r'^((\S+) \S+ .*?\[([^\]]+)\] )"'
_FROM_REQUEST = {
    "common": rf"^{_QUOTED} (\d{{3}}|-) (?:\d+|-)(?:\s.*)?$",
    "combined": rf"^{_QUOTED} (\d{{3}}|-) (?:\d+|-) {_QUOTED} {_QUOTED}(?:\s.*)?$",
}
_ROLES = {"common": ("request", "status"), "combined": ("request", "status", "referrer", "user_agent")}
# A method is any token: RFC 9110, section 9.1. The target may have spaces, where a client did not encode them.
_REQUEST = r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+ (\S.*?)(?: HTTP/\d+(?:\.\d+)?)?$"

_HEXADECIMAL = re.compile(r"\\x([0-9A-Fa-f]{2})")
_BYTES = {'"': "%22", "b": "%08", "t": "%09", "n": "%0A", "v": "%0B", "f": "%0C", "r": "%0D"}
# Stands for an escaped backslash meanwhile: half of a surrogate pair, which is in no text of UTF-8.
_BACKSLASH = "\udc5c"


def extraction(format_: str) -> Extraction:
    """How the lines of an access log are taken apart."""
    before = _extracted("text", _BEFORE_REQUEST, ("before", "client_address", "time"))
    rest = _extracted("substr(text, length(head['before']) + 1)", _FROM_REQUEST[format_], _ROLES[format_])
    table = (
        f"WITH heads AS MATERIALIZED (SELECT text, {before} AS head FROM lines) SELECT head, {rest} AS rest FROM heads"
    )
    parts = {"client_address": "head['client_address']", "time": "head['time']"}
    parts |= {role: f"rest['{role}']" for role in _ROLES[format_]}
    values = {role: f"nullif({part}, '-')" for role, part in parts.items()}
    values["url"] = f"nullif(regexp_extract({values.pop('request')}, {quoted(_REQUEST)}, 1, 's'), '')"
    # All parts are empty without a match, and these in no other case.
    return Extraction("not_access_log", table, "head['time'] <> '' AND rest['status'] <> ''", values)


def _extracted(text: str, pattern: str, names: tuple[str, ...]) -> str:
    return f"regexp_extract({text}, {quoted(pattern)}, [{', '.join(map(quoted, names))}], 's')"


def url_of_target(target: str, base_url: str) -> str:
    r"""The URL that was asked for: a path is one of ``base_url``.

    Servers write some bytes with a backslash, as ``\"``, ``\t`` or ``\xC3``; in a URL they are percent-encoded. Source:
    https://httpd.apache.org/docs/2.4/mod/mod_log_config.html#format-notes, and nginx's ``escape=default``.
    """
    if "\\" in target:
        target = _percent_encoded(target)
    return base_url + target if target.startswith("/") else target


def _percent_encoded(target: str) -> str:
    # Few passes over the whole: a call for each escape costs seconds where a client sends nothing else.
    target = target.replace("\\\\", _BACKSLASH)
    for letter, byte in _BYTES.items():
        target = target.replace(f"\\{letter}", byte)
    return _HEXADECIMAL.sub(lambda byte: f"%{byte[1].upper()}", target).replace(_BACKSLASH, "%5C")
