"""Which fields the lines of a JSON source have, and of which types: what schema drift is found by.

A few lines are looked at, by those who have them (``spark_jobs/lines/sampled_lines.py``), in shapes: lines with the
same fields of the same types are of one shape, and one of them stands for all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from include.texts import as_printable, crop_middle

#: The first lines of each file are sampled, and after them one in so many.
FIRST_SAMPLED_LINES = 100
SAMPLED_EVERY = 100
#: Of a log hour so many fields and types are kept, those in most lines; a source may have the fields' names made up.
MAX_FIELDS = 300
MAX_PATH_CHARACTERS = 200
MAX_EXAMPLE_CHARACTERS = 60
#: What is nested deeper is not looked at.
MAX_DEPTH = 16


@dataclass
class SampledField:
    """In how many of the sampled lines a field has values of one type, and such a value.

    ``example`` is null for objects, arrays and null.
    """

    lines: int = 0
    example: str | None = None

    def add(self, other: SampledField) -> None:
        """Count other lines; of the examples the smallest is kept, the same whatever order they come in."""
        self.lines += other.lines
        self.example = min((e for e in (self.example, other.example) if e is not None), default=None)


@dataclass(frozen=True)
class SampledFields:
    """How many lines were looked at, and their fields, by dotted path and type.

    Types are JSON's: object, array, string, integer, number (with a point or an exponent), boolean, null. What is
    inside an array has ``[]`` after the array's path.
    """

    lines: int
    fields: dict[tuple[str, str], SampledField]

    def less(self, left_out: Collection[str], without_example: Collection[str]) -> SampledFields:
        """Without some paths, and without an example of others; each stands for what is inside it too."""
        return SampledFields(
            self.lines,
            {
                (path, type_): SampledField(seen.lines) if is_within(path, without_example) else seen
                for (path, type_), seen in self.fields.items()
                if not is_within(path, left_out)
            },
        )

    def as_rows(self) -> list[dict[str, Any]]:
        """As ``sampled_fields`` of a table has them, in order of the path."""
        most = sorted(self.fields.items(), key=lambda item: (-item[1].lines, item[0]))[:MAX_FIELDS]
        return [
            {"path": path, "type": type_, "lines": seen.lines, "example": seen.example}
            for (path, type_), seen in sorted(most, key=lambda item: item[0])
        ]

    @classmethod
    def of_rows(cls, lines: int, rows: Iterable[Mapping[str, Any]]) -> SampledFields:
        """Those of ``as_rows``."""
        return cls(lines, {(row["path"], row["type"]): SampledField(row["lines"], row["example"]) for row in rows})

    def __add__(self, other: SampledFields) -> SampledFields:
        """Those of both, of different lines."""
        fields = {key: SampledField(seen.lines, seen.example) for key, seen in self.fields.items()}
        for key, seen in other.fields.items():
            fields.setdefault(key, SampledField()).add(seen)
        return SampledFields(self.lines + other.lines, fields)


class LineShapes:
    """Lines by their shape: of the lines of one shape the smallest is kept, and how many they are.

    A line that is no JSON object is left out. Of a name that comes twice in an object the last value counts.
    """

    def __init__(self) -> None:
        self._shapes: dict[frozenset[tuple[str, str]], tuple[int, str]] = {}

    def add(self, line: str) -> None:
        """Count one more line."""
        if (values := _values(line)) is not None:
            shape = frozenset(values)
            lines, smallest = self._shapes.get(shape, (0, line))
            self._shapes[shape] = lines + 1, min(smallest, line)

    def fields(self) -> SampledFields:
        """The fields of all these lines."""
        fields: dict[tuple[str, str], SampledField] = {}
        for lines, smallest in self._shapes.values():
            for key, value in (_values(smallest) or {}).items():
                fields.setdefault(key, SampledField()).add(SampledField(lines, _example(value)))
        return SampledFields(sum(lines for lines, _ in self._shapes.values()), fields)


def _values(line: str) -> dict[tuple[str, str], Any] | None:
    """A value for each field and type of a line; None if it is no JSON object."""
    try:
        document = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(document, dict):
        return None
    # A field has one type in a line, but what is inside an array may have several, or one many times.
    return {(path, json_type(value)): value for path, value in _fields_of(document, "", MAX_DEPTH)}


def json_type(value: Any) -> str:
    """The name of a value's JSON type, whole numbers apart."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def is_within(path: str, paths: Collection[str]) -> bool:
    """Whether the path is one of these, or of a field inside one of them."""
    return any(path == outer or path.startswith((f"{outer}.", f"{outer}[")) for outer in paths)


def _fields_of(value: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    """The fields inside a value, with those inside them."""
    inside: Iterable[tuple[str, Any]] = ()
    if isinstance(value, dict):
        inside = ((f"{path}.{name}" if path else name, element) for name, element in value.items())
    elif isinstance(value, list):
        inside = ((f"{path}[]", element) for element in value)
    for name, element in inside:
        yield name[:MAX_PATH_CHARACTERS], element
        if depth:
            yield from _fields_of(element, name, depth - 1)


def _example(value: Any) -> str | None:
    if value is None or isinstance(value, dict | list):
        return None
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return crop_middle(as_printable(text), MAX_EXAMPLE_CHARACTERS)
