"""The HTML report of a run: one page that needs nothing else, no script, no other host.

Texts from logs (URLs, sources, file names, reasons) are shown, never trusted: Jinja escapes them, charts are
rebuilt from an allow list of SVG elements, and the page forbids itself everything but its own style sheet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import pygal
from markupsafe import Markup

from include.days import Grain, first_day, name_of
from include.home import REPORT_FILE
from include.hours import Hour, HourRange
from include.pages.charts import CHART_OPTIONS, as_svg
from include.pages.render import render_page, write_page
from include.tables import QUARANTINE_REASONS, VISITOR_COUNT_STANDARD_ERROR
from include.texts import MAX_TEXT_CHARACTERS, as_count, as_printable, crop_middle

_TEMPLATES = Path(__file__).resolve().parent / "templates"

MAX_URLS = 25
#: The longest span the chart shows, counted back from the newest hour: a stray old hour must not make
#: a chart of thousands of gaps.
MAX_CHART_HOURS = 2 * 366 * 24
#: Up to so many hours a bar is an hour, or a day; above them a week, UTC.
GRAINS_UP_TO: dict[Grain, int] = {"hour": 14 * 24, "day": 120 * 24}
#: Countries and log hours beyond these are folded away, not left out; the chart shows the open countries.
MAX_OPEN_COUNTRIES = 12
MAX_OPEN_LOG_HOURS = 24
MAX_LISTED = 8


@dataclass(frozen=True)
class HourOfClicks:
    """The published clicks of one click hour, written ``2026-03-01T05``; crawlers count as clicks."""

    click_hour: str
    click_count: int
    bot_click_count: int


@dataclass(frozen=True)
class KeyCount:
    """The published clicks of one URL or country over all hours shown; ``click_count`` includes crawlers."""

    key: str
    click_count: int
    bot_click_count: int
    visitor_count: int | None


@dataclass(frozen=True)
class InstanceLoad:
    """What moved to one instance of a counting operator when it last ran, as in ``grouping_metrics``."""

    operator: str
    grouping: str
    instance_id: int
    rows: int
    keys: int
    rows_per_second: float | None
    busiest_key: str | None
    busiest_key_share: float


@dataclass(frozen=True)
class AccountingRow:
    """What became of the lines of one source and log hour, as in ``ingest_accounting``."""

    source: str
    log_hour: str
    lines: int
    accepted: int
    duplicates: int
    quarantined: int
    quarantined_by_reason: dict[str, int]
    late: int
    out_of_order: int
    files: int
    bytes: int
    is_closed: bool
    damaged_files: list[str]
    left_out: int = 0
    left_out_by_rule: dict[str, int] = field(default_factory=dict)

    @property
    def adds_up(self) -> bool:
        """Whether every line has one outcome."""
        return self.lines == self.accepted + self.duplicates + self.quarantined + self.left_out


@dataclass(frozen=True)
class AccountingTotals:
    """Accounting rows added up."""

    log_hours: int = 0
    lines: int = 0
    accepted: int = 0
    duplicates: int = 0
    quarantined: int = 0
    quarantined_by_reason: dict[str, int] = field(default_factory=dict)
    late: int = 0
    out_of_order: int = 0
    files: int = 0
    bytes: int = 0
    not_closed: int = 0
    damaged_files: int = 0
    left_out: int = 0
    left_out_by_rule: dict[str, int] = field(default_factory=dict)

    @property
    def adds_up(self) -> bool:
        """Whether every line has one outcome."""
        return self.lines == self.accepted + self.duplicates + self.quarantined + self.left_out

    @property
    def lines_to_count(self) -> int:
        """The lines of which shares are: those that no rule leaves out."""
        return self.lines - self.left_out

    @classmethod
    def of(cls, rows: Iterable[AccountingRow]) -> AccountingTotals:
        """The sum of the rows; the reasons, and the rules, with the most lines come first."""
        rows = list(rows)
        return cls(
            log_hours=len(rows),
            lines=sum(row.lines for row in rows),
            accepted=sum(row.accepted for row in rows),
            duplicates=sum(row.duplicates for row in rows),
            quarantined=sum(row.quarantined for row in rows),
            quarantined_by_reason=_most_first(row.quarantined_by_reason for row in rows),
            late=sum(row.late for row in rows),
            out_of_order=sum(row.out_of_order for row in rows),
            files=sum(row.files for row in rows),
            bytes=sum(row.bytes for row in rows),
            not_closed=sum(not row.is_closed for row in rows),
            damaged_files=sum(len(row.damaged_files) for row in rows),
            left_out=sum(row.left_out for row in rows),
            left_out_by_rule=_most_first(row.left_out_by_rule for row in rows),
        )


def _most_first(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The counts by name added up, the names with the most first."""
    together: Counter[str] = Counter()
    for of_row in counts:
        together.update(of_row)
    return dict(sorted(together.items(), key=lambda count: (-count[1], count[0])))


@dataclass(frozen=True)
class Verdict:
    """What the quality checks said. ``data_docs`` is a link relative to the report's folder.

    ``held`` are the click hours that wait for a person, each with the reasons; ``decided`` those on which one has
    decided, each with who, when and why: what failed of them, and was shown, is no failure any more.

    Raises:
        ValueError: if ``data_docs`` leads elsewhere.
    """

    passed: bool
    critical_failures: list[str]
    warnings: list[str]
    data_docs: str | None = None
    held: list[str] = field(default_factory=list)
    decided: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.data_docs is not None and not _is_relative(self.data_docs):
            raise ValueError(
                f"data_docs is {self.data_docs!r}; expected a path relative to the report, such as data_docs/index.html"
            )

    @property
    def has_failed(self) -> bool:
        """Whether a critical check failed for what is shown, and no person has decided on that."""
        return not self.passed or bool(self.critical_failures)


@dataclass(frozen=True)
class ReportData:
    """All that the report and the summary in the terminal show, as plain values, in any order.

    ``urls`` are the busiest ones; of more than 25 the busiest 25 are shown. ``countries`` may be all
    or the busiest; ``country_note`` says how old the database is in which they were looked up. A
    ``generated_at`` without an offset is UTC.
    """

    title: str
    generated_at: datetime
    hours: list[HourOfClicks]
    urls: list[KeyCount]
    countries: list[KeyCount]
    accounting: list[AccountingRow]
    verdict: Verdict
    loads: list[InstanceLoad] = field(default_factory=list)
    country_note: str | None = None

    @property
    def click_count(self) -> int:
        """Published clicks of the hours shown, crawlers included."""
        return sum(hour.click_count for hour in self.hours)

    @property
    def bot_click_count(self) -> int:
        """Those of them by crawlers."""
        return sum(hour.bot_click_count for hour in self.hours)


def busiest_first(counts: Iterable[KeyCount]) -> list[KeyCount]:
    """Most clicks first; equal ones by key."""
    return sorted(counts, key=lambda count: (-count.click_count, count.key))


def write_report(data: ReportData, folder: Path) -> Path:
    """Replace ``report.html`` in the folder: a reader sees the old page or the new one, whole."""
    return write_page(render_report(data), folder / REPORT_FILE)


def render_report(data: ReportData) -> str:
    """The report as one HTML page; the same data gives the same page.

    Raises:
        UsageError: if a click hour is not written like ``2026-03-01T05``.
    """
    clicks = {Hour.parse(hour.click_hour): hour for hour in data.hours}
    span = _chart_span(clicks)
    grain, bars = _bars(clicks, span) if span else ("hour", [])
    countries = busiest_first(data.countries)
    return render_page(
        _TEMPLATES / "report.html",
        QUARANTINE_REASONS=QUARANTINE_REASONS,
        VISITOR_COUNT_STANDARD_ERROR=VISITOR_COUNT_STANDARD_ERROR,
        MAX_OPEN_COUNTRIES=MAX_OPEN_COUNTRIES,
        MAX_OPEN_LOG_HOURS=MAX_OPEN_LOG_HOURS,
        data=data,
        generated_at=_in_utc(data.generated_at).strftime("%Y-%m-%d %H:%M UTC"),
        first_hour=min(clicks, default=None),
        last_hour=max(clicks, default=None),
        hours_before_span=sum(hour < span.start for hour in clicks) if span else 0,
        grain=grain,
        span=bars,
        peak=max(data.hours, key=lambda hour: (hour.click_count, hour.click_hour), default=None),
        hour_charts=_hour_charts(grain, bars) if bars else [],
        urls=busiest_first(data.urls)[:MAX_URLS],
        countries=countries,
        country_chart=_country_chart(countries[:MAX_OPEN_COUNTRIES]) if countries else None,
        rows=sorted(data.accounting, key=lambda row: (row.log_hour, row.source), reverse=True),
        totals=AccountingTotals.of(data.accounting),
        totals_by_source=_totals_by_source(data.accounting),
        notices=_notices(data.accounting),
        loads=_loads_by_operator(data.loads),
    )


def _loads_by_operator(loads: Iterable[InstanceLoad]) -> dict[str, list[InstanceLoad]]:
    in_order = sorted(loads, key=lambda load: (load.operator, load.instance_id))
    return {operator: list(rows) for operator, rows in groupby(in_order, key=lambda load: load.operator)}


def _in_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _is_relative(link: str) -> bool:
    """Whether the link is a plain path below the page's folder: no host, no scheme, no way up or around."""
    parts = urlsplit(link)
    return (
        bool(parts.path)
        and not parts.scheme
        and link.isprintable()
        and link[0] not in "/ "
        and "\\" not in link
        and ":" not in parts.path.split("/")[0]
        and ".." not in PurePosixPath(parts.path).parts
    )


# Accounting -------------------------------------------------------------------------------------------------


def _totals_by_source(rows: Iterable[AccountingRow]) -> dict[str, AccountingTotals]:
    by_source = sorted(rows, key=lambda row: row.source)
    return {source: AccountingTotals.of(of) for source, of in groupby(by_source, key=lambda row: row.source)}


def _notices(rows: Iterable[AccountingRow]) -> list[str]:
    """What a reader should look at, in one sentence per source and matter."""
    notices = []
    by_source = sorted(rows, key=lambda row: (row.source, row.log_hour))
    for source, group in groupby(by_source, key=lambda row: row.source):
        of_source = list(group)
        wrong = [row.log_hour for row in of_source if not row.adds_up]
        if wrong:
            notices.append(
                f"{source}: lines are not accepted + duplicates + quarantined + left out in {_listed(wrong)}; "
                "ingest these log hours again"
            )
        not_closed = [row.log_hour for row in of_source if not row.is_closed]
        if not_closed:
            notices.append(
                f"{source}: {len(not_closed)} of {len(of_source)} log hours not closed "
                f"(ingested without _SUCCESS): {_listed(not_closed)}"
            )
        damaged = [
            f"{row.log_hour}/{crop_middle(file, MAX_TEXT_CHARACTERS)}"
            for row in of_source
            for file in row.damaged_files
        ]
        if damaged:
            notices.append(f"{source}: damaged, counted up to where they broke off: {_listed(damaged)}")
    return notices


def _listed(names: list[str]) -> str:
    more = len(names) - MAX_LISTED
    return ", ".join(names[:MAX_LISTED]) + (f" and {more} more" if more > 0 else "")


def _chart_span(clicks: Iterable[Hour]) -> HourRange | None:
    """From the first hour to the last, gaps included; at most ``MAX_CHART_HOURS``, the newest."""
    hours = sorted(clicks)
    if not hours:
        return None
    end = hours[-1].plus(1)
    return HourRange(max(hours[0], end.plus(-MAX_CHART_HOURS)), end)


def _bars(clicks: dict[Hour, HourOfClicks], span: HourRange) -> tuple[Grain, list[tuple[str, HourOfClicks | None]]]:
    """A bar for each hour, day or week of the span, by its name, and which of these it is; None is one of no clicks."""
    grain: Grain = next((grain for grain, most in GRAINS_UP_TO.items() if len(span) <= most), "week")
    if grain == "hour":
        return grain, [(str(hour), clicks.get(hour)) for hour in span]
    hours: dict[str, list[HourOfClicks]] = {}
    for hour in span:
        of_bar = hours.setdefault(name_of(first_day(hour.day, grain), grain), [])
        of_bar += [clicks[hour]] if hour in clicks else []
    return grain, [(name, _sum(name, of_bar) if of_bar else None) for name, of_bar in hours.items()]


def _sum(name: str, hours: Iterable[HourOfClicks]) -> HourOfClicks:
    counts = [(hour.click_count, hour.bot_click_count) for hour in hours]
    return HourOfClicks(name, sum(clicks for clicks, _ in counts), sum(bots for _, bots in counts))


def _hour_charts(grain: Grain, bars: list[tuple[str, HourOfClicks | None]]) -> list[Markup]:
    """The same chart for a wide and for a narrow page: one that is only scaled down has unreadable labels."""
    return [
        _hour_chart(grain, bars, "wide", width=1000, height=300, max_labels=10),
        _hour_chart(grain, bars, "narrow", width=360, height=230, max_labels=4),
    ]


def _hour_chart(
    grain: Grain, bars: list[tuple[str, HourOfClicks | None]], kind: str, width: int, height: int, max_labels: int
) -> Markup:
    names = [name for name, _ in bars]
    labels = _labels(grain, names, max_labels)
    chart = pygal.StackedBar(
        **CHART_OPTIONS,
        width=width,
        height=height,
        max_scale=6,
        x_labels=labels,
        x_labels_major=[label for label in labels if label],
        show_minor_x_labels=False,
    )
    _add_bars(chart, bars)
    return as_svg(chart, kind, f"Clicks per {grain} from {names[0]} to {names[-1]}, by people and by crawlers")


def _country_chart(countries: list[KeyCount]) -> Markup:
    upwards = countries[::-1]  # pygal draws from the bottom up
    chart = pygal.HorizontalStackedBar(
        **CHART_OPTIONS,
        width=420,
        height=50 + 30 * len(upwards),
        max_scale=4,
        show_x_guides=True,
        x_labels=[crop_middle(as_printable(country.key), 12) for country in upwards],
    )
    _add_bars(chart, [(country.key, country) for country in upwards])
    return as_svg(chart, "countries", f"Clicks of the {len(upwards)} busiest countries, by people and by crawlers")


def _add_bars(chart: Any, counts: Iterable[tuple[str, HourOfClicks | KeyCount | None]]) -> None:
    """A bar each, people and crawlers stacked, with a tooltip for both; None is a gap."""
    people: list[dict[str, object] | None] = []
    crawlers: list[dict[str, object] | None] = []
    for name, count in counts:
        if count is None:
            people.append(None)
            crawlers.append(None)
            continue
        tip = (
            f"{crop_middle(as_printable(name), MAX_TEXT_CHARACTERS)}: {as_count(count.click_count)} clicks, "
            f"{as_count(count.bot_click_count)} by crawlers"
        )
        people.append({"value": count.click_count - count.bot_click_count, "label": tip})
        crawlers.append({"value": count.bot_click_count, "label": tip})
    chart.add("people", people)
    chart.add("crawlers", crawlers)


def _labels(grain: Grain, names: Sequence[str], max_labels: int) -> list[str]:
    """A label for each bar, empty but for at most ``max_labels`` or so: of hours, round ones or days."""
    if grain != "hour":
        every = -(-len(names) // max_labels)
        shown = [f"{int(name[8:])} {date.fromisoformat(name):%b}" if grain == "day" else name for name in names]
        return [label if number % every == 0 else "" for number, label in enumerate(shown)]
    steps = (1, 2, 3, 6, 12, 24, 48, 96, 168, 336)
    step = next((step for step in steps if len(names) <= step * max_labels), steps[-1])
    labels = []
    for hour in map(Hour.parse, names):
        is_labelled = hour.number % step == 0
        day = f"{hour.start.day} {hour.start:%b}"
        labels.append("" if not is_labelled else day if hour.hour == 0 else f"{hour.start:%H:%M}")
    return labels
