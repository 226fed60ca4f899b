"""Names for what a job asks Spark for, so that people and programs find it again: in Spark's UI and its REST API.

A name travels as a Spark tag on every Spark job that runs under it, nested ones and Delta's own included. Steps may be
inside steps; what runs there has the names of all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar, overload

from pyspark.sql import SparkSession

#: Our tags among others: ``step: count clicks_by_url_hourly / write clicks_by_url_hourly``.
PREFIX = "step: "
SEPARATOR = " / "

_First = TypeVar("_First")
_Second = TypeVar("_Second")
_Result = TypeVar("_Result")


@contextmanager
def step(spark: SparkSession, name: str) -> Iterator[None]:
    """Give all that this thread asks of the session, until the end, this name.

    Raises:
        ValueError: if the name is empty, or has a comma, which Spark's tags cannot have, or the separator of steps.
    """
    if not name.strip() or "," in name or SEPARATOR in name:
        raise ValueError(f"step {name!r}: expected words without a comma and without {SEPARATOR!r}")
    outer = max((tag for tag in spark.getTags() if tag.startswith(PREFIX)), key=len, default="")
    tag = f"{outer}{SEPARATOR}{name}" if outer else f"{PREFIX}{name}"
    spark.addTag(tag)
    try:
        yield
    finally:
        spark.removeTag(tag)


@contextmanager
def marked(spark: SparkSession, mark: str) -> Iterator[None]:
    """Give all that this thread asks of the session, until the end, a tag of its own; its steps stay what they are."""
    spark.addTag(mark)
    try:
        yield
    finally:
        spark.removeTag(mark)


@overload
def in_parallel(
    spark: SparkSession, first: Callable[[], _First], second: Callable[[], _Second], /
) -> tuple[_First, _Second]: ...
@overload
def in_parallel(spark: SparkSession, *work: Callable[[], _Result]) -> tuple[_Result, ...]: ...
def in_parallel(spark: SparkSession, *work: Callable[[], Any]) -> tuple[Any, ...]:
    """Do these pieces of work at the same time, under the names that this thread has; what they return, in their order.

    For pieces that take longer to plan and to commit than to compute. All have ended when this ends. If some fail,
    what the first of them raised is raised.
    """
    names = spark.getTags()

    def named(piece: Callable[[], Any]) -> Any:
        for name in names:
            spark.addTag(name)
        return piece()

    # The threads end here, and their names with them.
    with ThreadPoolExecutor(max(1, len(work))) as threads:
        return tuple([future.result() for future in [threads.submit(named, piece) for piece in work]])


def has_mark(job_tags: list[str], mark: str) -> bool:
    """Whether a Spark job ran under this mark, which must be like no other."""
    return any(tag.endswith(mark) for tag in job_tags)


def steps_of(job_tags: list[str], session_id: str | None = None) -> tuple[str, ...]:
    """The steps, outer to inner, of a Spark job with these tags; none if it ran outside of any.

    A Spark Connect server writes a tag as ``SparkConnect_Execute_User_…_Session_…_Tag_<tag>``, a session without
    Connect with a prefix of its own. With ``session_id``, only a job of that Connect session has steps.
    """
    ours = [
        tag.partition(PREFIX)[2]
        for tag in job_tags
        if PREFIX in tag and (session_id is None or f"_Session_{session_id}_Tag_" in tag)
    ]
    return tuple(re.split(re.escape(SEPARATOR), max(ours, key=len))) if ours else ()
