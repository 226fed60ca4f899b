"""The overview of data quality: what needs attention, and a grid of hours by suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby
from urllib.parse import urlencode

from include.errors import UsageError
from include.holds import Event, Failure, holding_of, not_shown
from include.hours import Hour, HourRange, contiguous
from include.quality_index import Counts, QualityIndex, Result
from include.settings import Settings
from include.sources import load_sources
from include.unpublished import files_landed_since, late_names
from plugins.data_quality.held_groups import HeldGroup, grouped
from plugins.data_quality.hold import Hold
from plugins.data_quality.links import Links
from plugins.data_quality.listings import LISTINGS
from plugins.data_quality.questions import Questions
from plugins.data_quality.rendering import SIGNS, advice_of, render_page
from plugins.data_quality.rights import Rights

DEFAULT_DAYS, MOST_DAYS = 3, 31
#: Of so many days each suite is shown; of more, the worst of an hour.
MOST_DETAILED_DAYS = 4
#: From bad to good: of several cells the first of these is what one should know.
_WORST_FIRST = ("held", "fail", "warning", "published_anyway", "dropped", "released", "undecided")
MOST_LISTED, MOST_OPEN = 12, 4
#: Held hours that one page has: a month of them.
MOST_HELD = 744


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
class SourceDays:
    """A source, and of each of the days the worst of its log hours."""

    source: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Wait:
    """A job that waits until another one gives a lock away: each in words, with process, host and since when."""

    waiter: str
    holder: str


@dataclass(frozen=True)
class LateFiles:
    """Files of a log hour that landed after it was ingested; nobody has read them."""

    source: str
    hour: Hour
    names: tuple[str, ...]


def late_files(settings: Settings) -> list[LateFiles]:
    """Those of all sources whose logs land, the newest hours first."""
    late_hours = [
        LateFiles(source.name, hour, tuple(late))
        for source in load_sources(settings).values()
        for hour, names in files_landed_since(settings, source).items()
        if (late := late_names(names))
    ]
    return sorted(late_hours, key=lambda late: late.hour, reverse=True)


@dataclass(frozen=True)
class Concern:
    """An hour that someone should look at: why, since when, what to do."""

    hour: str
    state: str
    since: str | datetime | None
    reasons: tuple[str, ...]
    advice: tuple[str, ...]
    more: tuple[str, ...] = ()
    group: HeldGroup | None = None


def render_overview(
    index: QualityIndex,
    filters: Filters,
    links: Links,
    late: Sequence[LateFiles] = (),
    waits: Sequence[Wait] = (),
    *,
    questions: Questions,
    rights: Rights,
) -> tuple[str, str]:
    """The overview, and its policy: what needs attention first, then the grid."""
    span = index.span()
    if span is None:
        return render_page(
            "quality_overview.html",
            links,
            title="Data quality",
            span=None,
            listings=LISTINGS,
            late=late,
            waits=waits,
            rights=rights,
            most_open=MOST_OPEN,
            most_listed=MOST_LISTED,
        )
    hours = filters.hours(span)
    source, table = filters.source, filters.table
    counts = index.counts(hours, source=source, table=table)
    publications = index.publications(hours)
    suites = [suite for suite in index.suites() if any(suite == seen for seen, _ in counts)]
    days = _grid(hours, span, suites, counts, publications)
    is_detailed = len(days) <= MOST_DETAILED_DAYS
    held = index.held()
    groups = grouped(held[:MOST_HELD], questions.by_hour)
    decided = index.decided()
    # An hour is listed once.
    held_hours = {str(event.hour) for event in held}
    bad = [of_hour for of_hour in index.bad_hours(source=source, table=table) if of_hour[0] not in held_hours]
    answers = {str(event.hour): event for event in decided}
    failing = [hour for hour, tally in bad if tally.failures and not _is_answered(index, hour, answers.get(hour))]
    warned = [(hour, tally) for hour, tally in bad if not tally.failures]
    return render_page(
        "quality_overview.html",
        links,
        title="Data quality",
        listings=LISTINGS,
        span=span,
        waits=waits,
        hours=hours,
        filters=filters,
        sources=index.sources(),
        tables=index.tables(),
        rows=["publication", *suites],
        days=days if is_detailed else [],
        worst_by_day=[] if is_detailed else [(day, _worst_by_hour(of_day)) for day, of_day in days],
        sources_by_day=[] if is_detailed else _by_source(index, filters, hours, [day for day, _ in days]),
        held_count=len(held),
        held=[_held(index, group) for group in groups],
        held_left_out=len(held[MOST_HELD:]),
        decided_count=len(decided),
        decided=decided[:MOST_LISTED],
        failing_count=len(failing),
        failing=[_failing(index, hour) for hour in failing[:MOST_LISTED]],
        warned_count=len(warned),
        warned=warned[:MOST_LISTED],
        late=late,
        most_listed=MOST_LISTED,
        missing=_missing(days),
        many_urls=_many_urls(index, source),
        earlier=_shifted(filters, hours, -1) if span[0] < hours.start else None,
        later=_shifted(filters, hours, 1) if hours.end <= span[1] else None,
        most_days=MOST_DAYS,
        most_open=MOST_OPEN,
        rights=rights,
        may_act=rights.decide_hours and any(group.can_be_answered for group in groups),
    )


def _grid(
    hours: HourRange,
    span: tuple[Hour, Hour],
    suites: Sequence[str],
    counts: Mapping[tuple[str, str], Counts],
    publications: Mapping[str, str],
) -> list[tuple[date, list[GridHour]]]:
    """By day, newest first; hours outside of what is known at all are left out."""
    known = [hour for hour in hours if span[0] <= hour <= span[1]]
    days = []
    for day, of_day in groupby(known, key=lambda hour: hour.day):
        grid_hours = []
        for hour in map(str, of_day):
            of_hour = [counts.get((suite, hour), Counts()) for suite in suites]
            absent = "none" if any(tally != Counts() for tally in of_hour) or hour in publications else "missing"
            publication = publications.get(hour, absent)
            cells = [Cell(publication, SIGNS.get(publication, ("", publication))[1])]
            cells += [_cell(tally, absent) for tally in of_hour]
            grid_hours.append(GridHour(hour, tuple(cells)))
        days.append((day, grid_hours))
    return days[::-1]


def _worst_by_hour(hours: Sequence[GridHour]) -> list[tuple[str, Cell] | None]:
    """Of each of the 24 hours of a day its name and its worst cell; None outside of what is known."""
    known = {hour.hour: (hour.hour, _worst(hour.cells)) for hour in hours}
    day = next(iter(known))[:10]
    return [known.get(f"{day}T{number:02}") for number in range(24)]


def _worst(cells: Sequence[Cell]) -> Cell:
    if all(cell.state == "missing" for cell in cells):
        return cells[0]
    by_state = {cell.state: cell for cell in reversed(cells)}
    return next((by_state[state] for state in _WORST_FIRST if state in by_state), Cell("pass", "passed"))


def _by_source(index: QualityIndex, filters: Filters, hours: HourRange, days: Sequence[date]) -> list[SourceDays]:
    counts = index.counts_by_source(hours, table=filters.table)
    sources = sorted({source for source, _ in counts if filters.source in (None, source)})
    return [
        SourceDays(source, tuple(_cell(counts.get((source, str(day)), Counts()), "missing") for day in reversed(days)))
        for source in sources
    ]


def _cell(counts: Counts, absent: str) -> Cell:
    state = counts.state
    if state == "missing":
        return Cell(absent, SIGNS[absent][1])
    words = [
        f"{number} {outcome}"
        for number, outcome in (
            (counts.failures, "failed"),
            (counts.warnings, "warned"),
            (counts.passed, "passed"),
            (counts.undecided, "without enough history"),
        )
        if number
    ]
    return Cell(state, ", ".join(words))


def _missing(days: Sequence[tuple[date, Sequence[GridHour]]]) -> list[HourRange]:
    """The hours without any verdict, neighbours together."""
    return contiguous(
        Hour.parse(hour.hour)
        for _, hours in days
        for hour in hours
        if all(cell.state == "missing" for cell in hour.cells)
    )


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


def _many_urls(index: QualityIndex, source: str | None) -> list[Result]:
    """What the newest hour of each source says of URLs that are nearly all different; none of the others."""
    names = [name for name in index.sources() if source in (None, name)]
    newest = (index.newest_result("clicks", "distinct_url_share", name) for name in names)
    return [result for result in newest if result is not None and result.state in ("warning", "fail")]


def _held(index: QualityIndex, group: HeldGroup) -> Concern:
    """What was found in the newest hour of the group, and since when the oldest is held."""
    newest, oldest = group.events[0], group.events[-1]
    hour = str(newest.hour)
    failures = [result for result in index.results(hour, failing_only=True) if result.severity == "critical"]
    reasons = newest.examples or ((newest.because,) if newest.because else tuple(map(_in_words, failures)))
    hold = Hold.of(index, hour)
    since = holding_of(index.events(str(oldest.hour)))[0].at
    return Concern(hour, "held", since, reasons, advice_of(failures), (hold.described,), group)


def _is_answered(index: QualityIndex, hour: str, answer: Event | None) -> bool:
    """Whether a person has decided on all that fails critically."""
    if answer is None:
        return False
    failures = [
        Failure(
            result.partition, result.check_id, "", result.suite,
            result.observed or "", result.observed_value, result.lowest, result.highest,
        )
        for result in index.results(hour, failing_only=True)
        if result.severity == "critical"
    ]  # fmt: skip
    return not not_shown(failures, answer.findings)


def _failing(index: QualityIndex, hour: str) -> Concern:
    failures = [result for result in index.results(hour, failing_only=True) if result.severity == "critical"]
    since = min((result.validated_at for result in failures), default=None)
    return Concern(hour, "fail", since, tuple(map(_in_words, failures)), advice_of(failures))


def _in_words(result: Result) -> str:
    return f"{result.partition}: expected {result.expectation}; found {result.observed or 'nothing'}"
