"""The settings of a source as the text of a TOML table, to read and to add to ``config/sources.toml``."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from include.errors import UsageError
from include.settings import Settings
from include.sources import SOURCE_NAME, load_sources
from include.storage import write_whole

#: Above settings that a person should look at.
_LOCAL_TIMES = "# the times have no offset: the zone of the server's clock, such as Europe/Berlin"


def as_toml(name: str, settings: Mapping[str, Any]) -> str:
    """The table ``[sources.NAME]`` with these settings, tables inside of it last."""
    lines = [f"[sources.{name}]", *_entries({k: v for k, v in settings.items() if not isinstance(v, Mapping)})]
    for key, table in settings.items():
        if isinstance(table, Mapping):
            lines += ["", f"[sources.{name}.{key}]", *_entries(table)]
    return "\n".join(lines) + "\n"


def _entries(table: Mapping[str, Any]) -> Iterator[str]:
    for key, value in table.items():
        if key == "time_zone" or (key == "time_format" and not isinstance(value, str)):
            yield _LOCAL_TIMES
        yield f"{key} = {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_value(inner)}' for key, inner in value.items())} }}"
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
