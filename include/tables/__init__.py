"""Every table, declared once: names, grain, types, keys, partitioning and a comment per column.

Writers, checks and docs import them from here. Types are Spark SQL types. Hours are UTC, and days too, but in the daily
tables. What a module declares is in ``TABLES``, and is here by its name; what a table is, is in ``model``.
"""

# ruff: noqa: F403
from __future__ import annotations

from include.tables import arrivals, journal, quality, releases, replays, streams
from include.tables.arrivals import *
from include.tables.counts import *
from include.tables.counts import COUNTS
from include.tables.journal import *
from include.tables.model import Column as Column
from include.tables.model import Table as Table
from include.tables.quality import *
from include.tables.releases import *
from include.tables.replays import *
from include.tables.streams import *

_MODULES = (releases, quality, streams, replays, journal)
#: By name, all that the modules declare.
TABLES = {
    table.name: table
    for tables in (vars(arrivals).values(), COUNTS, *(vars(module).values() for module in _MODULES))
    for table in tables
    if isinstance(table, Table)
}
