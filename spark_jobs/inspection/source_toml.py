"""The settings of a source as the text of a TOML table, to read and to add to ``config/sources.toml``."""

from __future__ import annotations

import errno
import json
import os
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from include.errors import UsageError
from include.locks import files_locked
from include.settings import Settings
from include.sources import EVERY_SOURCE, SOURCE_NAME, load_sources
from include.storage import write_whole

#: So much of a file says how its lines end.
_BEGINNING_BYTES = 1 << 12
#: Above settings that a person should look at.
_LOCAL_TIMES = "# the times have no offset: of which zone is the server's clock?"


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


def require_name(name: str) -> None:
    """See to it that a new source may have this name.

    Raises:
        UsageError: if it may not.
    """
    if not SOURCE_NAME.fullmatch(name) or name == EVERY_SOURCE:
        raise UsageError(
            f"--source {name!r}: expected at most 63 lower case letters, digits and _, a letter first, such as shop"
        )


def add_source(settings: Settings, name: str, table: str) -> None:
    """Add the table of a new source at the end of the sources file, whose text stays as it is.

    Raises:
        UsageError: if there is such a source, its name is none, the file would not be right with it, or may not be
            written.
    """
    require_name(name)
    # Of a link what it leads to.
    file = settings.sources_file.resolve()
    with files_locked(file.parent):
        if name in load_sources(settings):
            raise UsageError(f"--source {name}: {settings.sources_file} has it already; expected a name that is new")
        content = file.read_bytes()
        line_end = b"\r\n" if content.endswith(b"\r\n") or b"\r\n" in content[:_BEGINNING_BYTES] else b"\n"
        between = line_end if content.endswith(b"\n") else line_end * 2
        content += between + table.encode().replace(b"\n", line_end)
        _require_right(settings.sources_file, content)
        try:
            if not os.access(file, os.W_OK):
                raise PermissionError(errno.EACCES, "it is read-only")
            write_whole(file, content, mode=stat.S_IMODE(file.stat().st_mode))
        except OSError as error:
            raise UsageError(
                f"{settings.sources_file} cannot be written: {error.strerror}; add what is shown without --write "
                "yourself"
            ) from None


def _require_right(file: Path, content: bytes) -> None:
    try:
        tomllib.loads(content.decode())
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file} with the new source is not TOML: {error}") from None
