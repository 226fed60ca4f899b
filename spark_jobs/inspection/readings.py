"""How a sample would be read: by each preset, by each declared source, by settings that are guessed."""

from __future__ import annotations

import csv
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from operator import le
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError

from include.log_formats import is_host_beside_client, log_format
from include.settings import Settings
from include.source_presets import preset_names, preset_settings, preset_title
from include.sources import Source, load_sources
from include.tables import UNKNOWN_COUNTRY
from include.time_formats import TimePattern
from spark_jobs.inspection.field_guesses import (
    MAY_BE_MACHINE,
    SITE_OR_MACHINE,
    Field,
    fields_of_records,
    fields_of_rows,
    guess_fields,
    public_addresses,
)
from spark_jobs.inspection.json_texts import json_objects
from spark_jobs.inspection.looks import look_of_lines
from spark_jobs.inspection.sample import Sample
from spark_jobs.inspection.time_guesses import ASSUMED_ZONE, are_plausible, may_have_times, time_format_of
from spark_jobs.inspection.wrappers import wrapped_texts
from spark_jobs.lines.columns import as_numpy
from spark_jobs.lines.headers import with_headers
from spark_jobs.lines.kept import reason_of_rule, rule_of_reason
from spark_jobs.lines.lookups import Lookups
from spark_jobs.lines.parse_lines import click_times, parse_lines
from spark_jobs.lines.times import HOUR_MICROS

#: Stands for the site where a log has paths alone.
BASE_URL = "http://localhost"
#: What a click may have beside time and URL; the more of it a reading finds, the better.
_EXTRAS = ("country_code", "referrer", "user_agent", "status", "event_id", "visitor_id")
#: By so many lines formats are found that fit, half of them the first: headers are among these.
_FEW_LINES = 400
#: What most servers write; before others that read the lines alike.
_USUAL = ("apache_vhosts", "combined", "common")
#: The roles that say which page it is.
_PAGES = {"url", "request"}
_FEWEST_COLUMNS = 3
_LOGFMT_PAIR = re.compile(r'(?:^|\s)([A-Za-z_][\w.-]*)=(?:"((?:[^"\\]|\\.)*)"|([^\s"]*))(?=\s|$)')
#: A header's names, and no values: those are numbers, addresses, URLs and times as well.
_NAME_OF_COLUMN = re.compile(r"(?=.*[^\W\d])(?!/)(?!.*(?:://|\d:\d|\d-\d\d-)).{1,60}")
_HOST_IS_ADDRESS = r"^https?://(?:\d{1,3}(?:\.\d{1,3}){3}|\[[^\]]*\])/"
_WORD = re.compile(r"(?!localhost\Z)[\w-]+", re.ASCII)
#: Excel's word for the delimiter, before the header.
_SEPARATOR_LINE = re.compile(r'"?sep=."?', re.IGNORECASE)
_DELIMITERS = ("\t", ",", ";", "|")
#: The formats in which any character may be escaped.
_ESCAPED = {"json", "logfmt"}


@dataclass(frozen=True)
class Site:
    """What a person may say of a log that its lines do not: the site, and the zone of its times; null if unknown."""

    base_url: str | None = None
    time_zone: str | None = None


NO_SITE = Site()


@dataclass(frozen=True)
class Reading:
    """A sample read with some settings: ``arrivals`` has a row for each of its lines, in their order.

    ``title`` says what writes such lines; ``settings`` are those of the source, as TOML has them; ``clients`` is how
    many addresses the clicks have.
    """

    title: str
    settings: Mapping[str, Any]
    source: Source
    arrivals: pa.Table
    clients: int

    @property
    def share(self) -> float:
        """Of the lines those that are clicks, or left out by a rule; 0 without a click.

        Headers and blank lines are not counted.
        """
        reasons = Counter(self.arrivals["reason"].to_pylist())
        if not reasons[None]:
            return 0.0
        lines = len(self.arrivals) - reasons[reason_of_rule("header")] - reasons["blank"]
        left_out = sum(count for reason, count in reasons.items() if reason and rule_of_reason(reason))
        return (reasons[None] + left_out - reasons[reason_of_rule("header")]) / max(lines, 1)

    @property
    def extras(self) -> int:
        """How much more than time and URL is known of the clicks."""
        known = (set(pc.unique(self.arrivals[name]).to_pylist()) - {None, UNKNOWN_COUNTRY} for name in _EXTRAS)
        return sum(map(bool, known)) + ("base_url" not in self.settings)

    @property
    def has_local_times(self) -> bool:
        """Whether its times have no offset, and so are read as those of a zone."""
        return any(isinstance(each, TimePattern) and each.zone for each in self.source.time_formats)

    @property
    def is_guessed(self) -> bool:
        """Whether its settings are neither a preset's nor those of a declared source."""
        return "preset" not in self.settings

    @property
    def has_addresses_for_hosts(self) -> bool:
        """Whether the hosts beside the clients are addresses: of two addresses nothing says whose each is."""
        if not self.source.is_access_log or not is_host_beside_client(log_format(self.source.access_format)):
            return False
        urls = self.arrivals["url"].drop_null()
        return bool(pc.mean(pc.match_substring_regex(urls, _HOST_IS_ADDRESS).cast(pa.int8())).as_py() > 1 / 2)

    def word_for_host(self, sample: Sample) -> str | None:
        """A word that stands for the host beside the client, if in most lines one does: without a point and a port.

        It may be the name of a site, or of the machine that wrote the line, as syslog and collectors put it there.
        """
        if not self.source.is_access_log or not is_host_beside_client(log_format(self.source.access_format)):
            return None
        lines = sample.lines["value"].to_pylist()
        hosts = [url and urlsplit(url).netloc for url in self.arrivals["url"].to_pylist()]
        words = Counter(
            host
            for host, line in zip(hosts, lines, strict=True)
            if host and _WORD.fullmatch(host) and f"{host}:".encode() not in line.lower()
        )
        return self._if_in_most(words)

    @property
    def machine_for_host(self) -> str | None:
        """A host of a guessed field that may be a machine, if most clicks have one with such a name."""
        fields = self.source.fields
        paths = map(str, fields.host or ()) if fields and self.is_guessed else ()
        if not any(map(SITE_OR_MACHINE.fullmatch, paths)):
            return None
        hosts = (urlsplit(url).netloc for url in self.arrivals["url"].drop_null().to_pylist())
        return self._if_in_most(Counter(filter(MAY_BE_MACHINE.fullmatch, hosts)))

    def _if_in_most(self, hosts: Counter[str]) -> str | None:
        """The most frequent of these hosts, if more than half of the lines with a URL have one of them."""
        are_most = hosts.total() > len(self.arrivals["url"].drop_null()) / 2
        return hosts.most_common(1)[0][0] if are_most else None

    def leaves_out_clients(self, sample: Sample) -> bool:
        """Whether most lines name somebody on the internet beside the clients, and these more than there are clients.

        So it is behind a proxy whose list, or header, is not taken for them.
        """
        if not self.source.has_client_address:
            return False
        is_click = pc.is_null(self.arrivals["reason"])
        lines = sample.lines["value"].filter(is_click).to_pylist()
        of_lines = [public_addresses(line.decode("utf-8", "replace")) for line in lines]
        return sum(map(bool, of_lines)) > len(lines) / 2 and len(set().union(*of_lines)) > 2 * self.clients

    def is_as_good_as(self, other: Reading) -> bool:
        """Whether it fits no more lines, as surely, and finds no more clients."""
        mine, others = ((round(each.share, 3), each.is_guessed, each.clients) for each in (self, other))
        return mine == others

    def is_less_than(self, other: Reading) -> bool:
        """Whether it fits no more lines, as surely at most, and makes other clicks of them, with less in each."""
        mine, others = ((each.share, not each.is_guessed, each.clients) for each in (self, other))
        return self.extras < other.extras and all(map(le, mine, others)) and not self.reads_as(other)

    def reads_as(self, other: Reading) -> bool:
        """Whether both make the same clicks."""
        return all(self.arrivals[name].equals(other.arrivals[name]) for name in ("clicked_at", "url", *_EXTRAS[:4]))


def declared_reading(sample: Sample, settings: Settings, name: str) -> Reading | None:
    """The reading by the source of this name, if it is declared.

    Raises:
        UsageError: if the sources file is wrong.
    """
    if name not in load_sources(settings):
        return None
    declared = tomllib.loads(settings.sources_file.read_text(encoding="utf-8"))["sources"][name]
    return read_by(sample, declared, settings, f"source {name}, as it is declared")


def readings(sample: Sample, settings: Settings, site: Site) -> list[Reading]:
    """All readings that make clicks of some lines, the best first."""
    fit = (candidate for inside, few in _probes(sample) for candidate in _fitting(few, settings, site, inside))
    of_all = (read_by(sample, of_source, settings, title, site) for title, of_source in fit)
    by_fit = sorted(
        filter(None, of_all),
        key=lambda reading: (-round(reading.share, 3), reading.is_guessed, -reading.extras, -reading.clients),
    )
    # Of those that read the lines alike, the format of which most servers are: it comes first.
    alike = [each for each in by_fit if by_fit[0].is_as_good_as(each) and by_fit[0].reads_as(each)]
    first = min(alike, key=lambda reading: _rank_of(reading.settings.get("preset")), default=None)
    return [first, *(each for each in by_fit if each is not first)] if first else []


def _rank_of(preset: str | None) -> int:
    return _USUAL.index(preset) if preset in _USUAL else len(_USUAL)


def _probes(sample: Sample) -> Iterator[tuple[str | None, Sample]]:
    """A few lines of the sample, and the lines inside of these, each with the field that they are in."""
    lines = sample.lines
    if len(lines) > _FEW_LINES:
        others = np.linspace(_FEW_LINES // 2, len(lines) - 1, _FEW_LINES // 2, dtype=np.int64)
        lines = lines.take(np.concatenate([np.arange(_FEW_LINES // 2), others]))
    few = replace(sample, lines=lines)
    yield None, few
    for inside, texts in wrapped_texts(_texts(few)):
        table = few.lines.slice(0, len(texts))
        place = table.schema.get_field_index("value")
        values = pa.array((text.encode() for text in texts), pa.binary())
        yield inside, replace(few, lines=table.set_column(place, table.schema.field(place), values))


def _texts(sample: Sample) -> list[str]:
    return [line.decode("utf-8", "replace").rstrip("\r\n") for line in sample.lines["value"].to_pylist()]


def _fitting(few: Sample, settings: Settings, site: Site, inside: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """The settings that make clicks of these lines, which are ``inside`` of others: most fit none."""
    by_settings = [(of, read_by(few, of, settings, title, site)) for title, of in _candidates(_texts(few), site)]
    fit = [(of_lines, reading) for of_lines, reading in by_settings if reading]
    for of_lines, reading in fit:
        if any(reading.is_less_than(other) for _, other in fit):
            continue
        yield (reading.title, of_lines) if inside is None else (
            f"{reading.title}, inside of JSON ({inside})", of_lines | {"inside": inside}
        )  # fmt: skip


def look_of(sample: Sample) -> str:
    """What the lines look like that nothing reads."""
    texts = _texts(sample)[:_FEW_LINES]
    return look_of_lines(texts, [(title, fields) for title, _, fields in _records(texts)])


def _candidates(texts: Sequence[str], site: Site) -> Iterator[tuple[str, dict[str, Any]]]:
    objects = json_objects(texts)
    known: list[Mapping[str, Any]] = []
    for name in preset_names():
        of_preset = preset_settings(name)
        if of_preset in known:  # several servers write the same
            continue
        known.append(of_preset)
        if objects if of_preset["format"] == "json" else len(objects) < len(texts):
            yield preset_title(name), {"preset": name}
    for title, of_format, fields in _records(texts):
        guessed = guess_fields(fields, lambda values: time_format_of(values, site.time_zone))
        if "date" in guessed and of_format["format"] == "json":
            guessed["time"] = f"{guessed.pop('date')} {guessed['time']}"
        if "time" in guessed and not _PAGES.isdisjoint(guessed):
            yield title, of_format | {"fields": guessed}


def _records(texts: Sequence[str]) -> Iterator[tuple[str, dict[str, Any], list[Field]]]:
    """What the lines may be records of: a title, the settings of the format, and the fields of the records."""
    if records := json_objects(texts):
        yield "JSON lines", {"format": "json"}, fields_of_records(records)
    if pairs := _logfmt_records(texts):
        fields = fields_of_rows([*pairs], zip_longest(*pairs.values(), fillvalue=""))
        yield "logfmt", {"format": "logfmt"}, fields
    for of_format, columns, rows in _tables(texts):
        yield "lines of columns, named by the first", of_format, fields_of_rows(columns, rows)


def read_by(
    sample: Sample, of_source: Mapping[str, Any], settings: Settings, title: str = "", site: Site = NO_SITE
) -> Reading | None:
    """The reading by these settings, with a base URL and a zone where they need one; none if it has no click."""
    of_source = dict(of_source) | _zone(of_source, site)
    with_base = {"base_url": site.base_url or BASE_URL}
    for base in [with_base, {}] if site.base_url else [{}, with_base]:
        try:
            source = Source.model_validate({"name": "sample", **of_source, **base})
        except ValidationError:
            continue
        parsed = _parsed(sample, source, settings)
        if parsed is None:
            return None
        clients = len(pc.unique(parsed.filter(pc.is_null(parsed["reason"]))["client_address"]))
        arrivals = replace(Lookups.of(source, settings), derives_visitors=False).look_up(parsed)
        reading = Reading(title, of_source | base, source, arrivals, clients)
        if reading.share:
            return reading
        if source.format == "access":  # whether its lines have hosts, its format says
            return None
    return None


def _zone(of_source: Mapping[str, Any], site: Site) -> dict[str, str]:
    """The zone of a preset whose times have no offset: written, so that a person sees it."""
    of_preset = preset_settings(of_source["preset"]) if "preset" in of_source else {}
    is_local = "time_zone" in of_preset and "time_zone" not in of_source
    return {"time_zone": site.time_zone or ASSUMED_ZONE} if is_local else {}


def _parsed(sample: Sample, source: Source, settings: Settings) -> pa.Table | None:
    """The lines of a sample as they are read; none if no line of it has a time that clicks may have."""
    is_as_written = source.format not in _ESCAPED and not source.inside
    if is_as_written and not may_have_times(sample.lines["value"], source.time_formats):
        return None  # as are most candidates
    # Headers before hours: a header is of all hours of a log, as landing writes it into each.
    (lines,) = with_headers([sample.lines], source)
    in_hours = _with_hours(lines, source)
    if in_hours is None:
        return None
    # Nobody reads the texts of quarantined lines, so none is masked.
    return parse_lines(in_hours, source.model_copy(update={"keep_raw": True}), settings.pipeline.tracking_parameters)


def _with_hours(lines: pa.Table, source: Source) -> pa.Table | None:
    """The lines in the log hours in which landing would put them: of their time, or of the line before.

    None if no line has a time that clicks may have.
    """
    times = click_times(lines, source)
    is_known = are_plausible(times)
    if not is_known.any():
        return None
    places = np.where(is_known, np.arange(len(lines)), np.flatnonzero(is_known)[0])
    hours = (as_numpy(times.fill_null(0)) // HOUR_MICROS)[np.maximum.accumulate(places)]
    return lines.set_column(lines.schema.get_field_index("hour"), "hour", pa.array(hours.astype(np.int32)))


def _tables(texts: Sequence[str]) -> Iterator[tuple[dict[str, Any], list[str], list[list[str]]]]:
    """The settings, columns and rows of what the lines may be by each delimiter: three columns and more, all named."""
    if texts and _SEPARATOR_LINE.fullmatch(texts[0]):
        texts = texts[1:]
    for delimiter in _DELIMITERS:
        columns, *rows = [_cells(text, delimiter) for text in texts] or [[]]
        fit = [row for row in rows if len(row) == len(columns)]
        if (
            len(columns) >= _FEWEST_COLUMNS
            and len(set(columns)) == len(columns)
            and all(map(_NAME_OF_COLUMN.fullmatch, columns))
            and len(fit) > len(rows) / 2
        ):
            format_ = {"\t": {"format": "tsv"}, ",": {"format": "csv"}}
            yield format_.get(delimiter, {"format": "csv", "delimiter": delimiter}), columns, fit


def _cells(line: str, delimiter: str) -> list[str]:
    """The cells of a line by itself, as it is read; none if it has what CSV has not, such as a carriage return."""
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


def _logfmt_records(texts: Sequence[str]) -> dict[str, list[str]]:
    """The values of each name in lines of names and values; nothing if few lines are such."""
    values: dict[str, list[str]] = {}
    fitting = 0
    for text in texts:
        pairs = _LOGFMT_PAIR.findall(text)
        fitting += len(pairs) >= _FEWEST_COLUMNS
        for name, quoted, bare in pairs:
            values.setdefault(name, []).append(quoted or bare)
    return values if fitting > len(texts) / 2 else {}
