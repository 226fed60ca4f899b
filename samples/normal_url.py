"""The normal form of a URL in plain Python, for the URLs of the samples. The product's is compared with it."""

from __future__ import annotations

from urllib.parse import quote

TRACKING_PREFIX = "utm_"
TRACKING_NAMES = frozenset({"gclid", "fbclid", "msclkid", "dclid", "yclid", "igshid", "mc_cid", "mc_eid"})

_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def normalize_url(url: str) -> str:
    """The normal form of an absolute http or https URL that has no dot segments.

    Scheme and host in lower case (user information is kept), the scheme's default port and the fragment
    removed, an empty path becomes ``/``, tracking parameters removed whatever the case of their names. What is not
    ASCII, and blanks, are percent-encoded, all else stays byte for byte and in order; a query that is or becomes
    empty goes with its ``?``.
    """
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    before_query, _, query = rest.partition("#")[0].partition("?")
    authority, slash, path = before_query.partition("/")
    user, at, host = authority.rpartition("@")
    host = host.lower().removesuffix(_DEFAULT_PORTS.get(scheme, ""))
    kept = "&".join(parameter for parameter in query.split("&") if not is_tracking_parameter(parameter))
    return f"{scheme}://{user}{at}{host}{slash or '/'}{_encoded(path)}{'?' if kept else ''}{_encoded(kept)}"


def _encoded(text: str) -> str:
    return "".join(char if "!" <= char <= "~" else quote(char) for char in text)


def is_tracking_parameter(parameter: str) -> bool:
    """Whether ``name=value`` (or ``name`` alone) says where a click came from, not what was asked for."""
    name = parameter.partition("=")[0].lower()
    return name.startswith(TRACKING_PREFIX) or name in TRACKING_NAMES
