"""Two lines in one of a log whose times are numbers: told from numbers that are none."""

from __future__ import annotations

import pytest

from include.sources import Source
from tests.lines.parsing import parse

SQUID = Source.model_validate({"name": "proxy", "preset": "squid"})
LINE = "1772368200.123    100 8.8.8.8 TCP_MISS/200 5123 GET http://shop.test/{} - HIER_DIRECT/93.184.216.34 text/html"


@pytest.mark.parametrize("page", ["", "a?id=1234567890", "1772368200", "1772368200.5"])
def test_a_number_is_no_second_time(page: str) -> None:
    (row,) = parse([LINE.format(page).encode()], SQUID)
    assert (row["reason"], row["url"]) == (None, f"http://shop.test/{page}")


def test_two_times_are_two_lines() -> None:
    (row,) = parse([(LINE.format("a")[:50] + LINE.format("b")).encode()], SQUID)
    assert row["reason"] is not None
