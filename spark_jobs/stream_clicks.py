"""Stream a source's topic into clicks, quarantined_clicks and stream_batches, each record exactly once.

Goes on where it was, whatever ended it. With --available-now it ends when all that was in the topic at its start is
read; without, it goes on until it is told to end (Ctrl-C, or SIGTERM).
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from include.errors import ClickmillError, UsageError
from include.job_arguments import OneLineParser, exit_with
from include.kafka import topic_of
from include.settings import Settings
from include.sources import Source, choose_sources
from include.stream_dependence import Dependence, dependences, require_fit
from include.stream_supervision import say_alive
from spark_jobs import stream_live, stream_topic
from spark_jobs.io import Lake
from spark_jobs.session import spark_session
from spark_jobs.stream_checkpoint import StreamCheckpoint
from spark_jobs.stream_failure import failure_of, is_of_other_state
from spark_jobs.stream_progress import ProgressLog, keep

#: How often the queries are asked what they have done.
POLL_SECONDS = 1.0


def run(
    spark: SparkSession,
    settings: Settings,
    source: Source,
    *,
    available_now: bool,
    live: bool = True,
) -> None:
    """Stream until all that is there is read, or until told to end.

    ``live`` says whether the clicks are counted live as well.

    Raises:
        StreamRunsAlreadyError: if the source's stream runs already.
        UsageError: if a checkpoint was made for something else.
        ClickmillError: if the stream fails.
    """
    lake = Lake(spark, settings)
    owned = StreamCheckpoint.of(settings, source.name).owned()
    with owned, _loss_of_server_told(source), _stopped_at_the_end() as logs:
        require_fit(settings, source, live=live)
        made_for = dependences(settings, source, live=live)
        for dependence in made_for.values():
            dependence.keep_if_absent()
        query = stream_topic.start(spark, settings, source, available_now=available_now)
        logs.append(ProgressLog(source.name, "clicks", query))
        made_for["clicks"].keep()
        print(f"the stream of {source.name} runs", flush=True)
        if available_now:
            _follow(lake, source, logs, made_for)
        if live:
            for key in settings.pipeline.counts:
                query = stream_live.start(spark, settings, source, key, available_now=available_now)
                logs.append(ProgressLog(source.name, key, query))
        _follow(lake, source, logs, made_for)


@contextmanager
def _stopped_at_the_end() -> Iterator[list[ProgressLog]]:
    logs: list[ProgressLog] = []
    try:
        yield logs
    finally:
        for log in logs:
            log.handle.stop()


def _follow(lake: Lake, source: Source, logs: Sequence[ProgressLog], made_for: Mapping[str, Dependence]) -> None:
    """Keep the queries' progress, and say that this process lives, until they have ended.

    Raises:
        UsageError: if Spark refuses the checkpoint of one of them.
        ClickmillError: if one of them fails.
    """
    while True:
        running = [log for log in logs if log.handle.isActive]
        rows = [row for log in logs for row in log.new_rows()]
        if rows:
            keep(lake, rows)
        say_alive(lake.settings, logs[0].source, logs[0].lag)
        for log in logs:
            if error := log.handle.exception():
                said = failure_of(str(error), topic_of(source))
                if is_of_other_state(str(error)):
                    raise UsageError(made_for[log.query].keep_refusal(said)) from error
                raise ClickmillError(f"the stream of {log.source} ({log.query}) failed: {said}") from error
        if not running:
            return
        time.sleep(POLL_SECONDS)


@contextmanager
def _loss_of_server_told(source: Source) -> Iterator[None]:
    """A server that ends takes its queries with it: all that is asked of one then fails, its end too."""
    try:
        yield
    except PySparkException as error:
        raise ClickmillError(
            f"the stream of {source.name} broke off: {str(error).splitlines()[0]}; "
            "if its Spark server has ended, start the stream again: it goes on where it was"
        ) from error


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Run from the shell."""
    parser = OneLineParser(prog="python -m spark_jobs.stream_clicks", description=__doc__)
    parser.add_argument("--source", required=True, help="a source of config/sources.toml that has a topic")
    parser.add_argument("--available-now", action="store_true", help="read what is there, then end")
    parser.add_argument("--no-live", action="store_true", help="leave out the live counts")
    given = parser.parse_args()
    settings = Settings.from_environment()
    (source,) = choose_sources(settings, given.source)
    topic_of(source)
    signal.signal(signal.SIGTERM, _interrupt)
    with spark_session(settings) as spark:
        try:
            run(spark, settings, source, available_now=given.available_now, live=not given.no_live)
        except KeyboardInterrupt:
            print(f"the stream of {source.name} has been told to end")


if __name__ == "__main__":
    exit_with(main)
