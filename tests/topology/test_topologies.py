"""Every job shuffles what it has to and no more; figures are those of the rows; needless shuffles are named."""

from __future__ import annotations

import logging

import pytest

from include.hours import Hour
from include.job_arguments import JobArguments
from include.tables import CLICKS_BY_URL_HOURLY
from spark_jobs.engine.session import session_settings
from spark_jobs.topology.model import QueryTopology
from tests.support.temporary_lake import TemporaryLake, click

pytestmark = pytest.mark.spark

HOUR = "2026-03-01T05"
EARLIER = str(Hour.parse(HOUR).plus(-1))
#: By job and query, the keys of each shuffle, in the order of the plan: every one costs time, so one more needs a
#: reason. ``clickmill topology JOB --hour ...`` shows what is around it.
SHUFFLES = {
    "ingest": {
        "count outcomes": ["log_date, log_hour, reason, first_hour, click_hour"],
        "find duplicates": [],
        "stage arrivals": [],
        "write lines": [],
    },
    "aggregate": {
        "write clicks_by_country_daily": ["time_zone, day, country_code"],
        "write clicks_by_country_hourly": ["click_date, click_hour, country_code", "country_code into 4"],
        "write clicks_by_url_daily": ["time_zone, day, url"],
        "write clicks_by_url_hourly": ["click_date, click_hour, url", "url into 4"],
    },
    "validate": {
        "measure quality / clicks": [
            "source, log_date, log_hour, click_date, click_hour",
            # One row per task and log hour: a sketch of its URLs. In the aggregate above, it cost as much as all of it.
            "source, log_date, log_hour",
            "source, log_date, log_hour, reason",
            "source, log_date, log_hour",
            "click_date, click_hour",
        ],
        "measure quality / counts": [
            "click_date, click_hour, struct(url, url)",
            "click_date, click_hour",
            "click_date, click_hour, struct(country_code, country_code)",
            *["click_date, click_hour"] * 3,
            "time_zone, day, key",
            "time_zone, day",
            "click_date, click_hour",
            "time_zone, day, key",
            "time_zone, day",
        ],
    },
    "publish": {
        "read the busiest country_code": ["country_code", "country_code"],
        "read the busiest url": ["url", "url"],
        "write published_clicks_by_country_daily": ["time_zone, day, country_code"],
        "write published_clicks_by_url_daily": ["time_zone, day, url"],
    },
}


@pytest.mark.slow
def test_every_job_shuffles_what_it_has_to_and_no_more(lake: TemporaryLake) -> None:
    from spark_jobs.topology.job import explain
    from spark_jobs.topology.pipeline_jobs import JOBS

    land(lake)
    lake.run("ingest", EARLIER, str(Hour.parse(HOUR).plus(1)))
    # What a job asks for: whatever Spark decides while it runs depends on the rows and on which stage ends first.
    with session_settings(lake.spark, {"spark.sql.adaptive.enabled": "false"}):
        topologies = explain(lake.spark, lake.settings, JobArguments.of("web", None, None, hour=HOUR), JOBS)
    assert {
        topology.job: {query.name: _shuffled_by(query) for query in topology.queries} for topology in topologies
    } == SHUFFLES


@pytest.mark.path
def test_figures_are_those_of_the_rows_and_needless_shuffles_are_named(lake: TemporaryLake) -> None:
    from spark_jobs.aggregate.job import aggregate as count_again
    from spark_jobs.engine.spark_status import SparkStatus
    from spark_jobs.engine.steps import step
    from spark_jobs.topology.job import explain, topologies_under

    land(lake)
    for job in ("ingest", "aggregate"):
        lake.run(job, EARLIER, HOUR)
    (aggregate,) = explain(
        lake.spark, lake.settings, JobArguments.of("web", EARLIER, HOUR), {"aggregate_clicks": count_again}
    )
    written = {query.name: query for query in aggregate.queries}[f"write {CLICKS_BY_URL_HOURLY.name}"]
    assert written.shuffles
    assert written.sub_topologies[-1].sinks == (f"table {CLICKS_BY_URL_HOURLY.name}",)
    *_, to_instances, to_hours = written.shuffles
    assert (to_instances.partitioner, to_instances.keys) == ("hash", ("url",))
    assert to_instances.count == lake.settings.pipeline.buckets
    # Not among SHUFFLES: without adaptive execution Spark leaves the hint out.
    assert (to_hours.partitioner, to_hours.keys) == ("hash", ("click_date", "click_hour"))
    assert to_instances.rows == to_hours.rows == len(lake.rows(CLICKS_BY_URL_HOURLY))
    assert to_hours.size
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
    queries = {query.name: query for query in topologies_under("needless?", status, lake.settings)}

    assert queries["partitioned once"].needless == ()
    assert len(queries["partitioned once"].shuffles) == 1
    assert (
        _crossed(queries["partitioned once"])
        == [sum(row["count"] for row in partitioned)]
        == [len(lake.rows(CLICKS_BY_URL_HOURLY))]
    )
    assert [part.partitions for part in queries["partitioned once"].sub_topologies][1] == 3
    assert [sentence.split(":")[0] for sentence in queries["partitioned twice"].needless] == [
        "the shuffle by url, click_hour is needless"
    ]
    assert queries["combined then partitioned"].needless == (), "one shuffle would move all rows"
    (sentence,) = queries["stored join"].needless
    assert "stored co-partitioned on url" in sentence
    assert {cut.cause for cut in queries["stored join"].shuffles} == {"join"}
    total = queries["total"].shuffles
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
    assert all(task.run_ms >= 0 for task in read[0].tasks)
    assert [query.steps for query in status.queries("outer")] == [("outer", "inner"), ("outer",)]
    assert status.queries("nothing ran here") == []
    assert status.problem is None


@pytest.mark.parametrize(
    ("address", "warning"),
    [("http://127.0.0.1:9", "does not answer"), ("nonsense", "does not answer")],
)
def test_without_an_api_there_is_a_warning_and_no_crash(
    lake: TemporaryLake,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    address: str,
    warning: str,
) -> None:
    from spark_jobs.engine.spark_status import SparkStatus

    known = SparkStatus.of(lake.spark)
    assert known is not None
    monkeypatch.setenv("CLICKMILL_SPARK_UI_URL", address)
    with caplog.at_level(logging.WARNING, "clickmill"):
        assert SparkStatus.of(lake.spark) is None
    assert warning in caplog.text
    known.address = address
    assert known.queries("anything") == []
    assert known.stages("anything") == []


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


def _shuffled_by(query: QueryTopology) -> list[str]:
    return [", ".join(cut.keys) + (f" into {cut.count}" if cut.is_asked_for else "") for cut in query.shuffles]


def _crossed(query: QueryTopology) -> list[int | None]:
    return [cut.rows for cut in query.shuffles]
