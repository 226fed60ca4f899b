"""Rows of published tables, as if a job had published them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from include.hours import Hour
from include.settings import Settings
from include.stored_rows import ARROW_TYPES
from include.tables import Table


def write_published(settings: Settings, table: Table, rows: list[dict[str, Any]]) -> None:
    """Have the table hold these rows, as if a job had published them."""
    counts = {"click_count": 3, "bot_click_count": 1, "visitor_count": 2, "visitor_sketch": b"\x00"}
    schema = pa.schema([(column.name, ARROW_TYPES[column.type]) for column in table.columns])
    arrow = pa.Table.from_pylist([counts | row for row in rows], schema)
    write_deltalake(settings.lake / table.name, arrow, mode="overwrite", partition_by=list(table.partitioned_by))


def url_rows(hour: Hour, *urls: str) -> list[dict[str, Any]]:
    """A row of ``published_clicks_by_url_hourly`` for each URL."""
    return [{"click_date": hour.day, "click_hour": hour.hour, "url": url} for url in urls]
