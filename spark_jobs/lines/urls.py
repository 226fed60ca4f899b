"""The normal form of a URL, so that one page is one key.

What a browser opens is a click. The rule is the WHATWG URL standard, https://url.spec.whatwg.org: a URL is read and
written as a browser does it (host in lower case, IDN as punycode, default port and ``.``/``..`` segments gone, what
must be percent-encoded is). Beyond it, so that a page is not counted under several keys:

* user and password go, those of a URL in the path or the query too, and the fragment;
* configured tracking parameters and session ids go, names compared without case; the others stay, in their order;
* a session id in the path goes: ``;jsessionid=…`` of servlets, ``/(S(…))`` of ASP.NET without cookies;
* a query that is or becomes empty goes with its ``?``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from urllib.parse import unquote

import can_ada

from include.page_settings import PageSettings
from spark_jobs.lines.credentials import without_credentials
from spark_jobs.lines.page_keys import page_key

_WEB = ("http://", "https://")
#: What a browser writes as it reads it, and nothing below changes; if no segment of its path begins with a point.
_NORMAL = re.compile(r"https?://(?:[a-z0-9]++[.-](?!-))*+[a-z]{2,63}/[A-Za-z0-9/._~!$&'*+,=:-]*+")
# No name in the DNS is longer (RFC 1035, section 2.3.4), nor one of its labels, whose ASCII form is longer still. The
# time that a longer one of other letters takes grows with its square.
_MAX_HOST, _MAX_LABEL = 253, 63
_HOST = re.compile(r"[^:]*:[/\\]*(?:[^/\\?#]*@)?([^/\\?#]*)")
#: Up to the first character that is not ASCII of what is before the path.
_NOT_ASCII = re.compile(r"[^:]*+:[/\\]*+[^/\\?#\x80-\U0010ffff]*+[^\x00-\x7f/\\?#]")
#: So many names of parameters are kept in mind: a site has some hundreds.
_MOST_NAMES = 10_000
#: In front of a name where somebody took a URL out of HTML as it stands there.
_AMPERSANDS = re.compile(r"\A(?:amp;)+")
#: Of 128, 160 or 256 random bits, or a UUID.
_SESSION = re.compile(
    r"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE
)
# A path parameter: Java Servlet specification, section 7.1.3.
_PATH_PARAMETER = re.compile(r"(?:;|%3B)([^;/=%]+(?:(?:=|%3D)(?:(?!%3B)[^;/])*)?)(?=;|%3B|/|\Z)", re.IGNORECASE)
_EQUALS = re.compile("%3D", re.IGNORECASE)
# A segment of session (S), forms ticket (F), anonymous user (A) and the test for cookies (X), as
# System.Web.Security.CookielessHelper writes them; or, before .NET 2, of the session alone.
_OPEN, _CLOSE = r"(?:\(|%28)", r"(?:\)|%29)"
_IN_SEGMENT = rf"(?:X{_OPEN}1{_CLOSE}|[SFA]{_OPEN}[0-9A-Za-z_-]{{20,}}{_CLOSE})+"
_ASP_SEGMENT = re.compile(rf"/{_OPEN}(?:{_IN_SEGMENT}|(?=[a-z]*[0-5])[a-z0-5]{{24}}){_CLOSE}(?=/|\Z)", re.IGNORECASE)


@cache
def url_normalizer(
    tracking_parameters: tuple[str, ...], pages: PageSettings | None = None
) -> Callable[[str], str | None]:
    """A function from a URL to its normal form; None for what no browser opens as an http or https URL with a host.

    With ``pages`` it is the one under which a page of this source is counted.

    Of the entries that fit a parameter's name the last decides: a name that ends in ``*`` stands for all that start so,
    one that ends in ``=#`` goes only with a value that a session has (a UUID, or 32, 40 or 64 hexadecimal digits), and
    one after ``!`` stays.
    """
    in_path = Tracking(tracking_parameters)
    in_query = Tracking((*tracking_parameters, *pages.parameter_entries)) if pages else in_path

    def normal_form(url: str) -> str | None:
        if "?" not in url and "/." not in url and _NORMAL.fullmatch(url):
            return url
        if not url.isascii() and _NOT_ASCII.match(url) and _is_too_long(url):
            return None
        try:
            written: str = can_ada.parse(url).href
        except ValueError:
            return None
        if not written.startswith(_WEB):
            return None
        if "#" in written:
            if "&" in written:  # &#64; is no fragment
                written = without_credentials(written)
            written = written.partition("#")[0]
        page, mark, query = written.partition("?")
        if mark:
            kept = in_query.kept(query)
            if kept is not query or not query:
                written = f"{page}?{kept}" if kept else page
        cleaned = written
        if "@" in written or "\\" in written or ("%" in written and "40" in written):
            cleaned = without_credentials(written)
        if ";" in page or "(" in page or ("%" in page and ("%3" in page or "%28" in page)):
            cleaned = _without_sessions(cleaned, in_path)
        # Without what is left out, a segment may be "..".
        return written if cleaned == written else normal_form(cleaned)

    if pages is None or not pages.changes_paths:
        return normal_form
    key_of = page_key(pages)
    return lambda url: key_of(normal) if (normal := normal_form(url)) else None


def _without_sessions(url: str, tracking: Tracking) -> str:
    def kept(match: re.Match[str]) -> str:
        return match[0] if tracking.kept(_EQUALS.sub("=", match[1], count=1)) else ""

    page, mark, query = url.partition("?")
    start = page.index("/", page.index("://") + 3)
    path = _PATH_PARAMETER.sub(kept, page[start:])
    return page[:start] + (_ASP_SEGMENT.sub("", path) or "/") + mark + query


def _has_session(parameter: str) -> bool:
    """Whether the value of ``name=value`` is one that a session has."""
    return bool(_SESSION.fullmatch(parameter.partition("=")[2]))


class Tracking(dict[str, bool | Callable[[str], bool]]):
    """Whether a parameter of this name goes, or a function of the parameter that says so. Filled as names come."""

    def __init__(self, entries: tuple[str, ...]) -> None:
        super().__init__()
        self._names: dict[str, tuple[int, bool | Callable[[str], bool]]] = {}
        self._starts: list[tuple[int, str, bool]] = []
        for number, entry in enumerate(entries):
            name = entry.removeprefix("!").lower()
            goes = not entry.startswith("!")
            if name.endswith("*"):
                self._starts.append((number, name[:-1], goes))
            else:
                is_session = goes and name.endswith("=#")
                self._names[name.removesuffix("=#")] = number, _has_session if is_session else goes

    def kept(self, query: str) -> str:
        """The query without the parameters that go; the same text if none does."""
        parameters = query.split("&")
        kept = [
            parameter
            for parameter in parameters
            if not (goes := self[parameter.partition("=")[0]]) or (goes is not True and not goes(parameter))
        ]
        return query if len(kept) == len(parameters) else "&".join(kept)

    def __missing__(self, name: str) -> bool | Callable[[str], bool]:
        plain = _AMPERSANDS.sub("", unquote(name).lower())
        fitting: list[tuple[int, bool | Callable[[str], bool]]] = [
            (number, goes) for number, start, goes in self._starts if plain.startswith(start)
        ]
        fitting.append(self._names.get(plain, (-1, False)))
        goes = max(fitting, key=lambda each: each[0])[1]
        if len(self) < _MOST_NAMES:
            self[name] = goes
        return goes


def _is_too_long(url: str) -> bool:
    """Whether a host that is not ASCII is longer than any in the DNS."""
    match = _HOST.match(url)
    if match is None or match[1].isascii():
        return False
    labels = re.split("[.\u3002\uff0e\uff61]", match[1])
    # With room for a port, which is :65535 at the most.
    return len(match[1]) > _MAX_HOST + 6 or any(len(label) > _MAX_LABEL + 6 for label in labels)
