"""Counts that are released with noise, and what was drawn for them."""

from __future__ import annotations

from include.tables.counts import COUNTRY, URL
from include.tables.model import Column, Table

_DAY = Column("click_date", "DATE", "Day, UTC, on which the clicks happened.")
_CLICKS = Column(
    "click_count",
    "BIGINT",
    "Clicks of people, at most clicks_per_visitor_per_day of each, with noise; keys below the threshold are left out.",
)
_PRIVACY = (
    Column("epsilon", "DOUBLE", "Of both tables of released counts together, for this drawing of the day."),
    Column("delta", "DOUBLE", "The same."),
    Column("clicks_per_visitor_per_day", "INT", "Clicks of one visitor that were counted at most, over all keys."),
    Column("noise_scale", "DOUBLE", "Scale of the Laplace noise; its standard deviation is 1.41 times as much."),
    Column("threshold", "BIGINT", "The smallest count that is shown, noise included."),
)


def _released(name: str, *key: Column) -> Table:
    return Table(
        name=name,
        grain=f"one day and {' and '.join(column.name for column in key)}",
        columns=(_DAY, *key, _CLICKS, *_PRIVACY),
        key=("click_date", *(column.name for column in key)),
        partitioned_by=("click_date",),
    )


RELEASED_CLICKS_BY_COUNTRY_AND_URL_DAILY = _released("released_clicks_by_country_and_url_daily", COUNTRY, URL)
RELEASED_CLICKS_BY_COUNTRY_DAILY = _released("released_clicks_by_country_daily", COUNTRY)

COUNT_RELEASES = Table(
    name="count_releases",
    grain="one drawing of noise for a day, which is spent from then on; not for readers of the released tables, which "
    "have the newest of each day",
    columns=(
        _DAY,
        Column("released_at", "TIMESTAMP", "When it was drawn."),
        *_PRIVACY,
        Column("input_digest", "STRING", "Keyed digest (HMAC-SHA256) of the bounded counts before noise."),
    ),
    key=("click_date", "released_at"),
    partitioned_by=("click_date",),
)
#: They are written before the drawing is: of one that has no row, none was shown.
DRAWN_COUNTS = Table(
    name="drawn_counts",
    grain="one count that a drawing shows, per country and URL or per country; not for readers of the released tables",
    columns=(
        _DAY,
        Column("released_at", "TIMESTAMP", "When it was drawn, as count_releases has it."),
        COUNTRY,
        Column("url", "STRING", "URL in normal form; null of a count per country.", required=False),
        _CLICKS,
    ),
    key=("click_date", "released_at", "country_code", "url"),
    partitioned_by=("click_date",),
)
