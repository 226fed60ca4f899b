"""The picture of a stream that falls behind: records produced and read, lag and memory over time, as one SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pygal

from include.pages.charts import CHART_OPTIONS, as_svg

WIDTH, HEIGHT, HEADING = 760, 150, 26
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
class Moment:
    """What is seen at one second: records so far, memory, and whether more are being produced."""

    second: float
    produced: int
    read: int
    mebibytes: float
    is_producing: bool

    @property
    def lag(self) -> int:
        """Records that are produced and not read."""
        return self.produced - self.read


def draw(seen: Sequence[Moment]) -> str:
    """The SVG: three charts, one above the other, over the seconds."""
    memory = [(moment.second, moment.mebibytes / 1024) for moment in seen]
    panels = (
        (
            '<tspan class="a">produced</tspan> and <tspan class="b">read</tspan>, million records',
            [(moment.second, moment.produced / 1e6) for moment in seen],
            [(moment.second, moment.read / 1e6) for moment in seen],
        ),
        ("lag, million records", [(moment.second, moment.lag / 1e6) for moment in seen]),
        ("memory of Spark's server and its workers, GiB", memory),
    )
    step = HEIGHT + HEADING
    drawn = [
        f'<text class="heading" x="12" y="{number * step + 18}">{heading}</text>\n'
        f'<svg y="{number * step + HEADING}" width="{WIDTH}" height="{HEIGHT}">{_chart(lines)}</svg>'
        for number, (heading, *lines) in enumerate(panels)
    ]
    height = len(panels) * step + 24
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img" aria-label="Records produced and read, lag and memory while a stream falls behind, and after">\n'
        f'<style>{_STYLE}</style>\n<rect class="paper" width="{WIDTH}" height="{height}"/>\n'
        + "\n".join(drawn)
        + f'\n<text x="12" y="{height - 8}">seconds; nothing is produced after '
        f"{max(moment.second for moment in seen if moment.is_producing):.0f}</text>\n</svg>\n"
    )


def _chart(lines: Sequence[Sequence[tuple[float, float]]]) -> str:
    chart = pygal.XY(
        **CHART_OPTIONS | {"value_formatter": lambda value: f"{value:,.3g}" if value < 100 else f"{value:,.0f}"},
        css=[],
        js=[],
        width=WIDTH,
        height=HEIGHT,
        show_dots=False,
        max_scale=4,
        range=(0, 1.05 * max(value for line in lines for _, value in line)),
    )
    for line in lines:
        chart.add("", list(line))
    return str(as_svg(chart, "line", "over the seconds"))
