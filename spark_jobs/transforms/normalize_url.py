"""The normal form of a URL, so that one page is one key.

Rule (after RFC 3986, section 6.2, as far as it never changes what the URL leads to):

* scheme and host in lower case; the default port (http 80, https 443) removed; user information kept;
* an empty path becomes ``/``;
* the fragment removed;
* configured tracking parameters removed, names compared without case; the other parameters kept byte for byte
  and in order; a query that is or becomes empty is removed with its ``?``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

# Already in normal form: lower case scheme and host, no user information, port, query or fragment.
_NORMAL = r"^https?://[a-z0-9.\-]++/[^?#]*+$"
_PARTS = r"(?s)^([A-Za-z]+)://([^/?#@]*@)?([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?$"


def tracking_parameter_pattern(names: Iterable[str]) -> str:
    """A regular expression for query parameters (``name`` or ``name=value``) of these names.

    A name that ends in ``*`` stands for all that start so.
    """
    alternatives = (re.escape(name[:-1]) + "[^=]*" if name.endswith("*") else re.escape(name) for name in names)
    return rf"(?i)^(?:{'|'.join(alternatives)})(?:=.*)?$"


def normalize_url(url: Column, tracking_parameters: Iterable[str]) -> Column:
    """The URL in normal form; null for null. Expects an absolute http or https URL."""
    scheme, authority = F.lower(F.regexp_extract(url, _PARTS, 1)), F.lower(F.regexp_extract(url, _PARTS, 3))
    default_port = F.when(scheme == "http", F.lit(":80$")).otherwise(F.lit(":443$"))
    host = F.regexp_replace(authority, default_port, F.lit(""))
    path = F.regexp_extract(url, _PARTS, 4)
    query = _without_parameters(F.substring(F.regexp_extract(url, _PARTS, 5), 2, 2_147_483_647), tracking_parameters)
    rebuilt = F.concat(
        scheme,
        F.lit("://"),
        F.regexp_extract(url, _PARTS, 2),
        host,
        F.when(path == "", F.lit("/")).otherwise(path),
        F.when(query == "", F.lit("")).otherwise(F.concat(F.lit("?"), query)),
    )
    # Most URLs are in normal form already: one cheap look spares them the taking apart.
    return F.when(url.rlike(_NORMAL), url).otherwise(rebuilt)


def _without_parameters(query: Column, names: Iterable[str]) -> Column:
    names = tuple(names)
    if not names:
        return query
    pattern = tracking_parameter_pattern(names)
    return F.array_join(F.filter(F.split(query, "&"), lambda parameter: ~parameter.rlike(pattern)), "&")
