"""The frames that the suites judge: one row per log hour, one row per click hour, put together from facts."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import pandas as pd

from expectations.checks import Check, counted_rows
from include.buckets import Layout
from include.check_settings import QUARANTINED_SHARES
from include.counting import COMBINE
from include.days import Day
from include.log_hours import Hour
from include.sources import Source
from include.tables import CLICKS, QUARANTINED_CLICKS, Table
from include.uneven_load import skew, uneven_load_advice

#: Facts by subject: those that ``spark_jobs.engine.fact_frames.together`` gives, and those of
#: ``spark_jobs/quality/facts.py``: ``accounting`` and ``groupings``; ``unfinished``, one for each log hour whose
#: ingest has not ended; ``files``, one for each table and partition;
#: ``other_types``, one for each column; ``publications``, one for each click hour that was published.
Facts = Mapping[str, Sequence[Mapping[str, Any]]]

_HOUR_MICROS, _MINUTE_MICROS = 3_600_000_000, 60_000_000
#: So many names are given of those that are wrong.
_MOST_NAMES = 5
#: In place of that of a log hour that was never ingested, or not to the end.
_NO_ACCOUNT: Mapping[str, Any] = {
    **dict.fromkeys(("lines", "accepted", "duplicates", "out_of_order", "files", "bytes"), 0),
    "is_closed": False,
    "damaged_files": (),
    "unread_files": (),
}


def facts_by_subject(rows: Iterable[tuple[str, str]]) -> dict[str, list[Mapping[str, Any]]]:
    """Subject and JSON object per row, to lists of objects by subject."""
    facts: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for subject, fact in rows:
        facts[subject].append(json.loads(fact))
    return facts


def log_hour_frame(source: Source, hours: Iterable[Hour], facts: Facts, checks: Sequence[Check]) -> pd.DataFrame:
    """One row per log hour of the source, for these checks; ``partition`` names it, such as ``web 2026-03-01T05``.

    Of an hour that is not in the accounting all is null but whether it is missing.
    """
    accounts = {_log_hour(fact): fact for fact in facts["accounting"]}
    unfinished = {fact["log_hour"] for fact in facts["unfinished"]}
    clicks = _grouped(facts["clicks"], _log_hour)
    quarantined = _grouped(facts["quarantined"], _log_hour)
    duplicates = _grouped(facts["duplicates"], _log_hour)
    ids_twice = {(fact["source"], fact["hour_number"]): fact["duplicate_event_ids"] for fact in facts["duplicate_ids"]}
    files = {(fact["table"], *_log_hour(fact)): fact for fact in facts["files"] if "log_hour" in fact}
    rows = []
    for hour in hours:
        key = (source.name, str(hour))
        account = accounts.get(key, _NO_ACCOUNT)
        measured = (
            _presence(account)
            | _lines(account, clicks[key], quarantined[key])
            # The state of a stream drops duplicates; they are in no table.
            | {"stored_duplicates": account["duplicates"] if source.stream else duplicates[key].sum("duplicates")}
            | _times(hour, clicks[key])
            | _shares(account, clicks[key], quarantined[key])
            | _counted(checks, CLICKS, clicks[key])
            | {"duplicate_event_ids": ids_twice.get((source.name, hour.number), 0)}
            | _types(facts["other_types"])
            | _files(files.get((CLICKS.name, *key)), "clicks")
            | _files(files.get((QUARANTINED_CLICKS.name, *key)), "quarantined")
        )
        if account is _NO_ACCOUNT:
            presence = "its ingest has not ended" if " ".join(key) in unfinished else "it was never ingested"
            measured = dict.fromkeys(measured) | {"is_missing": 1, "presence": presence}
        rows.append({"partition": " ".join(key), "source": source.name, "hour": str(hour), **measured})
    return pd.DataFrame(rows)


def _presence(account: Mapping[str, Any]) -> dict[str, Any]:
    is_closed, files, damaged = account["is_closed"], account["files"], account["damaged_files"]
    is_missing = not is_closed and not files
    if is_missing:
        presence = "nothing had landed, not even _SUCCESS, when its grace time was over"
    elif account["lines"]:
        presence = f"{account['lines']} lines in {files} files"
    else:
        presence = f"it is empty: {'closed by _SUCCESS' if is_closed else f'{files} files'}, without a line"
    damage = (["not closed by _SUCCESS"] if not is_closed else []) + [f"{name} breaks off" for name in damaged]
    return {
        "is_missing": int(is_missing),
        "presence": presence,
        # An hour of which nothing landed is missing, and no further complaint about it is needed.
        "files_not_closed_or_damaged": 0 if is_missing else len(damage),
        "damage": "" if is_missing else _listed(damage),
        "files_not_read": len(account["unread_files"] or ()),
        "unread": _listed(account["unread_files"] or ()),
    }


def _lines(account: Mapping[str, Any], clicks: _Group, quarantined: _Group) -> dict[str, Any]:
    return {
        "lines": account["lines"],
        "accounted_lines": clicks.sum("clicks") + account["duplicates"] + quarantined.sum("quarantined_lines"),
        "accepted": account["accepted"],
        "duplicates": account["duplicates"],
        "stored_clicks": clicks.sum("clicks"),
        "files": account["files"],
        "bytes": account["bytes"],
    }


def _times(hour: Hour, clicks: _Group) -> dict[str, Any]:
    """How far the clicks are from their log hour, in whole and broken hours and minutes; null without clicks."""
    first, last = clicks.values("first_clicked_micros"), clicks.values("last_clicked_micros")
    start, end = hour.number * _HOUR_MICROS, (hour.number + 1) * _HOUR_MICROS
    return {
        "oldest_click_hours_before": (start - min(first)) / _HOUR_MICROS if first else None,
        "newest_click_minutes_after": (max(last) - end) / _MINUTE_MICROS if last else None,
        "click_hours_not_of_their_times": sum(map(_is_of_other_times, clicks.facts)),
    }


def _is_late(fact: Mapping[str, Any]) -> bool:
    click_hour = _click_hour(fact)
    return click_hour is not None and click_hour < _log_hour(fact)[1]


def _is_of_other_times(fact: Mapping[str, Any]) -> bool:
    """Whether the clicks of a click hour did not all happen in it; without the hour or the times nobody knows."""
    click_hour = _click_hour(fact)
    if click_hour is None or fact.get("first_clicked_micros") is None:
        return False
    start = Hour.parse(click_hour).number * _HOUR_MICROS
    return bool(fact["first_clicked_micros"] < start or fact["last_clicked_micros"] >= start + _HOUR_MICROS)


def _counted(checks: Iterable[Check], table: Table, rows: _Group) -> dict[str, Any]:
    """The rows that the checks have counted, or their share."""
    return {
        rule.name: _share(rows.sum(rule.name), rows.sum("clicks")) if rule.as_share else rows.sum(rule.name)
        for rule in counted_rows(checks, table.name)
    }


def _shares(account: Mapping[str, Any], clicks: _Group, quarantined: _Group) -> dict[str, Any]:
    lines, stored = account["lines"], clicks.sum("clicks")
    by_reason = {fact["reason"]: fact["quarantined_lines"] for fact in quarantined.facts}
    return {
        "duplicate_share": _share(account["duplicates"], lines),
        "quarantined_share": _share(quarantined.sum("quarantined_lines"), lines),
        **{metric: _share(by_reason.get(reason, 0), lines) for metric, reason in QUARANTINED_SHARES.items()},
        "late_share": _share(sum(fact["clicks"] for fact in clicks.facts if _is_late(fact)), stored),
        "out_of_order_share": _share(account["out_of_order"], account["accepted"]),
    }


def _types(others: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    said = _listed(f"{other['column']} is {other['type']}" for other in others)
    return {"columns_of_other_types": len(others), "other_types": said}


def _files(fact: Mapping[str, Any] | None, what: str) -> dict[str, Any]:
    lost = fact["lost"] if fact else []
    return {
        f"{what}_files": fact["files"] if fact else 0,
        f"lost_{what}_files": len(lost),
        f"lost_{what}_file_names": _listed(lost),
    }


def click_hour_frame(
    hours: Iterable[Hour], facts: Facts, layouts: Mapping[str, tuple[Table, Layout]], checks: Sequence[Check]
) -> pd.DataFrame:
    """One row per click hour, for these checks; ``partition`` names it.

    ``layouts`` has the tables of counts by what they are per.
    """
    clicks = _grouped(facts["clicks"], _click_hour)
    counts = {key: _grouped(facts[f"by_{key}"], _click_hour) for key in layouts}
    published = {key: _grouped(facts[f"published_by_{key}"], _click_hour) for key in layouts}
    # Of each key, unless those with few visitors are published together.
    publishable = {key: _grouped(facts.get(f"publishable_by_{key}", ()), _click_hour) or counts[key] for key in layouts}
    days = {key: _days_by_hour(facts[f"days_by_{key}"]) for key in layouts}
    published_micros = {fact["hour"]: fact["published_micros"] for fact in facts["publications"]}
    files = {(fact["table"], _click_hour(fact)): fact for fact in facts["files"] if "click_hour" in fact}
    rows = []
    for hour in map(str, hours):
        row: dict[str, Any] = {"partition": hour, "source": None, "hour": hour, "clicks": clicks[hour].sum("clicks")}
        for key, (table, layout) in layouts.items():
            row |= _counts(key, counts[key][hour], layout)
            row |= _counted(checks, table, counts[key][hour])
            row |= _files(files.get((table.name, hour)), key)
            expected = publishable[key][hour]
            row |= _published(key, counts[key][hour], expected, published[key][hour], published_micros.get(hour))
            row |= _days(key, counts[key][hour], days[key].get(hour, ()))
        rows.append(row)
    return pd.DataFrame(rows)


def _counts(key: str, count: _Group, layout: Layout) -> dict[str, Any]:
    return {
        f"clicks_by_{key}": count.sum("clicks"),
        # An hour that lost its clicks has no rows, and no smallest count to judge.
        f"smallest_{key}_count": min(count.values("smallest_count"), default=None),
        f"{key}_rows": count.sum("rows"),
        f"{key}_keys": count.sum("keys"),
        f"{key}_fewest_buckets": layout.fewest,
        f"{key}_most_buckets": layout.most,
        f"{key}_key_type": layout.key_type,
        f"top_{key}_share": _share(count.sum("largest_count"), count.sum("clicks")),
    }


def _published(
    key: str, count: _Group, expected: _Group, published: _Group, published_micros: int | None
) -> dict[str, Any]:
    """Whether what is published is what was expected of what was computed; null unless it was published since then."""
    counted_micros = max(count.values("counted_micros"), default=None)
    if published_micros is None or counted_micros is None or counted_micros >= published_micros:
        return {f"published_{key}_differs": None, f"published_{key}": None}
    contents = [tuple(one.sum(name) for name in ("rows", "clicks", "rows_hash")) for one in (published, expected)]
    said = [f"{rows} rows with {clicks} clicks" for rows, clicks, _ in contents]
    return {
        f"published_{key}_differs": int(contents[0] != contents[1]),
        f"published_{key}": f"published {said[0]}, computed {said[1]}",
    }


def _days_by_hour(facts: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """The facts of days by each of their hours, UTC."""
    by_hour: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for fact in facts:
        for hour in Day(fact["time_zone"], date.fromisoformat(fact["day"])).hours:
            by_hour[str(hour)].append(fact)
    return by_hour


def _days(key: str, count: _Group, days: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """How many of the days of an hour are not the sums of their hours.

    Null of an hour whose days another run has yet to compute: it has counted other hours of them since. Its own run
    computes them after the hour.
    """
    counted = max(count.values("counted_micros"), default=None)
    differing, said = 0, []
    for day in days:
        computed = day.get("day_counted_micros") or 0
        is_left = (day.get("hours_counted_micros") or 0) > computed and (counted is None or counted <= computed)
        if is_left:
            return {f"{key}_days_that_differ": None, f"{key}_days": None}
        if day["keys_that_differ"]:
            differing += 1
            said.append(
                f"{day['day']} {day['time_zone']} has {day['day_clicks']} clicks, its hours {day['hour_clicks']}; "
                f"keys that differ: {day['keys_that_differ']}"
            )
    return {f"{key}_days_that_differ": differing, f"{key}_days": _listed(said)}


def grouping_facts(metrics: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """One fact per operator from the ``grouping_metrics`` of one run: the load of its instances.

    None of one that combines: so few rows move that it does not matter how evenly.
    """
    facts: list[Mapping[str, Any]] = []
    for instances in _grouped(metrics, lambda row: row["operator"]).values():
        rows = instances.facts
        if rows[0]["grouping"].startswith(COMBINE):
            continue
        busiest = max(rows, key=lambda row: row["busiest_key_share"] * row["rows"])
        facts.append(
            {name: rows[0][name] for name in ("operator", "log_hours", "grouping", "instances")}
            | {
                "clicks": instances.sum("rows"),
                "busiest_rows": max(instances.values("rows")),
                "busiest_key": busiest["busiest_key"],
                "busiest_key_rows": round(busiest["busiest_key_share"] * busiest["rows"]),
            }
        )
    return facts


def grouping_frame(facts: Facts) -> pd.DataFrame:
    """One row per counting operator; ``partition`` names it and the log hours that it was run for."""
    return pd.DataFrame(
        [
            {
                "partition": f"{fact['operator']} {fact['log_hours']}",
                "source": None,
                "hour": fact["log_hours"].split()[0],
                "skew": skew(fact["busiest_rows"], fact["clicks"], fact["instances"]),
                "uneven_load": uneven_load_advice(
                    fact["grouping"],
                    fact["instances"],
                    fact.get("busiest_key"),
                    _share(fact["busiest_key_rows"], fact["clicks"]) or 0.0,
                ),
            }
            for fact in facts["groupings"]
        ]
    )


@dataclass(frozen=True)
class _Group:
    """The facts of one hour."""

    facts: list[Mapping[str, Any]] = field(default_factory=list)

    def values(self, name: str) -> list[int]:
        """The values that are there and not null."""
        return [fact[name] for fact in self.facts if fact.get(name) is not None]

    def sum(self, name: str) -> int:
        """Their sum; 0 of none."""
        return sum(self.values(name))


def _grouped(facts: Iterable[Mapping[str, Any]], key: Callable[[Mapping[str, Any]], Any]) -> dict[Any, _Group]:
    groups: dict[Any, _Group] = defaultdict(_Group)
    for fact in facts:
        groups[key(fact)].facts.append(fact)
    return groups


def _log_hour(fact: Mapping[str, Any]) -> tuple[str, str]:
    return fact["source"], f"{fact['log_date']}T{fact['log_hour']:02d}"


def _click_hour(fact: Mapping[str, Any]) -> str | None:
    """The click hour; None where a fault has left the clicks without one."""
    if fact.get("click_date") is None or fact.get("click_hour") is None:
        return None
    return f"{fact['click_date']}T{fact['click_hour']:02d}"


def _share(part: int, whole: int) -> float | None:
    """Of nothing there is no share, and nothing to judge."""
    return part / whole if whole else None


def _listed(names: Iterable[str]) -> str:
    """The first names, and how many more there are."""
    listed = list(names)
    more = len(listed) - _MOST_NAMES
    return ", ".join(listed[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
