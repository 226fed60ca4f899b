"""The topology of jobs as one HTML page that needs nothing else: no script, no other host.

Sub-topologies are boxes, from left to right as rows flow; cuts are arrows with what crosses them. Texts (paths, keys,
names of tables) are shown, never trusted: they are escaped, and the page forbids itself everything but its style.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from xml.etree.ElementTree import Element, SubElement, tostring

from markupsafe import Markup

from include.documents.model import Document, Drawing, Line
from include.texts import as_printable, plural
from spark_jobs.topology.model import (
    Cut,
    JobTopology,
    QueryTopology,
    SubTopology,
    describe_query,
    described_assignment,
    described_cut,
)

BOX_WIDTH, GAP, MARGIN = 228, 158, 4
LINE, PADDING, APART = 17, 10, 26
#: Characters of a line in a box, and beside an arrow; a longer text is wrapped.
BOX_CHARACTERS, LABEL_CHARACTERS = 32, 22
MOST_LINES = 6


@dataclass(frozen=True)
class Box:
    """A sub-topology's place."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True)
class Arrow:
    """A cut's line and its tip, as SVG paths."""

    kind: str
    path: str
    tip: str


@dataclass(frozen=True)
class PlacedText:
    """A line of text at a place; ``kind`` is its look."""

    kind: str
    x: int
    y: int
    text: str


@dataclass(frozen=True)
class Picture:
    """A query's topology, drawn."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    lines: tuple[PlacedText, ...]


def topology_document(topologies: Sequence[JobTopology], of: str, workers: int, cores: int) -> Document:
    """A drawing of each query; ``of`` says what the jobs ran on. The same topologies give the same document."""
    blocks: list[Line | Drawing] = []
    for topology in topologies:
        for query in topology.queries:
            text = (*describe_query(query), *described_assignment(query, workers, cores))
            blocks.append(Drawing(f"{topology.job}: {query.name}", _as_svg(draw(query), query.name), text))
            blocks += [Line(sentence, "warned") for sentence in query.needless]
    return Document(
        tuple(blocks),
        title=f"Topology of {', '.join(topology.job for topology in topologies)}",
        subtitle=f"What ran on {of}: Spark's final plans, cut at shuffles and broadcasts. The text has a simulation of "
        f"its tasks on {plural(workers, 'worker')} with {plural(cores, 'core')} each.",
        footer="A box is a sub-topology: what one task does to its partition without waiting for others. A solid arrow "
        "is a shuffle, which repartitions rows; a broken one is a broadcast, which gives all rows to every task. Sizes "
        "are those of the compressed rows that crossed. Made by clickmill topology.",
    )


def _as_svg(picture: Picture, name: str) -> Markup:
    label = as_printable(f"Topology of {name}; the same as text below")
    size = {"width": str(picture.width), "height": str(picture.height)}
    svg = Element("svg", size | {"class": "drawing", "role": "img", "aria-label": label})
    svg.set("viewBox", f"0 0 {picture.width} {picture.height}")
    for arrow in picture.arrows:
        SubElement(svg, "path", {"class": arrow.kind, "d": arrow.path})
        SubElement(svg, "path", {"class": f"{arrow.kind} tip", "d": arrow.tip})
    for box in picture.boxes:
        SubElement(
            svg, "rect", {"class": "box", "rx": "5", **{side: str(place) for side, place in asdict(box).items()}}
        )
    for line in picture.lines:
        text = SubElement(svg, "text", {"class": line.kind, "x": str(line.x), "y": str(line.y)})
        text.text = as_printable(line.text)
    return Markup(tostring(svg, encoding="unicode"))


def draw(query: QueryTopology) -> Picture:
    """Boxes in columns: each right of all whose rows it reads; in a column one below the other."""
    column = _columns(query)
    texts = {part.number: _box_lines(part) for part in query.sub_topologies}
    labels = {cut.number: _label_lines(cut) for cut in query.cuts}
    cut_of = {cut.writer: cut for cut in query.cuts}
    boxes: dict[int, Box] = {}
    bottom: dict[int, int] = {}
    for part in query.sub_topologies:
        height = len(texts[part.number]) * LINE + 2 * PADDING
        # The label's lines but the first are below the arrow, which leaves the box in its middle.
        label = len(labels[cut_of[part.number].number]) if part.number in cut_of else 0
        reach = max(height, height // 2 + label * LINE)
        x = MARGIN + column[part.number] * (BOX_WIDTH + GAP)
        writers = [boxes[cut.writer] for cut in query.cuts if part.number in cut.readers]
        # Beside the middle of what it reads, unless something is there.
        wished = round(sum(box.y + box.height / 2 for box in writers) / len(writers) - height / 2) if writers else 0
        y = max(wished, bottom.get(column[part.number], MARGIN), MARGIN)
        boxes[part.number] = Box(x, y, BOX_WIDTH, height)
        bottom[column[part.number]] = y + reach + APART
    lines = [
        PlacedText(kind, boxes[number].x + PADDING, boxes[number].y + PADDING + (row + 1) * LINE - 5, text)
        for number, of_box in texts.items()
        for row, (kind, text) in enumerate(of_box)
    ]
    arrows = []
    for cut in query.cuts:
        start = boxes[cut.writer]
        middle = start.y + start.height // 2
        for reader in cut.readers:
            arrows.append(_arrow(cut.kind, start.x + start.width, middle, boxes[reader]))
        lines += [
            # One line above the arrow, the others below it.
            PlacedText("label", start.x + start.width + 8, (middle - 7) if row == 0 else middle + row * LINE, text)
            for row, text in enumerate(labels[cut.number])
        ]
    return Picture(
        max(box.x + box.width for box in boxes.values()) + MARGIN,
        max(bottom.values()) - APART + MARGIN,
        tuple(boxes.values()),
        tuple(arrows),
        tuple(lines),
    )


def _columns(query: QueryTopology) -> dict[int, int]:
    """How many cuts lie at most between a sub-topology and the sources; writers have lower numbers than readers."""
    column: dict[int, int] = {}
    for part in query.sub_topologies:
        column[part.number] = max(
            (column[cut.writer] + 1 for cut in query.cuts if part.number in cut.readers), default=0
        )
    return column


def _arrow(kind: str, x: int, y: int, reader: Box) -> Arrow:
    """A line to the middle of the reader's side, straight where it meets the side anyway."""
    end_x, end_y = reader.x - 7, reader.y + reader.height // 2
    if reader.y + PADDING <= y <= reader.y + reader.height - PADDING:
        end_y = y
    turn, bend = end_x - 14, 10 if end_y > y else -10
    path = f"M{x} {y} H{end_x}"
    if abs(end_y - y) > abs(2 * bend):
        corner = f"H{turn - 10} Q{turn} {y} {turn} {y + bend} V{end_y - bend} Q{turn} {end_y} {turn + 10} {end_y}"
        path = f"M{x} {y} {corner} H{end_x}"
    elif end_y != y:
        path = f"M{x} {y} H{turn - 10} L{end_x} {end_y}"
    return Arrow(kind, path, f"M{end_x} {end_y - 5} L{reader.x} {end_y} L{end_x} {end_y + 5} Z")


def _box_lines(part: SubTopology) -> list[tuple[str, str]]:
    tasks = "" if part.partitions is None else f" · {part.partitions:,} task{'' if part.partitions == 1 else 's'}"
    lines = [("title", f"Sub-topology {part.number}{tasks}")]
    for kind, texts in (("end", part.sources), ("operator", part.operators), ("end", part.sinks)):
        mark = {"end": "from " if texts is part.sources else "to "}.get(kind, "")
        lines += [(kind, line) for text in texts for line in _wrapped(mark + text, BOX_CHARACTERS)]
    return lines


def _label_lines(cut: Cut) -> list[str]:
    cause, *rest = described_cut(cut)
    return [cut.name, *(line for text in (cause, *rest) for line in _wrapped(text, LABEL_CHARACTERS))]


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, max_lines=MOST_LINES, placeholder=" …")
