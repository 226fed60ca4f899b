from __future__ import annotations

import pytest

from include.countries import COUNTRY_CODES, country_code, country_name

CODES = {
    "DE": ["DE", "de", " De "],
    "XK": ["XK", "xk"],
    "GB": ["GB", "gb", "UK", "uk", "Uk"],
    "GR": ["GR", "EL"],
    "FR": ["FR", "fx"],
    # Of registries, CDNs and databases, where they know no country.
    "unknown": [
        "EU", "eu", "AP", "A1", "A2", "O1", "T1", "XX", "ZZ", "AA", "--", "-", "??", "**", "", " ", "None", "null",
        "Unknown", "DEU", "D", "D E", "UK-SCT", "GB-ENG", "AN", "XKX", "SU", "\u0131t", "\ufb01", "DE\n", "276",
    ],
}  # fmt: skip


@pytest.mark.parametrize("code", CODES)
def test_each_text_is_its_country_or_unknown(code: str) -> None:
    assert {text: country_code(text) for text in CODES[code]} == dict.fromkeys(CODES[code], code)


def test_every_code_is_its_own_country_with_a_name() -> None:
    assert len(COUNTRY_CODES) == 250
    assert {code: country_code(code.lower()) for code in COUNTRY_CODES} == {code: code for code in COUNTRY_CODES}
    assert all(country_name(code) for code in COUNTRY_CODES)
    assert [country_name(code) for code in ("XK", "GB", "unknown", "UK")] == ["Kosovo", "United Kingdom", "", ""]
