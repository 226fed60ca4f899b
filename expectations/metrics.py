"""The frames that the suites judge: one row per log hour, one row per click hour, put together from facts."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

import pandas as pd

from include.buckets import Layout
from include.grouping_advice import skew, uneven_load_advice
from include.log_hours import Hour

#: Facts by subject, as ``spark_jobs.transforms.measure_quality.together`` gives them.
Facts = Mapping[str, Sequence[Mapping[str, Any]]]


def facts_by_subject(rows: Iterable[tuple[str, str]]) -> Facts:
    """Subject and JSON object per row, to lists of objects by subject."""
    facts: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for subject, fact in rows:
        facts[subject].append(json.loads(fact))
    return facts


def log_hour_frame(facts: Facts) -> pd.DataFrame:
    """One row per source and log hour in the accounting; ``partition`` names it, such as ``web 2026-03-01T05``."""
    clicks = _summed(facts["clicks"], _log_hour)
    quarantined = _summed(facts["quarantined"], _log_hour)
    duplicates = {(fact["source"], fact["hour_number"]): fact["duplicate_event_ids"] for fact in facts["duplicate_ids"]}
    rows = []
    for account in facts["accounting"]:
        hour = Hour.of(date.fromisoformat(account["log_date"]), account["log_hour"])
        key = (account["source"], str(hour))
        stored, stored_quarantined = clicks[key]["clicks"], quarantined[key]["quarantined_lines"]
        rows.append(
            {
                "partition": f"{account['source']} {hour}",
                "source": account["source"],
                "hour": str(hour),
                "lines": account["lines"],
                "accounted_lines": stored + account["duplicates"] + stored_quarantined,
                "accepted": account["accepted"],
                "stored_clicks": stored,
                "duplicate_event_ids": duplicates.get((account["source"], hour.number), 0),
                "null_keys": clicks[key]["null_keys"],
                "invalid_country_codes": clicks[key]["invalid_country_codes"],
                "quarantined_share": _share(stored_quarantined, account["lines"]),
                "unknown_country_share": _share(clicks[key]["unknown_country_clicks"], stored),
                "files_not_closed_or_damaged": int(not account["is_closed"]) + len(account["damaged_files"]),
            }
        )
    return pd.DataFrame(rows)


def click_hour_frame(hours: Iterable[Hour], facts: Facts, layouts: Mapping[str, Layout]) -> pd.DataFrame:
    """One row per click hour; ``partition`` names it. ``layouts`` are those of the tables, by key."""
    clicks = _summed(facts["clicks"], _click_hour)
    counts = {key: _summed(facts[f"by_{key}"], _click_hour) for key in layouts}
    rows = []
    for hour in map(str, hours):
        row: dict[str, Any] = {"partition": hour, "source": None, "hour": hour, "clicks": clicks[hour]["clicks"]}
        for key, by_hour in counts.items():
            count = by_hour[hour]
            row |= {
                f"clicks_by_{key}": count["clicks"],
                # An hour that lost its clicks has no rows, and no smallest count to judge.
                f"smallest_{key}_count": count["smallest_count"] if count["rows"] else None,
                f"{key}_rows": count["rows"],
                f"{key}_keys": count["keys"],
                f"misplaced_{key}_rows": count["misplaced_rows"],
                f"bots_above_{key}_clicks": count["bots_above_clicks"],
                f"{key}_buckets": layouts[key].buckets,
                f"{key}_partitioner": layouts[key].partitioner,
                f"{key}_key_type": layouts[key].key_type,
                f"top_{key}_share": _share(count["largest_count"], count["clicks"]),
            }
        rows.append(row)
    return pd.DataFrame(rows)


def grouping_frame(facts: Facts) -> pd.DataFrame:
    """One row per counting operator; ``partition`` names it and the log hours that it was run for."""
    return pd.DataFrame(
        [
            {
                "partition": f"{fact['operator']} {fact['log_hours']}",
                "source": None,
                "hour": fact["log_hours"].split()[0],
                "skew": skew(fact["busiest_rows"], fact["clicks"], fact["instances"]),
                "finding": uneven_load_advice(
                    fact["grouping"],
                    fact["instances"],
                    fact.get("busiest_key"),
                    _share(fact["busiest_key_rows"], fact["clicks"]),
                ),
            }
            for fact in facts["groupings"]
        ]
    )


def _summed(facts: Iterable[Mapping[str, Any]], key: Any) -> dict[Any, dict[str, int]]:
    """Facts summed by key; 0 for what is not there."""
    sums: dict[Any, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for fact in facts:
        for name, value in fact.items():
            if isinstance(value, int):
                sums[key(fact)][name] += value
    return sums


def _log_hour(fact: Mapping[str, Any]) -> tuple[str, str]:
    return fact["source"], f"{fact['log_date']}T{fact['log_hour']:02d}"


def _click_hour(fact: Mapping[str, Any]) -> str:
    return f"{fact['click_date']}T{fact['click_hour']:02d}"


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
