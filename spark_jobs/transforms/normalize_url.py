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
from string import ascii_uppercase

from pyspark.sql import Column
from pyspark.sql import functions as F

_PARTS = r"(?s)^([A-Za-z]+)://([^/?#@]*@)?([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?$"

_SPACE = r" \t\n\x0B\f\r"


def is_normal_url(url: Column, tracking_parameters: Iterable[str]) -> Column:
    """Whether the URL surely is in normal form: most are, and one look at them spares their taking apart.

    True for a lower case scheme and host without user information or port, with a path, no fragment, and either no
    query or one without tracking parameters; false else, and for null.
    """
    names = _alternatives(tracking_parameters)
    no_tracking = rf"(?!(?:.*&)?(?i:{names})(?:[=&]|$))" if names else ""
    return F.coalesce(
        # Capital letters one by one: the matcher looks single characters up, and tries ranges in turn.
        url.rlike(
            rf"^https?://[^/?#@:{_SPACE}{ascii_uppercase}]++/[^?#{_SPACE}]*+(?:\?{no_tracking}[^#{_SPACE}]++)?\z"
        ),
        F.lit(False),
    )


def normalize_url(url: Column, tracking_parameters: Iterable[str]) -> Column:
    """The URL in normal form; null for null. Expects an absolute http or https URL."""
    scheme, authority = F.lower(F.regexp_extract(url, _PARTS, 1)), F.lower(F.regexp_extract(url, _PARTS, 3))
    default_port = F.when(scheme == "http", F.lit(":80$")).otherwise(F.lit(":443$"))
    path = F.regexp_extract(url, _PARTS, 4)
    # Each parameter with the & before it, so that removing one leaves the others as they are.
    query = F.concat(F.lit("&"), F.substring(F.regexp_extract(url, _PARTS, 5), 2, 2_147_483_647))
    names = _alternatives(tracking_parameters)
    if names:
        query = F.regexp_replace(query, rf"&(?i:{names})(?:=[^&]*)?(?=&|$)", "")
    return F.concat(
        scheme,
        F.lit("://"),
        F.regexp_extract(url, _PARTS, 2),
        F.regexp_replace(authority, default_port, F.lit("")),
        F.when(path == "", F.lit("/")).otherwise(path),
        F.regexp_replace(F.regexp_replace(query, "^&", "?"), r"^\?$", ""),
    )


def _alternatives(names: Iterable[str]) -> str:
    """The names as alternatives of a regular expression; one that ends in ``*`` stands for all that start so."""
    return "|".join(re.escape(name[:-1]) + "[^=&#]*" if name.endswith("*") else re.escape(name) for name in names)
