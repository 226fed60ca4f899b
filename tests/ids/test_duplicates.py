"""Which arrivals are duplicates: what plain Python decides, one after the other, whatever was stored before."""

from __future__ import annotations

import random
from typing import NamedTuple

import pyarrow as pa
import pytest

from spark_jobs.ids.duplicates import CANDIDATES, decide_duplicates

#: Log hours of each lateness that are ingested again, one after the other: 15,000 decisions.
EXAMPLES, STEPS, HOURS = 1_000, 5, 20


class Arrival(NamedTuple):
    event_id: str
    hour: int
    file: str
    line: int


def _some_arrivals(rng: random.Random, example: int, hours: range) -> list[Arrival]:
    places = {
        (rng.choice(hours), rng.choice("ab"), rng.randrange(3)) for _ in range(rng.randrange(min(len(hours) + 1, 9)))
    }
    return [Arrival(f"{example}-{rng.randrange(2)}", *place) for place in places]


class Stored(NamedTuple):
    """What became of an arrival: the log hour of the accepted one, and whether that is this one."""

    first_hour: int
    is_accepted: bool


@pytest.mark.parametrize("lateness", [0, 2, 6])
def test_first_arrival_wins_within_the_window(lateness: int) -> None:
    """Each step ingests log hours of every example; what it finds is what the next one has stored."""
    rng = random.Random(lateness)
    everything = [arrival for example in range(EXAMPLES) for arrival in _some_arrivals(rng, example, range(HOURS))]
    stored = _outcomes(everything, lateness)
    changed = 0
    for _ in range(STEPS):
        start = rng.randrange(HOURS)
        ingested = range(start, start + rng.choice([1, 1, 2, 4]))
        former = [arrival for arrival in stored if arrival.hour in ingested]
        # The same again, others, or none.
        again = {str(example): rng.randrange(3) for example in range(EXAMPLES)}
        arrived = [arrival for arrival in former if again[arrival.event_id.partition("-")[0]] == 0]
        for example in range(EXAMPLES):
            if again[str(example)] == 1:
                arrived += _some_arrivals(rng, example, ingested)
        others = {arrival: was for arrival, was in stored.items() if arrival.hour not in ingested}
        rng.shuffle(arrived)
        outcomes = _decided(arrived, others, ingested, lateness)
        changed += sum(outcomes[arrival] != was for arrival, was in others.items())
        stored = outcomes
        assert stored == _outcomes(list(stored), lateness)
    assert changed > EXAMPLES / 20 if lateness else changed == 0


def _decided(
    arrived: list[Arrival], others: dict[Arrival, Stored], ingested: range, lateness: int
) -> dict[Arrival, Stored]:
    """What the lake has when these arrivals have been ingested beside the others."""
    arrivals = [(*arrival, row_id, None) for row_id, arrival in enumerate(arrived)]
    of_lake = [(*arrival, None, was.first_hour) for arrival, was in others.items()]
    columns = zip(*arrivals, *of_lake, strict=True)
    candidates = pa.table([*map(list, columns)] or [[]] * len(CANDIDATES), schema=CANDIDATES)
    rows = decide_duplicates(candidates, ingested=ingested, lateness_hours=lateness).to_pylist()
    duplicates = {arrived[row["row_id"]]: row["first_hour"] for row in rows if row["row_id"] is not None}
    changes = {(row["event_id"], row["hour_number"]): row for row in rows if row["row_id"] is None}
    assert len(rows) == len(duplicates) + len(changes)
    outcomes = {
        arrival: Stored(duplicates.get(arrival, arrival.hour), arrival not in duplicates) for arrival in arrived
    }
    for arrival, was in others.items():
        change = changes.get(arrival[:2])
        if change is None:
            outcomes[arrival] = was
        else:
            assert change["first_hour"] != was.first_hour
            is_first = (change["file"], change["line"]) == arrival[2:]
            outcomes[arrival] = Stored(change["first_hour"], is_first and change["first_hour"] == arrival.hour)
    assert changes.keys() <= {arrival[:2] for arrival in others}
    return outcomes


def _outcomes(arrivals: list[Arrival], lateness: int) -> dict[Arrival, Stored]:
    """One after the other, in the order in which they came."""
    last_accepted: dict[str, int] = {}
    outcomes = {}
    for arrival in sorted(arrivals, key=lambda arrival: arrival[1:]):
        last = last_accepted.get(arrival.event_id)
        is_accepted = last is None or arrival.hour - last > lateness
        if is_accepted:
            last_accepted[arrival.event_id] = arrival.hour
        outcomes[arrival] = Stored(last_accepted[arrival.event_id], is_accepted)
    return outcomes
