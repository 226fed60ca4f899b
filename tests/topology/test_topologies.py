"""The topology of every job is the expected one; figures are those of the rows; needless shuffles are named."""

from __future__ import annotations

import difflib
import logging

import pytest

from include.job_arguments import JobArguments
from include.tables import CLICKS_BY_URL_HOURLY
from spark_jobs.topology.model import QueryTopology
from tests.support.temporary_lake import TemporaryLake
from tests.topology.renew_topologies import EARLIER, EXPECTED, HOUR, land, topologies

pytestmark = pytest.mark.spark


@pytest.mark.slow
def test_every_job_has_its_expected_topology(lake: TemporaryLake) -> None:
    for job, text in topologies(lake).items():
        expected = (EXPECTED / f"{job}.txt").read_text(encoding="utf-8")
        difference = difflib.unified_diff(expected.splitlines(), text.splitlines(), "expected", "now", lineterm="")
        assert text == expected, (
            f"the topology of {job} is not the expected one:\n" + "\n".join(difference) + "\n"
            f"each shuffle costs time, so look at it first: python -m spark_jobs.explain_topology {job} --hour …\n"
            "if it is meant to be so, renew the files and commit them: python -m tests.topology.renew_topologies"
        )


@pytest.mark.path
def test_figures_are_those_of_the_rows_and_needless_shuffles_are_named(lake: TemporaryLake) -> None:
    from spark_jobs.engine.spark_status import SparkStatus
    from spark_jobs.engine.steps import step
    from spark_jobs.explain_topology import explain, topologies_under

    land(lake)
    for job in ("ingest", "aggregate"):
        lake.run(job, EARLIER, HOUR)
    (aggregate,) = explain(lake.spark, lake.settings, JobArguments.of("web", EARLIER, HOUR), ["aggregate_clicks"])
    written = {query.name: query for query in aggregate.queries}[f"write {CLICKS_BY_URL_HOURLY.name}"]
    assert written.shuffles
    assert written.sub_topologies[-1].sinks == (f"table {CLICKS_BY_URL_HOURLY.name}",)
    last = written.shuffles[-1]
    assert (last.partitioner, last.keys, last.count) == ("hash", ("url",), lake.settings.pipeline.buckets)
    assert last.rows is not None
    assert last.size
    assert written.sub_topologies[0].partitions

    stored = lake.spark.read.format("delta").load(str(lake.settings.lake / CLICKS_BY_URL_HOURLY.name))
    urls = stored.select("url", "click_hour", "click_count")
    status = SparkStatus.of(lake.spark)
    assert status is not None
    with step(lake.spark, "needless?"):
        with step(lake.spark, "partitioned twice"):
            by_hour = urls.repartition(3, "url").groupBy("url", "click_hour").count()
            by_hour.repartition(3, "url", "click_hour").collect()
        with step(lake.spark, "partitioned once"):
            partitioned = urls.repartition(3, "url").groupBy("url").count().collect()
        with step(lake.spark, "combined then partitioned"):
            urls.groupBy("url", "click_hour").count().repartition(3, "url").collect()
        with step(lake.spark, "stored join"):
            urls.hint("merge").join(urls.selectExpr("url", "click_count AS before"), "url").collect()
        with step(lake.spark, "total"):
            urls.repartition(3).groupBy().count().collect()
    found = {query.name: query for query in topologies_under("needless?", status, lake.settings)}

    assert found["partitioned once"].needless == ()
    assert len(found["partitioned once"].shuffles) == 1
    assert (
        _crossed(found["partitioned once"])
        == [sum(row["count"] for row in partitioned)]
        == [len(lake.rows(CLICKS_BY_URL_HOURLY))]
    )
    assert [part.partitions for part in found["partitioned once"].sub_topologies][1] == 3
    assert [sentence.split(":")[0] for sentence in found["partitioned twice"].needless] == [
        "the shuffle by url, click_hour is needless"
    ]
    assert found["combined then partitioned"].needless == (), "one shuffle would move all rows"
    (sentence,) = found["stored join"].needless
    assert "stored co-partitioned on url" in sentence
    assert {cut.cause for cut in found["stored join"].shuffles} == {"join"}
    total = found["total"].shuffles
    assert [(cut.partitioner, cut.cause) for cut in total] == [
        ("round-robin", "repartition asked for"),
        ("single", "aggregate"),
    ]


def test_stages_and_tasks_are_found_by_their_step(lake: TemporaryLake) -> None:
    from spark_jobs.engine.spark_status import SparkStatus
    from spark_jobs.engine.steps import step

    status = SparkStatus.of(lake.spark)
    assert status is not None
    rows = lake.spark.createDataFrame([(number,) for number in range(1000)], "number INT")
    with step(lake.spark, "outer"):
        with step(lake.spark, "inner"):
            rows.repartition(3, "number").selectExpr("number + 1 AS next").collect()
        rows.repartition(2, "number").selectExpr("number + 1 AS next").collect()
    read = [stage for stage in status.stages("inner") if any(task.shuffle_records_read for task in stage.tasks)]
    assert [[task.partition for task in stage.tasks] for stage in read] == [[0, 1, 2]]
    assert sum(task.shuffle_records_read for task in read[0].tasks) == 1000
    assert all(task.run_ms >= 0 and task.shuffle_bytes_read > 0 for task in read[0].tasks)
    assert [query.steps for query in status.queries("outer")] == [("outer", "inner"), ("outer",)]
    assert status.queries("nothing ran here") == []
    assert status.problem is None


@pytest.mark.parametrize(
    ("address", "said"),
    [("http://127.0.0.1:9", "does not answer"), ("nonsense", "does not answer")],
)
def test_without_an_api_there_is_a_warning_and_no_crash(
    lake: TemporaryLake,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    address: str,
    said: str,
) -> None:
    from spark_jobs.engine.spark_status import SparkStatus

    known = SparkStatus.of(lake.spark)
    assert known is not None
    monkeypatch.setenv("CLICKMILL_SPARK_UI_URL", address)
    with caplog.at_level(logging.WARNING, "clickmill"):
        assert SparkStatus.of(lake.spark) is None
    assert said in caplog.text
    known.address = address
    assert known.queries("anything") == []
    assert known.stages("anything") == []


def _crossed(query: QueryTopology) -> list[int | None]:
    return [cut.rows for cut in query.shuffles]
