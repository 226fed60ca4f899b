"""What of a line is what: the settings in ``[sources.NAME.fields]`` of ``config/sources.toml``.

A field is written as its path: names separated by points, ``[0]`` for an element of a list and ``[key=page]`` for its
entry whose ``key`` is ``page``. A name with points, spaces or brackets in it is in quotation marks, as in JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
)

from include.field_roles import FieldRoles
from include.time_formats import TimeFormats

#: A field as sampled lines name it: see ``spark_jobs/lines/json_fields.py``.
SampledPath = Annotated[str, StringConstraints(pattern=r"^[^.\s`]+(\.[^.\s`]+)*$")]

_QUOTED = r'"(?:[^"\\]|\\.)+"'
_NAME = re.compile(rf'{_QUOTED}|[^.\s`"\[\]][^.\s`\[\]]*')
_ELEMENT = re.compile(r"\[(-?\d{1,4})\]")
_ENTRY = re.compile(rf'\[({_QUOTED}|[^.\s`"\[\]=]+)=({_QUOTED}|[^"\[\]]+)\]')
_EXPECTED = 'expected a field, such as request.host, "user.name".first, agent[0] or params[key=page].value'


@dataclass(frozen=True)
class Entry:
    """The first entry of a list of objects whose field ``key`` has this value."""

    key: str
    value: str


#: From outside in: names of fields, places in lists (-1 is the last) and entries of lists.
FieldPath = tuple[str | int | Entry, ...]
#: Fields whose values make one, with a space between: nearly always one field.
JoinedFields = tuple[FieldPath, ...]
#: Of several the first that is there.
Alternatives = tuple[JoinedFields, ...]


def field_path(text: str) -> FieldPath:
    """The path that is written so.

    Raises:
        ValueError: if it is none.
    """
    path, end = _path_at(text, 0)
    if end < len(text):
        raise ValueError(f"{text!r}: {_EXPECTED}")
    return path


def joined_fields(text: str) -> JoinedFields:
    """The paths that are written so, separated by spaces.

    Raises:
        ValueError: if one is none.
    """
    paths = []
    place = 0
    while True:
        path, place = _path_at(text, place)
        paths.append(path)
        if place == len(text):
            return tuple(paths)
        if text[place] != " ":
            raise ValueError(f"{text!r}: {_EXPECTED}")
        place += 1


def _path_at(text: str, place: int) -> tuple[FieldPath, int]:
    """The path that begins there, and where it ends."""
    path: list[str | int | Entry] = []
    wants_name = True
    while wants_name or text[place : place + 1] in (".", "["):
        if wants_name and (name := _NAME.match(text, place)):
            path.append(_unquoted(name[0]))
            place, wants_name = name.end(), False
        elif not wants_name and text[place] == ".":
            place, wants_name = place + 1, True
        elif not wants_name and (element := _ELEMENT.match(text, place)):
            path.append(int(element[1]))
            place = element.end()
        elif not wants_name and (entry := _ENTRY.match(text, place)):
            path.append(Entry(_unquoted(entry[1]), _unquoted(entry[2])))
            place = entry.end()
        else:
            raise ValueError(f"{text!r}: {_EXPECTED}")
    if isinstance(path[-1], Entry):
        raise ValueError(f"{text!r}: expected the field of the entry that is meant, such as {text}.value")
    return tuple(path), place


def _unquoted(name: str) -> str:
    if not name.startswith('"'):
        return name
    try:
        unquoted: str = json.loads(name)
        unquoted.encode()
    except ValueError:
        raise ValueError(f"{name}: expected a name in quotation marks as JSON has it") from None
    return unquoted


def sampled_path(path: FieldPath) -> str:
    """The path as sampled lines name it: with ``[]`` for all elements of a list."""
    parts = (f".{step}" if isinstance(step, str) else "[]" for step in path)
    return "".join(parts).removeprefix(".")


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _checked(read: Callable[[str], object]) -> Callable[[tuple[str, ...]], tuple[str, ...]]:
    def checked(texts: tuple[str, ...]) -> tuple[str, ...]:
        if not texts:
            raise ValueError(_EXPECTED)
        for text in texts:
            read(text)
        return texts

    return checked


#: Of several fields the first that is there.
FieldTexts = Annotated[tuple[str, ...], AfterValidator(_checked(field_path)), BeforeValidator(_as_list)]
#: The same; each may be several, with a space between: date and time.
JoinedTexts = Annotated[tuple[str, ...], AfterValidator(_checked(joined_fields)), BeforeValidator(_as_list)]


class LineFields(FieldRoles[FieldTexts]):
    """Which field of a line is what. Fields left out are null in the clicks."""

    time: JoinedTexts
    time_format: TimeFormats = ("iso8601",)
    url: FieldTexts | None = Field(None, validate_default=True)

    def paths(self) -> dict[str, Alternatives]:
        """Role (``time``, ``url`` …) to its fields, mapped roles only."""
        return {role: tuple(map(joined_fields, written)) for role, written in self.names().items()}

    def sampled_paths(self, *roles: str) -> dict[str, str]:
        """Each mapped field, as sampled lines name it, with its role; of all roles, or of these."""
        return {
            sampled_path(path): role
            for role, alternatives in self.paths().items()
            if not roles or role in roles
            for fields in alternatives
            for path in fields
        }

    @property
    def has_only_paths(self) -> bool:
        """Whether lines can have no host; where ``url`` is mapped it may be the whole."""
        return self.url is None and self.host is None

    @field_validator("url")
    @classmethod
    def says_which_page(cls, url: FieldTexts | None, info: ValidationInfo) -> FieldTexts | None:
        """By its URL, or by a part of it; a part whose setting is wrong is there."""
        if url is None and all(info.data.get(role, "wrong") is None for role in ("path", "request")):
            raise ValueError(
                'no field says which page it is: expected url = "url", or parts such as host = "host" and path = '
                '"uri", or request = "request" for a request line (GET /a HTTP/1.1)'
            )
        return url
