"""How evenly clicks fall on parallel instances, and which grouping to choose: figures and a recommendation.

The figures come from Spark (``spark_jobs/grouping/job.py``); what follows from them is here, without it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

from include.counting import CountKey
from include.texts import as_share
from include.uneven_load import EVEN_SKEW, limit_of_fields, skew

KEYS: tuple[CountKey, ...] = get_args(CountKey)
#: Groupings that advice is given on, the first of those that serve as well is recommended: the ones that keep a key
#: whole need no merge, and the fewer parts a key has, the less there is to merge. Combine moves no click.
GROUPINGS = ("fields", "range", "salted_fields", "custom", "shuffle", "fifo", "global")
INSTANCE_COUNTS = (1, 2, 4, 8, 16)
#: As many as the configuration takes: see include/counting.py.
MAX_INSTANCES = 128
MAX_HOT_KEYS = 10
_NAMES = {"url": "URL", "country_code": "country", "user_agent": "user agent", "visitor_id": "visitor"}
_PLURALS = {"country_code": "countries", "status": "statuses"}


@dataclass(frozen=True)
class KeyClicks:
    """The clicks of one key; a null key stands for the clicks without one. ``key_hash`` is Spark's ``hash(key)``."""

    key: str | None
    clicks: int
    key_hash: int


@dataclass(frozen=True)
class KeyDistribution:
    """How the clicks fall on keys.

    ``busiest`` has the keys with most clicks, at least as many as may be hot. ``by_bucket`` has, for each number of
    instances in question, the clicks of the keys in each bucket: pmod(hash(key), instances).
    """

    key: CountKey
    clicks: int
    keys: int
    busiest: tuple[KeyClicks, ...]
    by_bucket: Mapping[int, tuple[int, ...]] = field(default_factory=dict, hash=False)

    def hot_keys(self, instances: int) -> tuple[KeyClicks, ...]:
        """The keys that alone have more than an even part of so many instances, the busiest first."""
        return tuple(key for key in self.busiest if key.clicks * instances > self.clicks)

    def share(self, keys: Sequence[KeyClicks]) -> float:
        """These keys' part of the clicks, 0 to 1."""
        return sum(key.clicks for key in keys) / self.clicks if self.clicks else 0.0


@dataclass(frozen=True)
class Salting:
    """Over how many instances each split key is spread. Without ``hot_keys`` every key is split."""

    salts: int
    hot_keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class GroupingLoad:
    """How one grouping partitioned the clicks.

    ``rows`` has the clicks of each instance, 0 for an idle one. ``keys_on_several`` counts the keys that more than one
    instance handled clicks of. ``out_of_order`` counts the clicks that an instance handled after a later click of the
    same key, by ``clicked_at``, in the order in which the rows reach it. ``described`` is the grouping with its
    parameters; ``salting`` is that of salted_fields.
    """

    grouping: str
    described: str
    rows: tuple[int, ...]
    keys_on_several: int
    out_of_order: int
    salting: Salting | None = None

    @property
    def instances(self) -> int:
        """How many there are, idle ones included."""
        return len(self.rows)

    @property
    def smallest(self) -> int:
        """Clicks of the instance with fewest."""
        return min(self.rows)

    @property
    def mean(self) -> float:
        """An even part of the clicks."""
        return sum(self.rows) / len(self.rows)

    @property
    def largest(self) -> int:
        """Clicks of the busiest instance."""
        return max(self.rows)

    @property
    def skew(self) -> float:
        """Largest over mean."""
        return skew(self.largest, sum(self.rows), self.instances)

    @property
    def idle(self) -> int:
        """Instances without a click."""
        return self.rows.count(0)

    @property
    def speed_up(self) -> float:
        """How many times as fast as one instance, if each has its own core: total over largest."""
        return sum(self.rows) / self.largest if self.largest else 1.0


@dataclass(frozen=True)
class Recommendation:
    """The grouping to choose, with the reason in a sentence; ``salting`` for salted_fields."""

    grouping: str
    instances: int
    speed_up: float
    reason: str
    salting: Salting | None = None


@dataclass(frozen=True)
class Measurement:
    """The count as it ran: ``seconds`` is the median of the runs, ``rates`` are each instance's rows per second.

    A rate is None where the instance had too few rows to see time pass.
    """

    described: str
    instances: int
    clicks: int
    seconds: float
    predicted_speed_up: float
    measured_speed_up: float | None
    rates: tuple[float | None, ...]

    @property
    def clicks_per_second(self) -> float:
        """All instances together, start and merge included."""
        return self.clicks / self.seconds


@dataclass(frozen=True)
class Advice:
    """All that is shown. ``loads`` are in the order of the instance counts, then of ``GROUPINGS``.

    ``cores`` is how many instances this Spark runs in parallel. ``here`` is the recommendation for no more instances
    than that, where it is another. ``drawn_hours`` is how many of the log hours were looked at; None: all.
    """

    distribution: KeyDistribution
    source: str
    log_hours: str
    loads: tuple[GroupingLoad, ...]
    hot_keys: tuple[KeyClicks, ...]
    recommendation: Recommendation
    cores: int
    here: Recommendation | None
    drawn_hours: int | None = None
    measurements: tuple[Measurement, ...] = ()


def salting(distribution: KeyDistribution, instances: int, most_instances: int, salts: int | None = None) -> Salting:
    """How salted_fields is to split keys over ``instances``: by ``salts`` if given, as far as there are instances.

    Else by the fewest salts that make the load even, for the hot keys and as few of the next busy ones as that takes;
    by those that come closest, where none do. Where fields grouping is even it is shown with two salts, for the keys
    that are hot among ``most_instances``, the largest number in question. Every key is split where none is hot, where
    too many are to be named, or where the hot one is the null key, which cannot be named.
    """
    hot = distribution.hot_keys(instances) or distribution.hot_keys(most_instances)
    can_name = 0 < len(hot) <= MAX_HOT_KEYS and all(key.key is not None for key in hot)
    if salts or skew(max(distribution.by_bucket[instances]), distribution.clicks, instances) <= EVEN_SKEW:
        return Salting(min(salts or 2, instances), _names_of(hot) if can_name else ())
    named = [key for key in distribution.busiest if key.key is not None][:MAX_HOT_KEYS]
    choices = [named[:number] for number in range(len(hot), len(named) + 1)] if can_name else [[]]
    best, best_skew = Salting(1), math.inf
    for keys in choices:
        for number in range(2, instances + 1):
            largest = max(salted_clicks(distribution, instances, keys, number))
            split_skew = largest * instances / distribution.clicks
            if split_skew <= EVEN_SKEW:
                return Salting(number, _names_of(keys))
            if split_skew < best_skew:
                best, best_skew = Salting(number, _names_of(keys)), split_skew
    return best


def salted_clicks(
    distribution: KeyDistribution, instances: int, hot_keys: Sequence[KeyClicks], salts: int
) -> list[float]:
    """The clicks that each instance is to expect when these keys (every key, if none) are split by ``salts``."""
    clicks: list[float] = list(distribution.by_bucket[instances])
    if not hot_keys:
        return [sum(clicks[instance - salt] for salt in range(salts)) / salts for instance in range(instances)]
    for key in hot_keys:
        first = key.key_hash % instances
        clicks[first] -= key.clicks
        for salt in range(salts):
            clicks[(first + salt) % instances] += key.clicks / salts
    return clicks


def _names_of(keys: Sequence[KeyClicks]) -> tuple[str, ...]:
    return tuple(key.key for key in keys if key.key is not None)


def advise(
    distribution: KeyDistribution,
    source: str,
    log_hours: str,
    loads: Sequence[GroupingLoad],
    cores: int,
    drawn_hours: int | None = None,
) -> Advice:
    """The figures with what follows from them."""
    best = recommend(distribution, loads)
    possible_here = [load for load in loads if load.instances <= cores]
    here = recommend(distribution, possible_here) if best.instances > cores and possible_here else None
    hot = distribution.hot_keys(most_instances(loads))[:MAX_HOT_KEYS]
    in_order = sorted(loads, key=lambda load: (load.instances, GROUPINGS.index(load.grouping)))
    return Advice(distribution, source, log_hours, tuple(in_order), hot, best, cores, here, drawn_hours)


def most_instances(loads: Sequence[GroupingLoad]) -> int:
    """The largest number of instances in question; that of fifo is the number of files, which nobody asked for."""
    return max(load.instances for load in _asked_for(loads))


def _asked_for(loads: Sequence[GroupingLoad]) -> Sequence[GroupingLoad]:
    return [load for load in loads if load.grouping != "fifo"] or loads


def recommend(distribution: KeyDistribution, loads: Sequence[GroupingLoad]) -> Recommendation:
    """The largest number of instances that some grouping keeps evenly busy, by the first in ``GROUPINGS`` that does.

    Where none does: the load with the largest speed-up. Fifo is recommended only where nothing else was asked for.
    """
    by_preference = sorted(_asked_for(loads), key=lambda load: (-load.instances, GROUPINGS.index(load.grouping)))
    best = next((load for load in by_preference if load.skew <= EVEN_SKEW), None)
    if best is None:
        best = max(by_preference, key=lambda load: load.speed_up)
    fields = next(
        (load for load in loads if load.grouping == "fields" and load.instances == best.instances),
        None,
    )
    return Recommendation(
        best.grouping, best.instances, best.speed_up, _reason(distribution, best, fields), best.salting
    )


def fields_limit(distribution: KeyDistribution, key: KeyClicks) -> int:
    """Up to how many instances the key alone is no more than an even part: above, its instance is the bottleneck."""
    return distribution.clicks // key.clicks


def name_of(key: CountKey, number: int = 1) -> str:
    """The key's name in a sentence: ``URL``, ``countries``."""
    name = _NAMES.get(key, key)
    return name if number == 1 else _PLURALS.get(key, f"{name}s")


def _reason(distribution: KeyDistribution, best: GroupingLoad, fields: GroupingLoad | None) -> str:
    """Why ``best``, in a sentence; ``fields`` is fields grouping over as many instances."""
    name = name_of(distribution.key)
    if best.instances == 1:
        return f"one instance has all clicks of every {name}: nothing is partitioned"
    hot = distribution.hot_keys(best.instances)
    busiest = as_share(distribution.busiest[0].clicks, distribution.clicks)
    if best.grouping == "fields" and best.skew <= EVEN_SKEW:
        return (
            f"the busiest {name} has {busiest} of the clicks, {'about' if hot else 'less than'} an even part of "
            f"{best.instances} instances: fields grouping is even and keeps every {name} whole"
        )
    if best.salting is not None and hot:
        has = "are" if hot[0].key is None else "has"
        whose = f"clicks without a {name}" if hot[0].key is None else f"the busiest {name}"
        split = [key for key in distribution.busiest if key.key in best.salting.hot_keys]
        first = f"{whose} {limit_of_fields(distribution.share(hot[:1]), has)}"
        if not split:
            return f"{first}; salt every {name} by {best.salting.salts}"
        if len(split) == 1:
            return f"{first}; salt it by {best.salting.salts}"
        return (
            f"{first}; salt it and the next{f' {len(split) - 1}' if len(split) > 2 else ''}, together "
            f"{distribution.share(split):.0%}, "
            f"by {best.salting.salts}"
        )
    others = (
        f"fields grouping has skew {fields.skew:.1f}" if fields is not None else "fields grouping was not asked for"
    )
    why = (
        f"the busiest {name} has {busiest} of the clicks, more than an even part of {best.instances} instances"
        if hot
        else f"no {name} has more than an even part of {best.instances} instances (the busiest has {busiest})"
    )
    merged = "" if best.grouping in ("fields", "range", "global") else f"; its parts of a {name} must be merged"
    return f"{why}, and {others}: {best.grouping} has {best.skew:.1f}{merged}"


def with_measurements(advice: Advice, measurements: Sequence[Measurement]) -> Advice:
    """The advice with what was measured beside it."""
    return replace(advice, measurements=tuple(measurements))
