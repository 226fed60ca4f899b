"""Measure how fast lines of each format are parsed: by two processes at once, of their processor time.

Usage: ``python -m benchmarks.formats [FORMAT ...]``, of those in ``benchmarks/formats.toml``; without any all of them,
and the slowest of these is recorded. Of all rounds over a log the fastest counts: what slows the others down is other
work on the machine.
"""

from __future__ import annotations

import random
import re
import resource
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.figures import record
from benchmarks.timing import console
from include.command import described_parser, exit_with
from include.home import REPOSITORY

FORMATS: dict[str, Any] = tomllib.loads((REPOSITORY / "benchmarks/formats.toml").read_text(encoding="utf-8"))
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
LINES = 50_000
ROUNDS, PASSES = 5, 3
#: Not syslog's ``<13>``.
_NAME = re.compile(r"<([a-z_][a-z_+%0-9]*)>")


def main() -> None:
    """Print a table of the formats."""
    parser = described_parser("benchmarks.formats", __doc__)
    parser.add_argument("formats", nargs="*", metavar="FORMAT")
    names = parser.parse_args().formats
    if unknown := set(names) - FORMATS.keys():
        parser.error(f"no format {min(unknown)!r}; expected some of {', '.join(FORMATS)}")
    results: dict[str, list[tuple[float, float]]] = {name: [] for name in names or FORMATS}
    with tempfile.TemporaryDirectory() as folder:
        for name in results:
            Path(folder, name).write_text("".join(f"{line}\n" for line in written_lines(FORMATS[name])), "utf-8")
        for name in [*results] * ROUNDS:
            with ProcessPoolExecutor(2, get_context("spawn")) as processes:
                results[name] += processes.map(seconds_a_line, [Path(folder, name)] * 2, [name] * 2)
    table = Table("format", "µs a line", "lines a second", "peak memory, MiB")
    seconds = {name: min(seconds for seconds, _ in of_name) for name, of_name in results.items()}
    for name, of_name in results.items():
        memory = max(memory for _, memory in of_name)
        table.add_row(name, f"{1e6 * seconds[name]:.1f}", f"{2 / seconds[name]:,.0f}", f"{memory:,.0f}")
    console.print(table)
    if not names:
        record("formats", 2 / max(seconds.values()))


def written_lines(format_: Mapping[str, Any]) -> Iterator[str]:
    """A log of ``LINES`` clicks in an hour."""
    rng = random.Random(7)
    agents = [
        f"Mozilla/5.0 (X11; Linux x86_64; rv:{version}.0) Gecko/20100101 Firefox/{version}.0" for version in range(400)
    ]
    targets = [f"/products/{rng.randrange(10_000)}/view" for _ in range(5_000)]
    targets += [f"{target}?q={rng.randrange(1_000)}&utm_source=x" for target in targets[:1_000]]
    clients = [".".join(str(rng.randrange(1, 224)) for _ in range(4)) for _ in range(15_000)]
    if "header" in format_:
        yield format_["header"]
    for number in range(LINES):
        moment, target = START + timedelta(hours=number / LINES), rng.choice(targets)
        path, _, query = target.partition("?")
        agent = rng.choice(agents)
        values = {
            "id": f"{rng.getrandbits(128):032x}",
            "instant": f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z",
            "apache_time": f"{moment:%d/%b/%Y:%H:%M:%S +0000}",
            "syslog_time": f"{moment:%b %e %H:%M:%S}",
            "date": f"{moment:%Y-%m-%d}",
            "time": f"{moment:%H:%M:%S}",
            "seconds": f"{moment.timestamp():.6f}",
            "micros": f"{moment.timestamp() * 1e6:.0f}",
            "target": target,
            "path": path,
            "query": query or "-",
            "client": rng.choice(clients),
            "port": str(rng.randrange(1_024, 65_536)),
            "status": str(rng.choice((*[200] * 8, 304, 404))),
            "bytes": str(rng.randrange(200, 90_000)),
            "referrer": f"https://www.example.org/search?q={rng.randrange(800)}" if rng.random() < 0.7 else "-",
            "agent": agent,
            "agent+": agent.replace(" ", "+"),
            "agent%20": agent.replace(" ", "%20"),
            "visitor": f"v{rng.randrange(20_000)}",
            "country": rng.choice(("DE", "FR", "US", "GB", "NL")),
        }
        yield _NAME.sub(partial(_named, values), format_["line"])


def _named(values: Mapping[str, str], name: re.Match[str]) -> str:
    return values[name[1]]


def seconds_a_line(log: Path, name: str) -> tuple[float, float]:
    """Processor seconds that a line takes, in the fastest pass; and this process's peak memory in MiB."""
    import pyarrow as pa

    from include.hours import Hour
    from include.settings import Settings
    from include.source_presets import with_preset
    from include.sources import Source
    from spark_jobs.lines.headers import with_headers
    from spark_jobs.lines.parse_lines import parse_lines
    from spark_jobs.lines.read_lines import LandedFile, ReadFile, read_lines

    pa.set_cpu_count(1)
    source = Source.model_validate({"name": "web", **with_preset(FORMATS[name]["source"])})
    tracking = Settings.from_environment({}).pipeline.tracking_parameters
    read = read_lines(ReadFile(LandedFile(log, Hour.containing(START), 1)))
    pieces = [*with_headers((piece.append_column("row_id", piece["line"]) for piece in read), source)]
    passes = []
    for _ in range(PASSES):
        begun = time.process_time()
        clicks = sum(parse_lines(piece, source, tracking)["reason"].null_count for piece in pieces)
        passes.append(time.process_time() - begun)
        if clicks != LINES:
            raise ValueError(f"{clicks:,} of {LINES:,} lines of {name} are clicks; expected all of them")
    return min(passes) / LINES, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    exit_with(main)
