"""The arrivals of a log hour whose files are gone, from the tables that have them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from include.hours import Hour
from include.source_fields import LineFields
from include.sources import Source
from include.tables import CLICKS, DUPLICATE_CLICKS, QUARANTINED_CLICKS, REPLAYED_LINES
from include.visitor_keys import VisitorKeys
from spark_jobs.ingest.stored_arrivals import StoredHour, stored_arrivals
from spark_jobs.lake.data_files import DataFile
from spark_jobs.lines.arrivals import ARRIVALS, LineParser
from spark_jobs.lines.lookups import Lookups
from spark_jobs.lines.masked_addresses import address_mask
from spark_jobs.lines.read_lines import LINES
from spark_jobs.lines.repairs import Places, Repairs, Replay, line_digests
from tests.support.temporary_lake import click

HOUR = Hour.parse("2026-03-01T05")
WEB = Source(name="web", format="json", fields=LineFields(time="ts", url="url", event_id="event_id"))


def _file(folder: Path, name: str, rows: list[dict[str, Any]], *, nullable: bool = True) -> DataFile:
    table = pa.Table.from_pylist(rows)
    table = table.cast(pa.schema([field.with_nullable(nullable) for field in table.schema]))
    pq.write_table(table, folder / name)
    log_hour = {"source": "web", "log_date": HOUR.day, "log_hour": HOUR.hour}
    return DataFile(folder, name, 0, log_hour, HOUR.end, len(rows))


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
    folder: Path, files: dict[str, list[DataFile]], *reasons: str, source: Source = WEB, lookups: Lookups | None = None
) -> list[dict[str, Any]]:
    files = {table.name: files.get(table.name, []) for table in (CLICKS, DUPLICATE_CLICKS, QUARANTINED_CLICKS)}
    places = tuple(
        Places(file.path, HOUR.number, Replay("r"), are_recorded=False, reasons=reasons)
        for file in files[QUARANTINED_CLICKS.name]
    )
    parser = LineParser(source, (), lookups or Lookups(), Repairs(places))
    return _stored(StoredHour(HOUR, 1, files), parser, folder, *reasons).to_pylist()


def _stored(hour: StoredHour, parser: LineParser, folder: Path, *reasons: str) -> pa.Table:
    return pa.concat_tables([ARRIVALS.empty_table(), *stored_arrivals(hour, parser, reasons, folder)])


def test_quarantined_lines_are_parsed_again_among_the_stored_ones(tmp_path: Path) -> None:
    clicks = _file(tmp_path, "c", [_click(1, "c1", 30), _click(5, "c5", 20)], nullable=False)
    duplicates = _file(tmp_path, "d", [_click(2, "c1", 40)])
    whole = _rejected(3, _line("q3", 35), "missing_url")
    cut = _rejected(4, _line("q4", 36), "missing_url", length=9000)
    more = [_rejected(6, _line("q6", 50), "bad_time"), _rejected(7, b"nonsense", "missing_url")]
    quarantined = [_file(tmp_path, "q1", [whole, cut]), _file(tmp_path, "q2", more, nullable=False)]
    arrivals = _arrivals(
        tmp_path,
        {CLICKS.name: [clicks], DUPLICATE_CLICKS.name: [duplicates], QUARANTINED_CLICKS.name: quarantined},
        "missing_url",
    )
    outcomes = [
        (row["line"], row["event_id"], row["reason"], row["replay_id"], row["is_out_of_order"]) for row in arrivals
    ]
    assert outcomes == [
        (1, "c1", None, None, False),
        (2, "c1", None, None, False),
        (3, "q3", None, "r", True),
        (4, None, "missing_url", None, None),
        (5, "c5", None, None, True),
        (6, None, "bad_time", None, None),
        (7, None, "missing_url", None, None),
    ]
    assert len({row["row_id"] for row in arrivals}) == 7


def test_an_arrival_in_several_tables_is_one(tmp_path: Path) -> None:
    """As a replay leaves it that was killed."""
    rejected = [_rejected(1, _line("e1", 1), "missing_url"), _rejected(2, _line("e2", 2), "missing_url")]
    arrivals = _arrivals(
        tmp_path,
        {
            CLICKS.name: [_file(tmp_path, "c", [_click(1, "e1", 1)])],
            DUPLICATE_CLICKS.name: [_file(tmp_path, "d", [_click(1, "e1", 1), _click(2, "e2", 2)])],
            QUARANTINED_CLICKS.name: [_file(tmp_path, "q", rejected)],
        },
    )
    assert [(row["line"], row["event_id"], row["country_code"]) for row in arrivals] == [
        (1, "e1", "DE"),
        (2, "e2", "DE"),
    ]


def test_an_hour_with_nothing_to_parse_again_and_one_with_nothing_at_all(tmp_path: Path) -> None:
    cut = _file(tmp_path, "q", [_rejected(1, b"x", "not_json", length=99)])
    assert [row["reason"] for row in _arrivals(tmp_path, {QUARANTINED_CLICKS.name: [cut]})] == ["not_json"]
    assert _arrivals(tmp_path, {}) == []


def test_a_masked_line_has_its_country_and_no_visitor_unless_texts_are_kept(tmp_path: Path) -> None:
    line = b'{"ts": "2026-03-01T05:10:00Z", "url": "http://shop.test/", "ip": "81.2.69.0", "agent": "A"}'
    rejected = [_rejected(1, line, "missing_url", length=len(line) + 2), _rejected(2, b"", "missing_url", length=90)]
    files = {QUARANTINED_CLICKS.name: [_file(tmp_path, "q", rejected)]}
    lookups = Lookups(VisitorKeys(tmp_path / "secrets" / "visitor_keys"))
    fields = LineFields(time="ts", url="url", client_address="ip", user_agent="agent")
    masked = Source(name="web", format="json", fields=fields)
    (click_of_network, removed) = _arrivals(tmp_path, files, source=masked, lookups=lookups)
    assert (click_of_network["reason"], click_of_network["country_code"]) == (None, "GB")
    assert click_of_network["visitor_id"] is None
    assert removed["reason"] == "missing_url"
    (kept, _) = _arrivals(tmp_path, files, source=masked.model_copy(update={"keep_raw": True}), lookups=lookups)
    assert kept["visitor_id"] is not None


def test_what_a_withdrawn_replay_has_recovered_is_quarantined_again(tmp_path: Path) -> None:
    """By the text that is kept of it; another replay's stays a click, and what is erased by now comes not back."""
    replayed = [
        _rejected(line, _line(f"r{line}", line), "missing_url") | {"replay_id": replay, "digest": 7}
        for line, replay in ((2, "r"), (3, "r"), (4, "r"), (5, "other"))
    ]
    clicks = [_click(1, "c1", 1) | {"replay_id": None}, _click(2, "r2", 2) | {"replay_id": "r"}]
    clicks.append(_click(5, "r5", 5) | {"replay_id": "other"})
    files = {
        CLICKS.name: [_file(tmp_path, "c", clicks)],
        DUPLICATE_CLICKS.name: [_file(tmp_path, "d", [_click(3, "c1", 3) | {"replay_id": "r"}])],
        QUARANTINED_CLICKS.name: [_file(tmp_path, "q", [_rejected(6, b"nonsense", "not_json")])],
        REPLAYED_LINES.name: [_file(tmp_path, "l", replayed)],
    }
    arrivals = _stored(StoredHour(HOUR, 1, files, withdrawn="r"), LineParser(WEB, (), Lookups()), tmp_path)
    outcomes = [(row["line"], row["reason"], row["replay_id"]) for row in arrivals.to_pylist()]
    assert outcomes == [
        (1, None, None),
        (2, "missing_url", None),
        (3, "missing_url", None),
        (5, None, "other"),
        (6, "not_json", None),
    ]
    assert arrivals["raw"].to_pylist()[1] == _line("r2", 2).decode()


def _landed(*values: bytes) -> pa.Table:
    count = len(values)
    return pa.table(
        {
            "value": pa.array([value + b"\n" for value in values], pa.binary()),
            "bytes": pa.array(list(map(len, values)), pa.int64()),
            "hour": pa.array([HOUR.number] * count, pa.int32()),
            "file": ["a"] * count,
            "line": pa.array(range(1, count + 1), pa.int64()),
            "row_id": pa.array(range(count), pa.int64()),
        },
        LINES,
    )


def _replayed(folder: Path, source: Source, rule: str, lines: pa.Table) -> Repairs:
    """On record of all these lines."""
    digests = line_digests(lines["value"], source).tolist()
    rows = [
        {"file": "a", "line": number, "replay_id": "r", "digest": digest} for number, digest in enumerate(digests, 1)
    ]
    path = _file(folder, "l", rows).path
    return Repairs((Places(path, HOUR.number, Replay("r", rule), are_recorded=True),))


def test_a_rule_on_record_is_of_the_lines_text(tmp_path: Path) -> None:
    known, other = b"day=" + _line("e1", 1), b"day=" + _line("e2", 2)
    repairs = _replayed(tmp_path, WEB, "replace(raw, 'day=', '')", _landed(known, known))
    parser = LineParser(WEB, (), Lookups(), repairs)
    arrivals = pa.concat_tables(parser.arrivals([_landed(known, other)])).to_pylist()
    assert [(row["event_id"], row["reason"], row["replay_id"]) for row in arrivals] == [
        ("e1", None, "r"),
        (None, "not_json", None),
    ]
    assert not repairs.warnings


def test_a_rule_on_record_that_throws_leaves_the_line_and_says_so(tmp_path: Path) -> None:
    lines = _landed(b"day=" + _line("e1", 1), b"of 203.0.113.77", b"day=" + _line("e3", 3))
    rule = "if(starts_with(raw, 'day='), substr(raw, 5), strftime(strptime(raw, '%Y'), '%Y'))"
    for expression, repaired in ((rule, ["e1", None, "e3"]), ("no_such_function(raw)", [None] * 3)):
        repairs = _replayed(tmp_path, WEB, expression, lines)
        arrivals = pa.concat_tables(LineParser(WEB, (), Lookups(), repairs).arrivals([lines])).to_pylist()
        assert [row["event_id"] for row in arrivals] == repaired
        assert [row["reason"] for row in arrivals] == [None if name else "not_json" for name in repaired]
        (warning,) = repairs.warnings
        place = "a:2" if expression == rule else "a:1"
        assert warning.startswith(f"replay r: the rule of the replay fails at web {HOUR} {place} (not_json): ")
        assert warning.endswith("; such lines stay quarantined")
        assert "203.0.113" not in warning


def test_a_digest_tells_no_address_and_is_the_same_of_a_line_that_is_kept_masked() -> None:
    fields = LineFields(time="ts", url="url", client_address="ip")
    masked = Source(name="web", format="json", fields=fields)
    texts = [
        b'{"ts": "x", "ip": "81.2.69.17", "for": "2001:db8:1:2::7"}',
        b'{"ts": "x", "ip": "81.2.69.99", "for": "2001:db8:1:9::9"}',
    ]
    digests = line_digests(_landed(*texts)["value"], masked)
    assert len(set(digests.tolist())) == 1
    mask = address_mask(masked)
    assert mask is not None
    kept = mask(texts[0].decode()).encode()
    assert kept != texts[0]
    assert line_digests(_landed(kept)["value"], masked)[0] == digests[0]
