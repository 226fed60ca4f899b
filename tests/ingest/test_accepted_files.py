"""What a worker keeps of a staged file: the arrivals that are well formed and no duplicates, as clicks."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from include.tables import CLICKS
from spark_jobs.ids.duplicates import DECIDED
from spark_jobs.ingest.accepted_files import accepted_clicks
from spark_jobs.lines.arrivals import ARRIVALS

moments = st.datetimes(datetime(1969, 12, 31), datetime(2026, 3, 2), timezones=st.just(UTC))
#: Of each line its id, when it was clicked, null for a line that is none, and whether its id came before.
lines_of = st.lists(
    st.tuples(st.integers(0, 1 << 40), st.none() | moments, st.booleans()), unique_by=lambda line: line[0]
)


def arrival(row_id: int, clicked_at: datetime | None) -> dict[str, Any]:
    is_click = clicked_at is not None
    return {
        "row_id": row_id, "log_date": date(2026, 3, 1), "log_hour": 5, "file": "a.json", "line": row_id,
        "reason": None if is_click else "blank", "clicked_at": clicked_at, "event_id": f"event-{row_id}",
        "url": "http://shop.test/" if is_click else None, "country_code": "DE", "is_bot": False,
        "is_out_of_order": False,
    }  # fmt: skip


def write(file: Path, rows: list[dict[str, Any]], schema: pa.Schema) -> Path:
    pq.write_table(pa.Table.from_pylist(rows, schema), file, row_group_size=3)
    return file


@settings(deadline=None, max_examples=50)
@given(lines_of, lines_of, st.booleans())
def test_what_is_well_formed_and_no_duplicate_is_a_click(
    lines: list[tuple[int, datetime | None, bool]], others: list[tuple[int, datetime | None, bool]], in_one: bool
) -> None:
    mine = {row_id for row_id, *_ in lines}
    again = [row_id for row_id, _, comes_again in lines if comes_again]
    # Those of other files that are staged, and, without a row_id, what changes of stored clicks.
    again += [row_id for row_id, *_ in others if row_id not in mine]
    decided: list[dict[str, Any]] = [{"row_id": row_id, "first_hour": 7} for row_id in again]
    decided += [{"row_id": None, "first_hour": 7, "event_id": f"event-{row_id}"} for row_id, *_ in others]
    parts = [decided] if in_one else [decided[::2], decided[1::2]]
    with TemporaryDirectory() as name:
        staged = write(Path(name) / "staged", [arrival(row_id, at) for row_id, at, _ in lines], ARRIVALS)
        files = [write(Path(name) / f"decided-{number}", part, DECIDED) for number, part in enumerate(parts)]
        clicks = [click for table in accepted_clicks(staged, files, "web") for click in table.to_pylist()]
    expected = [(row_id, at) for row_id, at, comes_again in lines if at is not None and not comes_again]
    assert [(click["line"], click["clicked_at"]) for click in clicks] == expected
    for click in clicks:
        assert list(click) == CLICKS.column_names
        assert (click["source"], click["event_id"]) == ("web", f"event-{click['line']}")
        assert (click["click_date"], click["click_hour"]) == (click["clicked_at"].date(), click["clicked_at"].hour)
