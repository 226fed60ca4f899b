"""Columns that Spark's own functions do not give."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F


def let(value: Column, body: Callable[[Column], Column]) -> Column:
    """``body`` of ``value``, which is computed once however often ``body`` uses it.

    Spark evaluates ``body`` as it is and generates no code for it. So it may have a constant that is another one each
    time, such as the time of a micro-batch: in generated code that would be other code, which Spark compiles again, and
    Java after it. See docs/performance.md.
    """
    return F.get(F.transform(F.array(value), body), F.lit(0))


def named_click_hour() -> Column:
    """A row's click hour, such as 2026-03-01T05."""
    return F.concat(F.col("click_date").cast("string"), F.lit("T"), F.lpad(F.col("click_hour").cast("string"), 2, "0"))
