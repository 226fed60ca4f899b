"""Values inside JSON documents by their paths: SQL for DuckDB.

A line is a document; a text inside it may be one too. DuckDB takes all values out of a document at once, as a struct
that is like the part of the document that is needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from include.duckdb_sql import quoted
from include.source_fields import Entry, FieldPath
from spark_jobs.lines.json_repairs import repaired_or_null

#: An object's fields by name; of a list its elements are under None.
Shape = dict[str | None, "Shape | str"]
_TEXT, _LIST = "VARCHAR", "list of VARCHAR"
#: Of a list of one element that is the value, of others the list's JSON, or the elements with commas between.
Lists = Literal["not looked for", "as JSON", "joined"]
#: Where a value is looked for: at its path, or else under the name that its path is as a whole, points and all; or in
#: texts with JSON in them too, and lists are told.
Care = Literal["plain", "texts"]


@dataclass
class _Structs:
    """The shapes that a document's values are taken out by.

    They are several where one cannot have all: names of a DuckDB struct differ in more than their case, those of JSON
    objects need not; and what is an object in one line is a text in another.
    """

    shapes: list[Shape] = field(default_factory=list)

    def add(self, path: FieldPath, leaf: str = _TEXT) -> int:
        """The number of the shape that has the path now."""
        needed = [(_shape_path(path), leaf), *((before, _TEXT) for before in _entry_keys(path))]
        number = next((n for n, shape in enumerate(self.shapes) if _fits(shape, needed)), len(self.shapes))
        if number == len(self.shapes):
            self.shapes.append({})
        for names, type_ in needed:
            shape = self.shapes[number]
            for name in names[:-1]:
                inner = shape.setdefault(name, {})
                assert isinstance(inner, dict)
                shape = inner
            shape[names[-1]] = type_
        return number

    def of(self, text: str) -> str:
        """The SQL of the structs of a document, which is valid JSON."""
        parts = (
            f"shape{number} := json_transform({text}, {quoted(json.dumps(_structure(shape)))})"
            for number, shape in enumerate(self.shapes)
        )
        return f"struct_pack({', '.join(parts)})"


def _shape_path(path: FieldPath) -> tuple[str | None, ...]:
    return tuple(step if isinstance(step, str) else None for step in path)


def _entry_keys(path: FieldPath) -> list[tuple[str | None, ...]]:
    """Where the keys are that entries of lists are known by."""
    return [(*_shape_path(path[: place + 1]), step.key) for place, step in enumerate(path) if isinstance(step, Entry)]


def _fits(shape: Shape, needed: Iterable[tuple[tuple[str | None, ...], str]]) -> bool:
    return all(_has_room(shape, names, leaf) for names, leaf in needed)


def _has_room(shape: Shape, names: Sequence[str | None], leaf: str) -> bool:
    inner: Shape | str = shape
    for place, name in enumerate(names):
        if not isinstance(inner, dict):
            return False
        if name not in inner:
            return not inner or (name is not None and None not in inner and _is_new(name, inner))
        inner = inner[name]
        is_last = place == len(names) - 1
        if is_last:
            return inner == leaf
    return True


def _is_new(name: str, shape: Shape) -> bool:
    return name.lower() not in (other.lower() for other in shape if other is not None)


def _structure(shape: Shape | str) -> object:
    if isinstance(shape, str):
        return [_TEXT] if shape == _LIST else shape
    if None in shape:
        return [_structure(shape[None])]
    return {str(name): _structure(inner) for name, inner in shape.items()}


def _at(struct: str, path: FieldPath) -> str:
    """The SQL of what is at the path in a struct."""
    for step in path:
        if isinstance(step, str):
            struct = f"{struct}[{quoted(step)}]"
        elif isinstance(step, Entry):
            struct = f"list_filter({struct}, lambda entry: entry[{quoted(step.key)}] = {quoted(step.value)})[1]"
        else:
            struct = f"{struct}[{step + 1 if step >= 0 else step}]"
    return struct


def _alone(text: str, path: FieldPath, leaf: str = _TEXT) -> str:
    """The SQL of one value of a document."""
    structs = _Structs()
    structs.add(path, leaf)
    return _at(f"{structs.of(text)}['shape0']", path)


class _Document:
    """The values of some paths in a text of JSON: ``prefix`` is where the text is, columns have it and its structs."""

    def __init__(self, prefix: FieldPath, number: int, paths: Iterable[FieldPath], care: Care) -> None:
        self.prefix, self.text, self.object = prefix, f"text{number or ''}", f"object{number or ''}"
        self._structs = _Structs()
        within = [each for path in paths if self.has(path) for each in self._places(path)]
        self._values = {path: self._structs.add(path) for path in within}
        self._lists = {path: self._structs.add(path, _LIST) for path in within} if care == "texts" else {}

    def has(self, path: FieldPath) -> bool:
        """Whether the path leads through the text."""
        return len(path) > len(self.prefix) and path[: len(self.prefix)] == self.prefix

    def with_object(self, is_json: str | None, table: str) -> str:
        """The SQL of a table with the document's structs beside its text: null where it is no JSON."""
        structs = self._structs.of(self.text)
        structs = f"CASE WHEN {is_json} THEN {structs} END" if is_json else structs
        return f"SELECT *, {structs} AS {self.object} FROM ({table})"

    def values(self, path: FieldPath, lists: Lists) -> list[str]:
        """The SQL of what may be the value of a path that leads through the text."""
        return [self._value(each, lists) for each in self._places(path)]

    def _places(self, path: FieldPath) -> list[FieldPath]:
        return _with_flat(path[len(self.prefix) :])

    def _value(self, path: FieldPath, lists: Lists) -> str:
        value = self._at(path, self._values[path])
        if lists == "not looked for":
            return value
        elements = self._at(path, self._lists[path])
        several = f"array_to_string({elements}, ', ')" if lists == "joined" else value
        element = f"CASE len({elements}) WHEN 0 THEN NULL WHEN 1 THEN {elements}[1] ELSE {several} END"
        return f"CASE WHEN {elements} IS NULL THEN {value} ELSE {element} END"

    def _at(self, path: FieldPath, number: int) -> str:
        return _at(f"{self.object}['shape{number}']", path)


def _with_flat(path: FieldPath) -> list[FieldPath]:
    """The path; and the name that it is as a whole."""
    if len(path) > 1 and all(isinstance(step, str) for step in path):
        return [path, (".".join(map(str, path)),)]
    return [path]


class Documents:
    """SQL that takes the values of some paths out of ``lines``.

    ``table()`` has ``is_object``, whether a line is a JSON object, and the columns that ``value`` has named. Where
    ``are_objects`` all lines are, or null: DuckDB raises an error for one that is no JSON.
    """

    def __init__(self, paths: Iterable[FieldPath], care: Care, *, are_objects: bool = False) -> None:
        paths = list(dict.fromkeys(paths))
        line = _Document((), 0, paths, care)
        self._documents = [line]
        self._values: dict[tuple[FieldPath, Lists], str] = {}
        is_object = None if are_objects else "json_valid(text) AND ltrim(text, ' \t\r\n') LIKE '{%'"
        self._is_object = "text IS NOT NULL" if are_objects else "object IS NOT NULL"
        self._table = line.with_object(is_object, "FROM lines")
        # An entry of a list is an object, as it is known by one of its fields.
        prefixes = {path[:length] for path in paths for length in range(1, len(path))}
        prefixes = {prefix for prefix in prefixes if not isinstance(prefix[-1], Entry)}
        for number, prefix in enumerate(sorted(prefixes, key=lambda prefix: (len(prefix), str(prefix))), 1):
            if care == "texts":
                document = _Document(prefix, number, paths, care)
                table = f"SELECT *, {self._text_of(document, paths)} AS {document.text} FROM ({self._table})"
                self._table = document.with_object(f"{document.text} IS NOT NULL", table)
                self._documents.append(document)

    def _text_of(self, document: _Document, paths: Iterable[FieldPath]) -> str:
        """The SQL of a text in place of an object or a list: its quotation marks are written with backslashes."""
        around = (
            (other.text, document.prefix[len(other.prefix) :])
            for other in self._documents
            if other.has(document.prefix)
        )
        texts = (f"CASE WHEN contains({text}, '\\') THEN {_alone(text, path)} END" for text, path in around)
        is_missing = " OR ".join(
            f"{self._documents[0].values(path, 'not looked for')[0]} IS NULL" for path in paths if document.has(path)
        )
        text = repaired_or_null(f"coalesce({', '.join(texts)})")
        # One after the other: of AND both would be computed for all lines.
        return f"CASE WHEN object IS NOT NULL THEN CASE WHEN {is_missing} THEN {text} END END"

    def value(self, path: FieldPath, lists: Lists) -> str:
        """The column with a path's value, null where there is none."""
        return self._values.setdefault((path, lists), f"value{len(self._values)}")

    def table(self) -> str:
        """The SQL of the values that are asked for."""
        # Looked for in two steps, so that what a value is made of is computed once.
        of_values = [(name, self._found(path, lists)) for (path, lists), name in self._values.items()]
        first = "".join(
            f", {each} AS {name}_{place}" for name, values in of_values for place, each in enumerate(values)
        )
        named = "".join(f", {_first_of(name, len(values))} AS {name}" for name, values in of_values)
        first = f"SELECT {self._is_object} AS is_object{first} FROM ({self._table})"
        return f"SELECT is_object{named} FROM ({first})"

    def _found(self, path: FieldPath, lists: Lists) -> list[str]:
        return [value for document in self._documents if document.has(path) for value in document.values(path, lists)]


def _first_of(name: str, count: int) -> str:
    values = [f"nullif({name}_{place}, '-')" for place in range(count)]
    # In nearly all lines it is the first: then this takes less time than COALESCE alone.
    others = f"coalesce({', '.join(values[1:])})" if count > 2 else values[-1]
    return f"CASE WHEN {name}_0 IS NULL THEN {others} ELSE {values[0]} END" if count > 1 else values[0]
