"""Count the clicks of every click hour that the given log hours touch, or touched in an earlier run.

All counts (per URL, per country, and per any further key of config/pipeline.toml) are fed from one read of the
clicks, each by the instances of its own grouping. Replaces exactly these click hours in the aggregate tables, and
their days in the daily tables, which are sums of the hours; says in grouping_metrics what load each instance had.
"""

from __future__ import annotations

from include.command import exit_with
from spark_jobs.aggregate.job import aggregate
from spark_jobs.engine.command import run_from_shell

if __name__ == "__main__":
    exit_with(lambda: run_from_shell("spark_jobs.aggregate_clicks", __doc__, aggregate))
