"""The topology of every job is the expected one, and its figures are those of the rows that were there."""

from __future__ import annotations

import difflib

import pytest

from include.job_arguments import JobArguments
from include.tables import CLICKS_BY_COUNTRY_HOURLY, CLICKS_BY_URL_HOURLY
from tests.jobs.renew_topologies import EXPECTED, HOUR, topologies
from tests.jobs.temporary_lake import TemporaryLake

pytestmark = pytest.mark.spark


def test_every_job_has_its_expected_topology_and_rows_are_counted_as_they_cross(lake: TemporaryLake) -> None:
    from spark_jobs.explain_topology import explain

    for job, text in topologies(lake).items():
        expected = (EXPECTED / f"{job}.txt").read_text(encoding="utf-8")
        difference = difflib.unified_diff(expected.splitlines(), text.splitlines(), "expected", "now", lineterm="")
        assert text == expected, (
            f"the topology of {job} is not the expected one:\n" + "\n".join(difference) + "\n"
            f"each shuffle costs time, so look at it first: python -m spark_jobs.explain_topology {job} --hour …\n"
            "if it is meant to be so, renew the files and commit them: python -m tests.jobs.renew_topologies"
        )

    (aggregate,) = explain(
        lake.spark, lake.settings, JobArguments.of("web", HOUR, None, hour=None), ["aggregate_clicks"]
    )
    for table in (CLICKS_BY_URL_HOURLY, CLICKS_BY_COUNTRY_HOURLY):
        query = next(query for query in aggregate.queries if query.name.endswith(f"write {table.name}"))
