"""Faults that are told from the hours before them, and what is none: planted in lakes that have a history.

As ``tests.support.planted_faults``, which needs none; the table in ``docs/reference/checks.md`` has both.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from include.hours import Hour
from tests.support.fault import Fault, Lines
from tests.support.temporary_lake import click

# --- volume: every day the same hour has about 200 clicks of 100 visitors, and a line in quarantine -----------------

USUAL_VISITORS = 100
#: Of the source: such lines are left out.
RULE_OF_TESTS = """
[[sources.web.drop]]
name = "tests"
field = { kind = "test" }
"""


def volume_lines(hour: Hour, clicks: int = 200, visitors: int = USUAL_VISITORS, bad: int = 1) -> Lines:
    """An hour of so many clicks, and of lines that are none."""
    good = [click(f"{hour}-{n}", f"{hour}:{n % 60:02d}:00Z", visitor_id=f"v{n % visitors}") for n in range(clicks)]
    return good + [b"nonsense\n"] * bad


VOLUME_FAULTS = [
    Fault(
        "half the volume",
        "warning",
        "volume.clicks",
        # Of 203, 206, 209, 200, 203, 206, 209, 200 the median is 204.5, the distances from it are 1.5 and 4.5, four
        # times each; the scaled MAD is 4.4, and one twentieth of the median is more.
        "clicks = 100; median of 8 days 204, expected 169 to 240; 9 Mar 203, 8 Mar 206, 7 Mar 209, 6 Mar 200, "
        "5 Mar 203, 4 Mar 206, 3 Mar 209, 2 Mar 200",
        ("volume.visitors", "volume.lines"),
        lines=lambda hour: volume_lines(hour, 100, 50),
    ),
    Fault(
        "twice the volume",
        "warning",
        "volume.clicks",
        "clicks = 400; median of 8 days 204, expected 169 to 240; ",
        ("volume.visitors", "volume.lines"),
        lines=lambda hour: volume_lines(hour, 400, 200),
    ),
    Fault(
        "as many clicks, of half the visitors",
        "warning",
        "volume.visitors",
        "visitors = 50; median of 8 days 100, expected 82 to 118; ",
        lines=lambda hour: volume_lines(hour, 200, 50),
    ),
    Fault(
        "30 of 230 lines in quarantine, where one of 200 is usual",
        "warning",
        "volume.quarantined_share",
        "quarantined_share = 13.04%; median of 8 days 0.49%, expected at most 5.05%; ",
        ("clicks.quarantined_share", "clicks.quarantined_not_json_share"),
        lines=lambda hour: volume_lines(hour, bad=30),
    ),
    Fault(
        "30 of 231 lines left out by a rule, where none is usual",
        "warning",
        "volume.left_out_share",
        "left_out_share = 12.99%; median of 8 days 0.00%, expected at most 4.55%; ",
        lines=lambda hour: [*volume_lines(hour), *[click("", f"{hour}:00:00Z", kind="test")] * 30],
    ),
    Fault(
        "no lines, where 200 are usual",
        "warning",
        "volume.lines",
        "lines = 0; median of 8 days 206, expected 170 to 241; ",
        lines=lambda hour: [],
    ),
]

#: What is no fault, by what it is.
FINE_VOLUMES: dict[str, Callable[[Hour], Lines]] = {
    "the usual": volume_lines,
    "a few more of everything": lambda hour: volume_lines(hour, 215, 107, bad=4),
}

# --- schema drift: an hour has 40 lines, each with the same fields ----------------------------------------------------

DRIFT_LINES = 40
#: Neither kept nor compared with other hours.
UNWATCHED = "params"

Record = dict[str, Any]


def drift_lines(hour: Hour, change: Callable[[Record, int], Record] = lambda record, n: record) -> Lines:
    """An hour of lines with the usual fields, but for a change."""
    return [json.dumps(change(_record(hour, n), n)).encode() + b"\n" for n in range(DRIFT_LINES)]


def _record(hour: Hour, n: int) -> Record:
    record = {
        "event_id": f"{hour}-{n}", "ts": f"{hour}:{n:02d}:00Z", "url": "http://shop.test/", "geo": {"country": "DE"},
        "referrer": "http://else.test/", "user_agent": "Mozilla/5.0", "status": 200, "campaign": "spring",
        "duration": 3, "ratio": 0.25,
    }  # fmt: skip
    return record | ({"seldom": "x"} if n % 5 == 0 else {})


def _with(**fields: Any) -> Callable[[Hour], Lines]:
    return lambda hour: drift_lines(hour, lambda record, n: record | fields)


def _renamed(former: str, name: str) -> Callable[[Hour], Lines]:
    def change(record: Record, n: int) -> Record:
        return {name if field == former else field: value for field, value in record.items()}

    return lambda hour: drift_lines(hour, change)


_SEEN = "of 12 fields in 40 sampled lines; "

#: Each is of fields of its own, so that none is history of another.
DRIFT_FAULTS = [
    Fault(
        "a new field",
        "warning",
        "schema_drift.no_new_fields",
        "2 fields; basket: object in 40 of 40 sampled lines; basket.total: number in 40 of 40 sampled lines, such as "
        "12.5; of 14 fields in 40 sampled lines; ",
        lines=_with(basket={"total": 12.5}),
        has_examples=True,
    ),
    Fault(
        "a mapped field renamed",
        "warning",
        "schema_drift.no_fields_gone",
        "1 field; referrer (mapped: referrer): in none of 40 sampled lines, before in 100%, and the clicks are "
        f"without it; {_SEEN}",
        ("schema_drift.no_new_fields",),
        lines=_renamed("referrer", "referer"),
        has_examples=True,
    ),
    Fault(
        "a field null in all lines",
        "warning",
        "schema_drift.no_fields_gone",
        f"1 field; campaign: null in all of 40 sampled lines, before in 100%; {_SEEN}",
        lines=_with(campaign=None),
        has_examples=True,
    ),
    Fault(
        "a text in place of an integer",
        "warning",
        "schema_drift.no_types_changed",
        f"1 field; status (mapped: status): string in 40 of 40 sampled lines, such as 200 OK; before integer; {_SEEN}",
        lines=_with(status="200 OK"),
        has_examples=True,
    ),
    Fault(
        "a number with a point in place of an integer",
        "warning",
        "schema_drift.no_types_changed",
        f"1 field; duration: number in 40 of 40 sampled lines, such as 0.5; before integer; {_SEEN}",
        lines=_with(duration=0.5),
        has_examples=True,
    ),
    Fault(
        "a text in place of an object with a mapped field",
        "warning",
        "schema_drift.no_types_changed",
        "1 field; geo: string in 40 of 40 sampled lines, such as DE; before object; of 11 fields in 40 sampled lines; ",
        ("schema_drift.no_fields_gone", "clicks.unknown_country_share"),
        lines=_with(geo="DE"),
        has_examples=True,
    ),
]

FINE_DRIFTS: dict[str, Callable[[Hour], Lines]] = {
    "the usual": drift_lines,
    "null in some lines": lambda hour: drift_lines(
        hour, lambda record, n: record | {"campaign": "spring" if n % 2 else None}
    ),
    "an integer in place of a number with a point": _with(ratio=1),
    "a field that few lines ever had is in none": lambda hour: drift_lines(
        hour, lambda record, n: {field: value for field, value in record.items() if field != "seldom"}
    ),
    "an unwatched field": lambda hour: drift_lines(hour, lambda record, n: record | {UNWATCHED: {f"p{n}": n}}),
}

HISTORY_FAULTS = [*VOLUME_FAULTS, *DRIFT_FAULTS]
