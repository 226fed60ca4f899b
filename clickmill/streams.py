"""Streams, and the receiver of clicks by TCP."""

from __future__ import annotations

import signal
from typing import Annotated, Literal

import typer

from clickmill.options import Source, option, source_names
from clickmill.work import ended_by_hand, print_lines, ready_settings, session
from include.errors import UsageError

#: Which source is shown where none is named.
_SHOWN = "web_stream"


def stream(
    source: Annotated[
        str,
        typer.Option(
            metavar="NAME,…",
            autocompletion=source_names,
            help="streamed sources of config/sources.toml, separated by commas, or all of them",
        ),
    ],
    available_now: Annotated[bool, typer.Option("--available-now", help="read what is there, then end")] = False,
    no_live: Annotated[bool, typer.Option("--no-live", help="leave out the live counts")] = False,
) -> None:
    """Stream sources into clicks, quarantined_clicks and stream_batches, each record or line exactly once.

    Goes on where it was, whatever ended it. With --available-now it ends when all that was there at its start is read;
    if it is asked to end before, the exit code is 1. Without, it goes on until Ctrl-C or SIGTERM. Several sources are
    separate streams, each with its own checkpoint, into the same tables: one that fails is reported immediately and
    ends alone, and in the end the exit code is 1.
    """
    settings = ready_settings()
    from include.sources import choose_streamed
    from spark_jobs.stream.end_request import EndRequest
    from spark_jobs.stream.job import stream as run

    sources = choose_streamed(settings, source)
    asked_to_end = EndRequest()
    asked_to_end.listen()
    with session(settings) as spark:
        run(spark, settings, sources, available_now=available_now, live=not no_live, asked_to_end=asked_to_end)
    if asked_to_end.made:
        print(f"the stream of {', '.join(each.name for each in sources)} was asked to end")


def show_stream(
    source: Annotated[
        str,
        typer.Option(
            envvar="SOURCE", show_envvar=False, metavar="NAME", autocompletion=source_names, help="a streamed source"
        ),
    ] = _SHOWN,
    rate: Annotated[
        str,
        typer.Option(
            envvar="RATE",
            show_envvar=False,
            metavar="N",
            show_default=False,
            help="sample clicks a second; default: 200, where a source has none of its own",
        ),
    ] = "",
) -> int:
    """Start a stream with all that it needs, and show what it does until Ctrl-C, which ends what it has started.

    A topic of the embedded broker gets sample clicks; one of another broker, and files of the landing zone, are
    streamed as they are; for a source with sockets the receiver is started unless it runs, and sample clicks are sent
    when a rate is given. make stream installs the embedded broker before.
    """
    from rich.console import Console

    from include.settings import Settings
    from include.sources import choose_sources
    from ops.stream import rate_of, run

    _end_by_any_signal()
    with ended_by_hand():
        # make gives SOURCE also where it is blank.
        (chosen,) = choose_sources(Settings.from_environment(), source.strip() or _SHOWN)
        return run(chosen, rate_of(rate.strip()), Console())


def stop_streams() -> None:
    """End the streams that show-stream left behind, and the embedded broker."""
    from ops.stream import stop_marked

    _end_by_any_signal()
    with ended_by_hand():
        print(stop_marked())


def _end_by_any_signal() -> None:
    """SIGINT too, which a shell has its background processes ignore; a terminal that is closed ends it as well."""
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.default_int_handler)


def repartition_stream(
    source: Source,
    partitions: Annotated[int, option("N", "how many from now on")],
) -> None:
    """Give the live counts of a stopped stream another number of state partitions: on so many instances they are kept.

    They, and the place up to which they have counted, stay as they are. Set state_partitions in config/pipeline.toml to
    the same number for streams that are begun later. The event ids that a stream knows need no job: at its next start
    they are in as many partitions as state_partitions of its source says.
    """
    settings = ready_settings()
    from include.sources import choose_sources, stream_of
    from spark_jobs.stream.repartition import MOST_PARTITIONS, repartition

    if not 1 <= partitions <= MOST_PARTITIONS:
        raise UsageError(f"--partitions {partitions}: expected 1 to {MOST_PARTITIONS}")
    (chosen,) = choose_sources(settings, source)
    stream_of(chosen)
    print_lines(repartition(settings, chosen, partitions))


def receive(
    action: Annotated[
        Literal["run", "start", "stop"],
        typer.Argument(help="run: until Ctrl-C or SIGTERM; start and stop: beside the other services of the home"),
    ] = "run",
    source: Annotated[
        str,
        typer.Option(metavar="NAME", autocompletion=source_names, help="a source with [sockets]; all: each of them"),
    ] = "all",
) -> None:
    """Receive clicks over TCP, one line a click, into the landing zone of each source with [sockets].

    A client sends lines and reads answers: "stored N ID" says that the first N lines of this connection are on the disk
    for good, and that the last of them has this sequence id of its port. What was not answered is to be sent again.
    While a client's lines are stored nothing is read from it, so one that is faster than the disk is slowed down.
    """
    import asyncio

    from include.settings import Settings
    from ops.home import find_home
    from ops.receive import receive as run
    from ops.receive import sources_with_sockets, start_receiver
    from ops.services.beside import stop_beside
    from ops.services.programs import RECEIVER

    if action == "stop":
        stop_beside(find_home(), RECEIVER)
        return
    settings = Settings.from_environment()
    sources = sources_with_sockets(settings, source)
    if action == "start":
        print(start_receiver(settings))
    else:
        asyncio.run(run(settings, sources))
