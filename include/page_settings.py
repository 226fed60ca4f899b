"""What one page of a source is: the settings in ``[sources.NAME.pages]`` of ``config/sources.toml``."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, model_validator

_NAME = re.compile(r"[^\s!*&=#]+\*?|\*")
_HOLE = re.compile(r"\{([a-z][a-z0-9_]*)(?::(\w+))?\}")
#: What a hole's type lets stand in its segment, as a regular expression.
HOLE_TYPES = {
    None: "[^/]+",
    "number": "[0-9]+",
    "hex": "[0-9A-Fa-f]{8,}",
    "uuid": "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}",
}


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError("expected a parameter's name, such as 'q', or 'view_*' for all that start so")
    return name


def _checked_path(path: str) -> str:
    """A pattern of paths.

    Raises:
        ValueError: saying what is wrong with it.
    """
    example = "expected one such as '/user/{id}/profile', '/order/{number:number}' or '/docs/{version}/*'"
    if not path.startswith("/"):
        raise ValueError(f"a path starts with a /; {example}")
    if re.search(r"[?#\s\\]", path):
        raise ValueError(f"a path has no query, no fragment, no space and no backslash; {example}")
    *segments, last = path[1:].split("/")
    holes: list[str] = []
    for segment in [*segments, *([] if last == "*" else [last])]:
        hole = _HOLE.fullmatch(segment)
        if hole is None and re.search(r"[{}*]", segment):
            raise ValueError(
                f"{segment!r} is no segment: a hole such as {{id}} is a whole one, a * the last; {example}"
            )
        if hole is None and segment in (".", ".."):
            raise ValueError(f"no URL has the segment {segment!r}; {example}")
        if hole and hole[2] not in HOLE_TYPES:
            raise ValueError(f"no type {hole[2]!r} of a hole; expected number, hex or uuid, or none: {{{hole[1]}}}")
        holes += [hole[1]] if hole else []
    if not holes:
        raise ValueError(f"no hole in it, so it makes nothing one page; {example}")
    if len(set(holes)) < len(holes):
        raise ValueError(f"two holes of one name; {example}")
    return path


ParameterName = Annotated[str, AfterValidator(_checked_name)]
PathPattern = Annotated[str, AfterValidator(_checked_path)]


class PageSettings(BaseModel):
    """Which URLs are one page, beyond what holds for all; what each setting means is commented in the file.

    ``paths`` are whole paths, of which the first that fits is taken; a hole, ``{id}``, is one segment, and stands in
    the stored URL in its place. A ``*`` as the last segment is any rest, which stays.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    keep_parameters: tuple[ParameterName, ...] | None = None
    drop_parameters: tuple[ParameterName, ...] = ()
    lower_case: bool = False
    trailing_slash: Literal["keep", "remove"] = "keep"
    paths: tuple[PathPattern, ...] = ()

    @model_validator(mode="after")
    def parameters_are_kept_or_dropped(self) -> PageSettings:
        """One list says it."""
        if self.keep_parameters is not None and self.drop_parameters:
            raise ValueError(
                "keep_parameters and drop_parameters: expected one of them, such as keep_parameters = ['q', 'page'] "
                "for these only, or drop_parameters = ['sort'] for all others"
            )
        return self

    @property
    def parameter_entries(self) -> tuple[str, ...]:
        """The same as entries after those of ``tracking_parameters``: a parameter that is named here is kept."""
        if self.keep_parameters is None:
            return self.drop_parameters
        return ("*", *(f"!{name}" for name in self.keep_parameters))

    @property
    def changes_paths(self) -> bool:
        """Whether a path may become another."""
        return bool(self.paths) or self.lower_case or self.trailing_slash != "keep"


def holes_of(segment: str) -> tuple[str, str] | None:
    """A hole's name, and the regular expression of what fits it; none for a segment that is none."""
    hole = _HOLE.fullmatch(segment)
    return (hole[1], HOLE_TYPES[hole[2]]) if hole else None
