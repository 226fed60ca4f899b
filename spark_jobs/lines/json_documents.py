"""Values inside JSON documents by their paths: SQL for DuckDB.

A line is a document; a text inside it may be one too. DuckDB takes all values out of a document at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import Literal

from include.duckdb_sql import quoted
from include.source_fields import Entry, FieldPath
from spark_jobs.lines.json_repairs import repaired_or_null

#: Of a list of one element that is the value, of others the list's JSON, or the elements with commas between.
Lists = Literal["not looked for", "as JSON", "joined"]
#: Where a value is looked for: at its path, or else under the name that its path is as a whole, points and all; or in
#: texts with JSON in them too, and lists are told.
Care = Literal["plain", "texts"]
#: Functions of DuckDB, of a document and a path or several: a value as text, and which type it is of.
_TEXT, _TYPE = "json_extract_string", "json_type"
#: A name that DuckDB's paths have no way to write, in quotation marks or not: there it stands for all names.
_ALL = "*"
_IS_OBJECT = "json_valid(text) AND ltrim(text, ' \t\r\n') LIKE '{%'"


def _at(function: str, document: str, path: FieldPath) -> str:
    """The SQL of a function of what is at the path in a document, which is valid JSON."""
    plain = _plain(path)
    if plain == path:
        return f"{function}({document}, {_quoted_path(path)})"
    outer = _at("json_extract", document, plain) if plain else document
    step, *inside = path[len(plain) :]
    if isinstance(step, Entry):
        is_it = f"{_at(_TEXT, 'entry', (step.key,))} = {quoted(step.value)}"
        inner = f"list_filter(json_extract({outer}, '$[*]'), lambda entry: {is_it})[1]"
    else:
        inner = f"json_extract({outer}, '/{step}')"
    return _at(function, inner, tuple(inside))


def _plain(path: FieldPath) -> FieldPath:
    """The beginning of the path that DuckDB's paths can say."""
    return tuple(takewhile(lambda step: isinstance(step, str | int) and step != _ALL, path))


def _quoted_path(path: FieldPath) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f'."{_escaped(str(step))}"' for step in path)
    return quoted(f"${''.join(steps)}")


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')


class _Document:
    """The values of some paths in a text of JSON: ``prefix`` is where the text is, columns have it and its values."""

    def __init__(self, prefix: FieldPath, number: int, paths: Iterable[FieldPath], care: Care) -> None:
        self.prefix, self.text, self._number = prefix, f"text{number or ''}", number
        plain = (_plain(place) for path in paths if self.has(path) for place in self._places(path))
        # DuckDB reads a document once for all paths of one function.
        self._plain = [path for path in dict.fromkeys(plain) if path]
        self._functions = (_TEXT, _TYPE) if care == "texts" else (_TEXT,)

    def has(self, path: FieldPath) -> bool:
        """Whether the path leads through the text."""
        return len(path) > len(self.prefix) and path[: len(self.prefix)] == self.prefix

    def with_values(self, table: str) -> str:
        """The SQL of a table with the document's values beside its text, which is JSON or null."""
        paths = ", ".join(map(_quoted_path, self._plain))
        lists = (f", {function}({self.text}, [{paths}]) AS {self._list(function)}" for function in self._functions)
        return f"SELECT *{''.join(lists) if paths else ''} FROM ({table})"

    def values(self, path: FieldPath, lists: Lists) -> list[str]:
        """The SQL of what may be the value of a path that leads through the text."""
        return [self._value(place, lists) for place in self._places(path)]

    def _places(self, path: FieldPath) -> list[FieldPath]:
        return _with_flat(path[len(self.prefix) :])

    def _value(self, path: FieldPath, lists: Lists) -> str:
        value = self._at(_TEXT, path)
        if lists == "not looked for":
            return value
        elements = f"json_extract_string({value}, '$[*]')"
        several = f"array_to_string({elements}, ', ')" if lists == "joined" else value
        element = f"CASE len({elements}) WHEN 0 THEN NULL WHEN 1 THEN {elements}[1] ELSE {several} END"
        return f"CASE WHEN {self._at(_TYPE, path)} = 'ARRAY' THEN {element} ELSE {value} END"

    def _at(self, function: str, path: FieldPath) -> str:
        plain = _plain(path)
        if not plain:
            return _at(function, self.text, path)
        number = self._plain.index(plain) + 1
        if plain == path:
            return f"{self._list(function)}[{number}]"
        outer = f"{self._list(_TEXT)}[{number}]"
        # It may be a text.
        return _at(function, f"CASE WHEN json_valid({outer}) THEN {outer} END", path[len(plain) :])

    def _list(self, function: str) -> str:
        return f"{function}{self._number}"


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
        text = "text" if are_objects else f"CASE WHEN {_IS_OBJECT} THEN text END AS text"
        self._table = line.with_values(f"SELECT {text} FROM lines")
        # An entry of a list is an object, as it is known by one of its fields.
        prefixes = {path[:length] for path in paths for length in range(1, len(path))}
        prefixes = {prefix for prefix in prefixes if not isinstance(prefix[-1], Entry)}
        for number, prefix in enumerate(sorted(prefixes, key=lambda prefix: (len(prefix), str(prefix))), 1):
            if care == "texts":
                document = _Document(prefix, number, paths, care)
                table = f"SELECT *, {self._text_of(document, paths)} AS {document.text} FROM ({self._table})"
                self._table = document.with_values(table)
                self._documents.append(document)

    def _text_of(self, document: _Document, paths: Iterable[FieldPath]) -> str:
        """The SQL of a text in place of an object or a list: its quotation marks are written with backslashes."""
        around = (
            (other.text, document.prefix[len(other.prefix) :])
            for other in self._documents
            if other.has(document.prefix)
        )
        texts = (f"CASE WHEN contains({text}, '\\') THEN {_at(_TEXT, text, path)} END" for text, path in around)
        is_missing = " OR ".join(
            f"{self._documents[0].values(path, 'not looked for')[0]} IS NULL" for path in paths if document.has(path)
        )
        text = repaired_or_null(f"coalesce({', '.join(texts)})")
        # One after the other: of AND both would be computed for all lines.
        return f"CASE WHEN text IS NOT NULL THEN CASE WHEN {is_missing} THEN {text} END END"

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
        first = f"SELECT text IS NOT NULL AS is_object{first} FROM ({self._table})"
        return f"SELECT is_object{named} FROM ({first})"

    def _found(self, path: FieldPath, lists: Lists) -> list[str]:
        return [value for document in self._documents if document.has(path) for value in document.values(path, lists)]


def _first_of(name: str, count: int) -> str:
    values = [f"nullif({name}_{place}, '-')" for place in range(count)]
    # In nearly all lines it is the first: then this takes less time than COALESCE alone.
    others = f"coalesce({', '.join(values[1:])})" if count > 2 else values[-1]
    return f"CASE WHEN {name}_0 IS NULL THEN {others} ELSE {values[0]} END" if count > 1 else values[0]
