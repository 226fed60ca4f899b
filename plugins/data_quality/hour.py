"""The page of one hour, as log hour and as click hour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from include.hours import Hour, HourRange
from include.quality_index import QualityIndex, Result
from plugins.data_quality.history_chart import draw_history
from plugins.data_quality.hold import Hold
from plugins.data_quality.links import Links
from plugins.data_quality.quarantine import Quarantine
from plugins.data_quality.rendering import advice_of, render_page
from plugins.data_quality.rights import Rights

MOST_CHARTS = 24
CHART_HOURS = 7 * 24


@dataclass(frozen=True)
class Trend:
    """A result with its chart, if it has numbers."""

    result: Result
    chart: Markup | None


@dataclass(frozen=True)
class ShownRun:
    """A run of Airflow's."""

    dag_id: str
    run_id: str
    state: str


def render_hour(
    index: QualityIndex,
    hour: str,
    links: Links,
    *,
    source: str | None,
    quarantine: Sequence[Quarantine],
    left_out: Mapping[str, Mapping[str, int]],
    runs: Sequence[ShownRun],
    question: str | None,
    rights: Rights,
    newest_replay: int,
) -> tuple[str, str] | None:
    """The page of an hour, as log hour and as click hour, and its policy; None when nothing is known of it.

    ``question`` is the run of held_hours that asks about it, None if none does; ``newest_replay`` the number of the
    newest run that replayed lines.
    """
    results, events, validations = index.results(hour), index.events(hour), index.runs(hour)
    if not results and not events:
        return None
    shown = [result for result in results if source is None or result.source in (source, None)]
    order = {"fail": 0, "warning": 1, "undecided": 2, "pass": 3}
    shown.sort(key=lambda result: (order[result.state], result.suite, result.partition, result.check_id))
    charted = [result for result in shown if result.observed_value is not None][:MOST_CHARTS]
    newest = events[-1] if events else None
    failures = [result for result in shown if result.severity == "critical" and result.outcome == "fail"]
    at = Hour.parse(hour)
    is_asked = newest is not None and newest.outcome == "held" and question is not None and rights.decide_hours
    return render_page(
        "quality_hour.html",
        links,
        title=hour,
        hour=hour,
        before=str(at.plus(-1)),
        after=str(at.plus(1)),
        source=source,
        sources=sorted({result.source for result in results if result.source}),
        state=newest.outcome if newest else ("fail" if failures else "none"),
        newest=newest,
        hold=Hold.of(index, hour),
        failures=failures,
        advice=advice_of(failures),
        counts={state: sum(result.state == state for result in shown) for state in order},
        suites=[
            (suite, [Trend(result, _trend(index, result) if result in charted else None) for result in of_suite])
            for suite, of_suite in _by_suite(shown)
        ],
        quarantine=quarantine,
        left_out=left_out,
        events=events[::-1],
        validations=validations[::-1],
        docs=sorted({result.link for result in shown if result.link}),
        runs=runs,
        again=HourRange.single(at),
        question=question if is_asked else None,
        rights=rights,
        newest_replay=newest_replay,
        may_act=is_asked or (rights.replay and bool(quarantine)),
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
