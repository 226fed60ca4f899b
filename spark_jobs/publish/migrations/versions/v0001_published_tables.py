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
#: Of each key, what it is unique by: an index entry holds 2,700 bytes at most, and a URL may have more.
_KEYS = {"url": "md5(url)", "country_code": "country_code"}


def upgrade() -> None:
    """Make the four tables, each unique by its key, which also finds the rows of an hour or a day."""
    for key, indexed in _KEYS.items():
        name = key.removesuffix("_code")
        hourly, daily = (f"published_clicks_by_{name}_{grain}" for grain in ("hourly", "daily"))
        op.execute(
            f"CREATE TABLE clickmill.{hourly} "
            f"(click_date date NOT NULL, click_hour integer NOT NULL, {key} text NOT NULL, {_COUNTS})"
        )
        op.execute(f"CREATE UNIQUE INDEX ON clickmill.{hourly} (click_date, click_hour, {indexed})")
        op.execute(
            f"CREATE TABLE clickmill.{daily} "
            f"(time_zone text NOT NULL, click_date date NOT NULL, {key} text NOT NULL, {_COUNTS}, {_PRESENCE})"
        )
        op.execute(f"CREATE UNIQUE INDEX ON clickmill.{daily} (time_zone, click_date, {indexed})")
