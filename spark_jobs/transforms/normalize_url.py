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

from spark_jobs.transforms.columns import let

_SITE = r"(?s)^([A-Za-z]+)://([^/?#@]*@)?([^/?#]*)(.*)$"

_SPACE = r" \t\n\x0B\f\r"

# Capital letters one by one: the matcher looks single characters up, and tries ranges in turn.
_NORMAL_SITE = rf"^https?://[^/?#@:{_SPACE}{ascii_uppercase}]++/"


def is_normal_url(url: Column, tracking_parameters: Iterable[str]) -> Column:
    """Whether the URL surely is in normal form: most are, and one look at them spares their taking apart.

    True for a lower case scheme and host without user information or port, with a path, no fragment, and either no
    query or one without tracking parameters; false else, and for null.
    """
    names = _alternatives(tracking_parameters)
    no_tracking = rf"(?!(?:.*&)?(?i:{names})(?:[=&]|$))" if names else ""
    return F.coalesce(
        url.rlike(rf"{_NORMAL_SITE}[^?#{_SPACE}]*+(?:\?{no_tracking}[^#{_SPACE}]++)?\z"),
        F.lit(False),
    )


def normalize_url(url: Column, tracking_parameters: Iterable[str]) -> Column:
    """The URL in normal form; null for null. Expects an absolute http or https URL."""
    # Cut by searching for single characters; patterns are for the parts that need them.
    return let(
        F.substring_index(url, "#", 1),
        lambda no_fragment: let(
            F.substring_index(no_fragment, "?", 1),
            lambda page: F.concat(
                _normal_page(page),
                let(
                    F.substring(no_fragment, F.length(page) + 2, F.length(no_fragment)),
                    lambda query: _normal_query(query, tracking_parameters),
                ),
            ),
        ),
    )


def _normal_page(page: Column) -> Column:
    """Scheme, authority and path."""
    scheme, authority = F.lower(F.regexp_extract(page, _SITE, 1)), F.lower(F.regexp_extract(page, _SITE, 3))
    default_port = F.when(scheme == "http", F.lit(":80$")).otherwise(F.lit(":443$"))
    path = F.regexp_extract(page, _SITE, 4)
    return F.when(page.rlike(_NORMAL_SITE), page).otherwise(
        F.concat(
            scheme,
            F.lit("://"),
            F.regexp_extract(page, _SITE, 2),
            F.regexp_replace(authority, default_port, F.lit("")),
            F.when(path == "", F.lit("/")).otherwise(path),
        )
    )


def _normal_query(query: Column, tracking_parameters: Iterable[str]) -> Column:
    """The query with its question mark, or nothing."""
    names = _alternatives(tracking_parameters)
    kept = query
    if names:
        # Each parameter with the & before it, so that removing one leaves the others as they are.
        without = F.regexp_replace(F.concat(F.lit("&"), query), rf"&(?i:{names})(?:=[^&]*)?(?=&|$)", "")
        kept = F.when(query != "", F.substring(without, 2, F.length(query))).otherwise(query)
    return F.when(kept == "", F.lit("")).otherwise(F.concat(F.lit("?"), kept))


def _alternatives(names: Iterable[str]) -> str:
    """The names as alternatives of a regular expression; one that ends in ``*`` stands for all that start so."""
    return "|".join(re.escape(name[:-1]) + "[^=&#]*" if name.endswith("*") else re.escape(name) for name in names)
