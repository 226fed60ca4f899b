"""Spark's formatted plan of a query, read back from its text into a tree of operators with their metrics.

The text is what ``EXPLAIN FORMATTED`` prints and the status API keeps: a tree that numbers its operators, then a
paragraph for each. When adaptive execution has ended it holds the final plan, which is read, and the initial one, which
is not. Attributes keep Spark's expression ids (``url#12``): two columns are the same when these are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from include.errors import ClickmillError

_TREE_LINE = re.compile(r"^(?P<indent>(?:   |:  |:- |\+- )*)(?:\* )?(?P<name>\S.*?) ?\((?P<number>\d+)\)")
_MARKER = re.compile(r"^(?P<indent>(?:   |:  |:- |\+- )*)== (?P<plan>Final|Current|Initial) Plan ==")
_HEADING = re.compile(r"^\((?P<number>\d+)\) (?P<name>.*)$")
_DETAIL = re.compile(r"^(?P<key>[A-Z][A-Za-z ]*?)(?: \[\d+\])?\s?: (?P<value>.*)$")
_ID = re.compile(r"#\d+L?")


@dataclass(frozen=True)
class Operator:
    """One operator of a plan and those whose rows it reads.

    ``details`` are the lines of its paragraph by their names (``Keys``, ``Arguments``), without the number of their
    entries. ``metrics`` are as Spark writes them; none where the query has not run.
    """

    number: int
    name: str
    details: Mapping[str, str] = field(default_factory=dict, hash=False)
    children: tuple[Operator, ...] = ()
    metrics: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def reuses(self) -> int | None:
        """The number of the exchange whose rows a ReusedExchange reads again."""
        reused = re.search(r"Reuses operator id: (\d+)", self.details.get("heading", ""))
        return int(reused[1]) if reused else None

    def walk(self) -> Iterator[Operator]:
        """This operator and all below, parents first, in the order of the text."""
        yield self
        for child in self.children:
            yield from child.walk()

    def detail_list(self, name: str) -> list[str]:
        """The entries of a detail such as ``[a#1, b#2]``; none when it is absent."""
        return entries(self.details.get(name, ""))


def read_plan(text: str, nodes: Sequence[tuple[str, Mapping[str, str]]] = (), *, initial: bool = False) -> Operator:
    """The plan's tree; of an adaptive plan the final one, or the initial one if asked for.

    ``nodes`` are the names and metrics of the status API, in its order. It lists the same operators in the same order,
    without those that only wrap others, so they are matched by it.

    Raises:
        ClickmillError: if the text is no formatted plan.
    """
    tree, _, paragraphs = text.partition("\n\n")
    lines = list(_tree_lines(tree, "Final" if initial else "Initial"))
    if not lines:
        raise ClickmillError(f"no plan in {text[:80]!r}; expected Spark's formatted plan (spark.sql.ui.explainMode)")
    details = _details(paragraphs)
    metrics: dict[int, Mapping[str, str]] = {}
    names, others = (
        [name.split(" ")[0] for name in names] for names in ([n for _, n, _ in lines], [n for n, _ in nodes])
    )
    matcher = SequenceMatcher(None, names, others, autojunk=False)
    for block in matcher.get_matching_blocks():
        for offset in range(block.size):
            metrics[block.a + offset] = nodes[block.b + offset][1]
    root, end = _subtree(lines, 0, details, metrics)
    if end < len(lines):
        raise ClickmillError(f"the plan has no single root: line {end + 1} of {len(lines)} is a second one")
    return root


def entries(text: str) -> list[str]:
    """The entries of ``[a, f(b, c)]``, split at commas that are in no bracket; the outer brackets may be absent."""
    parts, depth, start = [], 0, 0
    text = text.strip()
    for index, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    parts = [entry for entry in [*parts, text[start:].strip()] if entry]
    if len(parts) == 1 and text.startswith("[") and text.endswith("]"):
        return entries(text[1:-1]) if text[1:-1].strip() else []
    return parts


def without_ids(expression: str) -> str:
    """``url`` of ``url#12``: what a person reads."""
    return _ID.sub("", expression)


def _tree_lines(tree: str, without: str) -> Iterator[tuple[int, str, int]]:
    """Depth, name and number of the plan's operators, without those of its final or of its initial plan."""
    skipped_depth: int | None = None
    for line in tree.splitlines():
        marker = _MARKER.match(line)
        if marker:
            # A plan that Spark did not write once more at its end is still called the current one.
            plan = "Final" if marker["plan"] == "Current" else marker["plan"]
            skipped_depth = len(marker["indent"]) // 3 if plan == without else None
            continue
        operator = _TREE_LINE.match(line)
        if not operator:
            continue
        depth = len(operator["indent"]) // 3
        if skipped_depth is not None and depth >= skipped_depth:
            continue
        skipped_depth = None
        yield depth, operator["name"].strip(), int(operator["number"])


def _details(paragraphs: str) -> dict[int, dict[str, str]]:
    details: dict[int, dict[str, str]] = {}
    for paragraph in paragraphs.split("\n\n"):
        heading, *lines = paragraph.strip("\n").splitlines() or [""]
        operator = _HEADING.match(heading)
        if not operator:
            continue
        matches = (_DETAIL.match(line) for line in lines)
        details[int(operator["number"])] = {"heading": operator["name"]} | {
            match["key"].strip(): match["value"] for match in matches if match
        }
    return details


def _subtree(
    lines: Sequence[tuple[int, str, int]],
    start: int,
    details: Mapping[int, Mapping[str, str]],
    metrics: Mapping[int, Mapping[str, str]],
) -> tuple[Operator, int]:
    """The operator at this line with all below it, and the first line after."""
    depth, name, number = lines[start]
    children, line = [], start + 1
    while line < len(lines) and lines[line][0] > depth:
        child, line = _subtree(lines, line, details, metrics)
        children.append(child)
    own = details.get(number, {})
    # The tree adds to some names (``BroadcastHashJoin Inner``), the paragraph to others (``Filter [codegen id : 1]``).
    plain = own.get("heading", "").partition(" [")[0].strip()
    name = plain if plain and name.startswith(plain) else name
    return Operator(number, name, own, tuple(children), metrics.get(start, {})), line
