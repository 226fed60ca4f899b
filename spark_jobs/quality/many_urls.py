"""How many clicks of a log hour are on URLs of their own, and if nearly all are, why."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import pyarrow as pa

from include.hours import LogHour
from include.settings import PipelineSettings
from include.sources import Source
from spark_jobs.lines.many_urls import UrlSample, described_causes, kept_parameters
from spark_jobs.quality.measures import SOME_URLS

_METRIC = "distinct_url_share"


def judged_log_hours(accounts: Iterable[Mapping[str, Any]], pipeline: PipelineSettings) -> dict[LogHour, int]:
    """The clicks of the log hours with enough of them to say how many are on URLs of their own."""
    clicks = {LogHour.of(account): account["accepted"] for account in accounts}
    return {hour: number for hour, number in clicks.items() if number >= pipeline.distinct_urls_from_clicks}


def sampling_interval(judged: Mapping[LogHour, int]) -> int:
    """Of so many URLs, or clicks, of these hours one is enough to look at: a power of two."""
    return 1 << max(min(judged.values(), default=0) // (2 * SOME_URLS), 1).bit_length() - 1


def url_facts(
    counted: pa.Table,
    judged: Mapping[LogHour, int],
    sources: Iterable[Source],
    pipeline: PipelineSettings,
    some_urls: Callable[[Collection[LogHour]], pa.Table],
) -> list[dict[str, Any]]:
    """The facts on URLs of these hours, from those of ``measures.url_facts``, of which an hour may have none.

    ``some_urls`` gives the facts of ``measures.some_urls``. It is asked for if an hour has more URLs than its source's
    bound allows, and then of one such hour of a source, that with the most clicks.
    """
    numbers = {LogHour.of(fact): fact["distinct_urls"] for fact in counted.to_pylist()}
    urls = {log_hour: min(numbers.get(log_hour, 1), clicks) for log_hour, clicks in judged.items()}
    by_name = {source.name: source for source in sources}
    bounds = {name: source.threshold(_METRIC, pipeline).lowest for name, source in by_name.items()}
    different = [log_hour for log_hour in urls if urls[log_hour] > bounds[log_hour.source] * judged[log_hour]]
    largest = {log_hour.source: log_hour for log_hour in sorted(different, key=judged.__getitem__)}
    some = some_urls(largest.values()).to_pylist() if different else []
    because = {
        of["source"]: _because(of["some_urls"], urls[largest[of["source"]]], by_name[of["source"]]) for of in some
    }
    return [
        {
            **log_hour.row,
            "distinct_urls": number,
            "because": because.get(log_hour.source) if log_hour in different else None,
        }
        for log_hour, number in urls.items()
    ]


def _because(some: Iterable[str], urls: int, source: Source) -> str:
    """What makes these URLs many, and what to set."""
    causes = UrlSample(some, kept_parameters(source.pages)).causes(urls)
    return described_causes(causes, source.name, source.pages)
