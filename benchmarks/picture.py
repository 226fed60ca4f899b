"""Charts of what was measured, one above the other, as one SVG that is readable on light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pygal

from include.pages.charts import CHART_OPTIONS, as_svg

_WIDTH, _HEIGHT, _HEADING = 760, 150, 26
_STYLE = """
  svg { --paper: #ffffff; --ink: #1f2933; --line: #d2d8de; --a: #2563eb; --b: #d97706; }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #11161d; --ink: #e6edf3; --line: #3b4754; --a: #6ea8fe; --b: #fbbf24; }
  }
  .paper { fill: var(--paper); }
  text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--ink); stroke: none; }
  .heading { font-weight: 600; font-size: 13px; }
  path { fill: none; stroke: none; }
  .axis.y text { text-anchor: end; }
  .axis.x text { text-anchor: middle; }
  .axis path { stroke: var(--line); }
  .series path { stroke: var(--a); stroke-width: 2; }
  .serie-1 path { stroke: var(--b); }
  .a { fill: var(--a); }
  .b { fill: var(--b); }
"""


@dataclass(frozen=True)
class Chart:
    """Up to two lines, each of points; ``heading`` is SVG, in which ``first`` and ``second`` have their colours."""

    heading: str
    lines: Sequence[Sequence[tuple[float, float]]]


def first(name: str) -> str:
    """A name in the colour of a chart's first line."""
    return f'<tspan class="a">{name}</tspan>'


def second(name: str) -> str:
    """A name in the colour of a chart's second line."""
    return f'<tspan class="b">{name}</tspan>'


def draw(charts: Sequence[Chart], label: str, over: str, note: str = "") -> str:
    """The SVG: ``label`` says what it shows to those who do not see it, ``over`` what the lines go over."""
    step = _HEIGHT + _HEADING
    drawn = [
        f'<text class="heading" x="12" y="{number * step + 18}">{chart.heading}</text>\n'
        f'<svg y="{number * step + _HEADING}" width="{_WIDTH}" height="{_HEIGHT}">{_drawn(chart.lines, over)}</svg>'
        for number, chart in enumerate(charts)
    ]
    height = len(charts) * step + 24
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'role="img" aria-label="{label}">\n'
        f'<style>{_STYLE}</style>\n<rect class="paper" width="{_WIDTH}" height="{height}"/>\n'
        + "\n".join(drawn)
        + f'\n<text x="12" y="{height - 8}">{"; ".join(filter(None, (over, note)))}</text>\n</svg>\n'
    )


def _drawn(lines: Sequence[Sequence[tuple[float, float]]], over: str) -> str:
    chart = pygal.XY(
        **CHART_OPTIONS | {"value_formatter": lambda value: f"{value:,.3g}" if value < 100 else f"{value:,.0f}"},
        css=[],
        js=[],
        width=_WIDTH,
        height=_HEIGHT,
        show_dots=False,
        max_scale=4,
        range=(0, 1.05 * max(value for line in lines for _, value in line)),
    )
    for line in lines:
        chart.add("", list(line))
    return str(as_svg(chart, "line", f"over the {over}"))
