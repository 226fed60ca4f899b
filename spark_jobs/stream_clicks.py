"""Stream sources into clicks, quarantined_clicks and stream_batches, each record or line of a file exactly once.

Goes on where it was, whatever ended it. With --available-now it ends when all that was there at its start is read; if
it is asked to end before, the exit code is 1. Without, it goes on until Ctrl-C or SIGTERM. Several sources are separate
streams, each with its own checkpoint, into the same tables: one that fails is reported immediately and ends alone, and
in the end the exit code is 1.
"""

from __future__ import annotations

from include.command import OneLineParser, exit_with
from include.settings import Settings
from include.sources import choose_streamed
from spark_jobs.engine.session import spark_session
from spark_jobs.stream.end_request import EndRequest
from spark_jobs.stream.job import stream


def main() -> None:
    """Run from the shell."""
    parser = OneLineParser(prog="python -m spark_jobs.stream_clicks", description=__doc__)
    parser.add_argument(
        "--source", required=True, help="streamed sources of config/sources.toml, separated by commas, or all of them"
    )
    parser.add_argument("--available-now", action="store_true", help="read what is there, then end")
    parser.add_argument("--no-live", action="store_true", help="leave out the live counts")
    given = parser.parse_args()
    settings = Settings.from_environment()
    sources = choose_streamed(settings, given.source)
    asked_to_end = EndRequest()
    asked_to_end.listen()
    with spark_session(settings) as spark:
        stream(
            spark,
            settings,
            sources,
            available_now=given.available_now,
            live=not given.no_live,
            asked_to_end=asked_to_end,
        )
    if asked_to_end.made:
        print(f"the stream of {', '.join(source.name for source in sources)} was asked to end")


if __name__ == "__main__":
    exit_with(main)
