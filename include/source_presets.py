"""Presets of sources: settings by the name of the server or tracker that writes the log, a TOML file each.

A preset has what a table ``[sources.NAME]`` may have; its first line is a comment that says what writes such lines.
To add one, add ``include/presets/NAME.toml`` and a sample of its lines to ``tests/presets``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

PRESETS = Path(__file__).parent / "presets"


@cache
def preset_names() -> tuple[str, ...]:
    """The names of all presets, first those of formats that many servers write."""
    names = sorted(file.stem for file in PRESETS.glob("*.toml"))
    return tuple(sorted(names, key=lambda name: name not in _settings_of(name).values()))


def preset_settings(name: str) -> dict[str, Any]:
    """What a preset sets.

    Raises:
        ValueError: if there is none of this name.
    """
    if name not in preset_names():
        raise ValueError(f"no preset {name!r}; expected one of {', '.join(preset_names())}")
    return _settings_of(name)


def _settings_of(name: str) -> dict[str, Any]:
    return tomllib.loads((PRESETS / f"{name}.toml").read_text(encoding="utf-8"))


def preset_title(name: str) -> str:
    """What writes such lines, in a few words."""
    return (PRESETS / f"{name}.toml").read_text(encoding="utf-8").split("\n", 1)[0].lstrip("# ").rstrip(".")


def with_preset(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a source, and those of its preset that it leaves out; of ``[fields]`` each by itself."""
    merged = dict(settings)
    if isinstance(name := merged.get("preset"), str):
        of_preset = preset_settings(name)
        fields = {"fields": of_preset["fields"] | settings["fields"]} if _have_fields(of_preset, settings) else {}
        merged = of_preset | merged | fields
    return merged


def _have_fields(*tables: Mapping[str, Any]) -> bool:
    return all(isinstance(table.get("fields"), dict) for table in tables)
