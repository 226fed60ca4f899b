"""What tables get of a staged file: a line is a click, a duplicate, quarantined, or left out."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from include.tables import CLICKS, DUPLICATE_CLICKS, QUARANTINED_CLICKS
from spark_jobs.ids.duplicates import DECIDED
from spark_jobs.ingest.decided_files import decided_rows
from spark_jobs.lines.arrivals import ARRIVALS

TABLES = (CLICKS, DUPLICATE_CLICKS, QUARANTINED_CLICKS)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Line(NamedTuple):
    """When it was clicked, null for a line that is no click; and the log hour of what it is a duplicate of, if any."""

    row_id: int
    clicked_at: datetime | None
    reason: str
    first_hour: int | None

    @property
    def is_duplicate(self) -> bool:
        return self.clicked_at is not None and self.first_hour is not None


moments = st.datetimes(datetime(1969, 12, 31), datetime(2026, 3, 2), timezones=st.just(UTC))
reasons = st.sampled_from(["blank", "not_json", "left_out_status", "left_out_"])
hours = st.integers(-30, 500_000)
lines_of = st.lists(
    st.builds(Line, st.integers(0, 1 << 40), st.none() | moments, reasons, st.none() | hours),
    unique_by=lambda line: line.row_id,
)


def arrival(line: Line) -> dict[str, Any]:
    is_click = line.clicked_at is not None
    return {
        "row_id": line.row_id, "log_date": date(2026, 3, 1), "log_hour": 5, "file": "a.json", "line": line.row_id,
        "reason": None if is_click else line.reason, "raw": None if is_click else "{", "bytes": 1,
        "clicked_at": line.clicked_at, "event_id": f"event-{line.row_id}",
        "url": "http://shop.test/" if is_click else None, "country_code": "DE", "is_bot": False,
        "is_out_of_order": False,
    }  # fmt: skip


def write(file: Path, rows: list[dict[str, Any]], schema: pa.Schema) -> Path:
    pq.write_table(pa.Table.from_pylist(rows, schema), file, row_group_size=3)
    return file


@settings(deadline=None, max_examples=100)
@given(lines_of, lines_of, st.booleans())
def test_each_line_is_in_one_table_or_left_out(lines: list[Line], others: list[Line], in_one: bool) -> None:
    mine = {line.row_id for line in lines}
    # Those of other files that are staged too, and, without a row_id, what changes of stored clicks.
    duplicates = [
        line for line in (*lines, *others) if line.is_duplicate and (line in lines or line.row_id not in mine)
    ]
    decided: list[dict[str, Any]] = [{"row_id": line.row_id, "first_hour": line.first_hour} for line in duplicates]
    decided += [{"row_id": None, "first_hour": 7, "event_id": f"event-{line.row_id}"} for line in others]
    parts = [decided] if in_one else [decided[::2], decided[1::2]]
    rows: dict[str, list[dict[str, Any]]] = {table.name: [] for table in TABLES}
    with TemporaryDirectory() as name:
        staged = write(Path(name) / "staged", list(map(arrival, lines)), ARRIVALS)
        files = [write(Path(name) / f"decided-{number}", part, DECIDED) for number, part in enumerate(parts)]
        for table, some in decided_rows(staged, files, "web", TABLES):
            assert some.column_names == table.column_names
            rows[table.name] += some.to_pylist()
        only_clicks = [table for table, _ in decided_rows(staged, files, "web", [CLICKS])]
    assert set(only_clicks) <= {CLICKS}
    assert [row["line"] for row in rows[CLICKS.name]] == [
        line.row_id for line in lines if line.clicked_at is not None and not line.is_duplicate
    ]
    first = [
        (row["line"], datetime.combine(row["first_log_date"], datetime.min.time(), UTC), row["first_log_hour"])
        for row in rows[DUPLICATE_CLICKS.name]
    ]
    moment_of = {line.row_id: EPOCH + timedelta(hours=line.first_hour or 0) for line in lines}
    assert [line for line, *_ in first] == [line.row_id for line in lines if line.is_duplicate]
    assert all(day + timedelta(hours=hour) == moment_of[line] and 0 <= hour < 24 for line, day, hour in first)
    assert [(row["line"], row["reason"], row["raw"]) for row in rows[QUARANTINED_CLICKS.name]] == [
        (line.row_id, line.reason, "{")
        for line in lines
        if line.clicked_at is None and not line.reason.startswith("left_out_")
    ]
    times = {line.row_id: line.clicked_at for line in lines}
    for click in rows[CLICKS.name] + rows[DUPLICATE_CLICKS.name]:
        assert (click["source"], click["event_id"]) == ("web", f"event-{click['line']}")
        assert click["clicked_at"] == times[click["line"]]
        assert (click["click_date"], click["click_hour"]) == (click["clicked_at"].date(), click["clicked_at"].hour)
