from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from include.hours import Hour
from include.settings import Settings
from include.stored_rows import arrow_schema
from include.tables import REPLAY_OUTCOMES
from plugins.data_quality.quarantine import SAMPLES_PER_REASON, QuarantinedLine, ReplayOutcome, read_quarantine
from tests.support.temporary_lake import make_settings

HOUR = Hour.parse("2026-03-01T05")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return make_settings(tmp_path / "a home, with ü & 100")


@pytest.fixture
def quarantined(settings: Settings) -> None:
    rows = [
        ("web", 5, "blank", 300),
        ("web", 5, "not_json", 2),
        ("shop", 5, "bad_url", 1),
        ("web", 6, "bad_time", 4),
    ]
    for source, hour, reason, lines in rows:
        numbers = list(range(1, lines + 1))
        write_deltalake(
            settings.lake / "quarantined_clicks",
            pa.table(
                {
                    "source": [source] * lines,
                    "log_date": [date(2026, 3, 1)] * lines,
                    "log_hour": pa.array([hour] * lines, pa.int32()),
                    "file": ["a.json"] * lines,
                    "line": numbers,
                    "reason": [reason] * lines,
                    "raw": ["of 203.0.113.77"] * lines,
                }
            ),
            mode="append",
            partition_by=["source", "log_date", "log_hour"],
        )


def test_lines_of_the_log_hour_are_counted_by_source_and_reason_most_first(
    settings: Settings, quarantined: None
) -> None:
    quarantines = read_quarantine(settings, HOUR)
    assert [(of.source, list(of.lines.items())) for of in quarantines] == [
        ("shop", [("bad_url", 1)]),
        ("web", [("blank", 300), ("not_json", 2)]),
    ]


def test_where_some_lines_of_each_reason_are_is_shown(settings: Settings, quarantined: None) -> None:
    (web,) = read_quarantine(settings, HOUR, "web")
    assert len(web.samples["blank"]) == SAMPLES_PER_REASON
    assert web.samples["not_json"] == [
        QuarantinedLine("a.json", 1),
        QuarantinedLine("a.json", 2),
    ]


def test_nothing_of_an_hour_or_a_lake_without_rejected_lines(settings: Settings) -> None:
    assert read_quarantine(settings, HOUR) == []


def test_nothing_of_an_hour_that_has_none(settings: Settings, quarantined: None) -> None:
    assert read_quarantine(settings, HOUR.plus(5)) == []
    assert read_quarantine(settings, HOUR, "' OR 1=1") == []


def test_what_a_replay_recovers_is_shown_beside_and_without_lines(settings: Settings, quarantined: None) -> None:
    at = datetime(2026, 3, 2, 7, 30, tzinfo=UTC)
    outcomes = [("web", "not_json", 1, 0, 1, None), ("app", "bad_url", 3, 2, 0, "20260302T073000-aa")]
    rows = [
        {
            "source": source, "log_date": date(2026, 3, 1), "log_hour": 5, "reason": reason, "clicks": clicks,
            "duplicates": duplicates, "stay": stay, "replay_id": replay_id, "at": at,
        }
        for source, reason, clicks, duplicates, stay, replay_id in outcomes
    ]  # fmt: skip
    schema = arrow_schema(REPLAY_OUTCOMES, REPLAY_OUTCOMES.column_names)
    write_deltalake(settings.lake / "replay_outcomes", pa.Table.from_pylist(rows, schema))
    app, shop, web = read_quarantine(settings, HOUR)
    moment = "2026-03-02T07:30:00+00:00"
    assert (app.lines, app.replays) == ({}, {"bad_url": ReplayOutcome(3, 2, 0, "20260302T073000-aa", moment)})
    assert (shop.lines, shop.replays) == ({"bad_url": 1}, {})
    assert web.replays == {"not_json": ReplayOutcome(1, 0, 1, None, moment)}
    assert read_quarantine(settings, HOUR, "app") == [app]
    assert read_quarantine(settings, HOUR.plus(1), "app") == []
