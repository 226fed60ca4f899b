"""How times are written: the names and patterns that ``time_format`` may have in ``config/sources.toml``."""

from __future__ import annotations

import re
from typing import Annotated, Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

NamedTimeFormat = Literal[
    "iso8601",
    "epoch_seconds",
    "epoch_milliseconds",
    "epoch_microseconds",
    "epoch_nanoseconds",
    "rfc1123",
    "access_log",
]

#: One directive of ``strptime``, with the mark that leaves out a zero in front.
_DIRECTIVE = re.compile("%(-?.?)", re.DOTALL)
#: Those that DuckDB reads, without ``%Z``: what PST is depends on who reads it.
_DIRECTIVES = frozenset("a A b B d f g H I j m M n p S y Y z %".split())
_EXAMPLE = '{ pattern = "%d.%m.%Y %H:%M:%S", zone = "Europe/Berlin" }'


def require_zone(name: str) -> None:
    """See to it that there is a time zone of this name.

    Raises:
        ValueError: if there is none.
    """
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("no such time zone; expected a name such as UTC or Europe/Berlin") from None


class TimePattern(BaseModel):
    """A ``strptime`` pattern; of local times with the name of their zone."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    pattern: str
    zone: str | None = None

    @field_validator("pattern")
    @classmethod
    def says_day_and_hour(cls, pattern: str) -> str:
        """What is left out would be that of some default."""
        directives = {directive.removeprefix("-") for directive in _DIRECTIVE.findall(pattern)}
        if unknown := directives - _DIRECTIVES:
            names = ", ".join(f"%{name}" for name in sorted(unknown))
            raise ValueError(f"{names}: expected strptime's {' '.join(f'%{name}' for name in sorted(_DIRECTIVES))}")
        for part, names in {
            "year": "Yy", "month or day of the year": "mbBj", "day": "dj", "hour": "HI"
        }.items():  # fmt: skip
            if not directives & set(names):
                raise ValueError(f"{pattern!r} has no {part}: expected one, such as {_EXAMPLE}")
        if "I" in directives and "p" not in directives:
            raise ValueError(f"{pattern!r} has %I without %p: expected %H, or %p beside it")
        return pattern

    @field_validator("zone")
    @classmethod
    def zone_is_known(cls, zone: str | None) -> str | None:
        """By its name in the time zone database."""
        if zone is not None:
            require_zone(zone)
        return zone

    @model_validator(mode="after")
    def has_one_zone(self) -> TimePattern:
        """In each text, or the same for all."""
        has_offset = "z" in _DIRECTIVE.findall(self.pattern)
        if has_offset and self.zone is not None:
            raise ValueError("%z is the zone: expected no zone beside it")
        if not has_offset and self.zone is None:
            raise ValueError(f"a local time needs its zone: expected one, such as {_EXAMPLE}")
        return self


TimeFormat = NamedTimeFormat | TimePattern


def _as_list(value: object) -> object:
    formats = [value] if isinstance(value, str | dict | TimePattern) else value
    for name in formats if isinstance(formats, list | tuple) else ():
        if isinstance(name, str) and name not in get_args(NamedTimeFormat):
            names = ", ".join(get_args(NamedTimeFormat))
            raise ValueError(f"{name!r}: expected one of {names}, or a pattern such as {_EXAMPLE}")
    return formats


def _kind(value: object) -> str:
    return "name" if isinstance(value, str) else "pattern"


_TimeFormat = Annotated[
    Annotated[NamedTimeFormat, Tag("name")] | Annotated[TimePattern, Tag("pattern")], Discriminator(_kind)
]
#: One or several; of several the first counts that reads a time.
TimeFormats = Annotated[tuple[_TimeFormat, ...], Field(min_length=1), BeforeValidator(_as_list)]
