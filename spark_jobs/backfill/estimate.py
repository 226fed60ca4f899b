"""How long a backfill will take, from how long chunks before it took."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from include.backfills import Measured

#: Older ones were of other code, or of another machine.
MOST_MEASURED = 50


def estimated_seconds(measured: Sequence[Measured], chunks: Sequence[tuple[int, int]]) -> float | None:
    """The seconds that chunks take, each of so many log hours and bytes; None if nothing has been measured.

    A chunk takes a fixed time, a time for each log hour and one for each byte, none of them below 0: those that fit
    the newest chunks best by least squares (on two or fewer of the three terms while fewer have been measured).
    """
    newest = sorted(measured, key=lambda measurement: measurement.at)[-MOST_MEASURED:]
    if not newest:
        return None
    terms = np.array([_terms(measurement.log_hours, measurement.size_bytes) for measurement in newest])
    seconds = np.array([measurement.seconds for measurement in newest])
    best: tuple[float, np.ndarray] | None = None
    for count in range(1, min(3, len({tuple(row) for row in terms})) + 1):
        for chosen in combinations(range(3), count):
            weights = np.zeros(3)
            weights[list(chosen)] = np.linalg.lstsq(terms[:, chosen], seconds, rcond=None)[0]
            error = float(np.sum((terms @ weights - seconds) ** 2))
            # A term more must do better, by more than rounding.
            if (weights >= 0).all() and (best is None or error < best[0] - 1e-9 * float(seconds @ seconds)):
                best = error, weights
    assert best is not None, "one term alone is never below 0"
    return float(sum(np.array(_terms(*chunk)) @ best[1] for chunk in chunks))


def _terms(log_hours: int, size_bytes: int) -> tuple[float, float, float]:
    # Hours first: a term of one kind that does as well as another is that of hours. Megabytes, so that all are near 1.
    return float(log_hours), size_bytes / 1e6, 1.0
