"""What a task of a micro-batch writes and says of its rows, against the same in plain Python."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from include.hours import Hour
from include.source_fields import LineFields
from include.sources import Source
from spark_jobs.lines.arrivals import ARRIVALS
from spark_jobs.stream import written_rows
from spark_jobs.stream.micro_batch import parts_of
from spark_jobs.stream.written_rows import WrittenRows, rows_written

WEB = Source(name="web", format="json", fields=LineFields(time="ts", url="url"))
#: Log hours of it are before 1970.
DAY = date(1969, 12, 31)
places = st.tuples(st.sampled_from(["clicks/0", "clicks/1"]), st.integers(0, 3))
clicked = st.datetimes(datetime(1969, 12, 31, 22), datetime(1970, 1, 1, 3), timezones=st.just(UTC))
LEFT_OUT = "left_out_robots"
#: Of each arrival its file and log hour, and when it was clicked or why it is no click; whether it was sampled.
arrivals = st.lists(
    st.tuples(places, clicked | st.sampled_from(["blank", "no_url", LEFT_OUT]), st.booleans(), st.booleans()),
    max_size=40,
)


def as_row(number: int, arrival: tuple[tuple[str, int], datetime | str, bool, bool]) -> dict[str, Any]:
    (file, hour), outcome, is_out_of_order, is_sampled = arrival
    row = {"row_id": 0, "log_date": DAY, "log_hour": hour, "file": file, "line": number, "bytes": 7}
    row["sampled"] = '{"a": 1}' if is_sampled else None
    if isinstance(outcome, str):
        return row | {"reason": outcome, "raw": None if outcome == LEFT_OUT else f"raw {number}"}
    of_click = {"clicked_at": outcome, "url": f"http://shop.test/{number}", "country_code": "DE", "is_bot": False}
    return row | of_click | {"is_out_of_order": is_out_of_order}


def read_row(file: str, hour: int, lines: int) -> dict[str, Any]:
    damage = "cut off" if lines % 2 else None
    read = {"lines": lines, "bytes": 7 * lines, "first_line": 5, "last_line": 4 + lines, "damage": damage}
    return {"log_date": DAY, "log_hour": hour, "file": file, "read": read}


def stored(folder: Path) -> list[dict[str, Any]]:
    """All rows of a folder's files, with what the folders' names say."""
    return [
        row | dict(part.split("=") for part in path.relative_to(folder).parts[:-1])
        for path in folder.rglob("*.parquet")
        for row in pq.ParquetFile(path).read().to_pylist()
    ]


@settings(deadline=None, max_examples=50)
@given(arrivals, st.lists(st.tuples(places, st.integers(1, 9)), max_size=4), st.lists(st.integers(0, 40), max_size=3))
@pytest.mark.parametrize("most_open_hours", [1, 24])
def test_a_task_says_of_every_row_what_became_of_it(
    most_open_hours: int,
    drawn_arrivals: list[tuple[tuple[str, int], datetime | str, bool, bool]],
    read: list[tuple[tuple[str, int], int]],
    cuts: list[int],
) -> None:
    rows = [as_row(number, arrival) for number, arrival in enumerate(drawn_arrivals)]
    rows += [read_row(*place, lines) for place, lines in read]
    cut = sorted([0, len(rows), *(place for place in cuts if place < len(rows))])
    batches = [pa.RecordBatch.from_pylist(rows[start:end], ARRIVALS) for start, end in pairwise(cut)]
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(written_rows, "_MOST_OPEN_HOURS", most_open_hours)
        folders = Path(name) / "clicks", Path(name) / "quarantined"
        rows_by_kind: dict[str, list[dict[str, Any]]] = {"clicks": [], "quarantined": [], "outcome": [], "sampled": []}
        for kind, new_rows in rows_written(batches, WEB, *folders):
            rows_by_kind[kind] += new_rows
        clicks, quarantined = map(stored, folders)
        for folder, kind in zip(folders, ("clicks", "quarantined"), strict=True):
            assert sorted(file["path"] for file in rows_by_kind[kind]) == sorted(
                str(path.relative_to(folder)) for path in folder.rglob("*.parquet")
            )

    of_clicks = {number: arrival for number, arrival in enumerate(drawn_arrivals) if not isinstance(arrival[1], str)}
    of_others = {
        n: arrival for n, arrival in enumerate(drawn_arrivals) if isinstance(arrival[1], str) and arrival[1] != LEFT_OUT
    }
    assert {row["line"]: (row["file"], int(row["log_hour"]), row["clicked_at"]) for row in clicks} == {
        number: (*place, at) for number, (place, at, *_) in of_clicks.items()
    }
    assert {row["line"]: (row["file"], int(row["log_hour"]), row["reason"], row["raw"]) for row in quarantined} == {
        number: (*place, why, f"raw {number}") for number, (place, why, *_) in of_others.items()
    }
    assert (len(clicks), len(quarantined)) == (len(of_clicks), len(of_others))
    if most_open_hours > 1:
        assert len(rows_by_kind["clicks"]) == len({place[1] for place, *_ in of_clicks.values()})

    parts = parts_of(WrittenRows(outcomes=rows_by_kind["outcome"], sampled=rows_by_kind["sampled"]))
    assert set(parts) == {(file, Hour.of(DAY, hour)) for (file, hour), *_ in [*drawn_arrivals, *read]}
    for (file, log_hour), part in parts.items():
        here = [(arrival[1], arrival[2]) for arrival in drawn_arrivals if arrival[0] == (file, log_hour.hour)]
        moments = [(at, is_late) for at, is_late in here if not isinstance(at, str)]
        reasons = Counter(why for why, _ in here if isinstance(why, str))
        assert part.account.left_out.total() == part.account.left_out["robots"] == reasons.pop(LEFT_OUT, 0)
        assert part.account.quarantined == reasons
        assert part.account.click_hours == {f"{at:%Y-%m-%dT%H}" for at, _ in moments}
        lines = [count for place, count in read if place == (file, log_hour.hour)]
        assert part.account.lines == sum(lines)
        assert part.bytes == 7 * sum(lines)
        assert (part.first_offset, part.last_offset) == ((5, 4 + max(lines)) if lines else (None, None))
        assert part.damage == ("cut off" if any(lines_read % 2 for lines_read in lines) else None)
        account = part.account.of_lines()
        is_here = [arrival[3] for arrival in drawn_arrivals if arrival[0] == (file, log_hour.hour)]
        assert (account["sampled_lines"] or 0) == sum(is_here)
        assert account["accepted"] == len(moments)
        assert account["out_of_order"] == sum(is_late for _, is_late in moments)
        if moments:
            assert account["first_clicked_at"] == min(moments)[0]
            assert account["last_clicked_at"] == max(moments)[0]


def test_of_hours_that_alternate_a_file_each_is_written(tmp_path: Path) -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    rows = [as_row(number, (("clicks/0", number % 20), at, False, False)) for number in range(1_000)]
    batches = pa.Table.from_pylist(rows, ARRIVALS).to_batches(100)
    files = [
        file
        for kind, new_rows in rows_written(batches, WEB, tmp_path / "clicks", tmp_path / "quarantined")
        if kind == "clicks"
        for file in new_rows
    ]
    assert len(files) == 20
