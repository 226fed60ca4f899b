"""A real web server's log, from the file to the published tables, held to a plain Python reading of it."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from include.settings import REPOSITORY
from include.sources import load_sources
from include.tables import (
    CLICKS,
    PUBLISHED_CLICKS_BY_COUNTRY_HOURLY,
    PUBLISHED_CLICKS_BY_URL_HOURLY,
    QUARANTINED_CLICKS,
)
from samples.normal_url import normalize_url
from tests.landing.landing_zone import land
from tests.support.temporary_lake import TemporaryLake

LOG = REPOSITORY.parent / "shared" / "data" / "apache_logs.gz"
BASE_URL = "http://www.example.com"
# Simpler than the product's: this log has no escaped quotes in fine lines.
FINE = re.compile(r'^(\S+) \S+ \S+ \[([^\]]+)\] "[A-Z]+ (\S+) HTTP/[\d.]+" (\d+) (?:\d+|-) "([^"]*)" "([^"]*)"$')

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not LOG.is_file(), reason=f"the real log is not part of the repository: no {LOG}"),
]


@pytest.fixture(scope="module")
def fine() -> list[tuple[str, str]]:
    """Click hour and URL of every well-formed line."""
    clicks = []
    for line in gzip.decompress(LOG.read_bytes()).decode().splitlines():
        if match := FINE.match(line):
            moment = datetime.strptime(match[2], "%d/%b/%Y:%H:%M:%S %z").astimezone(UTC)
            url = match[3] if match[3].startswith("http") else BASE_URL + match[3]
            clicks.append((moment.isoformat()[:13], normalize_url(url)))
    return clicks


@pytest.fixture(scope="module")
def published(make_lake: Callable[[str], TemporaryLake]) -> TemporaryLake:
    lake = make_lake("real")
    landed = land(load_sources(lake.settings)["access"], LOG, lake.settings.landing, datetime.now(UTC)).lines
    assert (sum(landed.values()), len(landed)) == (10_000, 84)
    start, end = str(min(landed)), str(max(landed).plus(1))
    lake.run("ingest", start, end, source="access", allow_missing=True)
    for job in ("aggregate", "validate", "publish"):
        lake.run(job, start, end, source="access")
    return lake


@pytest.mark.path
def test_every_line_is_accounted_for(published: TemporaryLake, fine: list[tuple[str, str]]) -> None:
    assert len(fine) == 9_999
    accounts = published.accounting()
    assert sum(account["lines"] for account in accounts.values()) == 10_000
    assert {hour: account["accepted"] for hour, account in accounts.items() if account["accepted"]} == Counter(
        hour for hour, _ in fine
    )
    assert sum(account["duplicates"] for account in accounts.values()) == 0
    assert len(published.rows(CLICKS)) == 9_999


def test_line_that_lost_its_closing_quote_is_quarantined_with_its_place(published: TemporaryLake) -> None:
    (row,) = published.rows(QUARANTINED_CLICKS)
    assert row["reason"] == "not_access_log"
    assert (str(row["log_date"]), row["log_hour"], row["file"].partition("-")[0]) == ("2015-05-20", 12, "apache_logs")
    folder = published.settings.landing / "access" / "log_date=2015-05-20" / "log_hour=12"
    landed = gzip.decompress((folder / row["file"]).read_bytes()).decode().splitlines()
    client, rest = landed[row["line"] - 1].split(" ", 1)
    assert row["raw"] == f"{client[: client.rindex('.')]}.0 {rest}"
    assert "/scripts/grok-py-test/configlib.py" in row["raw"]


def test_published_counts_are_those_of_the_log(published: TemporaryLake, fine: list[tuple[str, str]]) -> None:
    rows = published.rows(PUBLISHED_CLICKS_BY_URL_HOURLY)
    counts = {(f"{row['click_date']}T{row['click_hour']:02d}", row["url"]): row["click_count"] for row in rows}
    assert len(counts) == len(rows)
    assert counts == Counter(fine)
    assert len({url for _, url in counts}) == len({url for _, url in fine})
    by_country: Counter[str] = Counter()
    for row in published.rows(PUBLISHED_CLICKS_BY_COUNTRY_HOURLY):
        by_country[f"{row['click_date']}T{row['click_hour']:02d}"] += row["click_count"]
    assert by_country == Counter(hour for hour, _ in fine)
