"""Sources: named origins of clicks, declared in ``config/sources.toml``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator, model_validator

from include.check_settings import SOURCE_THRESHOLDS, ConfiguredCheck, Threshold, checked_names, checked_thresholds
from include.delimited import DelimitedFormat, DelimitedLines, with_delimited
from include.errors import UsageError
from include.kept_lines import CountedLines, is_network
from include.log_formats import NGINX_EXAMPLE, log_format
from include.page_settings import PageSettings
from include.retention import SourceRetention
from include.settings import PipelineSettings, Settings, read_toml
from include.source_fields import Alternatives, FieldTexts, LineFields, SampledPath, field_path, joined_fields
from include.source_presets import with_preset
from include.time_formats import TimeFormat

#: Of the whole name.
SOURCE_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
#: A site, without a path, user or password.
SITE = re.compile(r"https?://[^/?#\s@]+")
#: In place of a name: of every source that is scheduled, or streamed.
EVERY_SOURCE = "all"
_HOW_TO_STREAM = "expected a [sources.{0}.kafka] or [sources.{0}.files] table in its sources file"


class StreamSettings(BaseModel):
    """How a source is streamed, whatever its lines come from; commented in ``config/sources.toml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    trigger_seconds: float = Field(1.0, ge=0, le=3600)
    state_partitions: int = Field(2, ge=1, le=1024)
    hung_minutes: float = Field(30.0, gt=0)
    run: Literal["catch_up", "supervised"] = "catch_up"

    def partition_of(self, file: str) -> dict[str, Any]:
        """``topic`` and ``partition`` of lines whose ``file`` this is; empty where there are none."""
        return {}


class KafkaTopic(StreamSettings):
    """The topic of a streamed source."""

    topic: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,249}$")]
    bootstrap_servers: str | None = None
    partitions: int = Field(4, ge=1, le=1024)
    starting_offsets: Literal["earliest", "latest"] = "earliest"
    fail_on_data_loss: bool = True
    max_rows_per_batch: int = Field(500_000, ge=1)
    options: dict[str, str] = Field(default_factory=dict)
    librdkafka_options: dict[str, str] = Field(default_factory=dict)

    @field_validator("options", "librdkafka_options")
    @classmethod
    def options_are_the_clients_own(cls, options: dict[str, str]) -> dict[str, str]:
        """Not those that have their own setting."""
        taken = sorted({"bootstrap.servers", "group.id"} & options.keys())
        if taken:
            raise ValueError(f"{', '.join(taken)}: expected options of Kafka's client that have no setting here")
        return options

    def partition_of(self, file: str) -> dict[str, Any]:
        """The lines' ``file`` is topic and partition, such as ``clicks/3``."""
        return {"topic": self.topic, "partition": int(file.rpartition("/")[2])}


class LandedFiles(StreamSettings):
    """The landing zone of a source that is streamed as its files appear."""

    max_files_per_batch: int = Field(500, ge=1)


class ClickSockets(BaseModel):
    """The TCP ports on which a source's lines are received, into its landing zone."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ports: tuple[Annotated[int, Field(ge=1, le=65535)], ...] = Field((9990, 9991, 9992), min_length=1)
    host: str = Field("127.0.0.1", min_length=1)
    roll_seconds: float = Field(5.0, gt=0, le=3600)
    roll_bytes: int = Field(64_000_000, ge=1)
    max_clients: int = Field(64, ge=1)
    idle_seconds: float = Field(600, gt=0)
    answers: bool = True

    @field_validator("ports")
    @classmethod
    def ports_are_named_once(cls, ports: tuple[int, ...]) -> tuple[int, ...]:
        """A port is one reader."""
        if len(set(ports)) < len(ports):
            raise ValueError("expected each port once")
        return ports


class Source(CountedLines):
    """One source; what each setting means is commented in ``config/sources.toml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = ""
    preset: str | None = None
    format: Literal["json", "access", "combined", "common", DelimitedFormat]
    log_format: str | None = None
    time_zone: str | None = None
    trusted_proxies: tuple[str, ...] = ()
    inside: FieldTexts | None = None
    fields: LineFields | None = None
    delimited: DelimitedLines | None = None
    base_url: str | None = None
    scheduled: bool = False
    lateness_hours: int = Field(6, ge=0, le=744)
    grace_minutes: int = Field(15, ge=0)
    oldest_hours: int = Field(168, ge=1)
    newest_minutes: int = Field(10, ge=0)
    max_line_bytes: int = Field(65536, ge=256, le=2**22)
    thresholds: dict[str, Threshold] = Field(default_factory=dict)
    checks: tuple[ConfiguredCheck, ...] = ()
    unwatched_fields: tuple[SampledPath, ...] = ()
    keep_raw: bool = False
    pages: PageSettings | None = None
    retention: SourceRetention = SourceRetention()
    kafka: KafkaTopic | None = None
    files: LandedFiles | None = None
    sockets: ClickSockets | None = None

    @field_validator("log_format")
    @classmethod
    def log_format_is_readable(cls, text: str | None) -> str | None:
        """It says when a click was and what it asked for."""
        if text is not None:
            log_format(text)
        return text

    @field_validator("base_url")
    @classmethod
    def base_url_is_a_site(cls, url: str | None) -> str | None:
        """A scheme and a host, before which paths are read."""
        if url is not None and not SITE.fullmatch(url):
            raise ValueError("expected scheme and host only, such as https://shop.example.com")
        return url

    @field_validator("trusted_proxies")
    @classmethod
    def proxies_are_addresses(cls, proxies: tuple[str, ...]) -> tuple[str, ...]:
        """Addresses and networks."""
        wrong = [text for text in proxies if not is_network(text)]
        if wrong:
            raise ValueError(
                f'{", ".join(wrong)}: expected addresses and networks, such as ["10.0.0.0/8", "2001:db8::1"]'
            )
        return proxies

    @field_validator("thresholds")
    @classmethod
    def thresholds_are_known(cls, thresholds: dict[str, Threshold]) -> dict[str, Threshold]:
        """Each names something that is measured of a source."""
        return checked_thresholds(thresholds, SOURCE_THRESHOLDS)

    @field_validator("checks")
    @classmethod
    def checks_have_names_of_their_own(cls, checks: tuple[ConfiguredCheck, ...]) -> tuple[ConfiguredCheck, ...]:
        """A check is known by its name."""
        return checked_names(checks)

    def threshold(self, metric: str, pipeline: PipelineSettings) -> Threshold:
        """The bounds of what is measured of the source; a bound left out is that for all sources."""
        return self.thresholds.get(metric, Threshold()).or_of(pipeline.thresholds[metric])

    def all_checks(self, pipeline: PipelineSettings) -> tuple[ConfiguredCheck, ...]:
        """The checks in ``config/`` of its log hours: its own, and those for all of other names."""
        own = {check.name for check in self.checks}
        return (*(check for check in pipeline.checks if check.name not in own), *self.checks)

    @model_validator(mode="before")
    @classmethod
    def settings_are_whole(cls, settings: Any) -> Any:
        """What is left out is as the preset has it; in the file those of delimited lines stand beside the others."""
        return with_delimited(with_preset(settings) if isinstance(settings, dict) else settings)

    @model_validator(mode="after")
    def settings_fit_each_other(self) -> Source:
        """All that do not are told together."""
        if wrong := [*self._misfits_of_format()] or [*self._misfits_of_lines(), *self._misfits_of_places()]:
            raise ValueError("; ".join(wrong))
        return self

    def _misfits_of_format(self) -> Iterator[str]:
        """What else nothing can be said without."""
        if (self.format == "json") != (self.fields is not None):
            yield (
                "[fields] belongs to a json source, and a json source needs it: expected "
                '[sources.NAME.fields] with time = "ts" and url = "url", the names in your lines'
            )
        if (self.format == "access") != (self.log_format is not None):
            yield f"an access source needs log_format, and no other has it: expected {NGINX_EXAMPLE}"

    def _misfits_of_lines(self) -> Iterator[str]:
        """JSON needs a field mapping; lines of an access log have paths, without the host."""
        if self.is_access_log and self.base_url is None and "host" not in log_format(self.access_format).roles:
            yield f'lines of {self.access_format} have paths without a host: expected base_url = "https://shop.example.com"'
        if self.is_access_log:
            try:
                log_format(self.access_format).times_in(self.time_zone)
            except ValidationError as error:
                yield f"log_format: {error.errors()[0]['msg'].removeprefix('Value error, ')}"
        elif self.time_zone is not None:
            yield (
                "time_zone belongs to an access source; others name it in time_format, as { pattern = "
                '"%d.%m.%Y %H:%M:%S", zone = "Europe/Berlin" }'
            )
        if self.trusted_proxies and not self.has_client_address:
            yield (
                "trusted_proxies belongs to a source whose lines have client addresses: expected their field, such as "
                'client_address = "ip", in [fields]'
            )
        if self.fields and self.fields.has_only_paths and self.base_url is None:
            yield (
                'the fields give paths without a host: expected base_url = "https://shop.example.com", or the host\'s '
                'field, such as host = "request.host", in [fields]'
            )
        if self.inside and self.delimited and self.delimited.has_header:
            yield 'lines inside of JSON have no header before them: expected columns = ["time", "url", …]'
        if self.unwatched_fields and self.fields is None:
            yield "unwatched_fields belongs to a json source: of other lines no fields are watched"
        try:
            self.require_tested(self._roles)
        except ValueError as error:
            yield str(error)
        try:
            self._require_tested_fields()
        except ValueError as error:
            yield str(error)

    def _require_tested_fields(self) -> None:
        """See to it that lines have the fields of their own that rules look at: a rule on none leaves out all or none.

        Raises:
            ValueError: naming one that they have not.
        """
        if self.fields is not None:
            for name in self.tested_fields.values():
                field_path(name)
        elif self.delimited is not None:
            self.delimited.require_columns(self.tested_fields.values())
        else:
            log_format(self.access_format).with_tested(self.tested_fields)

    def _misfits_of_places(self) -> Iterator[str]:
        """Lines are a topic's records or are in the landing zone, where sockets put theirs."""
        if self.kafka is not None and (self.files is not None or self.sockets is not None):
            yield "[kafka] is a topic; [files] and [sockets] belong to a source of the landing zone"
        if self.delimited and (self.kafka or self.sockets) and not self.delimited.is_read_without_header:
            yield (
                "lines of a topic, or by TCP, have no header before them: "
                'expected columns = ["time", "url", …], in their order, and no header = true'
            )

    @property
    def _roles(self) -> frozenset[str]:
        """What its lines say, such as ``status``."""
        if self.delimited is not None:
            return frozenset(self.delimited.roles()) - {"date"}
        if self.fields is not None:
            return frozenset(self.fields.paths())
        return frozenset(log_format(self.access_format).roles)

    @property
    def stream(self) -> StreamSettings | None:
        """How it is streamed; none if it is not."""
        return self.kafka or self.files

    @property
    def time_formats(self) -> tuple[TimeFormat, ...]:
        """How its times are written."""
        if self.delimited is not None:
            return self.delimited.time_formats
        if self.fields is not None:
            return self.fields.time_format
        return log_format(self.access_format).times_in(self.time_zone)

    @property
    def wrapper(self) -> Alternatives:
        """The fields of JSON objects in which its lines are; empty if they stand by themselves."""
        return tuple(map(joined_fields, self.inside or ()))

    @property
    def has_event_id(self) -> bool:
        """Whether duplicates can be found."""
        return self.event_id_field is not None

    @property
    def event_id_field(self) -> str | None:
        """Where its lines have their event id; None if they have none."""
        if self.delimited is not None:
            names = self.delimited.roles().get("event_id")
            return ", ".join(names) if names else None
        fields = self.fields.event_id if self.fields is not None else None
        return ", ".join(fields) if fields else None

    @property
    def has_client_address(self) -> bool:
        """Whether its lines say who the client was."""
        if self.delimited is not None:
            return "client_address" in self.delimited.roles()
        if self.fields is not None:
            return self.fields.client_address is not None
        return not {"client_address", "forwarded_for"}.isdisjoint(log_format(self.access_format).roles)

    @property
    def is_access_log(self) -> bool:
        """Whether its lines are those of an access log, as ``access_format`` says."""
        return self.fields is None and self.delimited is None

    @property
    def access_format(self) -> str:
        """The format of its access log, as ``log_format`` takes it: ``combined`` and ``common`` are such by name."""
        return self.log_format or self.format


class Sources(BaseModel):
    """The whole ``sources.toml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sources: dict[str, Source]

    @model_validator(mode="after")
    def names_fit_paths(self) -> Sources:
        """A source's name is a folder and a partition value."""
        for name in self.sources:
            if not SOURCE_NAME.fullmatch(name):
                raise ValueError(f"source name {name!r}: expected lower case letters, digits and _")
        return self

    @model_validator(mode="after")
    def ports_are_of_one_source(self) -> Sources:
        """A port's lines have one source."""
        owners: dict[int, str] = {}
        for name, source in self.sources.items():
            for port in source.sockets.ports if source.sockets else ():
                if owners.setdefault(port, name) != name:
                    raise ValueError(f"port {port} is in [sockets] of {owners[port]} and of {name}: expected it in one")
        return self


def source_name_of(logs: Path) -> str:
    """The name of a new source of these logs: of the file's or folder's name what a source's may have."""
    words = re.sub(r"[^a-z0-9]+", "_", logs.resolve().name.lower().split(".")[0]).strip("_")
    name = words if words[:1].isalpha() and words != EVERY_SOURCE else f"log_{words}"
    return name[:63].rstrip("_")


def load_sources(settings: Settings) -> dict[str, Source]:
    """All declared sources by name.

    Raises:
        UsageError: naming every wrong setting.
    """
    declared = read_toml(settings.sources_file, Sources).sources
    for name, source in declared.items():
        for metric in source.thresholds:
            try:
                source.threshold(metric, settings.pipeline)
            except ValueError as error:
                raise UsageError(f"{settings.sources_file}: sources.{name}.thresholds.{metric}: {error}") from None
    return {name: source.model_copy(update={"name": name}) for name, source in declared.items()}


def choose_sources(settings: Settings, name: str) -> list[Source]:
    """The named source, or with ``all`` every scheduled one.

    Raises:
        UsageError: if there is no such source.
    """
    sources = load_sources(settings)
    chosen = (
        [s for s in sources.values() if s.scheduled]
        if name == EVERY_SOURCE
        else [s for s in sources.values() if s.name == name]
    )
    if not chosen:
        raise UsageError(
            f"no source {name!r} in {settings.sources_file}: expected one of {', '.join(sorted(sources))}, "
            "or all for those with scheduled = true"
        )
    return chosen


def streamed_sources(settings: Settings) -> dict[str, Source]:
    """All streamed sources by name. Raises as ``load_sources``."""
    return {name: source for name, source in load_sources(settings).items() if source.stream is not None}


def choose_streamed(settings: Settings, names: str) -> list[Source]:
    """The streamed sources with these names, separated by commas, or with ``all`` every streamed one.

    Raises:
        UsageError: if one of them is not there or not streamed, or none is.
    """
    if names == EVERY_SOURCE:
        chosen = list(streamed_sources(settings).values())
        if not chosen:
            raise UsageError(f"no source in {settings.sources_file} is streamed: {_HOW_TO_STREAM.format('NAME')}")
        return chosen
    named = dict.fromkeys(name.strip() for name in names.split(","))
    chosen = [source for name in named for source in choose_sources(settings, name)]
    for source in chosen:
        stream_of(source)
    return chosen


def stream_of(source: Source) -> StreamSettings:
    """How the source is streamed.

    Raises:
        UsageError: if it is not.
    """
    if source.stream is None:
        raise UsageError(f"source {source.name} is not streamed: {_HOW_TO_STREAM.format(source.name)}")
    return source.stream
