"""What Prometheus is to watch: `python -m ops.metrics`, on CLICKMILL_METRICS_PORT of CLICKMILL_LISTEN.

Everything is read when it is asked for, from the tables' logs and the landing zone, without Spark. A reading that fails
fails the whole request: Prometheus then says that the target is down, and nobody takes old numbers for new ones.
"""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from threading import Event

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from include.command import exit_with
from include.errors import ClickmillError, UsageError
from include.hours import Hour, HourRange
from include.locks import locks_of
from include.quality_index import QualityIndex, open_index
from include.settings import Settings
from include.sources import Source, load_sources
from include.streams.signs_of_life import sign_of_life
from include.unpublished import files_landed_since, known_hours, late_names, unpublished_hours
from ops.services.environment import listen_address, metrics_port
from ops.services.health import unwell

#: Hours of a source that are looked at for clicks that are not published: as far back as the hourly DAG catches up.
_LOOKED_AT = timedelta(days=31)


class ClickmillMetrics(Collector):
    """The metrics of one home; of hours, those of the sources that the hourly DAG takes."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Read all of them now."""
        now = datetime.now(UTC)
        settings = self._settings
        sources = load_sources(settings).values()
        scheduled = [source for source in sources if source.scheduled]
        with open_index(settings) as index:
            yield _gauge("held_hours", "Click hours that are held: checks failed, nobody decided.", len(index.held()))
            published = _newest_published(index)
        if published is not None:
            when = published.end.timestamp()
            yield _gauge("newest_published_end_seconds", "When the newest published click hour ends, since 1970.", when)
        unpublished: dict[str, int] = {}
        late: dict[str, int] = {}
        newest_end: dict[str, float] = {}
        for source in scheduled:
            # Listed once for both: in an object store a listing is many requests.
            known, since = known_hours(settings, source), files_landed_since(settings, source)
            unpublished[source.name] = len(unpublished_hours(settings, source, _LOOKED_AT, now, known, since))
            late[source.name] = sum(len(late_names(names)) for names in since.values())
            newest_end[source.name] = max((hour.end.timestamp() for hour in known), default=0)
        yield _of_sources(
            "unpublished_hours",
            "Log hours of the last 31 days that have landed, or were streamed, and are neither published nor held.",
            unpublished,
        )
        yield _of_sources(
            "late_files",
            "Landed files of ingested log hours that nobody has read, or not as they are now; of those watched.",
            late,
        )
        yield _of_sources(
            "newest_hour_end_seconds",
            "When the newest log hour ends that has landed or was streamed, since 1970; 0 if there is none.",
            newest_end,
        )
        yield from self._streams(sources, now)
        held = GaugeMetricFamily("clickmill_lock_held", "1 for each lock that is held.", labels=("lock", "host"))
        for holder in locks_of(settings).holders():
            held.add_metric((holder.name, holder.host), 1)
        yield held
        yield self._services()

    def _streams(self, sources: Iterable[Source], now: datetime) -> Iterator[GaugeMetricFamily]:
        lags: dict[str, int] = {}
        silent: dict[str, float] = {}
        for source in sources:
            sign = sign_of_life(self._settings, source.name)
            if sign is None or source.stream is None:
                continue
            if sign.lag is not None:
                lags[source.name] = sign.lag
            if source.stream.run == "supervised":
                silent[source.name] = (now - sign.at).total_seconds()
        description = "Records that a stream had yet to read, when it last gave a sign of life."
        yield _of_sources("stream_lag_records", description, lags)
        description = "Seconds since a supervised stream gave a sign of life; it gives one each second."
        yield _of_sources("stream_silent_seconds", description, silent)

    def _services(self) -> GaugeMetricFamily:
        description = "1 for Spark Connect and each service of Airflow that does not work; of all, if none was started."
        gauge = GaugeMetricFamily("clickmill_service_unwell", description, labels=("service",))
        try:
            missing = unwell(self._settings.home)
        except ClickmillError:
            missing = {"all": "not started"}
        for name in missing:
            gauge.add_metric((name,), 1)
        return gauge


def _newest_published(index: QualityIndex) -> Hour | None:
    span = index.span()
    if span is None:
        return None
    first, last = span
    publications = index.publications(HourRange(first, last.plus(1)))
    newest = max((hour for hour, outcome in publications.items() if outcome == "published"), default=None)
    return Hour.parse(newest) if newest else None


def _gauge(name: str, description: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"clickmill_{name}", description, value)


def _of_sources(name: str, description: str, values: dict[str, float] | dict[str, int]) -> GaugeMetricFamily:
    gauge = GaugeMetricFamily(f"clickmill_{name}", description, labels=("source",))
    for source, value in values.items():
        gauge.add_metric((source,), value)
    return gauge


def main() -> None:
    """Serve them until SIGTERM or Ctrl-C."""
    argparse.ArgumentParser(prog="ops.metrics", description=str(__doc__).partition("\n")[0]).parse_args()
    port = metrics_port(os.environ)
    if port is None:
        raise UsageError("CLICKMILL_METRICS_PORT is not set: expected a port, such as 9464")
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ClickmillMetrics(Settings.from_environment()))
    address = listen_address(os.environ)
    try:
        server, thread = start_http_server(port, address, registry)
    except OSError as error:
        raise ClickmillError(f"cannot listen on {address}:{port} (CLICKMILL_METRICS_PORT): {error}") from None
    print(f"metrics at http://{address}:{port}/metrics", flush=True)
    ended = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    ended.wait()
    server.shutdown()
    thread.join()


if __name__ == "__main__":
    exit_with(main, "metrics")
