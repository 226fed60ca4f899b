"""Version 2 of the contract: the number of visitors is null where they are too few to be shown."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Let it be null, in all four tables."""
    for name in ("url", "country"):
        for grain in ("hourly", "daily"):
            op.execute(
                f"ALTER TABLE clickmill.published_clicks_by_{name}_{grain} ALTER COLUMN visitor_count DROP NOT NULL"
            )
