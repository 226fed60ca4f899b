"""Countries: their codes, as ISO 3166-1 alpha-2 has them, and Kosovo's."""

from __future__ import annotations

import pycountry

from include.tables import UNKNOWN_COUNTRY

#: Of Kosovo: assigned by no standard, and written so by CLDR, the European Union, MaxMind, Cloudflare and Matomo.
_KOSOVO = "XK"
#: What is written for a code of the standard: by the European Union and many shops, and for France without the islands.
_ALIASES = {"UK": "GB", "EL": "GR", "FX": "FR"}

#: The codes that a click can have. What registries, CDNs and databases write where they know no country is none of
#: them: ``EU``, ``AP`` (registered for a region), ``A1``, ``A2``, ``O1`` (MaxMind: proxy, satellite, other), ``T1``,
#: ``XX`` (Cloudflare: Tor, not known), ``ZZ`` (CLDR, App Engine), ``-``.
COUNTRY_CODES = frozenset(country.alpha_2 for country in pycountry.countries) | {_KOSOVO}


def country_code(text: str) -> str:
    """The code that a text says, whatever its case; 'unknown' if it says none."""
    # Of ASCII: in Unicode the upper case of one letter may be two.
    code = text.strip(" ").upper() if text.isascii() else ""
    code = _ALIASES.get(code, code)
    return code if code in COUNTRY_CODES else UNKNOWN_COUNTRY


def country_name(code: str) -> str:
    """The country's usual English name; nothing for 'unknown' and what else is no country's code."""
    if code == _KOSOVO:
        return "Kosovo"
    country = pycountry.countries.get(alpha_2=code)
    return getattr(country, "common_name", country.name) if country else ""
