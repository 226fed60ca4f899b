"""The advice on groupings as an HTML page: one file that needs nothing else, made as the report is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import pygal
from markupsafe import Markup

from include.pages.charts import CHART_OPTIONS, as_svg
from include.pages.render import render_page
from include.texts import as_count
from include.uneven_load import as_shown
from spark_jobs.grouping.advice import Advice, GroupingLoad, fields_limit, most_instances, name_of
from spark_jobs.grouping.advice_values import as_settings
from spark_jobs.grouping.shown_advice import named, rates_of, recommended

_TEMPLATES = Path(__file__).resolve().parent / "templates"


def render_advice(advice: Advice) -> str:
    """The advice as one HTML page; the same advice gives the same page."""
    by_count = {count: list(loads) for count, loads in groupby(advice.loads, key=lambda load: load.instances)}
    shown_alike = by_count[advice.recommendation.instances]
    return render_page(
        _TEMPLATES / "advice.html",
        advice=advice,
        distribution=advice.distribution,
        by_count=by_count,
        speed_up_charts={count: _speed_up_chart(count, loads) for count, loads in by_count.items() if count > 1},
        instance_charts=[
            (load, _instance_chart(load, max(other.largest for other in shown_alike))) for load in shown_alike
        ],
        recommendations=[
            (what, recommended(recommendation), recommendation.reason)
            for what, recommendation in (
                ("Recommended", advice.recommendation),
                (f"For this Spark, which runs {advice.cores} instances in parallel", advice.here),
            )
            if recommendation is not None
        ],
        settings=as_settings(advice.distribution.key, advice.recommendation),
        named=named,
        rates_of=rates_of,
        as_shown=as_shown,
        fields_limit=fields_limit,
        name_of=name_of,
        most=most_instances(advice.loads),
    )


def _speed_up_chart(count: int, loads: Sequence[GroupingLoad]) -> Markup:
    """A bar per grouping."""
    upwards = loads[::-1]  # pygal draws from the bottom up
    chart = pygal.HorizontalBar(
        **CHART_OPTIONS
        | {"value_formatter": lambda value: f"{value:,.1f}", "x_value_formatter": lambda value: f"{value:,.1f}"},
        width=420,
        height=50 + 30 * len(upwards),
        max_scale=4,
        range=(0, count),
        show_x_guides=True,
        x_labels=[named(load) for load in upwards],
    )
    chart.add(
        "speed-up",
        [
            {"value": load.speed_up, "label": f"{as_shown(load.described)}: speed-up {load.speed_up:.1f} of {count}"}
            for load in upwards
        ],
    )
    return as_svg(chart, "speed-up", f"Expected speed-up over {count} instances by grouping")


def _instance_chart(load: GroupingLoad, most: int) -> Markup:
    """A bar per instance; the axis ends at ``most``, so that charts beside each other compare."""
    chart = pygal.Bar(
        **CHART_OPTIONS,
        width=420,
        height=180,
        max_scale=4,
        range=(0, most),
        x_labels=[str(instance) for instance in range(load.instances)],
        x_labels_major_count=min(load.instances, 16),
        show_minor_x_labels=False,
    )
    chart.add(
        "clicks",
        [
            {"value": rows, "label": f"instance {instance}: {as_count(rows)} clicks"} if rows else None
            for instance, rows in enumerate(load.rows)
        ],
    )
    return as_svg(chart, "instances", f"Clicks of each instance of {as_shown(load.described)}")
