"""A document as one HTML page: a file that needs nothing else."""

from __future__ import annotations

from pathlib import Path

import pygal
from markupsafe import Markup

from include.documents.model import Chart, Document
from include.pages.charts import CHART_OPTIONS, as_svg
from include.pages.render import render_page

_TEMPLATE = Path(__file__).resolve().parent / "templates" / "document.html"


def render_document(document: Document) -> str:
    """The same document gives the same page."""
    return render_page(_TEMPLATE, "document.css", document=document, drawn=_drawn)


def _drawn(chart: Chart) -> Markup:
    bars = chart.bars
    options = CHART_OPTIONS | {"value_formatter": _as_number, "x_value_formatter": _as_number, "width": 420}
    if chart.has_long_names:
        bars = bars[::-1]  # pygal draws from the bottom up
        options |= {"height": 50 + 30 * len(bars), "show_x_guides": True}
    else:
        options |= {"height": 180, "x_labels_major_count": min(len(bars), 16), "show_minor_x_labels": False}
    kind = pygal.HorizontalBar if chart.has_long_names else pygal.Bar
    drawing = kind(**options, max_scale=4, range=(0, chart.highest), x_labels=[name for name, _ in bars])
    drawing.add(
        "", [{"value": value, "label": f"{name}: {_as_number(value)}"} if value else None for name, value in bars]
    )
    return as_svg(drawing, "bars", chart.title)


def _as_number(number: float) -> str:
    """``1,200``, ``0.5``."""
    return f"{number:,.1f}".removesuffix(".0")
