"""Where Clickmill's state lives, and the pipeline's settings. Read once, at the edge."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails

from include.buckets import MAX_BUCKETS
from include.check_settings import THRESHOLDS, ConfiguredCheck, Threshold, checked_names, checked_thresholds
from include.counting import CountKey, CountSettings, counts_by_key
from include.days import TimeZone, hours_of_two_days
from include.errors import UsageError
from include.home import REPOSITORY, HomeFolders, data_path, home_path, locks_database
from include.publication import PublicationSettings
from include.retention import RetentionSettings
from include.storage import kept_secret
from include.tracking_parameters import TrackingParameter, with_built_in
from include.usual_range import SchemaDriftSettings, VolumeSettings

Model = TypeVar("Model", bound=BaseModel)


class LiveSettings(BaseModel):
    """The live counts of streamed clicks; what each setting means is commented in ``config/pipeline.toml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    watermark_minutes: int = Field(10, ge=0, le=10_080)
    trigger_seconds: float = Field(2.0, ge=0, le=3600)
    state_partitions: int = Field(2, ge=1, le=1024)


class LateFilesSettings(BaseModel):
    """Files that land in log hours that were ingested already; commented in ``config/pipeline.toml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    watched_hours: int = Field(744, ge=0)
    run_again: bool = False


class PipelineSettings(BaseModel):
    """``config/pipeline.toml``: what holds for all sources. Commented there."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    buckets: int = Field(4, ge=1, le=MAX_BUCKETS)
    tracking_parameters: tuple[TrackingParameter, ...] = Field((), validate_default=True)
    country_database: Path | None = None
    time_zones: tuple[TimeZone, ...] = Field(("UTC",), min_length=1)
    report_hours: int = Field(168, ge=1)
    quality_results_days: int = Field(400, ge=1)
    data_docs_days: int = Field(90, ge=1)
    distinct_urls_from_clicks: int = Field(1000, ge=1)
    thresholds: dict[str, Threshold] = Field(default_factory=dict, validate_default=True)
    checks: tuple[ConfiguredCheck, ...] = ()
    volume: VolumeSettings = VolumeSettings()
    schema_drift: SchemaDriftSettings = SchemaDriftSettings()
    live: LiveSettings = LiveSettings()
    retention: RetentionSettings = RetentionSettings()
    late_files: LateFilesSettings = LateFilesSettings()
    counts: dict[CountKey, CountSettings] = Field(default_factory=dict, validate_default=True)
    publication: PublicationSettings = PublicationSettings()

    @field_validator("tracking_parameters")
    @classmethod
    def goes_on_from_built_in_names(cls, entries: tuple[str, ...]) -> tuple[str, ...]:
        """What is configured adds to the built-in names, and excepts some."""
        return with_built_in(entries)

    @field_validator("counts")
    @classmethod
    def has_url_and_country(cls, counts: dict[CountKey, CountSettings]) -> dict[CountKey, CountSettings]:
        """Counts per URL and per country are always made."""
        return counts_by_key(counts)

    @field_validator("time_zones")
    @classmethod
    def time_zones_are_named_once(cls, zones: tuple[str, ...]) -> tuple[str, ...]:
        """Their days would be counted twice."""
        for zone in zones:
            if zones.count(zone) > 1:
                raise ValueError(f"{zone} is named twice")
        return zones

    @field_validator("publication")
    @classmethod
    def days_show_no_part_of_an_hour(
        cls, publication: PublicationSettings, info: ValidationInfo
    ) -> PublicationSettings:
        """Less its whole hours, a day that begins within an hour would show a part of it, with few visitors."""
        for zone in info.data.get("time_zones", ()):
            if publication.smallest_visitors and hours_of_two_days([zone]):
                raise ValueError(
                    f"days of {zone}, of time_zones, begin within an hour, UTC; less its hours such a day would show "
                    "fewer visitors than smallest_visitors; expected smallest_visitors = 0, or another time zone"
                )
        return publication

    @field_validator("thresholds")
    @classmethod
    def thresholds_are_known(cls, thresholds: dict[str, Threshold]) -> dict[str, Threshold]:
        """Each names something that is measured; what is left out is as built in."""
        checked = checked_thresholds(thresholds, THRESHOLDS)
        return {metric: checked.get(metric, Threshold()).or_of(default) for metric, default in THRESHOLDS.items()}

    @field_validator("checks")
    @classmethod
    def checks_have_names_of_their_own(cls, checks: tuple[ConfiguredCheck, ...]) -> tuple[ConfiguredCheck, ...]:
        """A check is known by its name."""
        return checked_names(checks)


_OF_PATTERNS = "[]{}*?\\"


@dataclass(frozen=True)
class Settings(HomeFolders):
    """One Clickmill home with its folders, and the paths of its configuration."""

    home: Path
    sources_file: Path
    pipeline_file: Path
    #: From when on the DAGs' runs are scheduled; runs of earlier hours are asked for.
    schedule_start: datetime = datetime(2015, 1, 1, tzinfo=UTC)
    #: The brokers of sources that name none, "host:port,host:port"; None: the embedded one.
    kafka: str | None = None
    #: PostgreSQL's address of the database that published tables are copied to, as libpq takes it; None: to none. It
    #: may have a password.
    results_database: str | None = field(default=None, repr=False)
    data_folder: Path | None = None
    locks_database: str | None = field(default=None, repr=False)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """From ``CLICKMILL_HOME`` and the other variables in docs/reference/variables.md.

        ``CLICKMILL_SCHEDULE_START`` is set by the services.

        Raises:
            UsageError: if the home's path cannot be used.
        """
        config = REPOSITORY / "config"
        start = environment.get("CLICKMILL_SCHEDULE_START")
        home, data = home_path(environment), data_path(environment)
        # Spark takes such a path for a pattern, and finds other files or none.
        for name, path in (("CLICKMILL_HOME", home), ("CLICKMILL_DATA", data)):
            if set(_OF_PATTERNS) & set(str(path or "")):
                raise UsageError(f"{name} {path} cannot be used: expected a path without {_OF_PATTERNS}")
        return cls(
            home=home,
            sources_file=Path(environment.get("CLICKMILL_SOURCES") or config / "sources.toml").resolve(),
            pipeline_file=Path(environment.get("CLICKMILL_PIPELINE") or config / "pipeline.toml").resolve(),
            schedule_start=datetime.fromisoformat(start) if start else cls.schedule_start,
            kafka=environment.get("CLICKMILL_KAFKA") or None,
            results_database=environment.get("CLICKMILL_RESULTS_DATABASE") or None,
            data_folder=data,
            locks_database=locks_database(environment),
        )

    @property
    def root(self) -> Path:
        """The home itself."""
        return self.home

    def release_key(self) -> bytes:
        """The secret by which released counts are known again, made when it is first needed."""
        return kept_secret(self.release_key_file)

    @cached_property
    def pipeline(self) -> PipelineSettings:
        """The pipeline's settings.

        Raises:
            UsageError: naming every wrong setting.
        """
        return read_toml(self.pipeline_file, PipelineSettings)


def read_toml(file: Path, model: type[Model]) -> Model:
    """The TOML file as the model; every error in one message, each with its place.

    Raises:
        UsageError: if the file is absent, not TOML, or does not fit the model.
    """
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
        return model.model_validate(content)
    except FileNotFoundError:
        raise UsageError(f"no configuration file {file}; expected a TOML file there") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} is not TOML: {error}") from None
    except ValidationError as errors:
        faults = [_described(error, model) for error in errors.errors() if not _follows_from_others(error)]
        raise UsageError(f"{file}: {'; '.join(faults)}") from None


def _described(error: ErrorDetails, model: type[BaseModel]) -> str:
    """A wrong setting in one line: its place, what was expected, and what is there, but for a whole table."""
    place, message = error["loc"], error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        known = _names_at(model, place[:-1])
        named = get_close_matches(str(place[-1]), known, 1) or known
        one_of = "" if len(named) == 1 else "one of "
        message += f": there is no such setting, expected {one_of}{', '.join(named)}"
    got = re.sub(r"://[^/@]*@", "://…@", repr(error["input"]))  # no password in a log
    shown = "" if isinstance(error["input"], dict) else f" (got {got})"
    return f"{'.'.join(map(str, place)) or 'file'}: {message}{shown}"


def _follows_from_others(error: ErrorDetails) -> bool:
    """Whether it is that a list is empty of which all elements are wrong, which are told."""
    return error["type"] == "too_short" and error["ctx"]["actual_length"] == 0 and bool(error["input"])


def _names_at(model: type[BaseModel], place: Sequence[str | int]) -> list[str]:
    """The names of the settings of a table; names of tables that the file chooses are no steps."""
    models = [model]
    for step in place:
        if annotations := [each.model_fields[step].annotation for each in models if step in each.model_fields]:
            models = [inner for annotation in annotations for inner in _models_in(annotation)]
    return sorted({name for each in models for name in each.model_fields})


def _models_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [inner for argument in get_args(annotation) for inner in _models_in(argument)]
