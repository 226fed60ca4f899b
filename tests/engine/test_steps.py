"""Steps: the names under which Spark knows what a job does."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from spark_jobs.engine.steps import in_parallel, marked, step, steps_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

WAIT = 30.0


def test_pieces_at_once_meet_and_have_the_names_of_the_thread_that_asked(spark: SparkSession) -> None:
    both = threading.Barrier(2)

    def piece(name: str) -> tuple[str, ...]:
        with step(spark, name):
            both.wait(WAIT)  # neither ends before the other has begun
            assert "a mark" in spark.getTags()
            return steps_of([f"_Tag_{tag}" for tag in spark.getTags()])

    with step(spark, "outer"), marked(spark, "a mark"):
        names = in_parallel(spark, lambda: piece("first"), lambda: piece("second"))
        assert names == (("outer", "first"), ("outer", "second"))
        assert spark.getTags() == {"step: outer", "a mark"}
    assert in_parallel(spark) == ()


def test_when_a_piece_fails_the_others_have_ended_before_it_is_reported(spark: SparkSession) -> None:
    failed, ended = threading.Event(), threading.Event()

    def fails() -> None:
        failed.set()
        raise ValueError("first")

    def ends() -> None:
        assert failed.wait(WAIT)
        ended.set()
        raise KeyError("second")

    with pytest.raises(ValueError, match="first"):
        in_parallel(spark, fails, ends)
    assert ended.is_set()
