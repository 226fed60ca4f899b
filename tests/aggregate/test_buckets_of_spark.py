"""The buckets of ``include.buckets`` are real Spark's, for any key; many keys in one query."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from include.buckets import KeyType, bucket_of, spark_hash

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

#: Each example is a query, so there are few of them, and many keys in each.
in_few_queries = settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def _assert_equal(spark: SparkSession, keys: list[Any], key_type: KeyType, buckets: int) -> None:
    from pyspark.sql import functions as F

    frame = spark.createDataFrame([(key,) for key in keys], f"key {key_type}")
    rows = frame.select("key", F.hash("key"), F.pmod(F.hash("key"), F.lit(buckets))).collect()
    expected = [(key, spark_hash(key, key_type), bucket_of(key, buckets, key_type)) for key in keys]
    assert [tuple(row) for row in rows] == expected


@given(st.lists(st.none() | st.text(), min_size=60, max_size=300), st.integers(1, 4096))
@in_few_queries
def test_texts_of_any_unicode(spark: SparkSession, keys: list[str | None], buckets: int) -> None:
    _assert_equal(spark, keys, "STRING", buckets)


def test_texts_of_every_length_and_plane(spark: SparkSession) -> None:
    """Lengths decide how many bytes are left over; those of 0x80 and above are where Spark's way differs."""
    rng = random.Random(4)
    characters = [*range(0, 0xD800, 97), *range(0xE000, 0x110000, 4099)]
    keys = ["".join(map(chr, rng.choices(characters, k=length))) for length in range(200) for _ in range(5)]
    assert {len(key.encode()) % 4 for key in keys} == {0, 1, 2, 3}
    _assert_equal(spark, keys, "STRING", 7)


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=60, max_size=300), st.integers(1, 4096))
@in_few_queries
def test_numbers_as_bigint_and_as_int(spark: SparkSession, keys: list[int | None], buckets: int) -> None:
    _assert_equal(spark, keys, "BIGINT", buckets)
    _assert_equal(spark, [key if key is None else (key & 0xFFFFFFFF) - 2**31 for key in keys], "INT", buckets)
