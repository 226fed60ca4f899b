"""Countries: their codes, as ISO 3166-1 alpha-2 has them."""

from __future__ import annotations

import pycountry

from include.tables import UNKNOWN_COUNTRY

COUNTRY_CODES = frozenset(country.alpha_2 for country in pycountry.countries)


def country_code(text: str) -> str:
    """The code that a text says, whatever its case; 'unknown' if it says none."""
    code = text.strip(" ")
    # Of ASCII: in Unicode the upper case of one letter may be two.
    return code.upper() if code.isascii() and code.upper() in COUNTRY_CODES else UNKNOWN_COUNTRY
