"""Each grouping sends every row once, to the instances that its name says; counts come out the same under all."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from include.counting import CountSettings
from include.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.aggregate.groupings import Grouping

START = datetime(2026, 3, 1, tzinfo=UTC)
SCHEMA = (
    "id INT, url STRING, clicked_at TIMESTAMP, click_date DATE, click_hour INT, visitor_id STRING, is_bot BOOLEAN, "
    "path STRING"
)


def _click(number: int, rng: random.Random) -> tuple[Any, ...]:
    url = rng.choice([None, "http://hot/", "http://hot/", "http://hot/", *(f"http://{n}/" for n in range(40))])
    hour = rng.randrange(2)
    return (
        number,
        url,
        START + timedelta(hours=hour, seconds=rng.randrange(3600)),
        date(2026, 3, 1),
        hour,
        f"v{rng.randrange(30)}",
        rng.random() < 0.2,
        f"/{rng.choice('abcdef')}{number}",
    )


CLICKS = [_click(number, random.Random(number)) for number in range(4000)]


@pytest.fixture(scope="module")
def clicks(spark: SparkSession) -> DataFrame:
    """4,000 clicks in five partitions; a null URL, and one that has three of 44 parts of the clicks."""
    return spark.createDataFrame(CLICKS, SCHEMA).repartitionByRange(5, "id")


def _groupings() -> dict[str, Grouping]:
    from spark_jobs.aggregate import groupings as g

    return {
        "combine": g.CombinedGrouping(4, ("url",)),
        "fifo": g.FifoGrouping(),
        "shuffle": g.ShuffleGrouping(4),
        "fields": g.FieldsGrouping(4, ("url",)),
        "range": g.RangeGrouping(4, ("url",)),
        "custom": g.CustomGrouping(4, "substring(path, 2, 1)"),
        "salted_fields": g.SaltedFieldsGrouping(4, ("url",), 3, ("http://hot/",)),
        "global": g.GlobalGrouping(),
    }


NAMES = ["combine", "fifo", "shuffle", "fields", "range", "custom", "salted_fields", "global"]


def _partitioned(clicks: DataFrame, grouping: Grouping) -> list[Any]:
    """Rows with their instance and their place in it."""
    from pyspark.sql import functions as F

    from spark_jobs.aggregate.groupings import with_instance

    rows = with_instance(grouping.repartition(clicks)).withColumn("place", F.monotonically_increasing_id())
    return sorted(rows.collect(), key=lambda row: row["place"])


@pytest.mark.parametrize("name", NAMES)
def test_every_row_is_sent_once_to_an_instance_there_is(clicks: DataFrame, name: str) -> None:
    rows = _partitioned(clicks, _groupings()[name])
    assert Counter(row["id"] for row in rows) == Counter(range(len(CLICKS)))
    instances = {"fifo": 5, "global": 1}.get(name, 4)
    assert {row["instance_id"] for row in rows} <= set(range(instances))


@pytest.mark.parametrize(
    ("name", "key"),
    [("fields", lambda row: row["url"]), ("range", lambda row: row["url"]), ("custom", lambda row: row["path"][1])],
)
def test_rows_of_one_key_go_to_one_instance_null_too(clicks: DataFrame, name: str, key: Any) -> None:
    instances = defaultdict(set)
    for row in _partitioned(clicks, _groupings()[name]):
        instances[key(row)].add(row["instance_id"])
    assert max(map(len, instances.values())) == 1
    assert len(set.union(*instances.values())) > 1


def test_fifo_moves_nothing(clicks: DataFrame) -> None:
    rows = _partitioned(clicks, _groupings()["fifo"])
    assert [row["id"] for row in rows] == list(range(len(CLICKS)))
    assert len({row["instance_id"] for row in rows}) == 5


def test_shuffle_is_even_and_splits_keys(clicks: DataFrame) -> None:
    rows = _partitioned(clicks, _groupings()["shuffle"])
    load = Counter(row["instance_id"] for row in rows)
    # Each of the five input partitions sends its rows in turn, so instances differ by a row for each at most.
    assert max(load.values()) - min(load.values()) <= 5
    assert len({row["instance_id"] for row in rows if row["url"] == "http://hot/"}) == 4


def test_salted_fields_split_hot_keys_only_over_as_many_instances_as_salts(clicks: DataFrame) -> None:
    instances = defaultdict(set)
    for row in _partitioned(clicks, _groupings()["salted_fields"]):
        instances[row["url"]].add(row["instance_id"])
    assert len(instances.pop("http://hot/")) == 3
    assert max(map(len, instances.values())) == 1


def _counts(clicks: DataFrame, name: str) -> DataFrame:
    from spark_jobs.aggregate.count import complete_counts, count_per_instance

    grouping = _groupings()[name]
    return complete_counts(count_per_instance(clicks, "url", grouping), "url", grouping)


@pytest.mark.parametrize("name", NAMES)
def test_counts_are_the_same_under_every_grouping(clicks: DataFrame, name: str) -> None:
    visitors = defaultdict(set)
    for click in CLICKS:
        visitors[click[4], click[1]] |= set() if click[6] else {click[5]}
    all_clicks = Counter((click[4], click[1]) for click in CLICKS)
    bots = Counter((click[4], click[1]) for click in CLICKS if click[6])
    rows = _counts(clicks, name).collect()
    assert {
        (row["click_hour"], row["url"]): (row["click_count"], row["bot_click_count"], row["visitor_count"])
        for row in rows
    } == {key: (count, bots[key], len(visitors[key])) for key, count in all_clicks.items()}
    assert len(rows) == len(all_clicks)


def test_fields_grouping_counts_whole_keys_and_shuffle_parts_that_add_up(clicks: DataFrame) -> None:
    from spark_jobs.aggregate.count import count_per_instance

    hot = sum(click[1] == "http://hot/" and click[4] == 0 for click in CLICKS)

    def parts(name: str) -> list[int]:
        counts = count_per_instance(clicks, "url", _groupings()[name])
        return [row["click_count"] for row in counts.where("url = 'http://hot/' AND click_hour = 0").collect()]

    assert parts("fields") == [hot]
    assert len(parts("shuffle")) == 4
    assert sum(parts("shuffle")) == hot
    assert sum(parts("salted_fields")) == hot


def test_whole_keys_are_counted_with_one_exchange_and_parts_with_three(clicks: DataFrame) -> None:
    def exchanges(name: str) -> int:
        plan = _counts(clicks, name)._explain_string()
        return plan.count("Exchange hashpartitioning") + plan.count("Exchange RoundRobin")

    inside = clicks._explain_string()
    own = inside.count("Exchange hashpartitioning") + inside.count("Exchange RoundRobin")
    assert exchanges("fields") - own == 1
    # One to add up the counts of each task, one to the buckets.
    assert exchanges("combine") - own == 2
    # One to partition the clicks, one to end the parts of each instance, one to merge them.
    assert exchanges("shuffle") - own == 3


def test_bad_parameters_are_one_clear_error(clicks: DataFrame) -> None:
    from spark_jobs.aggregate import groupings as g

    cases: list[tuple[Any, str]] = [
        (lambda: g.ShuffleGrouping(0), "instances = 0; expected a whole number above 0"),
        (lambda: g.FieldsGrouping(-1, ("url",)), "instances = -1"),
        (lambda: g.FieldsGrouping(4, ()), "expected one column name or more"),
        (lambda: g.FieldsGrouping(4, ("nowhere",)).repartition(clicks), "no column 'nowhere'; expected one of id, url"),
        (lambda: g.CustomGrouping(4, "nowhere + 1").require_columns(clicks), "nowhere"),
        (lambda: g.SaltedFieldsGrouping(2, ("url",), 3), "salts = 3; expected 1 to 2"),
        (lambda: g.SaltedFieldsGrouping(2, ("url", "id"), 2, ("a",)), "hot_keys need one key column"),
        (lambda: g.require_whole(g.SaltedFieldsGrouping(4, ("url",), 2), ["url"], "join"), "nothing merges"),
    ]
    for make, message in cases:
        with pytest.raises(UsageError) as error:
            make()
        assert message in str(error.value)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", NAMES)
def test_configuration_makes_the_grouping_it_names(name: str) -> None:
    from spark_jobs.aggregate.groupings import grouping_of

    parameters: dict[str, Any] = {
        "custom": {"expression": "substring(path, 2, 1)"},
        "salted_fields": {"salts": 3, "hot_keys": ("http://hot/",)},
    }
    settings = CountSettings(grouping=name, **parameters.get(name, {}))  # type: ignore[arg-type]
    assert grouping_of(settings, "url", 4) == _groupings()[name]
