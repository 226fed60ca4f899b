"""The arrivals of a log hour whose files are gone, from the tables that have them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from include.log_hours import Hour
from include.sources import JsonFields, Source
from include.tables import CLICKS, DUPLICATE_CLICKS, QUARANTINED_CLICKS
from include.visitor_keys import VisitorKeys
from spark_jobs.ingest.arrivals import LineParser
from spark_jobs.ingest.lookups import Lookups
from spark_jobs.ingest.repairs import Places, Repairs, Replay
from spark_jobs.ingest.stored_arrivals import StoredHour, stored_arrivals
from tests.support.temporary_lake import click

HOUR = Hour.parse("2026-03-01T05")
WEB = Source(name="web", format="json", fields=JsonFields(time="ts", url="url", event_id="event_id"))


def _file(folder: Path, name: str, rows: list[dict[str, Any]], *, nullable: bool = True) -> Path:
    table = pa.Table.from_pylist(rows)
    table = table.cast(pa.schema([field.with_nullable(nullable) for field in table.schema]))
    pq.write_table(table, folder / name)
    return folder / name


def _click(line: int, event_id: str, minute: int) -> dict[str, Any]:
    at = datetime(2026, 3, 1, 5, minute, tzinfo=UTC)
    return {
        "file": "a", "line": line, "event_id": event_id, "clicked_at": at, "url": "http://shop.test/",
        "country_code": "DE", "is_bot": False, "is_out_of_order": False,
    }  # fmt: skip


def _rejected(line: int, raw: bytes, reason: str, *, length: int | None = None) -> dict[str, Any]:
    return {"file": "a", "line": line, "reason": reason, "raw": raw.decode(), "bytes": length or len(raw)}


def _line(event_id: str, minute: int) -> bytes:
    return click(event_id, f"{HOUR}:{minute:02}:00Z").removesuffix(b"\n")


def _arrivals(
    files: dict[str, list[Path]], *reasons: str, source: Source = WEB, lookups: Lookups | None = None
) -> list[dict[str, Any]]:
    files = {table.name: files.get(table.name, []) for table in (CLICKS, DUPLICATE_CLICKS, QUARANTINED_CLICKS)}
    places = tuple(
        Places(path, HOUR.number, Replay("r"), are_recorded=False, reasons=reasons)
        for path in files[QUARANTINED_CLICKS.name]
    )
    parser = LineParser(source, (), lookups or Lookups(), Repairs(places))
    return stored_arrivals(StoredHour(HOUR, 1, files), parser, reasons).to_pylist()


def test_quarantined_lines_are_parsed_again_among_the_stored_ones(tmp_path: Path) -> None:
    clicks = _file(tmp_path, "c", [_click(1, "c1", 30), _click(5, "c5", 20)], nullable=False)
    duplicates = _file(tmp_path, "d", [_click(2, "c1", 40)])
    whole = _rejected(3, _line("q3", 35), "missing_url")
    cut = _rejected(4, _line("q4", 36), "missing_url", length=9000)
    more = [_rejected(6, _line("q6", 50), "bad_time"), _rejected(7, b"nonsense", "missing_url")]
    quarantined = [_file(tmp_path, "q1", [whole, cut]), _file(tmp_path, "q2", more, nullable=False)]
    found = _arrivals(
        {CLICKS.name: [clicks], DUPLICATE_CLICKS.name: [duplicates], QUARANTINED_CLICKS.name: quarantined},
        "missing_url",
    )
    said = [(row["line"], row["event_id"], row["reason"], row["replay_id"], row["is_out_of_order"]) for row in found]
    assert said == [
        (1, "c1", None, None, False),
        (2, "c1", None, None, False),
        (3, "q3", None, "r", True),
        (4, None, "missing_url", None, None),
        (5, "c5", None, None, True),
        (6, None, "bad_time", None, None),
        (7, None, "missing_url", None, None),
    ]
    assert len({row["row_id"] for row in found}) == 7


def test_an_arrival_in_several_tables_is_one(tmp_path: Path) -> None:
    """As a replay leaves it that was killed."""
    rejected = [_rejected(1, _line("e1", 1), "missing_url"), _rejected(2, _line("e2", 2), "missing_url")]
    found = _arrivals(
        {
            CLICKS.name: [_file(tmp_path, "c", [_click(1, "e1", 1)])],
            DUPLICATE_CLICKS.name: [_file(tmp_path, "d", [_click(1, "e1", 1), _click(2, "e2", 2)])],
            QUARANTINED_CLICKS.name: [_file(tmp_path, "q", rejected)],
        }
    )
    assert [(row["line"], row["event_id"], row["country_code"]) for row in found] == [(1, "e1", "DE"), (2, "e2", "DE")]


def test_an_hour_with_nothing_to_parse_again_and_one_with_nothing_at_all(tmp_path: Path) -> None:
    cut = _file(tmp_path, "q", [_rejected(1, b"x", "not_json", length=99)])
    assert [row["reason"] for row in _arrivals({QUARANTINED_CLICKS.name: [cut]})] == ["not_json"]
    assert _arrivals({}) == []


def test_a_masked_line_has_its_country_and_no_visitor_unless_texts_are_kept(tmp_path: Path) -> None:
    line = b'{"ts": "2026-03-01T05:10:00Z", "url": "http://shop.test/", "ip": "81.2.69.0", "agent": "A"}'
    rejected = [_rejected(1, line, "missing_url", length=len(line) + 2), _rejected(2, b"", "missing_url", length=90)]
    files = {QUARANTINED_CLICKS.name: [_file(tmp_path, "q", rejected)]}
    lookups = Lookups(VisitorKeys(tmp_path / "secrets" / "visitor_keys", tmp_path / "secrets" / "visitor_key"))
    fields = JsonFields(time="ts", url="url", client_address="ip", user_agent="agent")
    masked = Source(name="web", format="json", fields=fields)
    (click_of_network, removed) = _arrivals(files, source=masked, lookups=lookups)
    assert (click_of_network["reason"], click_of_network["country_code"]) == (None, "GB")
    assert click_of_network["visitor_id"] is None
    assert removed["reason"] == "missing_url"
    (kept, _) = _arrivals(files, source=masked.model_copy(update={"keep_raw": True}), lookups=lookups)
    assert kept["visitor_id"] is not None
