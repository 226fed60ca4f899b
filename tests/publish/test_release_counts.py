"""Days are released with noise once: of each visitor a bounded number of clicks, on record, and not drawn again."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from include.errors import QualityError, UsageError
from include.hours import Hour
from include.tables import CLICKS as CLICKS_TABLE
from include.tables import (
    COUNT_RELEASES,
    DRAWN_COUNTS,
    PUBLISHED,
    RELEASED_CLICKS_BY_COUNTRY_AND_URL_DAILY,
    RELEASED_CLICKS_BY_COUNTRY_DAILY,
)
from spark_jobs.aggregate.bounded_counts import bounded_counts
from spark_jobs.publish import decide_held, release_counts
from spark_jobs.publish.releases import sums
from tests.support.killed_runs import Killed, killed_after
from tests.support.temporary_lake import TemporaryLake, click

pytestmark = pytest.mark.spark

DAY, NEXT = date(2026, 3, 1), date(2026, 3, 2)
HOUR = "2026-03-01T05"
MOST = 2
#: The more epsilon, the less noise: of scale 0.2, with a threshold of some 5 clicks. There is budget to draw again.
NOISE = {"epsilon": 20, "delta": 0.01, "clicks_per_visitor_per_day": MOST, "releases_per_day": 2}
RELEASED = {
    RELEASED_CLICKS_BY_COUNTRY_AND_URL_DAILY: ("country_code", "url"),
    RELEASED_CLICKS_BY_COUNTRY_DAILY: ("country_code",),
}


def with_noise(lake: TemporaryLake, **settings: Any) -> TemporaryLake:
    """The same lake, released as these settings say."""
    text = lake.settings.pipeline_file.read_text(encoding="utf-8").partition("[publication.noise]")[0]
    content = "".join(f"{name} = {value}\n" for name, value in (NOISE | settings).items())
    lake.settings.pipeline_file.write_text(f"{text}[publication.noise]\n{content}", encoding="utf-8")
    return replace(lake, settings=replace(lake.settings))


def release(lake: TemporaryLake, **options: Any) -> str:
    _, line = release_counts.release(lake.spark, lake.settings, DAY, NEXT, **options)
    return line


def people(url: str, visitors: int, clicks: int = 1, **fields: Any) -> bytes:
    return b"".join(
        click(f"{url}{visitor}-{n}", f"{HOUR}:{n:02d}:{visitor % 60:02d}Z", url, visitor_id=f"{url}{visitor}", **fields)
        for visitor in range(visitors)
        for n in range(clicks)
    )


def shown(lake: TemporaryLake) -> list[dict[tuple[str, ...], int]]:
    return [
        {tuple(row[name] for name in key): row["click_count"] for row in lake.rows(table)}
        for table, key in RELEASED.items()
    ]


#: Clicks that are not noise's to show: a crawler's, and nobody's.
LEFT_OUT = people("http://shop.test/robots.txt", 40, user_agent="Googlebot/2.1") + b"".join(
    click(f"nobody-{n}", f"{HOUR}:59:00Z", "http://shop.test/", visitor_id=None) for n in range(40)
)
CLICKS = (
    people("http://shop.test/", 200)
    + people("http://shop.test/often", 50, clicks=6)
    + people("http://shop.test/own", 1, clicks=30, geo={"country": "IS"})
)
#: At most two clicks of each visitor; so those of one visitor alone are below the threshold.
TRUE = {("DE", "http://shop.test/"): 200, ("DE", "http://shop.test/often"): 100}


@pytest.fixture(scope="module")
def published(make_lake: Callable[[str], TemporaryLake]) -> TemporaryLake:
    """A day whose hours are all there, one of them with clicks."""
    lake = make_lake("released")
    for number in range(24):
        hour = f"2026-03-01T{number:02d}"
        lake.land(hour, {"a.json": CLICKS + LEFT_OUT} if hour == HOUR else {})
    lake.run_all("2026-03-01T00", "2026-03-02T00")
    return lake


@pytest.fixture
def lake(published: TemporaryLake, tmp_path_factory: pytest.TempPathFactory) -> TemporaryLake:
    """A copy of it, as it may be released."""
    return with_noise(published.copy(tmp_path_factory.mktemp("copy") / "home"))


@pytest.mark.path
def test_a_day_is_released_with_noise_and_the_same_again(lake: TemporaryLake) -> None:
    assert "would be released" in release(lake, dry_run=True)
    assert (lake.rows(COUNT_RELEASES), lake.rows(DRAWN_COUNTS), shown(lake)) == ([], [], [{}, {}])
    assert "released: 2 URLs of countries, 1 countries; noise drawn 1 of 2 times" in release(lake)
    by_url, by_country = shown(lake)
    assert by_url == {key: pytest.approx(count, abs=8) for key, count in TRUE.items()}
    assert by_country == {("DE",): pytest.approx(300, abs=8)}
    (drawing,) = lake.rows(COUNT_RELEASES)
    parameters = {"epsilon": 20.0, "delta": 0.01, "clicks_per_visitor_per_day": MOST, "noise_scale": 0.2}
    assert {name: drawing[name] for name in parameters} == parameters
    assert all(parameters.items() <= row.items() for table in RELEASED for row in lake.rows(table))
    # An hour that is published again, as it was, changes nothing.
    for job in ("aggregate", "validate", "publish"):
        lake.run(job, HOUR)
    commits = [lake.commits(table) for table in RELEASED]
    assert "stays as released" in release(lake)
    assert (lake.rows(COUNT_RELEASES), shown(lake)) == ([drawing], [by_url, by_country])
    assert [lake.commits(table) for table in RELEASED] == commits, "there is nothing to write"


def test_changed_clicks_are_drawn_for_again_while_the_budget_lasts(lake: TemporaryLake) -> None:
    release(lake)
    lake.land(HOUR, {"a.json": CLICKS + LEFT_OUT, "late.json": people("http://shop.test/late", 60)})
    lake.run_all(HOUR)
    assert "noise drawn 2 of 2 times" in release(lake)
    second = shown(lake)
    assert ("DE", "http://shop.test/late") in second[0]
    lake.land(HOUR, {"a.json": CLICKS + LEFT_OUT, "late.json": people("http://shop.test/later", 60)})
    lake.run_all(HOUR)
    assert "its counts before noise have changed, and its budget is spent (epsilon 40)" in release(lake)
    assert (shown(lake), len(lake.rows(COUNT_RELEASES))) == (second, 2)


def test_clicks_that_no_count_has_do_not_change_the_input(lake: TemporaryLake) -> None:
    release(lake)
    lake.land(HOUR, {"a.json": CLICKS})
    lake.run_all(HOUR)
    assert "its counts before noise are the same" in release(lake)


def test_what_was_drawn_and_is_not_on_record_is_never_shown(lake: TemporaryLake) -> None:
    with killed_after(1), pytest.raises(Killed):
        release(lake)
    drawn = {row["released_at"] for row in lake.rows(DRAWN_COUNTS)}
    assert (len(drawn), lake.rows(COUNT_RELEASES), shown(lake)) == (1, [], [{}, {}])
    assert "noise drawn 1 of 2 times" in release(lake)
    (drawing,) = lake.rows(COUNT_RELEASES)
    assert drawing["released_at"] not in drawn
    assert shown(lake) == drawn_on(lake, drawing["released_at"])


def drawn_on(lake: TemporaryLake, moment: datetime) -> list[dict[tuple[str, ...], int]]:
    """What was drawn then, per country and URL, and per country."""
    rows = [row for row in lake.rows(DRAWN_COUNTS) if row["released_at"] == moment]
    by_url = {(row["country_code"], row["url"]): row["click_count"] for row in rows if row["url"] is not None}
    return [by_url, {(row["country_code"],): row["click_count"] for row in rows if row["url"] is None}]


@pytest.mark.parametrize("commits", [2, 3, 4])
def test_a_release_that_is_killed_is_finished_without_drawing_again(lake: TemporaryLake, commits: int) -> None:
    with killed_after(commits), pytest.raises(Killed):
        release(lake)
    (drawing,) = lake.rows(COUNT_RELEASES)
    assert "stays as released" in release(lake)
    assert lake.rows(COUNT_RELEASES) == [drawing]
    assert [len(rows) for rows in shown(lake)] == [2, 1]
    assert shown(lake) == drawn_on(lake, drawing["released_at"])


def test_a_day_that_may_not_be_released_is_not(lake: TemporaryLake) -> None:
    assert "before first_day, 2026-03-02" in release(with_noise(lake, first_day="2026-03-02"))
    days = (datetime.now(UTC).date() - DAY).days + 1
    assert "late clicks may still come" in release(with_noise(lake, wait_days=days))
    lake = with_noise(lake)
    # Ingested and not counted, nor published.
    lake.land(HOUR, {"a.json": CLICKS + LEFT_OUT, "late.json": people("http://shop.test/late", 1)})
    lake.run("ingest", HOUR)
    assert "23 of its 24 hours are there and published" in release(lake)
    with pytest.raises(UsageError, match="expected --to after --from"):
        release_counts.release(lake.spark, lake.settings, NEXT, DAY)
    assert lake.rows(COUNT_RELEASES) == []


def test_an_hour_whose_counts_were_dropped_is_not_released(lake: TemporaryLake) -> None:
    lake.land(HOUR, {"a.json": CLICKS + LEFT_OUT + people("http://shop.test/late", 9), "bad.json": b"{\n" * 3000})
    for job in ("ingest", "aggregate"):
        lake.run(job, HOUR)
    with pytest.raises(QualityError):
        lake.run("validate", HOUR)
    lake.run("publish", HOUR)
    decision = decide_held.Decision(Hour.parse(HOUR), "drop", "Ada", "half of it is noise")
    decide_held.decide(lake.spark, lake.settings, decision)
    assert "in its hours 5 other clicks are published than there are" in release(lake)


def test_a_day_whose_clicks_were_removed_for_their_age_stays_as_it_was_released(lake: TemporaryLake) -> None:
    release(lake)
    before = shown(lake)
    for table in (CLICKS_TABLE, *PUBLISHED):
        DeltaTable(lake.settings.lake / table.name).delete("click_date = '2026-03-01'")
    assert re.search(r"stays as released at .*: its clicks have been removed", release(lake))
    assert (shown(lake), len(lake.rows(COUNT_RELEASES))) == (before, 1)


def test_a_day_without_clicks_is_released_empty(lake: TemporaryLake) -> None:
    for number in range(24):
        lake.land(f"2026-03-02T{number:02d}", {})
    lake.run_all("2026-03-02T00", "2026-03-03T00")
    _, line = release_counts.release(lake.spark, lake.settings, NEXT, NEXT + timedelta(days=1))
    assert "released: 0 URLs of countries, 0 countries" in line
    assert len(lake.rows(COUNT_RELEASES)) == 1, "that there was nothing to show is on record too"


def digest_of(*parts: list[tuple[str, str, int]]) -> tuple[Counter[str], int]:
    """Clicks by country, and the sum of the digests, of counts that several tasks have."""
    clicks, digests = Counter[str](), 0
    for part in parts:
        rows = [dict(zip(("country_code", "url", "click_count"), row, strict=True)) for row in part]
        batches = [pa.RecordBatch.from_pylist([row]) for row in rows]
        for row in next(sums(batches, b"key")).to_pylist():
            clicks[row["country_code"]] += row["click_count"]
            digests += int.from_bytes(row["digests"])
    return clicks, digests % 2**256


def test_a_digest_is_of_the_counts_and_not_of_their_order_or_parts() -> None:
    counts = [("DE", "/a", 1), ("DE", "/b", 2), ("AT", "/a", 2), ("AT", "/b", 1)]
    clicks, digest = digest_of(counts)
    assert clicks == {"DE": 3, "AT": 3}
    assert digest_of(counts[2:], [], counts[1::-1]) == (clicks, digest)
    others = [
        [("DE", "/a", 2), ("DE", "/b", 1), *counts[2:]],
        [("AT", "/a", 1), ("AT", "/b", 2), ("DE", "/a", 2), ("DE", "/b", 1)],
        [("DE", "/c", 1), *counts[1:]],
    ]
    assert len({digest, *(digest_of(other)[1] for other in others)}) == 4


def drawn_clicks(spark: SparkSession, seed: int) -> tuple[DataFrame, Counter[str]]:
    """Clicks of some visitors, each on pages of its own, and how many each has; crawlers and nobody among them."""
    draw = random.Random(seed)
    rows, each = [], Counter[str]()
    for visitor in range(40):
        for number in range(draw.choice([1, 2, 3, 4, 9, 30])):
            at = datetime(2026, 3, 1, draw.randrange(24), draw.randrange(60))
            is_bot, is_nobody = draw.random() < 0.1, draw.random() < 0.1
            url = f"http://shop.test/{visitor}/{draw.randrange(5)}"
            country = draw.choice(["DE", "AT", "unknown"])
            event = None if draw.random() < 0.5 else f"e{number}"
            rows.append(("web", event, at, country, url, None if is_nobody else f"v{visitor}", is_bot))
            each[f"v{visitor}"] += not (is_bot or is_nobody)
    draw.shuffle(rows)
    texts = ("country_code", "url", "visitor_id")
    names = f"source STRING, event_id STRING, clicked_at TIMESTAMP, {' STRING, '.join(texts)} STRING, is_bot BOOLEAN"
    return spark.createDataFrame(rows, names), each


@pytest.mark.parametrize("most", [1, 3])
def test_no_visitor_has_more_clicks_than_the_bound_and_order_does_not_matter(spark: SparkSession, most: int) -> None:
    clicks, each = drawn_clicks(spark, most)
    counts = bounded_counts(clicks, most, "salt").collect()
    taken: Counter[str] = Counter()
    for row in counts:
        taken[f"v{row['url'].split('/')[3]}"] += row["click_count"]
    assert taken == Counter({visitor: min(count, most) for visitor, count in each.items() if count})
    again = bounded_counts(clicks.repartition(7).orderBy("url"), most, "salt").collect()
    assert sorted(again) == sorted(counts)
    # Neither the first clicks nor the last: with another salt, others.
    assert sorted(bounded_counts(clicks, most, "pepper").collect()) != sorted(counts)
