"""Roles of W3C extended lines (https://www.w3.org/TR/WD-logfile.html) as IIS, CloudFront and others write them."""

from __future__ import annotations

from collections.abc import Mapping

#: A role that a line does not have: all are texts.
NOTHING = "NULL::VARCHAR"

#: Whom proxies name before the address that is connected: of IIS as a field of one's own, of CloudFront.
FORWARDED_FOR = ("x-forwarded-for", "cs(x-forwarded-for)")
#: CloudFront's lines are known by these columns; it percent-encodes what others write as it is.
_CLOUDFRONT = {"x-edge-location", "x-edge-request-id", "x-edge-result-type"}


def as_w3c_means(values: Mapping[str, str], columns: tuple[str, ...], cells: Mapping[str, str]) -> dict[str, str]:
    """The roles that servers write in their own way: blanks as ``+``, per cent twice, the scheme as a port."""
    is_cloudfront = not _CLOUDFRONT.isdisjoint(columns)
    meant = {}
    if agent := values.get("user_agent"):
        meant["user_agent"] = _agent(agent, is_cloudfront)
    if is_cloudfront:
        for role in ("path", "query", "referrer", "url"):
            if values.get(role, NOTHING) != NOTHING:
                meant[role] = f"regexp_replace({values[role]}, '%25([0-9A-Fa-f]{{2}})', '%\\1', 'g')"
    if (forwarded := values.get("forwarded_for", NOTHING)) != NOTHING:
        meant["forwarded_for"] = f"replace(replace({forwarded}, '+', ' '), '%20', ' ')"
    port = cells.get("s-port", NOTHING)
    if "host" in values and port != NOTHING:
        host = values["host"]
        has_port = f"{port} IN ('80', '443') AND NOT contains({host}, ':')"
        meant["host"] = f"{host} || CASE WHEN {has_port} THEN ':' || {port} ELSE '' END"
    if "scheme" in values:
        scheme = f"replace(lower({values['scheme']}), 'ws', 'http')"
        meant["scheme"] = f"CASE WHEN {scheme} IN ('http', 'https') THEN {scheme} END"
    if (url := values.get("url", NOTHING)) != NOTHING:
        # Some write a host and a path, without what comes before them.
        whole = f"CASE {port} WHEN '443' THEN 'https://' ELSE 'http://' END || {url}"
        meant["url"] = f"CASE WHEN {url} LIKE '/%' OR contains({url}, '://') THEN {url} ELSE {whole} END"
    return meant


def _agent(agent: str, is_cloudfront: bool) -> str:
    once = f"coalesce(TRY(url_decode({agent})), {agent})"
    is_done = f"contains({once}, ' ') OR NOT contains({once}, '%20')"
    twice = f"CASE WHEN {is_done} THEN {once} ELSE coalesce(TRY(url_decode({once})), {once}) END"
    if is_cloudfront:
        return twice
    # Of two, the second was one already.
    two = f"regexp_replace({agent}, '\\+(\\+?)', ' \\1', 'g')"
    blanks = f"CASE WHEN contains({agent}, '++') THEN {two} ELSE replace({agent}, '+', ' ') END"
    return (
        f"CASE WHEN contains({agent}, ' ') THEN {agent} WHEN contains({agent}, '+') THEN {blanks} "
        f"WHEN contains({agent}, '%20') THEN {twice} ELSE {agent} END"
    )
