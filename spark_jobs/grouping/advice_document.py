"""The advice on groupings for people: figures, charts, hot keys, what was measured, and the recommendation."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from include.documents.model import Chart, Charts, Column, Document, Line, Table
from include.texts import as_count, as_share, plural
from include.uneven_load import as_shown
from spark_jobs.grouping.advice import (
    Advice,
    GroupingLoad,
    Measurement,
    Recommendation,
    fields_limit,
    most_instances,
    name_of,
)
from spark_jobs.grouping.advice_values import as_settings


def advice_document(advice: Advice) -> Document:
    """The same advice gives the same document."""
    clicks, keys, key = advice.distribution.clicks, advice.distribution.keys, advice.distribution.key
    drawn = f", of {plural(advice.drawn_hours, 'log hour')}, drawn; --all looks at all" if advice.drawn_hours else ""
    return Document(
        tuple(_blocks(advice)),
        title=f"Groupings by {name_of(key)}",
        subtitle=f"{advice.source}, log hours {advice.log_hours}, UTC: {plural(clicks, 'click')}, "
        f"{as_count(keys)} {name_of(key, keys)}{drawn}",
        verdict=tuple(_verdict(advice)),
        footer="Clickmill. All hours are UTC.",
    )


def _blocks(advice: Advice) -> Iterator[Line | Table | Charts]:
    """Hot keys where some are hot, and what was measured where something was."""
    yield _speed_up_charts(advice)
    yield _load_table(advice)
    yield Line("Skew: the largest instance over the mean; 1 is even.", "quiet")
    yield Line("Keys split: on more than one instance; their counts are parts, to be merged.", "quiet")
    yield Line("Out of order: handled by an instance after a later click of the same key.", "quiet")
    yield Line("Speed-up: all clicks over the largest instance's, if each instance has a core of its own.", "quiet")
    yield _instance_charts(advice)
    if advice.hot_keys:
        yield _hot_key_table(advice)
    if advice.measurements:
        yield _measurement_table(advice)


def _speed_up_charts(advice: Advice) -> Charts:
    charts = []
    for instances, loads in groupby(advice.loads, key=lambda load: load.instances):
        bars = tuple((_name_of_load(load), round(load.speed_up, 1)) for load in loads)
        charts.append(Chart(f"{as_count(instances)} instances", bars, instances, has_long_names=True))
    return Charts("Expected speed-up", tuple(chart for chart in charts if chart.highest > 1))


def _instance_charts(advice: Advice) -> Charts:
    recommended = [load for load in advice.loads if load.instances == advice.recommendation.instances]
    most = max(load.largest for load in recommended)
    charts = [
        Chart(as_shown(load.described), tuple((str(number), rows) for number, rows in enumerate(load.rows)), most)
        for load in recommended
    ]
    return Charts("Clicks of each instance", tuple(charts))


def _load_table(advice: Advice) -> Table:
    """A row per grouping under each number of instances; narrow enough for 80 columns with millions of clicks."""
    headings = ("Smallest", "Largest", "Skew", "Idle", "Keys split", "Out of order", "Speed-up")
    rows: list[tuple[str, ...]] = []
    for instances, loads in groupby(advice.loads, key=lambda load: load.instances):
        # All groupings give one instance the same rows.
        shown = list(loads)[: 1 if instances == 1 else None]
        rows.append((f"{as_count(instances)}, {as_count(round(shown[0].mean))}",))
        rows += [_load_row(load) for load in shown]
    return Table(
        "Clicks per instance",
        (Column("Instances, mean; grouping", "name"), *map(Column, headings)),
        tuple(rows),
    )


def _load_row(load: GroupingLoad) -> tuple[str, ...]:
    return (
        _name_of_load(load) if load.instances > 1 else "any grouping",
        as_count(load.smallest),
        as_count(load.largest),
        f"{load.skew:.2f}",
        as_count(load.idle),
        as_count(load.keys_on_several),
        as_count(load.out_of_order),
        f"{load.speed_up:.1f}",
    )


def _name_of_load(load: GroupingLoad) -> str:
    """The grouping where instances and key are named elsewhere: ``salted_fields by 4``."""
    return f"{load.grouping} by {load.salting.salts}" if load.salting else load.grouping


def _hot_key_table(advice: Advice) -> Table:
    distribution = advice.distribution
    name = name_of(distribution.key)
    return Table(
        f"Hot {name_of(distribution.key, len(advice.hot_keys))}: more than an even part of "
        f"{plural(most_instances(advice.loads), 'instance')}",
        (Column(name[0].upper() + name[1:], "key"), *map(Column, ("Clicks", "Share", "Fields helps up to"))),
        tuple(
            (
                as_shown(key.key, 300),
                as_count(key.clicks),
                as_share(key.clicks, distribution.clicks),
                plural(fields_limit(distribution, key), "instance"),
            )
            for key in advice.hot_keys
        ),
    )


def _measurement_table(advice: Advice) -> Table:
    headings = ("Seconds", "Clicks a second", "Speed-up expected", "Speed-up measured")
    return Table(
        f"Counting measured on {plural(advice.cores, 'core')}: the middle of three runs",
        (Column("Grouping", "text"), *map(Column, headings), Column("Thousand a second, by instance", "text")),
        tuple(
            (
                as_shown(measured.described),
                f"{measured.seconds:.2f}",
                as_count(round(measured.clicks_per_second)),
                f"{measured.predicted_speed_up:.1f}",
                f"{measured.measured_speed_up:.1f}" if measured.measured_speed_up else "",
                _rates_of(measured),
            )
            for measured in advice.measurements
        ),
    )


def _rates_of(measured: Measurement) -> str:
    """Each instance's rate in thousand rows per second; ``-`` where it had too few to measure."""
    return " ".join("-" if rate is None else f"{rate / 1000:,.0f}" for rate in measured.rates)


def _verdict(advice: Advice) -> Iterator[Line]:
    yield Line(f"Recommended: {_recommended(advice.recommendation)}", "good")
    yield Line(advice.recommendation.reason)
    if advice.here:
        here = f"For this Spark, which runs {advice.cores} instances in parallel: {_recommended(advice.here)}"
        yield Line(here, "strong")
        yield Line(advice.here.reason)
    yield Line("In config/pipeline.toml:")
    for line in as_settings(advice.distribution.key, advice.recommendation).splitlines():
        yield Line(line, "code")


def _recommended(recommendation: Recommendation) -> str:
    split = f" by {recommendation.salting.salts} salts" if recommendation.salting else ""
    return (
        f"{recommendation.grouping} over {plural(recommendation.instances, 'instance')}{split}, "
        f"expected speed-up {recommendation.speed_up:.1f}"
    )
