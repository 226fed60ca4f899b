"""The URLs of a source that are one page: its own rules for paths, over the normal form."""

from __future__ import annotations

import re
from collections.abc import Callable

import can_ada

from include.page_settings import PageSettings, holes_of

_PERCENT_ENCODED = re.compile("(?:%[0-9A-Fa-f]{2})+")


def page_key(pages: PageSettings) -> Callable[[str], str]:
    """A function from a URL in its normal form to the one under which its page is counted.

    The braces of a hole are in no other URL: a browser percent-encodes them.
    """
    rules = [_rule(path, pages) for path in pages.paths]

    def key_of(url: str) -> str:
        page, mark, query = url.partition("?")
        start = page.index("/", page.index("://") + 3)
        path = page[start:]
        if pages.lower_case:
            path = path.lower()
        if pages.trailing_slash == "remove":
            path = path.rstrip("/") or "/"
        for pattern, written in rules:
            if match := pattern.fullmatch(path):
                path = written + (match[1] if pattern.groups else "")
                break
        return page[:start] + path + mark + query

    return key_of


def any_hexadecimal(expression: str) -> str:
    """The regular expression with what is percent-encoded in either case: a browser keeps what a link has."""
    return _PERCENT_ENCODED.sub(r"(?i:\g<0>)", expression)


def _rule(path: str, pages: PageSettings) -> tuple[re.Pattern[str], str]:
    """The regular expression of a pattern, whose group is the rest that stays; and what stands for its beginning."""
    if pages.trailing_slash == "remove":
        path = path.rstrip("/")
    has_rest = path.endswith("/*")
    expression = written = ""
    for segment in path.removesuffix("/*")[1:].split("/"):
        if hole := holes_of(segment):
            name, inside = hole
            expression, written = f"{expression}/{inside}", f"{written}/{{{name}}}"
        else:
            literal = _normal_segment(segment, pages)
            expression, written = f"{expression}/{any_hexadecimal(re.escape(literal))}", f"{written}/{literal}"
    return re.compile(expression + ("(/.*)" if has_rest else ""), re.DOTALL), written


def _normal_segment(segment: str, pages: PageSettings) -> str:
    """A segment as it is in the normal form of a URL."""
    normal: str = can_ada.parse(f"http://a/{segment}").pathname
    return normal[1:].lower() if pages.lower_case else normal[1:]
