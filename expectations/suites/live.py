"""Of suite ``reconciliation``: the live counts of streamed clicks against the clicks themselves.

Live counts are provisional, and nothing is published of them: so these checks warn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from expectations.checks import WARNING, Check, zero
from expectations.findings import Finding, Partition
from expectations.frames import Facts
from include.counting import CountKey, CountSettings, key_label, live_count_table
from include.log_hours import Hour

#: The outcome where an hour's live counts are still to change: neither a pass nor a failure.
NOT_FINAL = "not_final"


def click_hour_checks(counts: Mapping[CountKey, CountSettings]) -> list[Check]:
    """Of each click hour of which streamed clicks are counted live, one for each key."""
    return [
        Check(
            suite="reconciliation",
            name=_name(key),
            table=live_count_table(key).name,
            expectation=zero(_name(key)),
            severity=WARNING,
            holds=f"once the watermark has passed the hour, no source has more live clicks per {key_label(key)} than "
            "clicks, and no more are missing than came too late for live",
            reason="The hour's own counts come from clicks and are not touched: what is wrong is what was shown live. "
            "After a crash of the stream too few may be known to have come too late; else the live table was changed. "
            "To count live again from clicks, stop the stream, remove streams/<source>-live-<key> and start it.",
            when_null=NOT_FINAL,
        )
        for key in counts
    ]


def live_findings(
    click_hours: Iterable[Hour], facts: Facts, counts: Mapping[CountKey, CountSettings]
) -> dict[tuple[Partition, str], Finding]:
    """What the live counts say of these hours; nothing of those in which nothing is counted live."""
    stored = _clicks(facts["clicks"]) + _clicks(facts["open_clicks"])
    positions = {(fact["source"], fact["key"], fact["hour"]): fact for fact in facts["live_positions"]}
    sources = sorted({source for source, _, _ in positions})
    findings: dict[tuple[Partition, str], Finding] = {}
    for key in counts:
        live = _clicks(facts[f"live_by_{key_label(key)}"])
        for hour in click_hours:
            found = [
                _of_source(positions[place], stored[source, str(hour)], live[source, str(hour)])
                for source in sources
                if (place := (source, key_label(key), str(hour))) in positions
                and (stored[source, str(hour)] or live[source, str(hour)])
            ]
            if found:
                judged = [unexplained for unexplained, _ in found if unexplained is not None]
                total = sum(judged) if judged else None
                text = "; ".join(words for _, words in found)
                findings[Partition(hour), _name(key)] = Finding(total, text, total, 0, 0)
    return findings


def _of_source(position: Mapping[str, object], stored: int, live: int) -> tuple[int | None, str]:
    """How many clicks are not explained, and the numbers in words; null while the live counts are not final."""
    said = f"{position['source']}: {stored:,} clicks, {live:,} live"
    if position["state"] is not None:
        return None, f"{said}; not final: {position['state']}"
    too_late = position["too_late"]
    assert isinstance(too_late, int)
    unexplained = live - stored if live > stored else max(0, stored - live - too_late)
    return unexplained, f"{said}, {too_late:,} too late for live"


def _clicks(facts: Iterable[Mapping[str, object]]) -> Counter[tuple[object, str]]:
    """Clicks by source and click hour; those that a fault has left without an hour are left out."""
    sums: Counter[tuple[object, str]] = Counter()
    for fact in facts:
        if fact.get("click_date") is not None and fact.get("click_hour") is not None:
            clicks = fact["clicks"]
            assert isinstance(clicks, int)
            sums[fact["source"], f"{fact['click_date']}T{fact['click_hour']:02d}"] += clicks
    return sums


def _name(key: str) -> str:
    return f"live_by_{key_label(key)}_equals_clicks"
