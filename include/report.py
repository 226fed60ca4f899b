"""The HTML report of a run: one page that needs nothing else, no script, no other host.

Texts from logs (URLs, sources, file names, reasons) are shown, never trusted: Jinja escapes them, charts are
rebuilt from an allow list of SVG elements, and the page forbids itself everything but its own style sheet.
"""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4
from xml.etree import ElementTree

import pycountry
import pygal
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pygal.style import Style

from include.log_hours import Hour, HourRange
from include.tables import QUARANTINE_REASONS, VISITOR_COUNT_STANDARD_ERROR

REPORT_FILE = "report.html"
MAX_URLS = 25
#: The longest span the chart shows, counted back from the newest hour: a stray old hour must not make
#: a chart of a hundred thousand gaps.
MAX_CHART_HOURS = 31 * 24
#: Countries and log hours beyond these are folded away, not left out; the chart shows the open countries.
MAX_OPEN_COUNTRIES = 12
MAX_OPEN_LOG_HOURS = 24
MAX_TEXT_CHARACTERS = 300
MAX_LISTED = 8

_TEMPLATES = Path(__file__).resolve().parent / "templates"


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
    visitor_count: int


@dataclass(frozen=True)
class InstanceLoad:
    """What one instance of a counting operator was dealt when it last ran, as in ``grouping_metrics``."""

    operator: str
    grouping: str
    instance_id: int
    click_count: int
    keys: int
    clicks_per_second: float | None
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

    @classmethod
    def of(cls, rows: Iterable[AccountingRow]) -> AccountingTotals:
        """The sum of the rows; the reasons with the most lines come first."""
        rows = list(rows)
        reasons: Counter[str] = Counter()
        for row in rows:
            reasons.update(row.quarantined_by_reason)
        return cls(
            log_hours=len(rows),
            lines=sum(row.lines for row in rows),
            accepted=sum(row.accepted for row in rows),
            duplicates=sum(row.duplicates for row in rows),
            quarantined=sum(row.quarantined for row in rows),
            quarantined_by_reason=dict(sorted(reasons.items(), key=lambda reason: (-reason[1], reason[0]))),
            late=sum(row.late for row in rows),
            out_of_order=sum(row.out_of_order for row in rows),
            files=sum(row.files for row in rows),
            bytes=sum(row.bytes for row in rows),
            not_closed=sum(not row.is_closed for row in rows),
            damaged_files=sum(len(row.damaged_files) for row in rows),
        )


@dataclass(frozen=True)
class Verdict:
    """What the quality checks said. ``data_docs`` is a link relative to the report's folder.

    Raises:
        ValueError: if ``data_docs`` leads elsewhere.
    """

    passed: bool
    critical_failures: list[str]
    warnings: list[str]
    data_docs: str | None = None

    def __post_init__(self) -> None:
        if self.data_docs is not None and not _is_relative(self.data_docs):
            raise ValueError(
                f"data_docs is {self.data_docs!r}; expected a path relative to the report, such as data_docs/index.html"
            )

    @property
    def has_failed(self) -> bool:
        """Whether a critical check failed; what failed is not published."""
        return not self.passed or bool(self.critical_failures)


@dataclass(frozen=True)
class ReportData:
    """All that the report and the summary in the terminal show, as plain values, in any order.

    ``urls`` are the busiest ones; of more than 25 the busiest 25 are shown. ``countries`` may be all
    or the busiest. A ``generated_at`` without an offset is UTC.
    """

    title: str
    generated_at: datetime
    hours: list[HourOfClicks]
    urls: list[KeyCount]
    countries: list[KeyCount]
    accounting: list[AccountingRow]
    verdict: Verdict
    loads: list[InstanceLoad] = field(default_factory=list)

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


def as_count(number: int) -> str:
    """``1,234,567``."""
    return f"{number:,}"


def as_share(part: int, whole: int) -> str:
    """``12.3%``; a part that is neither nothing nor all is never rounded to either. ``n/a`` of nothing."""
    if not whole:
        return "n/a"
    share = f"{part / whole:.1%}"
    if share == "0.0%" and part > 0:
        return "<0.1%"
    if share == "100.0%" and part < whole:
        return ">99.9%"
    return share


def as_printable(text: str) -> str:
    """The text with what cannot be seen written out: control characters, direction marks, lone surrogates.

    A terminal or a page would obey some of them: an escape sequence in a URL could clear the screen,
    a direction mark make ``gpj.exe`` read as ``exe.jpg``.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def crop_middle(text: str, length: int, mark: str = "…") -> str:
    """At most ``length`` characters; where some are missing in the middle stands the mark."""
    if len(text) <= length:
        return text
    kept = max(length - len(mark), 0)
    tail = kept // 2
    return text[: kept - tail] + mark + text[len(text) - tail :]


def write_report(data: ReportData, folder: Path) -> Path:
    """Replace ``report.html`` in the folder at once: a reader sees the old page or the new one, whole."""
    folder.mkdir(parents=True, exist_ok=True)
    return write_page(render_report(data), folder / REPORT_FILE)


def write_page(html: str, page: Path) -> Path:
    """Replace the page at once."""
    fresh = page.with_name(f".{page.name}.{uuid4().hex}")
    try:
        fresh.write_text(html, encoding="utf-8")
        os.replace(fresh, page)
    finally:
        fresh.unlink(missing_ok=True)
    return page


def render_report(data: ReportData) -> str:
    """The report as one HTML page; the same data gives the same page.

    Raises:
        UsageError: if a click hour is not written like ``2026-03-01T05``.
    """
    clicks = {Hour.parse(hour.click_hour): hour for hour in data.hours}
    span = _chart_span(clicks)
    countries = busiest_first(data.countries)
    return render_page(
        "report.html",
        data=data,
        generated_at=_in_utc(data.generated_at).strftime("%Y-%m-%d %H:%M UTC"),
        first_hour=min(clicks, default=None),
        last_hour=max(clicks, default=None),
        hours_before_span=sum(hour < span.start for hour in clicks) if span else 0,
        span=[(hour, clicks.get(hour)) for hour in span] if span else [],
        peak=max(data.hours, key=lambda hour: (hour.click_count, hour.click_hour), default=None),
        hour_charts=_hour_charts(clicks, span) if span else [],
        urls=busiest_first(data.urls)[:MAX_URLS],
        countries=countries,
        country_chart=_country_chart(countries[:MAX_OPEN_COUNTRIES]) if countries else None,
        rows=sorted(data.accounting, key=lambda row: (row.log_hour, row.source), reverse=True),
        totals=AccountingTotals.of(data.accounting),
        totals_by_source=_totals_by_source(data.accounting),
        notices=_notices(data.accounting),
        loads=_loads_by_operator(data.loads),
    )


def render_page(template: str, **values: object) -> str:
    """A template with the style sheet of all pages and the policy that allows nothing else."""
    style_sheet = page_style("report.css")
    return (
        page_environment()
        .get_template(template)
        .render(
            **values,
            style_sheet=Markup(style_sheet),
            style_hash=b64encode(sha256(style_sheet.encode()).digest()).decode(),
        )
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
        wrong = [row.log_hour for row in of_source if row.lines != row.accepted + row.duplicates + row.quarantined]
        if wrong:
            notices.append(
                f"{source}: lines are not accepted + duplicates + quarantined in {_listed(wrong)}; "
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


# Charts -----------------------------------------------------------------------------------------------------


def _chart_span(clicks: Iterable[Hour]) -> HourRange | None:
    """From the first hour to the last, gaps included; at most ``MAX_CHART_HOURS``, the newest."""
    hours = sorted(clicks)
    if not hours:
        return None
    end = hours[-1].plus(1)
    return HourRange(max(hours[0], end.plus(-MAX_CHART_HOURS)), end)


def _hour_charts(clicks: dict[Hour, HourOfClicks], span: HourRange) -> list[Markup]:
    """The same chart for a wide and for a narrow page: one that is only scaled down has unreadable labels."""
    return [
        _hour_chart(clicks, span, "wide", width=1000, height=300, max_labels=10),
        _hour_chart(clicks, span, "narrow", width=360, height=230, max_labels=4),
    ]


def _hour_chart(
    clicks: dict[Hour, HourOfClicks], span: HourRange, kind: str, width: int, height: int, max_labels: int
) -> Markup:
    labels = _hour_labels(span, max_labels)
    chart = pygal.StackedBar(
        **CHART_OPTIONS,
        width=width,
        height=height,
        max_scale=6,
        x_labels=labels,
        x_labels_major=[label for label in labels if label],
        show_minor_x_labels=False,
    )
    _add_bars(chart, [(str(hour), clicks.get(hour)) for hour in span])
    return as_svg(chart, kind, f"Clicks per hour from {span.start} to {span.end.plus(-1)}, by people and by crawlers")


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


def _hour_labels(span: HourRange, max_labels: int) -> list[str]:
    """A label for each hour of the span, empty but for at most ``max_labels`` or so round hours or days."""
    steps = (1, 2, 3, 6, 12, 24, 48, 96, 168, 336)
    step = next((step for step in steps if len(span) <= step * max_labels), steps[-1])
    labels = []
    for hour in span:
        is_labelled = int(hour.start.timestamp()) // 3600 % step == 0
        day = f"{hour.start.day} {hour.start:%b}"
        labels.append("" if not is_labelled else day if hour.hour == 0 else f"{hour.start:%H:%M}")
    return labels


CHART_OPTIONS = {
    # These sizes only make room for the labels; the page's style sheet draws them.
    "style": Style(label_font_size=12, major_label_font_size=12),
    "show_legend": False,
    "truncate_label": -1,
    "margin": 4,
    "margin_right": 18,
    "spacing": 8,
    # No half clicks on the axis.
    "order_min": 0,
    "value_formatter": lambda value: f"{value:,.0f}",
    "x_value_formatter": lambda value: f"{value:,.0f}",
}

_SVG_ELEMENTS = {"svg", "g", "path", "rect", "text"}
_SVG_ATTRIBUTES = {"class", "d", "x", "y", "width", "height", "transform", "viewBox"}
_LONG_NUMBER = re.compile(r"\d+\.\d+")


def as_svg(chart: Any, kind: str, name: str) -> Markup:
    """The chart as inline SVG: only what draws it, without pygal's script, style sheet, comments and ids."""
    svg = _drawn(chart.render_tree())
    assert svg is not None, "pygal's root is an svg element"
    svg.attrib = {
        "class": f"chart {kind}",
        "viewBox": svg.attrib["viewBox"],
        "role": "img",
        "aria-label": name,
    }
    return Markup(ElementTree.tostring(svg, encoding="unicode"))


def _drawn(node: ElementTree.Element) -> ElementTree.Element | None:
    """The node copied by allow list; None if there is nothing to see. A bar's label becomes its tooltip."""
    if node.tag not in _SVG_ELEMENTS:
        return None
    classes = node.get("class", "").split()
    if {"background", "tooltip"} & set(classes):
        return None
    if node.tag == "rect" and min(float(node.get("width", 0)), float(node.get("height", 0))) <= 0:
        return None
    copy = ElementTree.Element(
        node.tag,
        {
            name: _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.1f}", value) if name != "class" else value
            for name, value in node.attrib.items()
            if name in _SVG_ATTRIBUTES and value
        },
    )
    if node.tag == "text":
        copy.text = node.text
        return copy if node.text else None
    copy.extend(child for child in map(_drawn, node) if child is not None)
    if node.tag == "g" and not len(copy):
        return None
    tip = next((child.text for child in node if child.tag == "desc" and child.get("class") == "label"), None)
    if tip:
        title = ElementTree.SubElement(copy, "title")
        title.text = tip
    return copy


# Template ---------------------------------------------------------------------------------------------------


def page_style(*style_sheets: str) -> str:
    """These style sheets of our pages, one after the other."""
    return "".join((_TEMPLATES / name).read_text(encoding="utf-8") for name in style_sheets)


@cache
def page_environment() -> Environment:
    """What renders our pages: all text is escaped, and what cannot be seen is written out."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Every text that the template puts out passes here, so none can be forgotten.
        finalize=lambda value: as_printable(value) if type(value) is str else value,
    )
    environment.filters |= {
        "count": as_count,
        "size": _as_size,
        "crop": lambda text: crop_middle(text, MAX_TEXT_CHARACTERS),
        "country_name": _country_name,
    }
    environment.globals |= {
        "share": as_share,
        "plural": lambda number, noun: f"{number:,} {noun}{'' if number == 1 else 's'}",
        "QUARANTINE_REASONS": QUARANTINE_REASONS,
        "VISITOR_COUNT_STANDARD_ERROR": VISITOR_COUNT_STANDARD_ERROR,
        "MAX_OPEN_COUNTRIES": MAX_OPEN_COUNTRIES,
        "MAX_OPEN_LOG_HOURS": MAX_OPEN_LOG_HOURS,
    }
    return environment


def _as_size(number: float) -> str:
    """Bytes in decimal units: ``1.5 GB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:,.1f} TB"


def _country_name(code: str) -> str:
    """The country's usual English name; nothing for 'unknown' and what else is no ISO 3166-1 code."""
    country = pycountry.countries.get(alpha_2=code)
    return str(getattr(country, "common_name", country.name)) if country else ""
