"""A task is a session of its own: what one made Spark compile must serve the next."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.compiled_classes import compiled_classes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_session_compiles_nothing_that_another_has(spark: SparkSession, spark_remote: str) -> None:
    # A whole number is part of the code, so that nobody has compiled this before.
    number = random.randrange(1 << 40)

    def ask(session: SparkSession) -> int:
        before = compiled_classes(session)
        session.range(100).where(f"id % 7 + {number} = {number}").selectExpr(f"id + {number}").collect()
        return compiled_classes(session) - before

    assert ask(spark) > 0
    second = type(spark).builder.remote(spark_remote).create()
    try:
        assert ask(second) == 0
    finally:
        second.stop()
