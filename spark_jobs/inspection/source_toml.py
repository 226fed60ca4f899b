"""The settings of a source as the text of a TOML table, to read and to add to ``config/sources.toml``."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from include.errors import UsageError
from include.settings import Settings
from include.sources import SOURCE_NAME, load_sources
from include.storage import write_whole


def as_toml(name: str, settings: Mapping[str, Any]) -> str:
    """The table ``[sources.NAME]`` with these settings, tables inside of it last."""
    lines = [f"[sources.{name}]"]
    lines += [f"{key} = {_value(value)}" for key, value in settings.items() if not isinstance(value, Mapping)]
    for key, table in settings.items():
        if isinstance(table, Mapping):
            lines += ["", f"[sources.{name}.{key}]", *(f"{inner} = {_value(value)}" for inner, value in table.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, str) and ('"' in value or "\\" in value) and "'" not in value and value.isprintable():
        return f"'{value}'"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False)


def add_source(settings: Settings, name: str, table: str) -> None:
    """Add the table of a new source at the end of the sources file, whose text stays as it is.

    Raises:
        UsageError: if there is such a source, its name is none, or the file would not be right with it.
    """
    if not SOURCE_NAME.fullmatch(name):
        raise UsageError(f"--source {name!r}: expected lower case letters, digits and _, such as shop")
    if name in load_sources(settings):
        raise UsageError(f"--source {name}: {settings.sources_file} has it already; expected a name that is new")
    file = settings.sources_file
    text = f"{file.read_text(encoding='utf-8').rstrip()}\n\n{table}"
    _require_right(file, text)
    write_whole(file, text.encode())


def _require_right(file: Path, text: str) -> None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file} with the new source is not TOML: {error}") from None
