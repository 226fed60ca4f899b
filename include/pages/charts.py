"""Charts by pygal as inline SVG, for pages that allow nothing else."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

from markupsafe import Markup
from pygal.style import Style

from include.texts import as_printable

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

_SVG_ELEMENTS = {"svg", "g", "path", "rect", "circle", "text"}
_SVG_ATTRIBUTES = {"class", "d", "x", "y", "cx", "cy", "r", "width", "height", "transform", "viewBox"}
_LONG_NUMBER = re.compile(r"\d+\.\d+")


def as_svg(chart: Any, kind: str, name: str) -> Markup:
    """The chart as inline SVG: only what draws it, without pygal's script, style sheet, comments and ids."""
    svg = _drawn(chart.render_tree())
    assert svg is not None, "pygal's root is an svg element"
    svg.attrib = {
        "class": f"chart {kind}",
        "viewBox": svg.attrib["viewBox"],
        "role": "img",
        "aria-label": as_printable(name),
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
        copy.text = as_printable(node.text or "")
        return copy if node.text else None
    copy.extend(child for child in map(_drawn, node) if child is not None)
    if node.tag == "g" and not len(copy):
        return None
    tip = next((child.text for child in node if child.tag == "desc" and child.get("class") == "label"), None)
    if tip:
        title = ElementTree.SubElement(copy, "title")
        title.text = as_printable(tip)
    return copy
