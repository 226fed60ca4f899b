"""The advice on groupings in the terminal."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.table import Table

from include.texts import as_count, as_share
from include.uneven_load import as_shown
from spark_jobs.engine.terminal import CroppedKey, plain_table, print_line
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


def print_advice(console: Console, advice: Advice, page: Path | None = None) -> None:
    """Print the loads, the hot keys, what was measured, the recommendation and the page's path.

    Texts from logs are shown letter by letter: rich markup and terminal escapes in them have no effect.
    """
    distribution = advice.distribution
    clicks, keys = as_count(distribution.clicks), as_count(distribution.keys)
    print_line(
        console,
        f"{advice.source} {advice.log_hours}: {clicks} clicks, {keys} {name_of(distribution.key, distribution.keys)}",
        "bold",
    )
    if advice.drawn_hours:
        print_line(console, f"Of {as_count(advice.drawn_hours)} log hours, drawn; --all looks at all.", "dim")
    print_line(console, "")
    _print_whole(console, _load_table(advice))
    print_line(console, "")
    print_line(
        console,
        "Keys split: on more than one instance, merged afterwards. Out of order: handled after a later click of the "
        "key. Speed-up: all clicks over the largest instance's.",
        "dim",
    )
    if advice.hot_keys:
        console.print("", _hot_key_table(advice))
    if advice.measurements:
        console.print("", _measurement_table(advice))
    print_line(console, "")
    _print_recommendation(console, "Recommended", advice.recommendation)
    if advice.here:
        _print_recommendation(console, f"For this Spark, which runs {advice.cores} instances in parallel", advice.here)
    print_line(console, "In config/pipeline.toml:")
    for line in as_settings(distribution.key, advice.recommendation).splitlines():
        print_line(console, f"  {line}")
    if page:
        print_line(console, f"Page: {page}")


def _print_whole(console: Console, table: Table) -> None:
    """The table as wide as it is: a number that is cut off says nothing."""
    table.width = console.measure(table, options=console.options.update(max_width=1000)).maximum
    console.print(table, crop=False, no_wrap=True, overflow="ignore")


def _load_table(advice: Advice) -> Table:
    """A row per grouping under each number of instances; narrow enough for 80 columns with millions of clicks."""
    table = plain_table("Clicks per instance")
    table.padding = (0, 1, 0, 0)
    table.add_column("Instances, mean\nGrouping", no_wrap=True)
    for heading in ("Smallest", "Largest", "Skew", "Idle", "Keys\nsplit", "Out of\norder", "Speed-\nup"):
        table.add_column(heading, justify="right", no_wrap=True)
    for instances, group in groupby(advice.loads, key=lambda load: load.instances):
        loads = list(group)
        mean = as_count(round(loads[0].mean))
        if instances == 1:
            table.add_row(f"1, {mean}", style="bold")
            # All get the same rows.
            _add_load(table, "any grouping", loads[0])
            continue
        table.add_row(f"{as_count(instances)}, {mean}", style="bold")
        for load in loads:
            _add_load(table, named(load), load)
    return table


def _add_load(table: Table, name: str, load: GroupingLoad) -> None:
    table.add_row(
        name,
        as_count(load.smallest),
        as_count(load.largest),
        f"{load.skew:.2f}",
        as_count(load.idle),
        as_count(load.keys_on_several),
        as_count(load.out_of_order),
        f"{load.speed_up:.1f}",
    )


def named(load: GroupingLoad) -> str:
    """The grouping in a table that says instances and key elsewhere: ``salted_fields by 4``."""
    return f"{load.grouping} by {load.salting.salts}" if load.salting else load.grouping


def _hot_key_table(advice: Advice) -> Table:
    distribution = advice.distribution
    most = most_instances(advice.loads)
    name = name_of(distribution.key, len(advice.hot_keys))
    table = plain_table(f"Hot {name}: more than an even part of {most} instances")
    table.add_column(name_of(distribution.key).capitalize() if distribution.key != "url" else "URL")
    for heading in ("Clicks", "Share", "Fields helps up to"):
        table.add_column(heading, justify="right", no_wrap=True)
    for key in advice.hot_keys:
        limit = fields_limit(distribution, key)
        table.add_row(
            CroppedKey(as_shown(key.key)),
            as_count(key.clicks),
            as_share(key.clicks, distribution.clicks),
            f"{limit} instance{'' if limit == 1 else 's'}",
        )
    return table


def _measurement_table(advice: Advice) -> Table:
    table = plain_table("Counting measured: the middle of three runs")
    table.padding = (0, 1, 0, 0)
    table.add_column("Grouping")
    for heading in ("Seconds", "Clicks\na second", "Speed-up\nexpected", "Speed-up\nmeasured"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("Thousand a second, by instance")
    for measured in advice.measurements:
        table.add_row(
            as_shown(measured.described),
            f"{measured.seconds:.2f}",
            as_count(round(measured.clicks_per_second)),
            f"{measured.predicted_speed_up:.1f}",
            f"{measured.measured_speed_up:.1f}" if measured.measured_speed_up else "",
            rates_of(measured),
        )
    return table


def rates_of(measured: Measurement) -> str:
    """Each instance's rate in thousand rows per second; ``-`` where it had too few to measure."""
    return " ".join("-" if rate is None else f"{rate / 1000:,.0f}" for rate in measured.rates)


def _print_recommendation(console: Console, what: str, recommendation: Recommendation) -> None:
    print_line(console, f"{what}: {recommended(recommendation)}", "bold")
    print_line(console, f"  {recommendation.reason}")


def recommended(recommendation: Recommendation) -> str:
    """The recommendation in half a sentence."""
    instances = recommendation.instances
    split = f" by {recommendation.salting.salts} salts" if recommendation.salting else ""
    return (
        f"{recommendation.grouping} over {instances} instance{'' if instances == 1 else 's'}{split}, "
        f"expected speed-up {recommendation.speed_up:.1f}"
    )
