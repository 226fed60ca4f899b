"""The pages on data quality: what needs attention, a grid of hours by suite, one hour, one metric.

From the index to HTML; whoever serves them reads the index, the quarantine and Airflow's runs, and hands them in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pygal
from markupsafe import Markup

from include.errors import UsageError
from include.log_hours import Hour, HourRange
from include.pages.charts import CHART_OPTIONS, as_svg
from include.pages.render import render_served_page
from include.quality_index import Counts, Event, Point, QualityIndex, Result
from include.tables import QUARANTINE_REASONS
from plugins.data_quality.quarantine import Quarantine

_TEMPLATES = Path(__file__).resolve().parent / "templates"

DEFAULT_DAYS, MOST_DAYS = 3, 31
MOST_LISTED, MOST_OPEN = 12, 4
MOST_CHARTS = 24
CHART_HOURS = 7 * 24
#: How far back the page of a metric looks, in days.
METRIC_DAYS = (7, 31, 92)

#: What a state is called, and the sign that stands for it beside its colour.
SIGNS = {
    "pass": ("✓", "passed"),
    "undecided": ("?", "not enough history, or not final"),
    "warning": ("!", "warning"),
    "fail": ("✕", "failed"),
    "held": ("‖", "held"),
    "published": ("✓", "published"),
    "published_anyway": ("»", "published anyway"),
    "dropped": ("⊘", "dropped"),
    "missing": ("∅", "missing"),
    "none": ("", "not checked"),
}


@dataclass(frozen=True)
class Links:
    """Where things are: ``pages`` is the address of these pages, ``airflow`` that of Airflow's UI, no slash after."""

    pages: str
    airflow: str

    def hour(self, hour: str, source: str | None = None, anchor: str = "") -> str:
        """The page of an hour."""
        query = f"?{urlencode({'source': source})}" if source else ""
        return f"{self.pages}/hours/{quote(hour, safe='')}{query}{f'#{anchor}' if anchor else ''}"

    def days(self, hours: HourRange) -> str:
        """The overview of the days of these hours."""
        query = urlencode({"first": hours.start.day, "last": hours.end.plus(-1).day})
        return f"{self.pages}/?{query}#hours"

    def metric(self, result: Result) -> str:
        """The page of a check's values."""
        named = {"suite": result.suite, "check": result.check_id, "series": result.series}
        return f"{self.pages}/metric?{urlencode(named)}"

    def docs(self, link: str) -> str:
        """The page of Great Expectations; ``link`` is relative to reports/."""
        return f"{self.pages}/docs/{quote(link.removeprefix('data_docs/'))}"

    def run(self, dag_id: str, run_id: str) -> str:
        """A DAG run in Airflow's UI."""
        return f"{self.airflow}/dags/{quote(dag_id, safe='')}/runs/{quote(run_id, safe='')}"

    def runs(self, dag_id: str, hour: str) -> str:
        """The DAG's runs of this partition in Airflow's UI."""
        return f"{self.airflow}/dags/{quote(dag_id, safe='')}/runs?{urlencode({'partition_key_pattern': hour})}"

    @property
    def decisions(self) -> str:
        """Where Airflow asks for a decision on held hours."""
        return f"{self.airflow}/required_actions?response_received=false"


@dataclass(frozen=True)
class Filters:
    """What the overview is asked to show; days are whole, ``last`` included; None for all."""

    first: date | None = None
    last: date | None = None
    source: str | None = None
    table: str | None = None

    @classmethod
    def of(cls, first: str, last: str, source: str, table: str) -> Filters:
        """From the form's texts, empty ones left out.

        Raises:
            UsageError: if a day is none, or the first is after the last.
        """
        first_day, last_day = _day("first day", first), _day("last day", last)
        if first_day and last_day and first_day > last_day:
            raise UsageError(f"first day {first_day} is after last day {last_day}; expected it before or the same")
        return cls(first_day, last_day, source or None, table or None)

    def hours(self, span: tuple[Hour, Hour]) -> HourRange:
        """The hours of the days asked for: by default the newest few; never more than fit on a page."""
        last = self.last or (self.first + timedelta(days=MOST_DAYS - 1) if self.first else span[1].day)
        last = min(last, max(span[1].day, self.first or span[1].day))
        first = self.first or last - timedelta(days=DEFAULT_DAYS - 1)
        first = max(first, last - timedelta(days=MOST_DAYS - 1))
        return HourRange(Hour.of(first, 0), Hour.of(last, 0).plus(24))


def _day(name: str, text: str) -> date | None:
    if not text:
        return None
    try:
        day = date.fromisoformat(text)
        Hour.parse(f"{day}T00")  # within the years that hours can have
    except (ValueError, UsageError):
        raise UsageError(f"{name} is {text[:40]!r}; expected a day such as 2026-03-01") from None
    return day


@dataclass(frozen=True)
class Cell:
    """One square of the grid; ``text`` says what its sign means."""

    state: str
    text: str

    @property
    def is_quiet(self) -> bool:
        """Whether nobody needs to go there."""
        return self.state in ("pass", "published", "none", "undecided")


@dataclass(frozen=True)
class GridHour:
    """One hour of the grid, its cells in the order of the rows."""

    hour: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Concern:
    """An hour that someone should look at: why, since when, what to do."""

    hour: str
    state: str
    since: str | None
    reasons: tuple[str, ...]
    advice: tuple[str, ...]


@dataclass(frozen=True)
class Trend:
    """A result with its chart, if it has numbers."""

    result: Result
    chart: Markup | None


@dataclass(frozen=True)
class DagRun:
    """A run of Airflow's."""

    dag_id: str
    run_id: str
    state: str


# --- overview -------------------------------------------------------------------------------------


def render_overview(index: QualityIndex, filters: Filters, links: Links) -> tuple[str, str]:
    """The overview, and its policy: what needs attention first, then the grid."""
    span = index.span()
    if span is None:
        return _render("quality_overview.html", links, title="Data quality", span=None)
    hours = filters.hours(span)
    source, table = filters.source, filters.table
    counts = index.counts(hours, source=source, table=table)
    events = index.publications(hours)
    suites = [suite for suite in index.suites() if any(suite == seen for seen, _ in counts)]
    days = _grid(hours, span, suites, counts, events)
    held = index.held()
    # An hour is listed once.
    held_hours = {event.hour for event in held}
    bad = [of_hour for of_hour in index.bad_hours(source=source, table=table) if of_hour[0] not in held_hours]
    failing = [hour for hour, found in bad if found.failures]
    warned = [(hour, found) for hour, found in bad if not found.failures]
    return _render(
        "quality_overview.html",
        links,
        title="Data quality",
        span=span,
        hours=hours,
        filters=filters,
        sources=index.sources(),
        tables=index.tables(),
        rows=["publication", *suites],
        days=days,
        held_count=len(held),
        held=[_held(index, event) for event in held[:MOST_LISTED]],
        failing_count=len(failing),
        failing=[_failing(index, hour) for hour in failing[:MOST_LISTED]],
        warned_count=len(warned),
        warned=warned[:MOST_LISTED],
        missing=_missing(days),
        earlier=_shifted(filters, hours, -1) if span[0] < hours.start else None,
        later=_shifted(filters, hours, 1) if hours.end <= span[1] else None,
        most_days=MOST_DAYS,
        most_open=MOST_OPEN,
    )


def _grid(
    hours: HourRange,
    span: tuple[Hour, Hour],
    suites: Sequence[str],
    counts: Mapping[tuple[str, str], Counts],
    events: Mapping[str, Event],
) -> list[tuple[date, list[GridHour]]]:
    """By day, newest first; hours outside of what is known at all are left out."""
    known = [hour for hour in hours if span[0] <= hour <= span[1]]
    days = []
    for day, of_day in groupby(known, key=lambda hour: hour.day):
        grid_hours = []
        for hour in map(str, of_day):
            of_hour = [counts.get((suite, hour), Counts()) for suite in suites]
            absent = "none" if any(found != Counts() for found in of_hour) or hour in events else "missing"
            event = events.get(hour)
            publication = event.outcome if event else absent
            cells = [Cell(publication, SIGNS.get(publication, ("", publication))[1])]
            cells += [_cell(found, absent) for found in of_hour]
            grid_hours.append(GridHour(hour, tuple(cells)))
        days.append((day, grid_hours))
    return days[::-1]


def _cell(counts: Counts, absent: str) -> Cell:
    state = counts.state
    if state == "missing":
        return Cell(absent, SIGNS[absent][1])
    words = [
        f"{number} {what}"
        for number, what in (
            (counts.failures, "failed"),
            (counts.warnings, "warned"),
            (counts.passed, "passed"),
            (counts.undecided, "without enough history"),
        )
        if number
    ]
    return Cell(state, ", ".join(words))


def _missing(days: Sequence[tuple[date, Sequence[GridHour]]]) -> list[str]:
    """The hours without any verdict, neighbours together, such as ``2026-03-01T05 to 2026-03-01T07``."""
    missing = sorted(
        Hour.parse(hour.hour)
        for _, hours in days
        for hour in hours
        if all(cell.state == "missing" for cell in hour.cells)
    )
    runs = []
    for _, run in groupby(enumerate(missing), key=lambda place: place[1].number - place[0]):
        hours = [hour for _, hour in run]
        runs.append(str(hours[0]) if len(hours) == 1 else f"{hours[0]} to {hours[-1]}")
    return runs


def _shifted(filters: Filters, hours: HourRange, direction: int) -> str:
    """The query of as many days before or after."""
    days = timedelta(hours=direction * len(hours))
    values = {
        "first": str((hours.start.start + days).date()),
        "last": str((hours.end.start + days - timedelta(hours=1)).date()),
        "source": filters.source,
        "table": filters.table,
    }
    return urlencode({name: value for name, value in values.items() if value})


def _held(index: QualityIndex, event: Event) -> Concern:
    failures = [result for result in index.results(event.hour, failing_only=True) if result.severity == "critical"]
    reasons = (event.observed,) if event.observed else tuple(map(_in_words, failures))
    return Concern(event.hour, "held", event.decided_at, reasons, _advice(failures))


def _failing(index: QualityIndex, hour: str) -> Concern:
    failures = [result for result in index.results(hour, failing_only=True) if result.severity == "critical"]
    since = min((result.validated_at for result in failures), default=None)
    return Concern(hour, "fail", since, tuple(map(_in_words, failures)), _advice(failures))


def _in_words(result: Result) -> str:
    return f"{result.partition}: expected {result.expectation}; found {result.observed or 'nothing'}"


def _advice(results: Sequence[Result]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(result.advice for result in results if result.advice))


# --- one hour -------------------------------------------------------------------------------------


def render_hour(
    index: QualityIndex,
    hour: str,
    links: Links,
    *,
    source: str | None,
    quarantine: Sequence[Quarantine],
    runs: Sequence[DagRun],
) -> tuple[str, str] | None:
    """The page of an hour, as log hour and as click hour, and its policy; None when nothing is known of it."""
    results, events, validations = index.results(hour), index.events(hour), index.runs(hour)
    if not results and not events:
        return None
    shown = [result for result in results if source is None or result.source in (source, None)]
    order = {"fail": 0, "warning": 1, "undecided": 2, "pass": 3}
    shown.sort(key=lambda result: (order[result.state], result.suite, result.partition, result.check_id))
    charted = [result for result in shown if result.observed_value is not None][:MOST_CHARTS]
    newest = events[-1] if events else None
    failures = [result for result in shown if result.severity == "critical" and result.outcome == "fail"]
    this = Hour.parse(hour)
    return _render(
        "quality_hour.html",
        links,
        title=hour,
        hour=hour,
        before=str(this.plus(-1)),
        after=str(this.plus(1)),
        source=source,
        sources=sorted({result.source for result in results if result.source}),
        state=newest.outcome if newest else ("fail" if failures else "none"),
        newest=newest,
        failures=failures,
        advice=_advice(failures),
        counts={state: sum(result.state == state for result in shown) for state in order},
        suites=[
            (suite, [Trend(result, _trend(index, result) if result in charted else None) for result in of_suite])
            for suite, of_suite in _by_suite(shown)
        ],
        quarantine=quarantine,
        events=events[::-1],
        validations=validations[::-1],
        docs=sorted({result.link for result in shown if result.link}),
        runs=runs,
    )


def _by_suite(results: Sequence[Result]) -> list[tuple[str, list[Result]]]:
    """Suites in the order in which they first come: those that failed worst first."""
    suites: dict[str, list[Result]] = {}
    for result in results:
        suites.setdefault(result.suite, []).append(result)
    return list(suites.items())


def _trend(index: QualityIndex, result: Result) -> Markup | None:
    end = Hour.parse(result.hour).plus(1)
    hours = HourRange(end.plus(-CHART_HOURS), end)
    points = index.history(result.suite, result.check_id, result.series, hours)
    name = f"{result.check_id} over the last {CHART_HOURS // 24} days"
    return draw_history(points, name, width=300, height=96) if len(points) > 1 else None


# --- one metric -----------------------------------------------------------------------------------


def render_metric(
    index: QualityIndex, suite: str, check_id: str, series: str, days: int, links: Links
) -> tuple[str, str] | None:
    """A check's values with their bounds, and the page's policy; None when there is no such check."""
    newest = index.newest_result(suite, check_id, series)
    if newest is None:
        return None
    end = Hour.parse(newest.hour).plus(1)
    points = index.history(suite, check_id, series, HourRange(end.plus(-24 * days), end))
    name = f"{check_id}: {plural_hours(len(points))} up to {newest.hour}"
    has_numbers = any(point.value is not None for point in points)
    return _render(
        "quality_metric.html",
        links,
        title=check_id,
        newest=newest,
        points=points[::-1],
        chart=draw_history(points, name, width=960, height=280) if has_numbers else None,
        narrow_chart=draw_history(points, name, width=360, height=220, size="narrow") if has_numbers else None,
        days=days,
        choices=METRIC_DAYS,
        address=links.metric(newest),
    )


def plural_hours(number: int) -> str:
    """``1 hour``, ``2 hours``."""
    return f"{number:,} hour{'' if number == 1 else 's'}"


def draw_history(points: Sequence[Point], name: str, *, width: int, height: int, size: str = "wide") -> Markup:
    """Values over the hours between their bounds, those outside marked; a gap where an hour has none."""
    first, last = Hour.parse(points[0].hour), Hour.parse(points[-1].hour)
    at = {point.hour: point for point in points}
    hours = [str(hour) for hour in HourRange(first, last.plus(1))]
    found = [at.get(hour) for hour in hours]
    chart = pygal.Line(
        **CHART_OPTIONS
        | {"order_min": None, "value_formatter": as_number, "x_value_formatter": as_number, "margin_right": 24},
        # Only what draws it is kept of the chart, so none of these need be made.
        css=[],
        js=[],
        width=width,
        height=height,
        max_scale=4 if height > 150 else 2,
        x_labels=[_short(hour) for hour in hours],
        x_labels_major=[_short(hours[0]), _short(hours[-1])] if width < 600 else None,
        x_labels_major_count=None if width < 600 else 7,
        show_minor_x_labels=False,
        show_dots=False,
        show_y_guides=True,
    )
    for title, values in (
        ("lowest", [point.lowest if point else None for point in found]),
        ("highest", [point.highest if point else None for point in found]),
        ("found", [point.value if point else None for point in found]),
    ):
        chart.add(title, values)
    chart.add(
        "outside",
        [
            {"value": point.value, "label": f"{point.hour}: {as_number(point.value)}"}
            if point and point.value is not None and (point.state in ("fail", "warning") or len(points) == 1)
            else None
            for point in found
        ],
        show_dots=True,
        dots_size=4,
        stroke=False,
    )
    return as_svg(chart, f"history {size}", name)


def as_number(value: float | None) -> str:
    """Four digits at most, large numbers whole; empty for none."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _short(hour: str) -> str:
    return hour[5:].replace("T", " ") + "h"


# --- messages -------------------------------------------------------------------------------------


def render_message(links: Links, title: str, *sentences: str, ways: Sequence[tuple[str, str]] = ()) -> tuple[str, str]:
    """A page of a few sentences and of ways on (text and address), and its policy."""
    return _render("quality_message.html", links, title=title, sentences=sentences, ways=ways)


def expected_range(result: Result) -> str:
    """``0.01 to 0.05``, ``at most 5``, ``exactly 0``; empty without bounds."""
    lowest, highest = result.lowest, result.highest
    if lowest is not None and highest is not None:
        return f"exactly {as_number(lowest)}" if lowest == highest else f"{as_number(lowest)} to {as_number(highest)}"
    if lowest is not None:
        return f"at least {as_number(lowest)}"
    return f"at most {as_number(highest)}" if highest is not None else ""


def as_moment(text: str | None) -> str:
    """``2026-03-01 05:07`` of a moment of the index; empty of none."""
    return text[:16].replace("T", " ") if text else ""


def _render(template: str, links: Links, **values: Any) -> tuple[str, str]:
    return render_served_page(
        _TEMPLATES / template,
        "leave_frame.js",
        "quality.css",
        **values,
        links=links,
        SIGNS=SIGNS,
        QUARANTINE_REASONS=QUARANTINE_REASONS,
        as_number=as_number,
        as_moment=as_moment,
        expected_range=expected_range,
    )
