"""Numbers and texts as people and Spark's SQL read them."""

from __future__ import annotations

import pytest

from include.texts import as_literal, as_printable, as_size, crop_middle


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (999_949, "999.9 kB"), (1_500_000, "1.5 MB"),
        (1_500_000_000, "1.5 GB"), (2_345_000_000_000_000, "2,345.0 TB"),
    ],
)  # fmt: skip
def test_bytes_have_a_unit(number: int, text: str) -> None:
    assert as_size(number) == text


@pytest.mark.parametrize(
    ("text", "literal"),
    [("plain", "'plain'"), ("it's", r"'it\'s'"), ("back\\slash", r"'back\\slash'"), ("\\'", r"'\\\''")],
)
def test_a_literal_is_the_text_and_nothing_else(text: str, literal: str) -> None:
    assert as_literal(text) == literal


def test_what_cannot_be_seen_is_written_out_and_the_rest_stays() -> None:
    assert as_printable("a b ü 🎉") == "a b ü 🎉"
    assert as_printable("ü\x1b[2J") == "ü\\x1b[2J"
    assert as_printable("‮gpj.exe") == "\\u202egpj.exe"
    assert as_printable("\ud800") == "\\ud800"


def test_cropped_in_the_middle_a_text_has_the_length() -> None:
    assert crop_middle("0123456789", 5) == "01…89"
    assert crop_middle("0123456789", 10) == "0123456789"
    assert crop_middle("0123456789", 1) == "…"
