"""The published tables of version 1 of their contract (docs/reference/published.json)."""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None

_COUNTS = """
    click_count bigint NOT NULL,
    bot_click_count bigint NOT NULL,
    visitor_count bigint NOT NULL
"""
_PRESENCE = """
    hours_in_day integer NOT NULL,
    hours_present integer NOT NULL,
    is_final boolean NOT NULL
"""


def upgrade() -> None:
    """Make the four tables, each with an index by which the rows of an hour or a day are found.

    Those by country are unique by their key. Those by URL are not, as the lake is already: an index of a million URLs
    took five times as long as their rows.
    """
    for name, key in (("url", "url"), ("country", "country_code")):
        hourly, daily = (f"clickmill.published_clicks_by_{name}_{grain}" for grain in ("hourly", "daily"))
        op.execute(
            f"CREATE TABLE {hourly} (click_date date NOT NULL, click_hour integer NOT NULL, {key} text NOT NULL, "
            f"{_COUNTS})"
        )
        op.execute(
            f"CREATE TABLE {daily} (time_zone text NOT NULL, click_date date NOT NULL, {key} text NOT NULL, "
            f"{_COUNTS}, {_PRESENCE})"
        )
        index, more = ("INDEX", "") if key == "url" else ("UNIQUE INDEX", f", {key}")
        op.execute(f"CREATE {index} ON {hourly} (click_date, click_hour{more})")
        op.execute(f"CREATE {index} ON {daily} (time_zone, click_date{more})")
