"""Sample clicks that happen now."""

from __future__ import annotations

import json

from samples.live_clicks import LiveClicks

NOW = 1_795_287_000_000


def test_live_clicks_have_just_happened_but_for_a_few_late_ones() -> None:
    lines = LiveClicks(rate=100, seed=5).lines(20_000, NOW)
    records = []
    for line in lines:
        try:
            records.append(json.loads(line))
        except ValueError:
            continue
    assert len(lines) - 20_000 == len(lines) - len(set(lines)) > 100, "about 1 % are sent again, as they were"
    whole = [record for record in records if isinstance(record, dict) and record.get("url") and record.get("ts")]
    assert len(whole) > 0.99 * len(lines)
    late = sum(delay_seconds(record["ts"]) > 10 for record in whole if record["ts"].startswith("2026"))
    assert 0.03 < late / len(whole) < 0.07


def delay_seconds(text: str) -> float:
    from datetime import datetime

    try:
        return NOW / 1000 - datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def test_the_same_seed_gives_the_same_lines() -> None:
    assert LiveClicks(rate=100, seed=5).lines(50, NOW) == LiveClicks(rate=100, seed=5).lines(50, NOW)
    assert LiveClicks(rate=100, seed=5).lines(50, NOW) != LiveClicks(rate=100, seed=6).lines(50, NOW)
