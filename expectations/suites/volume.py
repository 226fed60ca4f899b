"""Suite ``volume``: an hour's numbers against those of the same hour of the days before.

Clicks and visitors of a click hour are of all sources; lines and shares of them are of one source's log hour, so that a
source that falls silent shows beside a busier one. Hours in which nothing landed are no history.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from expectations.checks import CRITICAL, WARNING, Check, between
from expectations.facts import Facts
from expectations.judge import NOT_ENOUGH_HISTORY, Finding, Findings, Partition
from include.duckdb_sql import run_sql
from include.hours import Hour, log_hour_of
from include.tables import CLICKS_BY_COUNTRY_HOURLY, INGEST_ACCOUNTING, Table
from include.usual_range import VolumeSettings, same_hour_before, usual_range


@dataclass(frozen=True)
class Metric:
    """A number that has a usual value, where it is read, and what to think of when it has another.

    Of a share, only too much is a fault.
    """

    name: str
    table: Table
    reason: str
    is_share: bool = False


CLICKS = Metric(
    "clicks",
    CLICKS_BY_COUNTRY_HOURLY,
    "Half of them: a source or its uploader stopped. Twice as many: files landed twice, a crawler, a campaign. See the "
    "check 'lines' of each source; if the clicks are real, nothing is to be done.",
)
VISITORS = Metric(
    "visitors",
    CLICKS_BY_COUNTRY_HOURLY,
    "Beside the usual clicks: what identifies visitors, the source's field or client address and user agent, may have "
    "changed.",
)
LINES = Metric(
    "lines",
    INGEST_ACCOUNTING,
    "Files may be missing, or there twice. See the log hour's folder in the landing zone, and the source's uploader.",
)
QUARANTINED_SHARE = Metric(
    "quarantined_share",
    INGEST_ACCOUNTING,
    "The source may have changed its format. See quarantined_clicks for the reasons, schema_drift for its fields.",
    is_share=True,
)
LEFT_OUT_SHARE = Metric(
    "left_out_share",
    INGEST_ACCOUNTING,
    "Rules leave out more than they did: they were changed, or lines say something else, as when an event has got "
    "another name. See left_out_by_rule in ingest_accounting, and keep, drop and count of the source.",
    is_share=True,
)
OF_CLICK_HOURS, OF_LOG_HOURS = (CLICKS, VISITORS), (LINES, QUARANTINED_SHARE, LEFT_OUT_SHARE)
METRICS = {metric.name: metric for metric in (*OF_CLICK_HOURS, *OF_LOG_HOURS)}

#: One row per metric, source and hour that was ingested; ``value`` of ``whole``. Of click hours the source is null.
#: Before its own log hour is ingested, a click hour has but the clicks of fast clocks: nothing to judge, or judge by.
_NUMBERS = """
WITH accounts AS (
    -- A streamed hour that is finalised again has its lines still where its landed files are gone.
    SELECT *, is_closed OR files > 0 OR lines > 0 AS has_landed, lines - coalesce(left_out, 0) AS lines_to_count
    FROM accounting_history
),
ingested AS (
    SELECT log_date, log_hour, bool_or(has_landed) AS has_landed FROM accounts GROUP BY ALL
),
counted AS (
    FROM ingested LEFT JOIN click_history ON (click_date, click_hour) = (log_date, log_hour)
)
SELECT 'clicks' AS metric, NULL AS source, log_date, log_hour, coalesce(clicks, 0) AS value, 0 AS whole, has_landed
    FROM counted
UNION ALL SELECT 'visitors', NULL, log_date, log_hour, coalesce(visitors, 0), 0, has_landed FROM counted
UNION ALL SELECT 'lines', source, log_date, log_hour, lines, lines, has_landed FROM accounts
UNION ALL
    SELECT 'quarantined_share', source, log_date, log_hour, quarantined / lines_to_count, lines_to_count, has_landed
    FROM accounts WHERE lines_to_count > 0
UNION ALL SELECT 'left_out_share', source, log_date, log_hour, 1 - lines_to_count / lines, lines, has_landed
    FROM accounts WHERE lines > 0
ORDER BY ALL
"""


def click_hour_checks(settings: VolumeSettings) -> list[Check]:
    """Of each click hour: a warning a metric and, where the settings say so, a critical check."""
    return _checks(OF_CLICK_HOURS, settings)


def log_hour_checks(settings: VolumeSettings) -> list[Check]:
    """The same of each source's log hour."""
    return _checks(OF_LOG_HOURS, settings)


def volume_findings(partitions: Collection[Partition], facts: Facts, settings: VolumeSettings) -> Findings:
    """What each metric is in these log hours and click hours, and what it usually is."""
    numbers = run_sql(_NUMBERS, **facts).to_pylist()
    landed: dict[tuple[str, str | None], dict[Hour, float]] = defaultdict(dict)
    for number in numbers:
        if number["has_landed"]:
            landed[number["metric"], number["source"]][log_hour_of(number)] = number["value"]
    return {
        (partition, name): _finding(number, landed[number["metric"], number["source"]], deviations, settings)
        for number in numbers
        if (partition := Partition(log_hour_of(number), number["source"])) in partitions
        for name, _, deviations in _bounds(METRICS[number["metric"]], settings)
    }


def _checks(metrics: Iterable[Metric], settings: VolumeSettings) -> list[Check]:
    return [
        Check(
            suite="volume",
            name=name,
            table=metric.table.name,
            expectation=between(name, None if metric.is_share else -deviations, deviations),
            severity=severity,
            holds=f"{metric.name.replace('_', ' ')} {'at most' if metric.is_share else 'within'} {deviations:g} "
            f"deviations {'above' if metric.is_share else 'of'} the median of the same hour of the last "
            f"{settings.days} days",
            reason=metric.reason,
            when_null=NOT_ENOUGH_HISTORY,
        )
        for metric in metrics
        for name, severity, deviations in _bounds(metric, settings)
    ]


def _bounds(metric: Metric, settings: VolumeSettings) -> Iterator[tuple[str, str, float]]:
    """The name of each check of the metric, its severity, and the deviations that it allows."""
    yield metric.name, WARNING, settings.warning_deviations
    if settings.critical_deviations is not None:
        yield f"{metric.name}_critical", CRITICAL, settings.critical_deviations


def _finding(
    number: Mapping[str, Any], by_hour: Mapping[Hour, float], deviations: float, settings: VolumeSettings
) -> Finding:
    """Of a row of ``_NUMBERS``, by what it was in the hours that landed."""
    metric, value = METRICS[number["metric"]], number["value"]
    days = [hour for hour in same_hour_before(log_hour_of(number), settings.days) if hour in by_hour]
    history = ", ".join(f"{hour.start:%-d %b} {_formatted(metric, by_hour[hour])}" for hour in days)
    now = f"{metric.name} = {_formatted(metric, value)}"
    if len(days) < settings.min_points:
        text = f"{now}; {len(days)} of the {settings.min_points} days that a median needs"
        return Finding(None, f"{text}; {history}" if days else text, value)
    if metric.is_share:
        # So many lines are as good as none, as a share of few lines too.
        least = max(settings.smallest_share_deviation, settings.smallest_count_deviation / number["whole"])
        usual = usual_range([by_hour[hour] for hour in days], 0, least)
    else:
        counts = [by_hour[hour] for hour in days]
        usual = usual_range(counts, settings.smallest_deviation, settings.smallest_count_deviation)
    lowest, highest = usual.bounds(deviations)
    bounds = f"{'at most' if metric.is_share else f'{_formatted(metric, lowest)} to'} {_formatted(metric, highest)}"
    return Finding(
        judged=usual.distance(value),
        observed=f"{now}; median of {len(days)} days {_formatted(metric, usual.median)}, expected {bounds}; {history}",
        value=value,
        lowest=None if metric.is_share else lowest,
        highest=highest,
    )


def _formatted(metric: Metric, value: float) -> str:
    return f"{value:.2%}" if metric.is_share else f"{value:,.0f}"
