"""The chart of a check's values over the hours."""

from __future__ import annotations

from collections.abc import Sequence

import pygal
from markupsafe import Markup

from include.hours import Hour, HourRange
from include.pages.charts import CHART_OPTIONS, as_svg
from include.quality_index import Point
from plugins.data_quality.rendering import as_number


def draw_history(points: Sequence[Point], name: str, *, width: int, height: int, size: str = "wide") -> Markup:
    """Values over the hours between their bounds, those outside marked; a gap where an hour has none."""
    first, last = Hour.parse(points[0].hour), Hour.parse(points[-1].hour)
    at = {point.hour: point for point in points}
    hours = [str(hour) for hour in HourRange(first, last.plus(1))]
    points_by_hour = [at.get(hour) for hour in hours]
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
        ("lowest", [point.lowest if point else None for point in points_by_hour]),
        ("highest", [point.highest if point else None for point in points_by_hour]),
        ("found", [point.value if point else None for point in points_by_hour]),
    ):
        chart.add(title, values)
    chart.add(
        "outside",
        [
            {"value": point.value, "label": f"{point.hour}: {as_number(point.value)}"}
            if point and point.value is not None and (point.state in ("fail", "warning") or len(points) == 1)
            else None
            for point in points_by_hour
        ],
        show_dots=True,
        dots_size=4,
        stroke=False,
    )
    return as_svg(chart, f"history {size}", name)


def _short(hour: str) -> str:
    return hour[5:].replace("T", " ") + "h"
