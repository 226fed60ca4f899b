"""What a reader makes of all publications of an hour and of its day: nothing that only few visitors have left.

The reader keeps every version of all published rows, and solves for what is not in them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include.tables import OTHER_KEYS, SKETCH_LG_K
from spark_jobs.aggregate.small_keys import publishable, visibility
from spark_jobs.aggregate.sums import estimated_visitors

pytestmark = pytest.mark.spark

SMALLEST = 5
HISTORIES, PUBLICATIONS, HOURS = 1000, 4, 2
FIRST_DAY = date(2026, 1, 1)


class Click(NamedTuple):
    hour: int
    url: str
    country: str
    visitor: str


#: By key clicks, and visitors; these are None where they are not said.
Row = tuple[int, int | None]
Rows = Mapping[str, Row]
#: Of one layout, by hour, what was published one after the other.
Published = Mapping[int, Sequence[Rows]]
_LAYOUTS = ("url", "country")


def histories() -> list[list[list[Click]]]:
    """Of each history all clicks at each of its publications."""
    return [list(_history(random.Random(number))) for number in range(HISTORIES)]


def _history(draw: random.Random) -> Iterator[list[Click]]:
    """What came in time; then late clicks, backfills, undone ones, erasures, or the same published again."""
    urls = [f"u{n}" for n in range(draw.randint(2, 6))]
    countries = [f"c{n}" for n in range(draw.randint(2, 4))]
    of_visitor = {f"v{n}": draw.choice(countries) for n in range(40)}

    def clicks(hour: int, url: str, visitors: int) -> list[Click]:
        some = draw.sample(sorted(of_visitor), visitors)
        return [Click(hour, url, of_visitor[v], v) for v in some for _ in range(draw.choice([1, 1, 2, 3]))]

    def first() -> list[Click]:
        return [
            click
            for hour in range(HOURS)
            for url in urls[: draw.randint(2, len(urls))]
            for click in clicks(hour, url, draw.choice([1, 2, 4, 5, 6, 8, 15]))
        ]

    def next_of(now: list[Click], before: list[Click]) -> list[Click]:
        match draw.randrange(6):
            case 0:  # late clicks of few, on a page that is there or a new one
                return [*now, *clicks(draw.randrange(HOURS), draw.choice([*urls, "new"]), draw.randint(1, 3))]
            case 1:
                return [*now, *clicks(draw.randrange(HOURS), draw.choice(urls), draw.randint(1, 8))]
            case 2:  # a backfill, or a replay, of one page
                return [*(click for click in now if click.url != urls[0]), *clicks(0, urls[0], draw.randint(2, 12))]
            case 3:  # undone
                return before
            case 4:  # erased
                erased = draw.choice(sorted(of_visitor))
                return [click for click in now if click.visitor != erased]
            case _:
                return now

    now = before = _drawn(first)
    for _ in range(PUBLICATIONS):
        yield now
        now, before = _drawn(lambda now=now, before=before: next_of(now, before)), now


def _drawn(draw: Callable[[], list[Click]]) -> list[Click]:
    """No hour has one page alone, or one country: of that the total says all."""
    while True:
        clicks = draw()
        if all(len(cells(clicks, layout, hour)) > 1 for layout in _LAYOUTS for hour in range(HOURS)):
            return clicks


def cells(clicks: Sequence[Click], layout: str, hour: int) -> dict[str, tuple[int, set[str]]]:
    """The truth: clicks and visitors of each key of an hour."""
    truth: dict[str, tuple[int, set[str]]] = {}
    for click in clicks:
        if click.hour == hour:
            number, visitors = truth.setdefault(getattr(click, layout), (0, set()))
            truth[getattr(click, layout)] = number + 1, visitors | {click.visitor}
    return truth


@dataclass
class Oracle:
    """What is to be published of an hour, one time after the other."""

    hidden: set[str] = field(default_factory=set)
    shown: set[str] = field(default_factory=set)

    def publish(self, keys: Mapping[str, tuple[int, set[str]]]) -> dict[str, Row]:
        small = {key for key, (_, visitors) in keys.items() if len(visitors) < SMALLEST}
        hides = small | (self.hidden & keys.keys())
        unknown = {key for key in hides if key in small or key not in self.shown}
        if hides and (len(unknown) < 2 or len(set().union(*(keys[key][1] for key in unknown))) < SMALLEST):
            free = sorted((len(keys[key][1]), key) for key in keys.keys() - hides - self.shown)
            hides |= {free[0][1]} if free and unknown else set(keys)
        self.hidden |= hides
        self.shown |= keys.keys() - hides
        rows: dict[str, Row] = {key: (keys[key][0], len(keys[key][1])) for key in keys.keys() - hides}
        if hides:
            visitors = len(set().union(*(keys[key][1] for key in hides)))
            rows[OTHER_KEYS] = sum(keys[key][0] for key in hides), visitors if visitors >= SMALLEST else None
        return rows


def published_by_product(
    spark: SparkSession, all_clicks: Sequence[Sequence[Sequence[Click]]], *, remembers: bool = True
) -> dict[str, list[dict[int, list[dict[str, Row]]]]]:
    """What the product publishes of all histories, by layout; of each history and layout as if it were another day."""
    known = spark.createDataFrame([], _VISIBILITY)
    days = [(layout, number) for layout in _LAYOUTS for number in range(len(all_clicks))]
    published = {day: {hour: [dict[str, Row]() for _ in range(PUBLICATIONS)] for hour in range(HOURS)} for day in days}
    for number in range(PUBLICATIONS):
        counts = _counts(spark, [(layout, all_clicks[history][number]) for layout, history in days])
        if remembers:
            known = spark.createDataFrame(visibility(counts, "url", SMALLEST, known).toArrow(), _VISIBILITY)
        for row in publishable(counts, "url", SMALLEST, known).toArrow().to_pylist():
            of_hour = published[days[(row["click_date"] - FIRST_DAY).days]][row["click_hour"]][number]
            of_hour[row["url"]] = (row["click_count"], row["visitor_count"])
    return {layout: [published[layout, number] for number in range(len(all_clicks))] for layout in _LAYOUTS}


_VISIBILITY = "click_date DATE, click_hour INT, url STRING, is_hidden BOOLEAN, was_shown BOOLEAN"


def _counts(spark: SparkSession, days: Sequence[tuple[str, Sequence[Click]]]) -> DataFrame:
    rows = [
        (FIRST_DAY + timedelta(days=number), click.hour, getattr(click, layout), click.visitor)
        for number, (layout, clicks) in enumerate(days)
        for click in clicks
    ]
    columns = dict(zip(("click_date", "click_hour", "url", "visitor"), zip(*rows, strict=True), strict=True))
    return (
        spark.createDataFrame(pa.table({name: list(values) for name, values in columns.items()}))
        .withColumn("click_hour", F.col("click_hour").cast("int"))
        .groupBy("click_date", "click_hour", "url")
        .agg(
            F.count(F.lit(1)).alias("click_count"),
            F.lit(0).cast("bigint").alias("bot_click_count"),
            F.hll_sketch_agg("visitor", SKETCH_LG_K).alias("visitor_sketch"),
        )
        .withColumn("visitor_count", estimated_visitors())
    )


class Found(NamedTuple):
    hour: int
    publication: int
    keys: tuple[str, ...]
    clicks: int


def attacked(published: Published, members: Sequence[Mapping[int, set[str]]]) -> Iterator[Found]:
    """What a reader finds who knows, of each hour and publication, the names of all keys: their ``members``.

    A number that follows from the rows; or from the rows and this guess: a key that is not shown any more, or not yet,
    has as many clicks as in another publication. But for what the total of an hour says that is one row: who knows all
    other keys has the rest.
    """
    yield from _by_linear_algebra(published, members)
    for hour, of_hour in published.items():
        yield from _by_intervals(hour, of_hour, members)
        yield from _by_guess(hour, of_hour, members)


def _by_linear_algebra(published: Published, members: Sequence[Mapping[int, set[str]]]) -> Iterator[Found]:
    """Cells of keys that are not shown, of all hours and publications of the day, as unknowns of one system."""
    unknown = {
        (hour, number, key): place
        for place, (hour, number, key) in enumerate(
            (hour, number, key)
            for hour, of_hour in published.items()
            for number, rows in enumerate(of_hour)
            for key in sorted(members[number][hour] - rows.keys())
        )
    }
    if not unknown:
        return
    system, known = [], []

    def equation(cells: Iterator[tuple[int, int, str]], number: int) -> None:
        row = np.zeros(len(unknown))
        for cell in cells:
            row[unknown[cell]] = 1
        system.append(row)
        known.append(number)

    def hidden(hour: int, number: int) -> Iterator[tuple[int, int, str]]:
        return ((hour, number, key) for key in members[number][hour] - published[hour][number].keys())

    for number in range(PUBLICATIONS):
        for hour, of_hour in published.items():
            rows = of_hour[number]
            equation(hidden(hour, number), rows.get(OTHER_KEYS, (0, 0))[0])
        # The day's row of others: the sum of its hours'.
        others = sum(of_hour[number].get(OTHER_KEYS, (0, 0))[0] for of_hour in published.values())
        equation((cell for hour in published for cell in hidden(hour, number)), others)
    matrix = np.array(system)
    solution, _, rank, _ = np.linalg.lstsq(matrix, np.array(known), rcond=None)
    _, _, basis = np.linalg.svd(matrix)
    # A cell is known where no solution of the system without its right side has anything of it.
    is_known = np.abs(basis[rank:]).max(axis=0, initial=0) < 1e-9
    for (hour, number, key), place in unknown.items():
        if is_known[place]:
            yield Found(hour, number, (key,), round(solution[place]))


def _by_intervals(hour: int, of_hour: Sequence[Rows], members: Sequence[Mapping[int, set[str]]]) -> Iterator[Found]:
    """Least and most clicks of each cell that is not shown, by what it shares a row with."""
    for number, rows in enumerate(of_hour):
        keys = sorted(members[number][hour] - rows.keys())
        if not keys:
            continue
        total = rows[OTHER_KEYS][0]
        least, most = dict.fromkeys(keys, 1), dict.fromkeys(keys, total)
        for _ in range(len(keys)):
            for key in keys:
                most[key] = min(most[key], total - sum(least[other] for other in keys if other != key))
                least[key] = max(least[key], total - sum(most[other] for other in keys if other != key))
        # That each of so many keys has one click is found from the total and their names alone.
        yield from (Found(hour, number, (key,), most[key]) for key in keys if least[key] == most[key] > 1)


def _by_guess(hour: int, of_hour: Sequence[Rows], members: Sequence[Mapping[int, set[str]]]) -> Iterator[Found]:
    for number, rows in enumerate(of_hour):
        if OTHER_KEYS not in rows or len(rows) == 1:
            continue
        for other_rows in of_hour:
            seen = (members[number][hour] - rows.keys()) & other_rows.keys()
            left = members[number][hour] - rows.keys() - seen
            clicks = rows[OTHER_KEYS][0] - sum(other_rows[key][0] for key in seen)
            if seen and left and clicks > 0:
                yield Found(hour, number, tuple(sorted(left)), clicks)


def confirmed(finding: Found, layout: str, history: Sequence[Sequence[Click]]) -> bool:
    """Whether it is so, and of fewer visitors than are to be seen."""
    truth = cells(history[finding.publication], layout, finding.hour)
    visitors = set().union(*(truth[key][1] for key in finding.keys))
    return sum(truth[key][0] for key in finding.keys) == finding.clicks and len(visitors) < SMALLEST


def members_of(history: Sequence[Sequence[Click]], layout: str) -> list[dict[int, set[str]]]:
    return [{hour: set(cells(clicks, layout, hour)) for hour in range(HOURS)} for clicks in history]


@pytest.mark.slow
def test_no_reader_of_all_publications_finds_a_cell_of_few_visitors(spark: SparkSession) -> None:
    all_clicks = histories()
    for layout, published in published_by_product(spark, all_clicks).items():
        for history, of_history in zip(all_clicks, published, strict=True):
            assert not found_in(of_history, history, layout), of_history
            for hour, of_hour in of_history.items():
                oracle = Oracle()
                assert of_hour == [oracle.publish(cells(clicks, layout, hour)) for clicks in history]
                assert [sum(clicks for clicks, _ in rows.values()) for rows in of_hour] == [
                    sum(click.hour == hour for click in clicks) for clicks in history
                ]
        sizes = Counter(len(rows) > 1 for of_history in published for hour in of_history.values() for rows in hour)
        assert sizes[True] > sizes[False], "not all hours are one row"


def found_in(published: Published, history: Sequence[Sequence[Click]], layout: str) -> list[Found]:
    return [
        finding for finding in attacked(published, members_of(history, layout)) if confirmed(finding, layout, history)
    ]


@pytest.mark.slow
def test_the_same_reader_finds_cells_if_nothing_is_remembered(spark: SparkSession) -> None:
    all_clicks = histories()[:200]
    for layout, published in published_by_product(spark, all_clicks, remembers=False).items():
        pairs = zip(all_clicks, published, strict=True)
        assert any(found_in(of_history, history, layout) for history, of_history in pairs), layout
