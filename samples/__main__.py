"""Write a sample of click logs to a landing zone, and the truth about it to a JSON file beside it.

Like real logs, the sample has malformed lines, duplicates, late clicks and lines out of order. The same
arguments give the same bytes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from include.command import described_parser, exit_with
from include.errors import ClickmillError, UsageError
from include.hours import Hour
from include.storage import place
from samples import sample_logs
from samples.sample_logs import make_sample
from samples.sample_spec import Compression, SampleSpec


@dataclass(frozen=True)
class SampleArguments:
    """What to write, and where."""

    spec: SampleSpec
    landing: Path
    truth: Path


def main(argv: Sequence[str] | None = None) -> None:
    """Parse the arguments, write the sample and its truth, and say what was written."""
    arguments = _parse(argv)
    started = time.monotonic()
    try:
        with _progress(arguments.spec) as advance:
            truth = make_sample(arguments.spec, arguments.landing, advance)
        truth.write(arguments.truth)
    except OSError as error:
        raise ClickmillError(
            f"cannot write {error.filename}: {error.strerror}; log hours without _SUCCESS are not whole: run it again"
        ) from error
    lines = sum(hour.lines for hour in truth.log_hours.values())
    files = sum(hour.files for hour in truth.log_hours.values())
    folder, seconds = arguments.landing / arguments.spec.source, time.monotonic() - started
    print(
        f"{lines:,} lines in {files:,} files of {len(truth.log_hours):,} log hours "
        f"({arguments.spec.log_hours}) in {folder}, truth in {arguments.truth}, {seconds:.1f} s"
    )


def _parse(argv: Sequence[str] | None) -> SampleArguments:
    arguments = _parser().parse_args(argv)
    spec = SampleSpec(
        source=arguments.source,
        start=Hour.parse(arguments.start),
        hours=arguments.hours,
        clicks_per_hour=arguments.clicks_per_hour,
        seed=arguments.seed,
        compression=arguments.compression,
        files_per_hour=arguments.files_per_hour,
        is_clean=arguments.clean,
        broken=dict(arguments.broken or ()),
    )
    truth = arguments.truth or arguments.landing.resolve().parent / f"{spec.source}_truth.json"
    if truth.is_dir():
        raise UsageError(f"truth {truth} is a folder; expected a file's name")
    return SampleArguments(spec, arguments.landing, truth)


def _parser() -> argparse.ArgumentParser:
    defaults = SampleSpec(Hour.parse("2026-03-01T00"))
    parser = described_parser("samples", __doc__, "hours are UTC. exit codes: 0 done, 1 failed, 2 wrong arguments")
    parser.add_argument("--landing", type=place, required=True, help="the landing zone's folder; made when absent")
    parser.add_argument("--source", required=True, help="a name such as web")
    parser.add_argument("--from", dest="start", metavar="HOUR", required=True, help="first log hour: 2026-03-01T00")
    parser.add_argument("--hours", type=int, required=True, help="how many log hours")
    parser.add_argument(
        "--clicks-per-hour",
        type=int,
        default=defaults.clicks_per_hour,
        help="mean over a day; default: %(default)s",
    )
    parser.add_argument("--seed", type=int, default=defaults.seed, help="default: %(default)s")
    parser.add_argument(
        "--compression",
        choices=get_args(Compression),
        default=defaults.compression,
        help="default: %(default)s",
    )
    parser.add_argument("--files-per-hour", type=int, default=defaults.files_per_hour, help="default: %(default)s")
    parser.add_argument("--truth", type=Path, metavar="FILE", help="default: SOURCE_truth.json beside the landing zone")
    parser.add_argument("--clean", action="store_true", help="no malformed lines, duplicates or late clicks")
    parser.add_argument(
        "--broken",
        type=_broken,
        action="append",
        metavar="HOUR=SHARE",
        help="a log hour in which a release goes wrong, and that share of the clicks has no url; may be given again",
    )
    return parser


def _broken(text: str) -> tuple[Hour, float]:
    hour, _, share = text.partition("=")
    try:
        return Hour.parse(hour), float(share)
    except (UsageError, ValueError):
        raise argparse.ArgumentTypeError(f"{text!r}: expected an hour and a share, such as 2026-03-01T08=0.7") from None


@contextmanager
def _progress(spec: SampleSpec) -> Iterator[sample_logs.Progress | None]:
    """A progress bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"{spec.source} {spec.start}", total=spec.hours)
        yield lambda log_hour, lines: bar.update(task, advance=1, description=f"{spec.source} {log_hour}")


if __name__ == "__main__":
    exit_with(main)
