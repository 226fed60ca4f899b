"""The sources file of a home whose source web is a stream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.support.temporary_lake import SOURCES


def streamed_source(kind: str, settings: Mapping[str, Any]) -> str:
    """All sources, and web streamed from its ``kind``, kafka or files, with these settings."""
    listed = "\n".join(f"{name} = {_toml(value)}" for name, value in settings.items())
    return f"{SOURCES}\n[sources.web.{kind}]\n{listed}\n"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(name)} = {_toml(setting)}' for name, setting in value.items())} }}"
    return json.dumps(value)
