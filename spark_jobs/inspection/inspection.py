"""What a log file is, found in a sample of it: see ``Inspection``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from include.errors import NotALogError
from include.hours import Hour
from include.settings import PipelineSettings, Settings
from include.tables import UNKNOWN_COUNTRY
from spark_jobs.inspection.readings import NO_SITE, Reading, Site, declared_reading, look_of, readings
from spark_jobs.inspection.sample import Sample, sample_of
from spark_jobs.landing.given_files import printed
from spark_jobs.landing.land import require_lines
from spark_jobs.lines.columns import as_numpy
from spark_jobs.lines.credentials import without_credentials
from spark_jobs.lines.decompress import DamagedFileError
from spark_jobs.lines.many_urls import ManyValues, UrlSample, kept_parameters
from spark_jobs.lines.times import HOUR_MICROS

#: From this share of lines on that are clicks, a file is what the reading says.
SURE_SHARE = 0.9
_SHOWN_LINES = 10


@dataclass(frozen=True)
class Outcome:
    """What becomes of some lines of the sample: ``reason`` is null for clicks. ``example`` is such a line."""

    reason: str | None
    lines: int
    number: int
    example: str


@dataclass(frozen=True)
class Inspection:
    """A file, and how it would be read. Without a reading that fits, ``settings`` is empty.

    Counts are of the sample: ``lines`` lines, ``end`` of them from the file's end; of the whole file if ``is_whole``.
    ``doubt`` is why it is not sure, or empty. ``others`` are the titles and shares of readings that make other clicks.
    ``rows`` are some clicks, by column. ``is_declared`` if the settings are those of a source that there is.
    ``has_local_times`` if its times have no offset: the settings say of which zone they are. ``look`` says what lines
    look like that nothing reads, and what to do; ``refused`` why it is no log at all. ``many_values`` are the
    parts of URLs that have many; ``many_because`` are those that make the URLs nearly all different, and is null if
    these are not, as validation has it. ``pages`` are the source's own settings of pages.
    """

    file: Path
    size: int
    content: str = ""
    lines: int = 0
    end: int = 0
    is_whole: bool = True
    refused: str = ""
    look: str = ""
    title: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    share: float = 0.0
    is_sure: bool = False
    doubt: str = ""
    is_declared: bool = False
    has_local_times: bool = False
    others: Sequence[tuple[str, float]] = ()
    rows: Sequence[Mapping[str, Any]] = ()
    outcomes: Sequence[Outcome] = ()
    countries: Mapping[str, int] = field(default_factory=dict)
    crawlers: int = 0
    urls: int = 0
    pages: Mapping[str, Any] = field(default_factory=dict)
    many_values: Sequence[ManyValues] = ()
    many_because: Sequence[ManyValues] | None = None
    first_hour: Hour | None = None
    last_hour: Hour | None = None
    hours: int = 0


def inspect(file: Path, settings: Settings, name: str = "", site: Site = NO_SITE) -> Inspection:
    """Look at a file's sample; a source of this name that is declared, and fits, is taken before all others.

    Raises:
        UsageError: if the sources file is wrong.
    """
    if not file.exists():
        return Inspection(file, 0, refused=f"no file {printed(file)}; expected a log file or a folder of them")
    try:
        require_lines(file)
        sample = sample_of(file)
    except (NotALogError, OSError, DamagedFileError) as error:
        return Inspection(file, file.stat().st_size, refused=str(error))
    declared = declared_reading(sample, settings, name)
    is_of_site = declared is not None and site.base_url in (None, declared.source.base_url)
    if declared is not None and is_of_site and declared.share >= SURE_SHARE:
        return _inspection(sample, settings.pipeline, declared, (), "", is_declared=True)
    if not (by_fit := readings(sample, settings, site)):
        return _unknown(sample)
    best, *less = by_fit
    # What finds less in the same lines is no other way to read them.
    others = [each for each in less if each.extras >= best.extras and not best.reads_as(each)]
    return _inspection(sample, settings.pipeline, best, others, _doubt(sample, best, others))


def _doubt(sample: Sample, best: Reading, others: Sequence[Reading]) -> str:
    if best.share < SURE_SHARE:
        return f"of other lines than these there are more than {1 - SURE_SHARE:.0%}"
    if any(each.share >= best.share and not each.is_guessed for each in others):
        return "other formats fit as well, and read something else"
    if best.is_guessed and not best.extras:
        return "a time and a path alone are in many logs that are none of requests"
    if best.has_addresses_for_hosts:
        return "of two addresses in a line nothing says which is the client's"
    if best.leaves_out_clients(sample):
        return (
            "most lines have another address on the internet, and these are more than the clients: behind a proxy "
            "write the log_format of your server, with the header that names the client, and trusted_proxies"
        )
    if word := best.word_for_host(sample):
        return (
            f"{word} beside the client is taken for the site, and may be the name of a machine. If it is: "
            'format = "access", and in log_format $machine in its place'
        )
    if machine := best.machine_for_host:
        return (
            f"{machine} is taken for the site, and may be the name of a machine. If it is: leave host out of the "
            "fields, and say the site (--base-url)"
        )
    return ""


def common_settings(inspections: Sequence[Inspection]) -> Mapping[str, Any] | None:
    """The settings by which all files are read that can be; none if that is not sure, or they differ."""
    known = [inspection for inspection in inspections if inspection.settings]
    if not known or any(not each.is_sure or each.settings != known[0].settings for each in known):
        return None
    return known[0].settings


def _inspection(
    sample: Sample,
    pipeline: PipelineSettings,
    best: Reading,
    others: Sequence[Reading],
    doubt: str,
    is_declared: bool = False,
) -> Inspection:
    clicks = best.arrivals.filter(pc.is_null(best.arrivals["reason"]))
    moments = as_numpy(clicks["clicked_at"].cast(pa.int64()))
    numbers = sorted(set((moments // HOUR_MICROS).tolist()))
    countries = Counter(clicks["country_code"].to_pylist())
    pages, urls = best.source.pages, len(pc.unique(clicks["url"]))
    sampled = UrlSample(clicks["url"].to_pylist(), kept_parameters(pages))
    bound = best.source.threshold("distinct_url_share", pipeline).lowest
    are_many = len(clicks) >= pipeline.distinct_urls_from_clicks and urls > bound * len(clicks)
    return Inspection(
        sample.file, sample.size, sample.content, len(sample.lines), sample.end, sample.is_whole,
        title=best.title,
        settings=best.settings,
        share=best.share,
        is_sure=not doubt,
        doubt=doubt,
        is_declared=is_declared,
        has_local_times=best.has_local_times,
        others=[(reading.title, reading.share) for reading in others],
        rows=clicks.slice(0, _SHOWN_LINES).to_pylist(),
        outcomes=_outcomes(sample, best.arrivals),
        countries={code: count for code, count in countries.most_common() if code != UNKNOWN_COUNTRY},
        crawlers=pc.sum(clicks["is_bot"]).as_py() or 0,
        urls=urls,
        pages=pages.model_dump() if pages else {},
        many_values=sampled.many_values(),
        many_because=sampled.causes() if are_many else None,
        first_hour=Hour.of_number(numbers[0]) if numbers else None,
        last_hour=Hour.of_number(numbers[-1]) if numbers else None,
        hours=len(numbers),
    )  # fmt: skip


def _unknown(sample: Sample) -> Inspection:
    lines = sample.lines
    outcomes = [Outcome("unknown", len(lines), 1, _text(lines["value"][0].as_py()))] if len(lines) else []
    return Inspection(
        sample.file, sample.size, sample.content, len(lines), sample.end, sample.is_whole, outcomes=outcomes,
        look=look_of(sample) if len(lines) else "",
    )  # fmt: skip


def _outcomes(sample: Sample, arrivals: pa.Table) -> list[Outcome]:
    """The sample's lines by what becomes of them, the most first, each with the first such line."""
    reasons = arrivals["reason"].to_pylist()
    counts = Counter(reasons)
    first = {reason: reasons.index(reason) for reason in counts}
    numbers, values = sample.lines["line"], sample.lines["value"]
    return [
        Outcome(reason, count, numbers[first[reason]].as_py(), _text(values[first[reason]].as_py()))
        for reason, count in counts.most_common()
    ]


def _text(value: bytes) -> str:
    return without_credentials(value.decode("utf-8", "replace").rstrip("\r\n"))
