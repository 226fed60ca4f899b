"""User and password in a URL, ``https://user:password@host/``: they are in no text that is kept."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import re2

from spark_jobs.lines.columns import map_distinct

# A browser takes any slashes, and none, after http: and https:. In JSON a slash may have a backslash before it.
_SCHEME = r"(https?:[/\\]*|[a-z][a-z0-9+.-]*:\\?/\\?/)"
# All before the last @ of what is before the path. What stands for a port and is none is a password with a slash in it.
_BEFORE_PATH = r"[^/\\?#\s\"<>]*"
_NO_PORT = r"[^/\\?#\s\"<>:@\[]+:[0-9]*[^0-9/\\?#\s\"<>@][^\s\"<>]*"
# The same in a URL that is a parameter of another: percent-encoded, up to an encoded / ? # or &.
_ENCODED = (
    r"(https?%3A(?:%2F|%5C)*)(?:(?:[^/\\?#\s\"<>%&]|%[014-9A-F][0-9A-F]|%2[0-24-57-9A-E]|%3[0-9A-E])*%40(?:%2F|%5C)*)+"
)
# By RE2, in a time that grows with the text's length only.
_CREDENTIALS = re2.compile(rf"(?i){_SCHEME}(?:(?:{_BEFORE_PATH}@[/\\]*)+|{_NO_PORT}@)")
_ENCODED_CREDENTIALS = re2.compile(f"(?i){_ENCODED}")


def without_credentials(text: str) -> str:
    """The text without users and passwords of the URLs in it; the rest stays as it is."""
    if "@" in text:
        text = _CREDENTIALS.sub(r"\1", text)
    return _ENCODED_CREDENTIALS.sub(r"\1", text) if "%40" in text else text


def texts_without_credentials(texts: pa.Array) -> pa.Array:
    """The same for each of the texts; null stays null."""
    may_have = pc.or_(pc.match_substring(texts, "@"), pc.match_substring(texts, "%40"))
    if not pc.any(may_have).as_py():
        return texts
    return pc.if_else(
        may_have, map_distinct(pc.if_else(may_have, texts, None), without_credentials, pa.string()), texts
    )
