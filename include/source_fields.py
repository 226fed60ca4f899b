"""What of a line is what: the settings in ``[sources.NAME.fields]`` of ``config/sources.toml``."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints, model_validator

_PATH = r"^[^.\s`]+(\.[^.\s`]+)*$"
FieldPath = Annotated[str, StringConstraints(pattern=_PATH)]


def field_path(text: str) -> tuple[str, ...]:
    """The path that is written so.

    Raises:
        ValueError: if it is none.
    """
    if not re.fullmatch(_PATH, text):
        raise ValueError(f"{text!r}: expected a field, nested ones by a dotted path, such as request.host")
    return tuple(text.split("."))


class LineFields(BaseModel):
    """Which field of a line is what. Fields left out are null in the clicks."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    time: FieldPath
    url: FieldPath
    time_format: Literal["iso8601", "epoch_seconds", "epoch_milliseconds"] = "iso8601"
    event_id: FieldPath | None = None
    country: FieldPath | None = None
    visitor: FieldPath | None = None
    client_address: FieldPath | None = None
    referrer: FieldPath | None = None
    user_agent: FieldPath | None = None
    status: FieldPath | None = None

    def paths(self) -> dict[str, tuple[str, ...]]:
        """Role (``time``, ``url`` …) to the field's path, mapped roles only."""
        roles = self.model_dump(exclude={"time_format"}, exclude_none=True)
        return {role: tuple(path.split(".")) for role, path in roles.items()}

    @model_validator(mode="after")
    def no_path_inside_another(self) -> LineFields:
        """A field cannot be both a value and the parent of another mapped field."""
        paths = set(self.paths().values())
        for path in paths:
            for length in range(1, len(path)):
                if path[:length] in paths:
                    raise ValueError(
                        f"field {'.'.join(path[:length])!r} is mapped and {'.'.join(path)!r} inside it too"
                    )
        return self
