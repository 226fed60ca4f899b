"""Write the expected topologies again, after a look at what has changed: ``python -m tests.topology.renew_topologies``.

It starts Spark, or takes the server that ``CLICKMILL_TEST_SPARK_REMOTE`` or ``SPARK_REMOTE`` names (on this machine).
The test of the same name compares against these files.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from include.job_arguments import JobArguments
from include.log_hours import Hour
from spark_jobs.topology.model import JobTopology, describe
from tests.support.temporary_lake import TemporaryLake, click, make_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXPECTED = Path(__file__).resolve().parent / "topologies"
HOUR = "2026-03-01T05"
EARLIER = str(Hour.parse(HOUR).plus(-1))


def land(lake: TemporaryLake) -> None:
    """Two log hours with duplicates, late clicks, some out of order, and lines that are no clicks."""
    for hour in (EARLIER, HOUR):
        lines = [
            click(f"{hour}-{n}", f"{hour}:{59 - n:02d}:00Z", f"http://shop.test/{n % 5}", user_agent=f"agent {n % 3}")
            for n in range(30)
        ]
        late = click(f"{hour}-late", f"{EARLIER}:00:01Z", "http://shop.test/late")
        twice = click(f"{EARLIER}-7", f"{hour}:07:00Z", "http://shop.test/twice")
        lake.land(hour, {"a.json": b"".join([*lines, late, lines[0], twice, b"nonsense\n"]), "b.json": lines[1]})


@contextmanager
def without_adaptive_execution(spark: SparkSession) -> Iterator[None]:
    """What a job asks for: whatever Spark decides while it runs depends on the rows and on which stage ends first."""
    name = "spark.sql.adaptive.enabled"
    before = spark.conf.get(name)
    spark.conf.set(name, "false")
    try:
        yield
    finally:
        spark.conf.set(name, before)


def topologies(lake: TemporaryLake) -> dict[str, str]:
    """The topology of each job over a log hour that was ingested before, without figures."""
    from spark_jobs.explain_topology import JOBS, explain

    land(lake)
    lake.run("ingest", EARLIER, str(Hour.parse(HOUR).plus(1)))
    arguments = JobArguments.of("web", None, None, hour=HOUR)
    with without_adaptive_execution(lake.spark):
        found = explain(lake.spark, lake.settings, arguments, JOBS)
    return {topology.job: describe(_by_name(topology), with_figures=False) for topology in found}


def _by_name(topology: JobTopology) -> JobTopology:
    """The queries by name: of those that run at once, now one begins first and now another."""
    return replace(topology, queries=tuple(sorted(topology.queries, key=lambda query: query.name)))


def main() -> None:
    """Write the files, and say which have changed."""
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    from pyspark.sql import SparkSession

    from ops.services.start import start
    from ops.services.stop import stop
    from spark_jobs.engine.session import configure

    home = Path(tempfile.mkdtemp(prefix="cm-"))
    remote = os.environ.get("CLICKMILL_TEST_SPARK_REMOTE") or os.environ.get("SPARK_REMOTE")
    try:
        spark = configure(SparkSession.builder.remote(remote or start(home / "services").spark_remote).getOrCreate())
        found = topologies(TemporaryLake(spark, make_settings(home / "lake")))
        spark.stop()
    finally:
        if not remote:
            stop(home / "services")
        shutil.rmtree(home, ignore_errors=True)
    EXPECTED.mkdir(exist_ok=True)
    for job, text in found.items():
        file = EXPECTED / f"{job}.txt"
        is_same = file.is_file() and file.read_text(encoding="utf-8") == text
        file.write_text(text, encoding="utf-8")
        print(f"{'as it was' if is_same else 'renewed  '} {file}")


if __name__ == "__main__":
    main()
