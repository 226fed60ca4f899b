"""Streams of several sources beside each other, until they are asked to end."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from include.counting import CountKey
from include.errors import ClickmillError, SparkGoneError, UsageError, in_one_line
from include.settings import Settings
from include.sources import Source, stream_of
from include.streams.signs_of_life import say_alive
from spark_jobs.engine.steps import in_parallel
from spark_jobs.lake.lake import Lake
from spark_jobs.stream import live as stream_live
from spark_jobs.stream import query as stream_query
from spark_jobs.stream.checkpoint import StreamCheckpoint
from spark_jobs.stream.compatibility import Dependence, dependences, require_fit
from spark_jobs.stream.end_request import EndRequest
from spark_jobs.stream.failure import failure_of, is_of_another_start, is_of_other_state
from spark_jobs.stream.id_folder import IdFolder
from spark_jobs.stream.progress import ProgressLog, QueryName, keep

#: How often the queries are asked what they have done, and more often if they are to end by themselves.
POLL_SECONDS = 1.0


POLL_SECONDS_TO_THE_END = 0.25


#: So many live counts are started at the same time.
STARTED_AT_ONCE = 2


#: So often in so many seconds a query is started again that something else has ended.
MOST_TAKEN_BACK, TAKEN_BACK_SECONDS = 3, 600.0


#: And so often because the same micro-batch hangs.
MOST_HUNG = 3


@dataclass
class SourceStream:
    """The queries of one source, that of its clicks first; ``failure`` says why they have ended early."""

    lake: Lake
    source: Source
    available_now: bool
    live: bool
    logs: list[ProgressLog] = field(default_factory=list)
    made_for: dict[str, Dependence] = field(default_factory=dict)
    failure: ClickmillError | None = None

    def start_clicks(self) -> None:
        """Start to read the source.

        Raises:
            UsageError: if one of its checkpoints was made for something else.
            ClickmillError: if it is not known from where to go on.
        """
        require_fit(self.lake.settings, self.source, live=self.live)
        self.made_for = dependences(self.lake.settings, self.source, live=self.live)
        for dependence in self.made_for.values():
            dependence.keep_if_absent()
        checkpoint = StreamCheckpoint.of(self.lake.settings, self.source.name)
        ids = IdFolder(checkpoint) if self.source.has_event_id else None
        self.logs.append(ProgressLog(self.source.name, "clicks", self._started("clicks"), ids))
        self.made_for["clicks"].keep()
        print(f"the stream of {self.source.name} runs", flush=True)

    def start_live(self, asked_to_end: EndRequest) -> None:
        """Start to count its clicks live, if they are to be and it has not failed."""
        if not self.live or self.failure is not None:
            return

        def start(key: CountKey) -> None:
            # Here, so that it is ended if another does not start.
            self.logs.append(ProgressLog(self.source.name, key, self._started(key)))

        keys = list(self.lake.settings.pipeline.counts)
        # Each waits for its own Python worker, and Spark waits 10 s for it: too many delay each other.
        for first in range(0, len(keys), STARTED_AT_ONCE):
            if asked_to_end.made:
                return
            in_parallel(self.lake.spark, *(partial(start, key) for key in keys[first : first + STARTED_AT_ONCE]))

    def look(self) -> bool:
        """Keep the queries' progress, and say that this process lives; whether one of them runs."""
        if self.failure is not None:
            return False
        ended = [log for log in self.logs if not log.handle.isActive]
        rows = [row for log in self.logs for row in log.new_rows()]
        if rows:
            keep(self.lake, rows)
        say_alive(self.lake.settings, self.source.name, self.logs[0].lag)
        cut_off = []
        for log in ended:
            error = log.handle.exception()
            if error is not None and not is_of_another_start(str(error)):
                self._fail_of(log, str(error))
                return False
            if error is not None or not (self.available_now and log.is_exhausted):
                cut_off.append(log)
        for log in cut_off:
            if self.failure is None:
                self._take_back(log)
        for log in self.logs:
            if self.failure is None and log not in ended:
                self._end_if_it_hangs(log)
        return self.failure is None and (bool(cut_off) or len(ended) < len(self.logs))

    def _fail_of(self, log: ProgressLog, message: str) -> None:
        """End its queries, because of what Spark says of this one."""
        reason = failure_of(message, stream_query.input_of(self.lake.spark, self.lake.settings, self.source).explained)
        if is_of_other_state(message):
            self.fail(UsageError(self.made_for[log.query].keep_refusal(reason)))
        else:
            self.fail(ClickmillError(f"the stream of {log.source} ({log.query}) failed: {reason}"))

    def _take_back(self, log: ProgressLog) -> None:
        """Start a query again that has ended before its end, and not by its own fault.

        Spark may do what a killed process has asked for after that process is gone, and end the query that it finds on
        the checkpoint: this one, if it was started since. Or that one has written an entry of the checkpoint before it
        was found to be overtaken. Or somebody has stopped this one on the server.
        """
        now = time.monotonic()
        log.taken_back = [at for at in log.taken_back if now - at < TAKEN_BACK_SECONDS] + [now]
        description = (
            f"the stream of {log.source} ({log.query}) was ended by another start of it, or on the Spark server"
        )
        if len(log.taken_back) > MOST_TAKEN_BACK:
            others = "find what else starts or stops it there, end that, and start the stream again"
            often = f"more than {MOST_TAKEN_BACK} times in {TAKEN_BACK_SECONDS / 60:.0f} minutes"
            self.fail(ClickmillError(f"{description}, {often}; {others}"))
            return
        print(f"{description}, and is started again", file=sys.stderr, flush=True)
        self._start_again(log)

    def _end_if_it_hangs(self, log: ProgressLog) -> None:
        """Start a query again whose micro-batch takes longer than any should: a disk or a Python worker is stuck."""
        minutes = stream_of(self.source).hung_minutes
        seconds = log.seconds_over_bound(minutes * 60)
        if seconds is None:
            return
        checkpoint = self._checkpoint(log.query)
        usual = f"the longest of the last {len(log.took)} took {max(log.took):,.1f} s" if log.took else "the first"
        batch = f"its micro-batch {checkpoint.last_begun()} is under way for {seconds:,.0f} s ({usual})"
        description = f"the stream of {log.source} ({log.query}) hangs: {batch}"
        log.hung += 1
        is_last = log.hung > MOST_HUNG
        if not is_last:
            print(f"{description}; its query is started again", file=sys.stderr, flush=True)
        try:
            log.handle.stop()
        except PySparkException as error:
            why = str(error).splitlines()[0]
            self.fail(ClickmillError(f"{description}, and does not end ({why}); restart the Spark server"))
            return
        finally:
            # Stuck tasks would keep their cores.
            self.lake.spark.interruptTag(checkpoint.work_tag)
        if is_last:
            ways = "see whether a disk or its input is stuck, then start the stream again; if that is how long it takes"
            why = f"as it did after {MOST_HUNG} restarts; {ways}, raise hung_minutes ({minutes:g})"
            self.fail(ClickmillError(f"{description}, {why}"))
            return
        self._start_again(log)

    def _start_again(self, log: ProgressLog) -> None:
        try:
            # It counts as ended once Spark has been asked to end it. Until it has, its name is taken in this session.
            log.handle.stop()
            log.handle = self._started(log.query)
            log.got_on_at = time.monotonic()
        except ClickmillError as error:
            self.fail(error)

    def _checkpoint(self, query: QueryName) -> StreamCheckpoint:
        return StreamCheckpoint.of(self.lake.settings, self.source.name, None if query == "clicks" else query)

    def _started(self, query: QueryName) -> StreamingQuery:
        """One of its queries, started where it left off."""
        arguments = self.lake.spark, self.lake.settings, self.source
        if query == "clicks":
            return stream_query.start(*arguments, available_now=self.available_now)
        return stream_live.start(*arguments, query, available_now=self.available_now)

    def fail(self, why: ClickmillError) -> None:
        """End its queries."""
        self.failure = why
        self.stop()

    def stop(self) -> None:
        """End its queries; one that does not end is named, and the next start takes its checkpoint from it."""
        for log in self.logs:
            try:
                log.handle.stop()
            except PySparkException as error:
                reason = str(error).splitlines()[0]
                print(f"the stream of {log.source} ({log.query}) did not end: {reason}", file=sys.stderr, flush=True)


def stream(
    spark: SparkSession,
    settings: Settings,
    sources: Sequence[Source],
    *,
    available_now: bool,
    live: bool = True,
    asked_to_end: EndRequest | None = None,
) -> None:
    """Stream until all that is there is read, or until asked to end.

    ``live`` says whether the clicks are counted live as well.

    Raises:
        StreamRunsAlreadyError: if the stream of one of the sources runs already.
        ClickmillError: if a stream fails, and the others have been read to their end; or if it is asked to end before
            it has read all that is there, where it is to.
    """
    lake = Lake(spark, settings)
    names = ", ".join(source.name for source in sources)
    with ExitStack() as stack:
        for source in sources:
            stack.enter_context(StreamCheckpoint.of(settings, source.name).owned(settings))
        stack.enter_context(_loss_of_server_told(names))
        asked_to_end = asked_to_end or EndRequest()
        streams = [SourceStream(lake, source, available_now, live) for source in sources]
        for stream in streams:
            if asked_to_end.made:
                break
            stack.callback(stream.stop)
            try:
                stream.start_clicks()
            except ClickmillError as error:
                if len(streams) == 1:
                    raise
                stream.fail(ClickmillError(f"the stream of {stream.source.name} did not start: {error}"))
        _tell_failures(streams, [stream for stream in streams if stream.failure is None])
        seconds = POLL_SECONDS_TO_THE_END if available_now else POLL_SECONDS
        left = _follow(streams, seconds, asked_to_end) if available_now else streams
        if live or not available_now:
            for stream in streams:
                stream.start_live(asked_to_end)
            left = _follow(streams, seconds, asked_to_end)
        failures = [stream.failure for stream in streams if stream.failure is not None]
        if available_now and left:
            unread = ", ".join(stream.source.name for stream in left)
            failures.append(
                ClickmillError(f"the stream of {unread} was asked to end before it had read all; start it again")
            )
        if len(failures) == 1:
            raise failures[0]
        if failures:
            raise ClickmillError("; ".join(map(str, failures)))


def _follow(streams: Sequence[SourceStream], seconds: float, asked_to_end: EndRequest) -> list[SourceStream]:
    """Look after the streams, every so many seconds, until all have ended or they are asked to; those that have not."""
    running = [stream for stream in streams if stream.failure is None]
    while running and not asked_to_end.made:
        still_running = [stream for stream in running if stream.look()]
        _tell_failures(running, still_running)
        running = still_running
        if running:
            time.sleep(seconds)
    return running


def _tell_failures(streams: Sequence[SourceStream], going_on: Sequence[SourceStream]) -> None:
    """Say immediately what streams have failed of where others go on; else it is the end, and said there."""
    for stream in streams:
        if stream.failure is not None and going_on:
            print(f"{stream.failure}; the other streams go on", file=sys.stderr, flush=True)


@contextmanager
def _loss_of_server_told(names: str) -> Iterator[None]:
    """A server that ends takes its queries with it: all that is asked of one then fails, its end too."""
    try:
        yield
    except PySparkException as error:
        is_gone = isinstance(in_one_line(error), SparkGoneError)
        why = "its Spark server was ended or started again" if is_gone else str(error).splitlines()[0]
        raise (SparkGoneError if is_gone else ClickmillError)(
            f"the stream of {names} broke off: {why}; start it again: it goes on where it was"
        ) from error
