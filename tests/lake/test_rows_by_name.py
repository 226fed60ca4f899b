"""Rows made outside Spark are by column name; a name that is no column, and a required one left out, are refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from include.holds import HELD, event_row
from include.hours import Hour
from include.journal import Act
from include.settings import Settings
from include.tables import JOURNAL
from spark_jobs.lake.declared import as_arrow
from spark_jobs.lake.lake import Lake

ROW = event_row(
    Act("run", "publish_clicks"), datetime(2026, 3, 1, 6, tzinfo=UTC), Hour.parse("2026-03-01T05"), HELD, "so"
)


@pytest.fixture
def stored(settings: Settings) -> Lake:
    """A lake with an empty ``journal``."""
    write_deltalake(settings.lake / JOURNAL.name, as_arrow(JOURNAL, []))
    return Lake(cast(SparkSession, None), settings)


def _rows(lake: Lake) -> int:
    return DeltaTable(lake.path(JOURNAL)).to_pyarrow_dataset().count_rows()


def test_a_name_that_is_no_column_is_refused(stored: Lake) -> None:
    rows = [ROW, ROW | {"outcom": HELD, "who": "Ada"}]
    expected = "a row of journal has no column outcom, who: "
    with pytest.raises(ValueError, match=expected):
        stored.append_rows(JOURNAL, rows)
    with pytest.raises(ValueError, match=expected):
        stored.replace_rows(JOURNAL, rows, "kind = 'click_hour'")
    assert _rows(stored) == 0


def test_a_required_column_left_out_is_refused(stored: Lake) -> None:
    row = {name: value for name, value in ROW.items() if name != "event"}
    with pytest.raises(ValueError, match="a row of journal lacks event: "):
        stored.append_rows(JOURNAL, [row])
    assert _rows(stored) == 0


def test_another_column_left_out_is_null_and_the_order_is_irrelevant(stored: Lake) -> None:
    row = {name: ROW[name] for name in reversed(ROW) if name != "actor"}
    stored.append_rows(JOURNAL, [row])
    (stored_row,) = stored.read_rows(JOURNAL, JOURNAL.column_names, [])
    assert stored_row == dict.fromkeys(JOURNAL.column_names) | row | {"details": []}
