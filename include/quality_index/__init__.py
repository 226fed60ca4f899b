"""A compact SQLite copy for pages that must be quick: states, newest results, histories, what became of click hours.

It is a function of ``quality_results`` and ``journal`` alone.
"""

from include.quality_index.catching_up import SCHEMA_VERSION, catch_up, catch_up_if_possible
from include.quality_index.model import Counts, Point, Result, Run, series_of, state_of
from include.quality_index.reading import QualityIndex, open_index

__all__ = [
    "SCHEMA_VERSION",
    "Counts",
    "Point",
    "QualityIndex",
    "Result",
    "Run",
    "catch_up",
    "catch_up_if_possible",
    "open_index",
    "series_of",
    "state_of",
]
