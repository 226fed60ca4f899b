"""What a field or a column of a line may be to Clickmill, beside its time: the one list of these roles."""

from __future__ import annotations

from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from include.time_formats import TimeFormats

#: What trackers send in place of a visitor's or an event's id when they have none.
NO_IDS = (
    *("undefined", "null", "Null", "NULL", "(null)", "none", "None", "NONE", "nil", "nan", "NaN", "{}", "[]", "-"),
    *("unknown", "[object Object]", "00000000-0000-0000-0000-000000000000"),
)

#: How a person writes which fields have a role: paths, or names of columns; of several the first that has a value.
Names = TypeVar("Names", bound=tuple[str, ...])


class FieldRoles(BaseModel, Generic[Names]):
    """Which field is what; null for those that lines do not have. A format adds ``time``.

    A page is its ``url`` (a whole one, or a path), or ``path``, or ``request`` (a request line); see
    ``spark_jobs/lines/targets.py``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    time_format: TimeFormats | None = None
    scheme: Names | None = None
    host: Names | None = None
    path: Names | None = None
    query: Names | None = None
    request: Names | None = None
    url: Names | None = None
    method: Names | None = None
    event_id: Names | None = None
    country: Names | None = None
    visitor: Names | None = None
    client_address: Names | None = None
    referrer: Names | None = None
    user_agent: Names | None = None
    status: Names | None = None

    def names(self) -> dict[str, tuple[str, ...]]:
        """Role (``time``, ``url`` …) to the names of its fields, mapped roles only."""
        roles: dict[str, tuple[str, ...]] = self.model_dump(exclude={"time_format"}, exclude_none=True)
        return roles
