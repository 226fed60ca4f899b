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
from include.landing import closed_hours
from include.locks import locks_of
from include.log_hours import Hour, HourRange
from include.quality_index import QualityIndex, catch_up, open_index
from include.settings import Settings
from include.sources import Source, load_sources
from include.stored_rows import read_rows
from include.tables import STREAM_BATCHES
from include.unpublished import unpublished_hours
from ops.services.environment import listen_address
from ops.services.health import unwell
from ops.stream_state import stream_state

#: Hours of a source that are looked at for clicks that are not published: as far back as the hourly DAG catches up.
_LOOKED_AT = timedelta(days=31)


class ClickmillMetrics(Collector):
    """The metrics of one home. A source without hours, or without a stream that reads now, has no sample there."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Read all of them now."""
        now = datetime.now(UTC)
        settings = self._settings
        sources = load_sources(settings).values()
        catch_up(settings)
        with open_index(settings) as index:
            yield _gauge("held_hours", "Click hours that are held: checks failed, nobody decided.", len(index.held()))
            published = _newest_published(index)
        if published is not None:
            when = published.end.timestamp()
            yield _gauge("newest_published_end_seconds", "When the newest published click hour ends, since 1970.", when)
        yield _of_sources(
            "unpublished_hours",
            "Log hours of the last 31 days that have landed, or were streamed, and are neither published nor held.",
            {source.name: len(unpublished_hours(settings, source, _LOOKED_AT, now)) for source in sources},
        )
        newest = {source.name: hours[-1].end.timestamp() for source in sources if (hours := self._hours(source))}
        yield _of_sources("newest_hour_end_seconds", "When the newest log hour with clicks ends, since 1970.", newest)
        yield from self._streams([source for source in sources if source.stream], now)
        held = GaugeMetricFamily(
            "clickmill_lock_held", "1 for each lock that a process holds.", labels=("lock", "host")
        )
        for holder in locks_of(settings).holders():
            held.add_metric((holder.name, holder.host), 1)
        yield held
        yield self._services()

    def _hours(self, source: Source) -> list[Hour]:
        if source.stream is None:
            return sorted(closed_hours(self._settings.landing, source.name))
        rows = read_rows(self._settings.lake, STREAM_BATCHES, ("log_date", "log_hour"), [("source", "=", source.name)])
        return sorted(Hour.of(row["log_date"], row["log_hour"]) for row in rows)

    def _streams(self, sources: Iterable[Source], now: datetime) -> Iterator[GaugeMetricFamily]:
        states = {source.name: stream_state(self._settings, source.name, (), now) for source in sources}
        lags = {name: state.lag for name, state in states.items() if state.lag is not None}
        yield _of_sources("stream_lag_records", "Records that a stream has yet to read.", lags)
        ages = {
            name: (now - max(query.began_at for query in state.queries)).total_seconds()
            for name, state in states.items()
            if state.queries
        }
        yield _of_sources("stream_micro_batch_age_seconds", "Seconds since a stream's newest micro-batch began.", ages)

    def _services(self) -> GaugeMetricFamily:
        what = "1 for each service that does not work; of all, if none has been started."
        found = GaugeMetricFamily("clickmill_service_unwell", what, labels=("service",))
        try:
            missing = unwell(self._settings.home)
        except ClickmillError:
            missing = {"all": "not started"}
        for name in missing:
            found.add_metric((name,), 1)
        return found


def _newest_published(index: QualityIndex) -> Hour | None:
    span = index.span()
    if span is None:
        return None
    first, last = span
    events = index.publications(HourRange(first, last.plus(1)))
    return max((Hour.parse(hour) for hour, event in events.items() if event.outcome == "published"), default=None)


def _gauge(name: str, what: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"clickmill_{name}", what, value)


def _of_sources(name: str, what: str, values: dict[str, float] | dict[str, int]) -> GaugeMetricFamily:
    found = GaugeMetricFamily(f"clickmill_{name}", what, labels=("source",))
    for source, value in values.items():
        found.add_metric((source,), value)
    return found


def main() -> None:
    """Serve them until SIGTERM or Ctrl-C."""
    argparse.ArgumentParser(prog="ops.metrics", description=str(__doc__).partition("\n")[0]).parse_args()
    given = os.environ.get("CLICKMILL_METRICS_PORT", "")
    if not given.isdigit() or not 0 < int(given) < 65536:
        raise UsageError(f"CLICKMILL_METRICS_PORT={given!r}: expected a port, such as 9464")
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ClickmillMetrics(Settings.from_environment()))
    address = listen_address(os.environ)
    try:
        server, thread = start_http_server(int(given), address, registry)
    except OSError as error:
        raise ClickmillError(f"cannot listen on {address}:{given} (CLICKMILL_METRICS_PORT): {error}") from None
    print(f"metrics at http://{address}:{given}/metrics", flush=True)
    ended = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    ended.wait()
    server.shutdown()
    thread.join()


if __name__ == "__main__":
    exit_with(main, "metrics")
