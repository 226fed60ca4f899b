"""Give the live counts of a stopped stream another number of state partitions: on so many instances they are kept.

They, and the place up to which they have counted, stay as they are. Set state_partitions in config/pipeline.toml to the
same number for streams that are begun later. The event ids that a stream knows need no job: at its next start they are
in as many partitions as state_partitions of its source says.
"""

from __future__ import annotations

from include.command import OneLineParser, exit_with
from include.errors import UsageError
from include.settings import Settings
from include.sources import choose_sources, stream_of
from spark_jobs.stream.repartition import MOST_PARTITIONS, repartition


def main() -> None:
    """Run from the shell."""
    parser = OneLineParser(prog="python -m spark_jobs.repartition_stream", description=__doc__)
    parser.add_argument("--source", required=True, help="a streamed source of config/sources.toml")
    parser.add_argument("--partitions", required=True, type=int, help="how many from now on")
    given = parser.parse_args()
    if not 1 <= given.partitions <= MOST_PARTITIONS:
        raise UsageError(f"--partitions {given.partitions}: expected 1 to {MOST_PARTITIONS}")
    settings = Settings.from_environment()
    (source,) = choose_sources(settings, given.source)
    stream_of(source)
    print(*repartition(settings, source, given.partitions), sep="\n")


if __name__ == "__main__":
    exit_with(main)
