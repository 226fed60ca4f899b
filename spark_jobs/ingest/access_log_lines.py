"""Lines of access logs, common and combined: the SQL by which DuckDB takes their fields apart.

Format: https://httpd.apache.org/docs/2.4/logs.html#accesslog, and what nginx writes under the same name.
"""

from __future__ import annotations

import re

from spark_jobs.ingest.duckdb_sql import quoted

# Quoted fields may hold backslash escapes.
_QUOTED = r'"([^"\\]*(?:\\.[^"\\]*)*)"'
_COMMON = rf"^(\S+) \S+ .*?\[([^\]]+)\] {_QUOTED} (\d{{3}}|-) (?:\d+|-)"
_PATTERNS = {
    "common": rf"{_COMMON}(?:\s.*)?$",
    "combined": rf"{_COMMON} {_QUOTED} {_QUOTED}(?:\s.*)?$",
}
_ROLES = {
    "common": ("client_address", "time", "request", "status"),
    "combined": ("client_address", "time", "request", "status", "referrer", "user_agent"),
}
# A method is any token: RFC 9110, section 9.1. The target may have spaces, where a client did not encode them.
_REQUEST = r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+ (\S.*?)(?: HTTP/\d+(?:\.\d+)?)?$"

_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|(.))")
_BYTES = {'"': "22", "\\": "5C", "b": "08", "t": "09", "n": "0A", "v": "0B", "f": "0C", "r": "0D"}


def extraction(format_: str) -> tuple[str, str, dict[str, str]]:
    """SQL over the column ``text``: ``object``, whether that is such a line, and each role's text as part of it."""
    names = ", ".join(map(quoted, _ROLES[format_]))
    structure = f"regexp_extract(text, {quoted(_PATTERNS[format_])}, [{names}], 's')"
    values = {role: f"nullif(object['{role}'], '-')" for role in _ROLES[format_]}
    values["url"] = f"nullif(regexp_extract({values.pop('request')}, {quoted(_REQUEST)}, 1, 's'), '')"
    # All parts are empty without a match, and the time is in no other case.
    return structure, "object['time'] <> ''", values


def url_of_target(target: str, base_url: str) -> str:
    r"""The URL that was asked for: a path is one of ``base_url``.

    Servers write some bytes with a backslash, as ``\"``, ``\t`` or ``\xC3``; in a URL they are percent-encoded. Source:
    https://httpd.apache.org/docs/2.4/mod/mod_log_config.html#format-notes, and nginx's ``escape=default``.
    """
    if "\\" in target:
        target = _ESCAPE.sub(_percent_encoded, target)
    return base_url + target if target.startswith("/") else target


def _percent_encoded(escape: re.Match[str]) -> str:
    byte = escape[1] or _BYTES.get(escape[2])
    return f"%{byte.upper()}" if byte else escape[0]
