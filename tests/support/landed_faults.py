"""Hours as they land: without a fault, and with each that only landing can bring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from include.hours import Hour
from tests.support.fault import Fault, Lines
from tests.support.temporary_lake import click

START = Hour.parse("2026-03-01T00")

#: Two in each of four buckets, so that all instances have the same load.
URLS = [f"http://shop.test/{n}" for n in (0, 1, 2, 7, 6, 8, 3, 14)]
COUNTRIES = ["DE", "FR", "ES", "IT", "GB", "US", "PL", "NL"]
CLICKS_AN_HOUR = 64
CRAWLER = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"

#: With these a few files are many, and so are the URLs of so few clicks, and there are checks of the source's own.
PIPELINE = f"""
distinct_urls_from_clicks = {CLICKS_AN_HOUR}
[thresholds]
files_per_partition = {{ warning = 5 }}
landed_files = {{ warning = 5 }}
[schema_drift]
min_hours = 52
"""
SOURCE_CHECKS = r"""
[[sources.web.checks]]
name = "referrers_are_logged"
metric = "null_share"
column = "referrer"
highest = 0.5
reason = "Referrers say where clicks come from."
[[sources.web.checks]]
name = "urls_are_of_the_shop"
metric = "matching_share"
column = "url"
pattern = '^http://shop\.test/'
lowest = 0.9
severity = "critical"
reason = "The tracker runs on another page."
"""


def line(hour: Hour, number: int, **fields: Any) -> bytes:
    """The click of that number of an hour, as it lands."""
    ts = f"{hour}:{number % 60:02d}:00Z"
    values = {
        "url": URLS[number % len(URLS)],
        "geo": {"country": COUNTRIES[number % len(COUNTRIES)]},
        "visitor_id": f"visitor {number}",
        "referrer": "http://referrer.test/",
        "user_agent": "Mozilla/5.0",
        "status": 200,
    } | fields
    return click(values.pop("event_id", f"{hour}-{number}"), values.pop("ts", ts), **values)


def fine_lines(hour: Hour) -> Lines:
    """An hour without a fault: clicks, one of them sent twice, and a line that is no click."""
    lines = [line(hour, number) for number in range(CLICKS_AN_HOUR)]
    return [*lines, lines[0], b"nonsense\n"]


def _with(count: int, **fields: Any) -> Callable[[Hour], Lines]:
    """The first clicks of the hour with other fields."""

    def lines(hour: Hour) -> Lines:
        others = {name: value(hour) if callable(value) else value for name, value in fields.items()}
        return [line(hour, n, **others) if n < count else line(hour, n) for n in range(CLICKS_AN_HOUR)]

    return lines


def _share(fault: str, metric: str, count: int, *also: str, **fields: Any) -> Fault:
    """That the first clicks of the hour have other fields is more than the share may be."""
    observed = f"{metric} = {count / CLICKS_AN_HOUR:g}"
    return Fault(fault, "warning", f"clicks.{metric}", observed, also, _with(count, **fields), has_examples=True)


def _and(*bad: bytes) -> Callable[[Hour], Lines]:
    """The hour's clicks, and these lines."""
    return lambda hour: [*(line(hour, number) for number in range(CLICKS_AN_HOUR)), *(text + b"\n" for text in bad)]


def and_clicks(count: int, **fields: Any) -> Callable[[Hour], Lines]:
    """The hour's clicks, and so many with other fields."""
    return lambda hour: [
        line(hour, number, **(fields if number >= CLICKS_AN_HOUR else {})) for number in range(CLICKS_AN_HOUR + count)
    ]


_UNREADABLE: dict[str, tuple[bytes, ...]] = {
    "line_too_long": (b"x" * 65537,) * 3,
    "not_utf8": (b'{"url": "\xff"}',) * 3,
    "blank": (b" ",) * 3,
    "not_json": (b"nonsense",) * 3,
}
_INCOMPLETE: dict[str, dict[str, Any]] = {
    "missing_event_id": {"event_id": None},
    "missing_time": {"ts": None},
    "bad_time": {"ts": "noon"},
    "time_out_of_range": {"ts": "2020-01-01T00:00:00Z"},
    "missing_url": {"url": ""},
    "bad_url": {"url": "ftp://shop.test/"},
}


def in_quarantine(reason: str, lines: Callable[[Hour], Lines] | None, **more: Any) -> Fault:
    return Fault(
        f"3 lines of an hour are in quarantine as `{reason}`",
        "warning",
        f"clicks.quarantined_{reason}_share",
        f"quarantined_{reason}_share = 0.04",
        lines=lines,
        has_examples=True,
        **more,
    )


#: What lands wrongly: each in an hour of its own.
LANDED = [
    Fault(
        "a log hour never landed",
        "warning",
        "reconciliation.hour_is_there",
        "is_missing = 1; nothing had landed, not even _SUCCESS, when its grace time was over",
        files=0,
    ),
    Fault(
        "a log hour was not closed by _SUCCESS",
        "warning",
        "reconciliation.hour_is_complete",
        "files_not_closed_or_damaged = 1; not closed by _SUCCESS",
        is_closed=False,
    ),
    Fault(
        "a folder lies among the files of a log hour",
        "warning",
        "reconciliation.files_are_read",
        "files_not_read = 1; part.log",
        folder="part.log",
    ),
    Fault("a log hour landed in 6 files", "warning", "layout.landed_files", "files = 6", files=6),
    *(in_quarantine(reason, _and(*bad)) for reason, bad in _UNREADABLE.items()),
    *(in_quarantine(reason, and_clicks(3, **bad)) for reason, bad in _INCOMPLETE.items()),
    Fault(
        "4 of 68 lines are in quarantine, for two reasons",
        "warning",
        "clicks.quarantined_share",
        "quarantined_share = 0.0588235",
        lines=_and(b"nonsense", b"nonsense", b" ", b" "),
        has_examples=True,
    ),
    Fault(
        "a source changed its format: most lines are malformed",
        "critical",
        "clicks.quarantined_share_critical",
        "quarantined_share = 0.555556",
        ("clicks.quarantined_share", "clicks.quarantined_not_json_share"),
        lines=_and(*(b"nonsense",) * 80),
        has_examples=True,
    ),
    _share("20 of 64 clicks are of the hour before", "late_share", 20, ts=lambda hour: f"{hour.plus(-1)}:30:00Z"),
    Fault(
        "a tracker sends 'undefined' as the id",
        "warning",
        "clicks.event_ids_are_ids",
        "ids_that_are_none = 1",
        lines=_with(1, event_id="undefined"),
        has_examples=True,
    ),
    _share("33 of 64 clicks have a country that is none", "unknown_country_share", 33, geo={"country": "ZZZ"}),
    _share("33 of 64 clicks are by a crawler", "bot_share", 33, user_agent=CRAWLER),
    _share("a click has the status 700", "invalid_status_share", 1, status=700),
    Fault(
        "each click's URL has a session of its own",
        "warning",
        "clicks.distinct_url_share",
        '; because of the parameter session (64 values in 64 lines): [sources.web.pages] drop_parameters = ["session"]',
        lines=lambda hour: [
            line(hour, number, url=f"{URLS[number % len(URLS)]}?session=s{number}") for number in range(CLICKS_AN_HOUR)
        ],
    ),
    Fault(
        "most clicks are on one URL",
        "warning",
        "aggregates.top_url_share",
        "top_url_share = 0.671875",
        lines=_with(40, url=URLS[0]),
    ),
    Fault(
        "the referrer is no longer logged (a check of the source's own)",
        "warning",
        "clicks.configured_referrers_are_logged",
        "null_share(referrer) = 0.515625",
        lines=_with(33, referrer=None),
        has_examples=True,
    ),
    Fault(
        "clicks on another host (a check of the source's own)",
        "critical",
        "clicks.configured_urls_are_of_the_shop",
        "= 0.890625",
        lines=_with(7, url="http://other.test/"),
        has_examples=True,
    ),
]
