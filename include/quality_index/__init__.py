"""A compact SQLite copy of ``quality_results`` for pages that must be quick: states, newest results, histories.

It is a function of the table alone.
"""

from include.quality_index.catching_up import SCHEMA_VERSION, catch_up
from include.quality_index.model import Counts, Event, Point, Result, Run, series_of, state_of
from include.quality_index.reading import QualityIndex, open_index

__all__ = [
    "SCHEMA_VERSION",
    "Counts",
    "Event",
    "Point",
    "QualityIndex",
    "Result",
    "Run",
    "catch_up",
    "open_index",
    "series_of",
    "state_of",
]
