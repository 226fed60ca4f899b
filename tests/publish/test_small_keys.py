"""Keys with few visitors are published together, so that differences of what is published find no single visitor."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from rich.console import Console

from include.documents.terminal import print_document
from include.errors import QualityError, UsageError
from include.hours import Hour
from include.settings import Settings
from include.tables import (
    CLICKS_BY_URL_DAILY,
    CLICKS_BY_URL_HOURLY,
    OTHER_KEYS,
    PUBLISHED,
    PUBLISHED_CLICKS_BY_COUNTRY_HOURLY,
    PUBLISHED_CLICKS_BY_URL_DAILY,
    PUBLISHED_CLICKS_BY_URL_HOURLY,
    QUALITY_RESULTS,
    SKETCH_LG_K,
    Table,
)
from spark_jobs.aggregate.small_keys import publishable
from spark_jobs.aggregate.sums import estimated_visitors
from spark_jobs.lake.lake import Lake
from spark_jobs.publish.periods import read_periods
from spark_jobs.publish.publish_hours import replace_published
from spark_jobs.publish.shown_periods import periods_document
from tests.support.temporary_lake import TemporaryLake, click

pytestmark = pytest.mark.spark

SMALLEST = 5
FIRST, SECOND = "2026-03-01T05", "2026-03-01T06"
RARE = "http://shop.test/clinic"
EVE = "eve@example.org"
Rows = list[dict[str, Any]]


def with_smallest(lake: TemporaryLake, smallest: int) -> TemporaryLake:
    """The same lake, published from now on as for so many visitors."""
    text = lake.settings.pipeline_file.read_text(encoding="utf-8").partition("[publication]")[0]
    lake.settings.pipeline_file.write_text(f"{text}[publication]\nsmallest_visitors = {smallest}\n", encoding="utf-8")
    return replace(lake, settings=replace(lake.settings))


def visits(hour: str, url: str, visitors: int, **fields: Any) -> bytes:
    return b"".join(
        click(f"{hour}{url}{n}", f"{hour}:{n:02d}:00Z", url, visitor_id=f"{url}{n}", **fields) for n in range(visitors)
    )


def usual(hour: str) -> bytes:
    """What comes without Eve: two well visited pages, one that two people read, and a crawler's own."""
    return (
        visits(hour, "http://shop.test/", 12)
        + visits(hour, "http://shop.test/list", 8, geo={"country": "AT"})
        + visits(hour, "http://shop.test/terms", 2)
        + visits(hour, "http://shop.test/robots.txt", 3, user_agent="Googlebot/2.1")
    )


def of_eve(hour: str) -> bytes:
    return b"".join(
        click(f"eve-{hour}-{n}", f"{hour}:30:00Z", RARE, visitor_id=EVE, geo={"country": "IS"}) for n in range(3)
    )


def publish_both(lake: TemporaryLake) -> tuple[dict[Table, Rows], dict[Table, Rows]]:
    """What is published of an hour before Eve's clicks have come, late, and after; with another hour of the same day.

    In the other hour the rare page has readers enough.
    """
    lake.land(SECOND, {"a.json": usual(SECOND) + visits(SECOND, RARE, 9)})
    lake.land(FIRST, {"a.json": usual(FIRST)})
    lake.run_all(FIRST, "2026-03-01T07")
    before = published(lake)
    lake.land(SECOND, {"a.json": usual(SECOND) + visits(SECOND, RARE, 9), "late.json": of_eve(FIRST)})
    lake.run_all(SECOND)
    return before, published(lake)


def published(lake: TemporaryLake) -> dict[Table, Rows]:
    return {table: lake.rows(table) for table in (*PUBLISHED, *PUBLISHED.values())}


def by_key(rows: Rows, table: Table, column: str = "click_count") -> dict[tuple[Any, ...], Any]:
    return {tuple(row[name] for name in table.key): row[column] for row in rows}


def found_by_two_publications(before: dict[Table, Rows], after: dict[Table, Rows]) -> set[str]:
    """The keys that have clicks more, by fewer visitors more than are to be seen."""
    keys = set()
    for table in before:
        earlier = {tuple(row[name] for name in table.key): row for row in before[table]}
        for row in after[table]:
            known = earlier.get(tuple(row[name] for name in table.key), {"click_count": 0, "visitor_count": 0})
            more = (row["visitor_count"] or 0) - (known["visitor_count"] or 0)
            if row["click_count"] > known["click_count"] and more < SMALLEST:
                keys.add(row[table.key[-1]])
    return keys


def found_by_day_less_hours(tables: dict[Table, Rows]) -> dict[str, int]:
    """By URL, the clicks that the day has and its published hours have not."""
    rest: Counter[str] = Counter()
    for row in tables[PUBLISHED_CLICKS_BY_URL_DAILY]:
        rest[row["url"]] += row["click_count"]
    for row in tables[PUBLISHED_CLICKS_BY_URL_HOURLY]:
        rest[row["url"]] -= row["click_count"]
    return {url: clicks for url, clicks in rest.items() if clicks}


def found_by_sketch(spark: SparkSession, rows: Rows, visitor: str) -> set[str]:
    """The URLs whose sketch does not change when this visitor is added: who knows an id, knows where it was."""
    sketches = [(row["url"], bytearray(row["visitor_sketch"])) for row in rows if row["visitor_sketch"] is not None]
    if not sketches:
        return set()
    sketch = spark.range(1).select(F.hll_sketch_agg(F.lit(visitor), SKETCH_LG_K).alias("of_one"))
    frame = spark.createDataFrame(sketches, "url STRING, visitor_sketch BINARY").crossJoin(sketch)
    united = F.hll_sketch_estimate(F.hll_union("visitor_sketch", "of_one"))
    return {row["url"] for row in frame.where(united == estimated_visitors()).collect()}


@dataclass(frozen=True)
class Guarded:
    """A lake with a smallest number, and what it published before Eve came, and after. For tests that only read."""

    lake: TemporaryLake
    before: dict[Table, Rows]
    after: dict[Table, Rows]


@pytest.fixture(scope="module")
def guarded(make_lake: Callable[[str], TemporaryLake]) -> Guarded:
    lake = with_smallest(make_lake("guarded"), SMALLEST)
    return Guarded(lake, *publish_both(lake))


def test_attacks_find_a_visitor_without_a_smallest_number_and_fail_with_one(
    make_lake: Callable[[str], TemporaryLake], guarded: Guarded
) -> None:
    plain = make_lake("plain")
    before, after = publish_both(plain)
    assert RARE in found_by_two_publications(before, after)
    assert "IS" in found_by_two_publications(before, after)
    hour_of_eve = [row for row in after[PUBLISHED_CLICKS_BY_URL_HOURLY] if row["click_hour"] == 5]
    assert found_by_sketch(plain.spark, hour_of_eve, EVE) == {RARE}

    before, after = guarded.before, guarded.after
    assert found_by_two_publications(before, after) == {OTHER_KEYS}
    assert found_by_day_less_hours(after) == {}
    hour_of_eve = [row for row in after[PUBLISHED_CLICKS_BY_URL_HOURLY] if row["click_hour"] == 5]
    assert found_by_sketch(plain.spark, hour_of_eve, EVE) == set()
    # What is left of a total is no single key's either.
    assert {row["url"]: (row["click_count"], row["bot_click_count"]) for row in hour_of_eve} == {
        "http://shop.test/": (12, 0),
        OTHER_KEYS: (8 + 2 + 3 + 3, 3),
    }
    countries = [row for row in after[PUBLISHED_CLICKS_BY_COUNTRY_HOURLY] if row["click_hour"] == 5]
    # DE and AT were shown before: beside either, Eve's country would be what its earlier count leaves.
    assert {row["country_code"]: row["click_count"] for row in countries} == {OTHER_KEYS: 12 + 2 + 3 + 8 + 3}
    # All of it stays where nobody else reads.
    assert by_key(guarded.lake.rows(CLICKS_BY_URL_HOURLY), CLICKS_BY_URL_HOURLY)[Hour.parse(FIRST).day, 5, RARE] == 3


def test_what_was_hidden_is_not_had_by_a_later_publication(make_lake: Callable[[str], TemporaryLake]) -> None:
    """Three late visitors make a hidden page a large one: what hides the other one then must not be one once shown.

    Longer histories: ``test_republished_small_keys.py``.
    """
    lake, table = with_smallest(make_lake("later"), SMALLEST), PUBLISHED_CLICKS_BY_URL_HOURLY

    def publish(**visitors: int) -> dict[str, tuple[int, int | None]]:
        pages = (visits(FIRST, f"http://shop.test/{page}", count) for page, count in visitors.items())
        lake.land(FIRST, {"a.json": b"".join(pages)})
        lake.run_all(FIRST)
        # What is published is what is to be, also of keys that stay hidden.
        lake.run("validate", FIRST)
        assert not failed_checks(lake, FIRST)
        days = {row["url"]: row["click_count"] for row in lake.rows(PUBLISHED_CLICKS_BY_URL_DAILY)}
        rows = {row["url"].rpartition("/")[2]: (row["click_count"], row["visitor_count"]) for row in lake.rows(table)}
        assert {url.rpartition("/")[2]: clicks for url, clicks in days.items()} == {
            page: clicks for page, (clicks, _) in rows.items()
        }
        return rows

    assert publish(a=20, b=6, d=4, c=1) == {"a": (20, 20), "b": (6, 6), OTHER_KEYS: (5, 5)}
    assert publish(a=20, b=6, d=7, c=1) == {"a": (20, 20), "b": (6, 6), OTHER_KEYS: (8, 8)}
    # A page that comes with many visitors is shown; one that was shown, and has few left, is not.
    assert publish(a=20, b=3, d=7, c=1, new=9) == {"a": (20, 20), "new": (9, 9), OTHER_KEYS: (11, 11)}
    # Nothing is left to hide but one, and beside it what was shown: only the total is.
    assert publish(a=20, c=1, new=9) == {OTHER_KEYS: (30, 30)}


def test_published_tables_agree_and_have_every_click(guarded: Guarded) -> None:
    lake, after = guarded.lake, guarded.after
    clicks = {sum(row["click_count"] for row in rows) for rows in after.values()}
    assert clicks == {2 * 25 + 9 + 3}
    assert all(row["visitor_sketch"] is None for rows in after.values() for row in rows)
    # A day's visitors are united all the same: nobody came twice but under the names that both hours have.
    visitors = by_key(after[PUBLISHED_CLICKS_BY_URL_DAILY], PUBLISHED_CLICKS_BY_URL_DAILY, "visitor_count")
    assert {key[-1]: count for key, count in visitors.items()} == {
        "http://shop.test/": 12, RARE: 9, OTHER_KEYS: 8 + 2 + 1,
    }  # fmt: skip
    assert "published_url" not in failed_checks(lake, SECOND)
    lake.run("validate", FIRST)
    assert not failed_checks(lake, FIRST)


@pytest.mark.path
def test_earlier_rows_that_are_restored_are_put_together_too(make_lake: Callable[[str], TemporaryLake]) -> None:
    lake, table = make_lake("restored"), PUBLISHED_CLICKS_BY_URL_HOURLY
    lake.land(FIRST, {"a.json": usual(FIRST) + of_eve(FIRST)})
    lake.run_all(FIRST)
    plain = Lake(lake.spark, lake.settings)
    version = plain.version(table)
    guarded = Lake(lake.spark, with_smallest(lake, SMALLEST).settings)
    with guarded.locked():
        # As an undone backfill does.
        replace_published(guarded, table, table, {version: [Hour.parse(FIRST)]})
    assert {row["url"]: row["click_count"] for row in lake.rows(table)} == {"http://shop.test/": 12, OTHER_KEYS: 16}
    with guarded.locked():
        replace_published(guarded, table, table, {None: [Hour.parse(FIRST)]})
    assert lake.rows(table) == []


def test_visitors_that_are_not_to_be_known_are_shown_as_such(guarded: Guarded) -> None:
    lake = guarded.lake
    output = StringIO()
    console = Console(file=output, width=120)
    print_document(console, periods_document(read_periods(Lake(lake.spark, lake.settings), "day", "UTC")))
    assert re.search(r"2026-03-01 +62 +6 +n/a", output.getvalue()), "of all countries together"
    assert re.search(r"http://shop.test/ +24 +0 +12", output.getvalue()), "of a row of its own"
    report = (lake.settings.reports / "report.html").read_text(encoding="utf-8")
    assert OTHER_KEYS in report
    assert f"{RARE}<" in report, "in the other hour it has readers enough"
    assert "terms" not in report
    exports = lake.settings.reports / "exports"
    assert not [name for name in lake.exports() if "terms" in (exports / name).read_text("latin-1")]


def failed_checks(lake: TemporaryLake, hour: str) -> str:
    rows = lake.rows(QUALITY_RESULTS)
    return " ".join(
        row["check_id"]
        for row in rows
        if row["outcome"] == "fail" and row["severity"] == "critical" and row["hour"] == hour
    )


def test_an_hour_published_for_another_number_is_found(make_lake: Callable[[str], TemporaryLake]) -> None:
    lake = make_lake("changed")
    lake.land(FIRST, {"a.json": usual(FIRST)})
    lake.run_all(FIRST)
    guarded = with_smallest(lake, SMALLEST)
    with pytest.raises(QualityError):
        guarded.run("validate", FIRST)
    assert "published_url_equals_computed" in failed_checks(guarded, FIRST)
    # Counted and published again, it is as it should be.
    for job in ("aggregate", "validate", "publish", "validate"):
        guarded.run(job, FIRST)
    assert OTHER_KEYS in {row["url"] for row in guarded.rows(PUBLISHED_CLICKS_BY_URL_HOURLY)}


def test_an_hour_counted_again_and_not_published_leaves_the_days_visitors_open(
    make_lake: Callable[[str], TemporaryLake],
) -> None:
    lake = with_smallest(make_lake("recounted"), SMALLEST)
    lake.land(FIRST, {"a.json": usual(FIRST)})
    lake.run_all(FIRST)
    lake.land(FIRST, {"a.json": usual(FIRST) + visits(FIRST, "http://shop.test/list", 9), "bad.json": b"{\n" * 400})
    for job in ("ingest", "aggregate"):
        lake.run(job, FIRST)
    with pytest.raises(QualityError):
        lake.run("validate", FIRST)
    lake.run("publish", FIRST)
    days = {row["url"]: row for row in lake.rows(PUBLISHED_CLICKS_BY_URL_DAILY)}
    assert days["http://shop.test/"]["visitor_count"] == 12
    assert days[OTHER_KEYS]["visitor_count"] is None, "what is counted has not passed the checks"
    assert {row["click_count"] for row in lake.rows(CLICKS_BY_URL_DAILY) if row["url"].endswith("/list")} == {9}


def together(hour: dict[str, set[str]], smallest: int) -> dict[str, tuple[int, int | None]]:
    """Of visitors by key: clicks, one each, and visitors by what is to be published."""
    small = {key for key, visitors in hour.items() if len(visitors) < smallest}
    larger = sorted(hour.keys() - small, key=lambda key: (len(hour[key]), key))
    if small and larger and (len(small) == 1 or len(set().union(*(hour[key] for key in small))) < smallest):
        small.add(larger[0])
    shown: dict[str, tuple[int, int | None]] = {
        key: (len(visitors), len(visitors)) for key, visitors in hour.items() if key not in small
    }
    if small:
        united = len(set().union(*(hour[key] for key in small)))
        shown[OTHER_KEYS] = (sum(len(hour[key]) for key in small), united if united >= smallest else None)
    return shown


@pytest.mark.parametrize("smallest", [1, 3])
def test_what_is_put_together_is_as_an_oracle_says(spark: SparkSession, smallest: int) -> None:
    draw = random.Random(smallest)
    hours = {
        hour: {
            f"k{key}": {f"v{draw.randrange(30)}" for _ in range(draw.choice([0, 1, 2, 3, 5, 12]))}
            for key in range(draw.choice([1, 1, 2, 3, 4, 8]))
        }
        for hour in range(24)
    }
    visited = [
        (hour, key, visitor) for hour, keys in hours.items() for key, all_ in keys.items() for visitor in all_ or [None]
    ]
    is_nobody = F.col("visitor").isNull()
    counts = (
        spark.createDataFrame(visited, "click_hour INT, url STRING, visitor STRING")
        .withColumn("click_date", F.lit("2026-03-01").cast("date"))
        .groupBy("click_date", "click_hour", "url")
        .agg(
            F.count(F.lit(1)).alias("click_count"),
            F.count_if(is_nobody).alias("bot_click_count"),
            F.hll_sketch_agg("visitor", SKETCH_LG_K).alias("visitor_sketch"),
        )
        .withColumn("visitor_count", estimated_visitors())
    )
    shown = publishable(counts, "url", smallest)
    cells: dict[int, dict[str, tuple[int, int | None]]] = defaultdict(dict)
    for row in shown.collect():
        assert row["visitor_sketch"] is None
        people = row["click_count"] - row["bot_click_count"]
        cells[row["click_hour"]][row["url"]] = (people, row["visitor_count"])
    assert cells == {hour: together(keys, smallest) for hour, keys in hours.items()}
    again = publishable(shown, "url", smallest)
    assert sorted(map(repr, again.collect())) == sorted(map(repr, shown.select(*again.columns).collect()))


def test_a_negative_number_is_refused(settings: Settings) -> None:
    with settings.pipeline_file.open("a", encoding="utf-8") as file:
        file.write("[publication]\nsmallest_visitors = -1\n")
    with pytest.raises(UsageError, match=r"publication.smallest_visitors: .* greater than or equal to 0 \(got -1\)"):
        _ = settings.pipeline
