"""The page of one check: its values over days, with their bounds."""

from __future__ import annotations

from include.hours import Hour, HourRange
from include.quality_index import QualityIndex
from include.texts import plural
from plugins.data_quality.history_chart import draw_history
from plugins.data_quality.links import Links
from plugins.data_quality.rendering import render_page

#: How far back the page of a metric looks, in days.
METRIC_DAYS = (7, 31, 92)


def render_metric(
    index: QualityIndex, suite: str, check_id: str, series: str, days: int, links: Links
) -> tuple[str, str] | None:
    """A check's values with their bounds, and the page's policy; None when there is no such check."""
    newest = index.newest_result(suite, check_id, series)
    if newest is None:
        return None
    end = Hour.parse(newest.hour).plus(1)
    points = index.history(suite, check_id, series, HourRange(end.plus(-24 * days), end))
    name = f"{check_id}: {plural(len(points), 'hour')} up to {newest.hour}"
    has_numbers = any(point.value is not None for point in points)
    return render_page(
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
