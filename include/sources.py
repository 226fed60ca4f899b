"""Sources: named origins of clicks, declared in ``config/sources.toml``."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from include.check_settings import SOURCE_THRESHOLDS, ConfiguredCheck, Threshold, checked_names, checked_thresholds
from include.errors import UsageError
from include.settings import PipelineSettings, Settings, read_toml

FieldPath = Annotated[str, StringConstraints(pattern=r"^[^.\s`]+(\.[^.\s`]+)*$")]
SOURCE_NAME = re.compile(r"^[a-z][a-z0-9_]{0,62}$")


class JsonFields(BaseModel):
    """Which JSON field is what; nested fields by a dotted path. Fields left out are null in the clicks."""

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
    def no_path_inside_another(self) -> JsonFields:
        """A field cannot be both a value and the parent of another mapped field."""
        paths = set(self.paths().values())
        for path in paths:
            for length in range(1, len(path)):
                if path[:length] in paths:
                    raise ValueError(
                        f"field {'.'.join(path[:length])!r} is mapped and {'.'.join(path)!r} inside it too"
                    )
        return self


class KafkaTopic(BaseModel):
    """The topic of a streamed source; what each setting means is commented in ``config/sources.toml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    topic: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,249}$")]
    bootstrap_servers: str | None = None
    partitions: int = Field(4, ge=1, le=1024)
    starting_offsets: Literal["earliest", "latest"] = "earliest"
    fail_on_data_loss: bool = True
    trigger_seconds: float = Field(1.0, ge=0, le=3600)
    max_rows_per_batch: int = Field(500_000, ge=1)
    state_partitions: int = Field(2, ge=1, le=1024)
    run: Literal["catch_up", "supervised"] = "catch_up"
    options: dict[str, str] = Field(default_factory=dict)
    librdkafka_options: dict[str, str] = Field(default_factory=dict)

    @field_validator("options", "librdkafka_options")
    @classmethod
    def options_are_the_clients_own(cls, given: dict[str, str]) -> dict[str, str]:
        """Not those that have a setting of their own."""
        taken = sorted({"bootstrap.servers", "group.id"} & given.keys())
        if taken:
            raise ValueError(f"{', '.join(taken)}: expected options of Kafka's client without a setting of their own")
        return given


class Source(BaseModel):
    """One source; what each setting means is commented in ``config/sources.toml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = ""
    format: Literal["json", "combined", "common"]
    fields: JsonFields | None = None
    base_url: str | None = Field(None, pattern=r"^https?://[^/?#\s]+$")
    scheduled: bool = False
    lateness_hours: int = Field(6, ge=0, le=744)
    grace_minutes: int = Field(15, ge=0)
    oldest_hours: int = Field(168, ge=1)
    newest_minutes: int = Field(10, ge=0)
    max_line_bytes: int = Field(65536, ge=256)
    thresholds: dict[str, Threshold] = Field(default_factory=dict)
    checks: tuple[ConfiguredCheck, ...] = ()
    unwatched_fields: tuple[FieldPath, ...] = ()
    kafka: KafkaTopic | None = None

    @field_validator("thresholds")
    @classmethod
    def thresholds_are_known(cls, given: dict[str, Threshold]) -> dict[str, Threshold]:
        """Each names something that is measured of a source."""
        return checked_thresholds(given, SOURCE_THRESHOLDS)

    @field_validator("checks")
    @classmethod
    def checks_have_names_of_their_own(cls, given: tuple[ConfiguredCheck, ...]) -> tuple[ConfiguredCheck, ...]:
        """A check is known by its name."""
        return checked_names(given)

    def threshold(self, metric: str, pipeline: PipelineSettings) -> Threshold:
        """The bounds of what is measured of the source; a bound left out is that for all sources."""
        return self.thresholds.get(metric, Threshold()).or_of(pipeline.thresholds[metric])

    def all_checks(self, pipeline: PipelineSettings) -> tuple[ConfiguredCheck, ...]:
        """The checks in ``config/`` of its log hours: its own, and those for all of other names."""
        own = {check.name for check in self.checks}
        return (*(check for check in pipeline.checks if check.name not in own), *self.checks)

    @model_validator(mode="after")
    def fits_its_format(self) -> Source:
        """JSON needs a field mapping, access logs a base URL, and neither takes the other's settings."""
        if (self.format == "json") != (self.fields is not None):
            raise ValueError("[fields] belongs to a json source, and a json source needs it")
        if (self.format == "json") == (self.base_url is not None):
            raise ValueError("base_url belongs to a combined or common source, and such a source needs it")
        if self.unwatched_fields and self.fields is None:
            raise ValueError("unwatched_fields belongs to a json source: lines of an access log have no fields")
        return self

    @property
    def has_event_id(self) -> bool:
        """Whether duplicates can be told."""
        return self.fields is not None and self.fields.event_id is not None


class Sources(BaseModel):
    """The whole ``sources.toml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sources: dict[str, Source]

    @model_validator(mode="after")
    def names_fit_paths(self) -> Sources:
        """A source's name is a folder and a partition value."""
        for name in self.sources:
            if not SOURCE_NAME.match(name):
                raise ValueError(f"source name {name!r}: expected lower case letters, digits and _")
        return self


def load_sources(settings: Settings) -> dict[str, Source]:
    """All declared sources by name.

    Raises:
        UsageError: naming every wrong setting at once.
    """
    declared = read_toml(settings.sources_file, Sources).sources
    return {name: source.model_copy(update={"name": name}) for name, source in declared.items()}


def choose_sources(settings: Settings, name: str) -> list[Source]:
    """The named source, or with ``all`` every scheduled one.

    Raises:
        UsageError: if there is no such source.
    """
    sources = load_sources(settings)
    chosen = (
        [s for s in sources.values() if s.scheduled]
        if name == "all"
        else [s for s in sources.values() if s.name == name]
    )
    if not chosen:
        raise UsageError(
            f"no source {name!r} in {settings.sources_file}: expected one of {', '.join(sorted(sources))}, "
            "or all for those with scheduled = true"
        )
    return chosen
