"""Noise for counts, by OpenDP: what is drawn is (epsilon, delta)-differentially private for each visitor.

Discrete Laplace noise, exact and from the operating system's random numbers. A key that only this day's visitors have
made known is shown if its count with noise reaches a threshold: delta is the probability that it was one visitor's.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from include.errors import UsageError

#: Thresholds that are considered. Far above what a day can have.
_MOST_CLICKS = 1 << 52


@dataclass(frozen=True)
class Noise:
    """Noise for counts by key, of which one visitor changes at most ``most_clicks`` altogether.

    Raises:
        UsageError: if no noise has so small an epsilon or delta.
    """

    most_clicks: int
    epsilon: float
    delta: float

    @cached_property
    def scale(self) -> float:
        """Of the Laplace distribution: its standard deviation is about √2 times as much."""
        scale = self.most_clicks / self.epsilon
        try:
            # The quotient may have been rounded down.
            while self._spent(scale, self.most_clicks)[0] > self.epsilon:
                scale = math.nextafter(scale, math.inf)
        except _opendp().OpenDPException as error:
            raise self._impossible() from error
        return scale

    @cached_property
    def threshold(self) -> int:
        """The smallest count, noise included, that is shown."""
        thresholds = range(self.most_clicks, _MOST_CLICKS)
        index = bisect_left(thresholds, True, key=lambda threshold: self._spent(self.scale, threshold)[1] <= self.delta)
        if index == len(thresholds):
            raise self._impossible()
        # OpenDP 0.16.0 shows counts that reach the threshold, and its delta is that of counts above it: of counts of 1,
        # by scale 2 and threshold 5, it shows 8.5% and says 5.1%. One more makes it true. See
        # https://github.com/opendp/opendp/issues/2922
        return thresholds[index] + 1

    def add_to(self, counts: Mapping[str, int]) -> dict[str, int]:
        """The counts with noise, drawn now, of those keys that are shown."""
        shown: dict[str, int] = self._measurement(self.scale, self.threshold)(dict(counts))
        return shown

    def _spent(self, scale: float, threshold: int) -> tuple[float, float]:
        """Epsilon and delta as OpenDP computes them, from how many counts one visitor changes, and by how much."""
        # So many counts, by so much together, and each by so much.
        one_visitor = (self.most_clicks, self.most_clicks, self.most_clicks)
        spent: tuple[float, float] = self._measurement(scale, threshold).map(one_visitor)
        return spent

    def _measurement(self, scale: float, threshold: int) -> Any:
        dp = _opendp()
        counts = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T="i64"))
        distance = dp.l01inf_distance(dp.absolute_distance(T="i64"))
        return dp.m.make_laplace_threshold(counts, distance, scale, threshold)

    def _impossible(self) -> UsageError:
        return UsageError(
            f"no noise for epsilon {self.epsilon:g} and delta {self.delta:g} with {self.most_clicks} clicks a visitor: "
            "expected larger ones, or fewer clicks; see [publication.noise] in config/pipeline.toml"
        )


@cache
def _opendp() -> Any:
    # Half a second, and only releases need it.
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp
