r"""User and password in a URL, ``https://user:password@host/``: they are in no text that is kept.

A URL may be inside another, in its path or its query, and there be percent-encoded, wholly or in part (Python's
``quote`` leaves slashes), once for each URL around it. In JSON a slash may have a backslash before it, and any
character be written as ``\u0040``; in HTML as ``&#64;`` or ``&#x40;``.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc
import re2

from spark_jobs.lines.columns import map_distinct, may_contain

#: What ends a host, or the text around a URL.
_ENDS = '/\\?# \t\n\v\f\r"<>'
_NAME = r"[a-z][a-z0-9+.-]*"

_SLASH, _AT = r"\\?/", "(?:@|%(?:25)*40)"
# A browser takes any slashes, and none, after http: and https:.
_SLASHES = r"[/\\]*"
_SCHEME = rf"(https?:{_SLASHES}|{_NAME}:{_SLASH}{_SLASH})"
# All before the last @ of what is before the path. What stands for a port and is none is a password with a slash in it.
_BEFORE_PATH = r"[^/\\?#\s\"<>]*"
_NO_PORT = r"[^/\\?#\s\"<>:@\[]+:[0-9]*[^0-9/\\?#\s\"<>@][^\s\"<>]*"
# By RE2, in a time that grows with the text's length only.
_CREDENTIALS = re2.compile(rf"(?i){_SCHEME}(?:(?:{_BEFORE_PATH}{_AT}{_SLASHES})+|{_NO_PORT}@)")
# //user:password@host has the scheme of the page that it is on.
_WITHOUT_SCHEME = re2.compile(rf"((?:^|[\s\"'=(,]){_SLASH}{_SLASH})[^/\\?#\s\"<>:@\[]*:{_BEFORE_PATH}{_AT}")


def _encoded(percent: str) -> str:
    """The pattern of credentials in a URL that is percent-encoded so; its start, that stays, is a group."""
    slash, any_slash = f"{percent}2F", f"{percent}(?:2F|5C)"
    slashes = rf"(?:[/\\]|{any_slash})*"
    starts = (
        rf"https?(?:{percent}3A|:{any_slash}){slashes}",
        f"{_NAME}(?:{percent}3A(?:/|{slash}){{2}}|:{slash}{slash})",
    )
    # A comma and the like are encoded too: these stand between the fields of a line.
    characters = [r"[^/\\?#\s\"<>%&+@,;|]", f"{percent}(?:{_hexadecimal_but(_ENDS)})"]
    if percent != "%":
        characters.append(f"%(?:{_hexadecimal_but(_ENDS + '%')})")
    any_at = f"(?:@|{percent}40)"
    before = f"(?:{'|'.join(characters)})*"
    return f"(?i)({'|'.join(starts)})(?:{before}{any_at}{slashes})+"


def _hexadecimal_but(characters: str) -> str:
    """The pattern of two hexadecimal digits, but of these characters."""
    digits = "0123456789ABCDEF"
    rows = (
        (first, "".join(second for second in digits if chr(int(first + second, 16)) not in characters))
        for first in digits
    )
    return "|".join(f"{first}[{seconds}]" for first, seconds in rows)


#: By what a percent sign is there, of URLs that are encoded once, twice and so on.
_ENCODED_CREDENTIALS = {percent: re2.compile(_encoded(percent)) for percent in ("%", "%25", "%2525")}


#: An @ that is written in another way, and all that may be: what ends a text, or makes tags or escapes, stays so.
_WRITTEN_AT = r"(?i)\\(?:u00|x)40|&(?:amp;)*(?:#0*64|#x0*40|commat);"
_WRITTEN = re.compile(
    r"\\+(?:u00|x)([2-7][0-9A-F])|&(?:amp;)*(?:#0*([0-9]{2,3})|#x0*([2-7][0-9A-F])|(commat|colon|sol));", re.IGNORECASE
)
_NAMED = {"commat": "@", "colon": ":", "sol": "/"}
_STAY = "\"'<>&\\"
_has_written_at = re2.compile(_WRITTEN_AT).search


def without_credentials(text: str) -> str:
    """The text without users and passwords of the URLs in it; the rest stays as it is."""
    less = _without_credentials(text)
    if ("\\" in less or "&" in less) and _has_written_at(less):
        plain = _WRITTEN.sub(_plain, less)
        if (of_plain := _without_credentials(plain)) != plain:
            return of_plain
    return less


def _plain(written: re.Match[str]) -> str:
    """The character that is meant, where it may stand as such."""
    hexadecimal, decimal, named = written[1] or written[3], written[2], written[4]
    code = int(hexadecimal, 16) if hexadecimal else int(decimal or 0)
    character = _NAMED[named.lower()] if named else chr(code)
    return character if " " < character < "\x7f" and character not in _STAY else written[0]


def _without_credentials(text: str) -> str:
    # What is taken out may have stood between a scheme and another user.
    while (less := _less_credentials(text)) != text:
        text = less
    return text


def _less_credentials(text: str) -> str:
    for percent, pattern in _ENCODED_CREDENTIALS.items():
        if percent not in text:
            break
        if "@" in text or f"{percent}40" in text:
            text = pattern.sub(r"\1", text)
    if "@" in text or "%40" in text or "2540" in text:
        text = _CREDENTIALS.sub(r"\1", text)
        text = _WITHOUT_SCHEME.sub(r"\1", text)
    return text


#: An @ in other ways, by a character that each has.
_ANY_AT = {"%": "%(?:25)*40", "\\": _WRITTEN_AT, ";": _WRITTEN_AT}


def texts_without_credentials(texts: pa.Array) -> pa.Array:
    """The same for each of the texts; null stays null."""
    may_have = pc.match_substring(texts, "@")
    patterns = {pattern for part, pattern in _ANY_AT.items() if may_contain(texts, part)}
    for pattern in sorted(patterns):
        may_have = pc.or_(may_have, pc.match_substring_regex(texts, pattern))
    if not pc.any(may_have).as_py():
        return texts
    return pc.if_else(
        may_have, map_distinct(pc.if_else(may_have, texts, None), without_credentials, pa.string()), texts
    )
