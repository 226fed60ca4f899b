"""Streams and an erasure: none runs meanwhile, none has left half a micro-batch, and live counts begin again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from include.counting import live_count_table
from include.errors import ClickmillError, FinalError, StreamRunsAlreadyError
from include.hours import Hour, click_hours_predicate
from include.sources import Source
from include.storage import remove_folder
from include.tables import STREAM_PROGRESS
from include.texts import as_literal
from spark_jobs.hours.replays import open_replays, open_withdrawals
from spark_jobs.hours.touched_hours import closed_click_hours
from spark_jobs.lake.lake import Lake
from spark_jobs.stream.checkpoint import StreamCheckpoint


@contextmanager
def no_stream_runs(lake: Lake, sources: Mapping[str, Source]) -> Iterator[None]:
    """No stream of this data runs until the end: the files of its micro-batches would be taken for old ones.

    Raises:
        ClickmillError: if one runs; or if a micro-batch, or a replay of streamed lines, has not ended: whoever ends it
            writes, and accounts for, lines that are gone by then.
    """
    with ExitStack() as owned:
        for name, source in sources.items():
            if source.stream is None:
                continue
            checkpoint = StreamCheckpoint.of(lake.settings, name)
            try:
                owned.enter_context(checkpoint.owned(lake.settings))
            except StreamRunsAlreadyError as error:
                raise ClickmillError(
                    f"nothing is erased: {error}; if Airflow supervises it, pause clicks_stream first, and erase again"
                ) from error
            if not checkpoint.is_whole():
                raise ClickmillError(
                    f"nothing is erased: the last micro-batch of {name} has not ended; end it, and erase again: "
                    f"clickmill stream --source {name} --available-now"
                )
            if withdrawals := open_withdrawals(lake, name):
                raise ClickmillError(
                    f"nothing is erased: the withdrawal of replay {withdrawals[0]} was killed; end it, erase again: "
                    f"clickmill replay --withdraw {withdrawals[0]} --by … --because …"
                )
            if replays := open_replays(lake, name):
                raise FinalError(
                    f"nothing is erased: replay {min(replays)} of {name} was killed; run it again, with the arguments "
                    "that table journal has of it, and erase again"
                )
        yield


def count_live_again(lake: Lake, source: str, click_hours: Collection[Hour]) -> None:
    """Let the next start of a stream count live from the clicks that are left: its state has counted all of them.

    The files of those that it had not counted yet are gone with the former versions too.
    """
    closed = closed_click_hours(lake, click_hours, ())
    hours = [hour for hour in click_hours if hour not in closed]
    of_source, keys = f"source = {as_literal(source)}", list(lake.settings.pipeline.counts)
    for key in keys:
        remove_folder(StreamCheckpoint.of(lake.settings, source, key).folder)
        table = live_count_table(key)
        if hours and lake.exists(table):
            lake.replace_rows(table, [], f"{of_source} AND ({click_hours_predicate(hours)})")
    if lake.exists(STREAM_PROGRESS):
        # Else the checks would take it that all of these clicks have been counted live.
        lake.replace_rows(STREAM_PROGRESS, [], f"{of_source} AND query IN ({', '.join(map(as_literal, keys))})")
