"""Lines of access logs, common and combined: the SQL by which DuckDB takes them apart.

Format: https://httpd.apache.org/docs/2.4/logs.html#accesslog, and what nginx writes under the same name.
"""

from __future__ import annotations

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
    # All parts are empty without a match, and these in no other case.
    return Extraction("not_access_log", table, "head['time'] <> '' AND rest['status'] <> ''", values, is_escaped=True)


def _extracted(text: str, pattern: str, names: tuple[str, ...]) -> str:
    return f"regexp_extract({text}, {quoted(pattern)}, [{', '.join(map(quoted, names))}], 's')"
