"""The bucket of a key in plain Python: known values here, and real Spark's in ``tests/aggregate``."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.buckets import MAX_BUCKETS, Layout, bucket_of, spark_hash
from include.errors import UsageError
from include.settings import REPOSITORY

#: What Spark 4.2 gives for ``SELECT hash(…)``.
KNOWN = [
    (None, None, 42),
    ("", "STRING", 142593372),
    ("Spark", "STRING", 228093765),  # as in the documentation of Spark's function hash
    ("a", "STRING", 1485273170),
    ("http://shop.test/", "STRING", -407371409),
    ("ä", "STRING", 1085608887),
    ("日本語", "STRING", -1143049834),
    ("🙂", "STRING", -1519007075),
    ("a\x00b", "STRING", -1008589700),
    (0, "INT", 933211791),
    (1, "INT", -559580957),
    (-1, "INT", -1604776387),
    (2**31 - 1, "INT", 133916647),
    (1, "BIGINT", -1712319331),
    (-1, "BIGINT", -939490007),
    (-(2**63), "BIGINT", -853646085),
]


@pytest.mark.parametrize(("key", "key_type", "expected"), KNOWN)
def test_hash_is_the_known_one_of_spark(key, key_type, expected):
    assert spark_hash(key, key_type) == expected


def test_text_is_a_string_and_a_number_a_bigint_unless_told():
    assert spark_hash("a") == spark_hash("a", "STRING")
    assert spark_hash(7) == spark_hash(7, "BIGINT") != spark_hash(7, "INT")


def test_hash_of_one_column_is_the_seed_of_the_next():
    assert spark_hash("b", seed=spark_hash("a")) == 190734147
    assert spark_hash(None, seed=spark_hash("a")) == spark_hash("a")


def test_the_guide_says_what_is_so():
    guide = (REPOSITORY / "docs" / "guides" / "co-partitioning.md").read_text(encoding="utf-8")
    calls = re.findall(r"^(bucket_of\(.*\))  # (\d+)", guide, re.MULTILINE)
    assert len(calls) == 4
    for call, bucket in calls:
        assert eval(call) == int(bucket), call


@given(st.none() | st.text() | st.integers(-(2**63), 2**63 - 1), st.integers(1, MAX_BUCKETS))
def test_bucket_is_one_of_the_buckets_and_always_the_same(key, buckets):
    assert 0 <= bucket_of(key, buckets) < buckets
    assert bucket_of(key, buckets) == bucket_of(key, buckets)
    assert bucket_of(key, 1) == 0


@pytest.mark.parametrize(
    ("key", "buckets", "key_type", "message"),
    [
        ("a", 0, None, "buckets = 0; expected a whole number above 0"),
        (7, 4, "STRING", "key 7 is no text"),
        ("7", 4, "INT", "key '7' is no INT"),
        (True, 4, None, "key True is no BIGINT"),
        (2**31, 4, "INT", "key 2147483648 is no INT; expected a whole number that fits"),
        (2**63, 4, None, "is no BIGINT"),
        ("\ud800", 4, None, "has no UTF-8; expected a text without lone surrogates"),
        (1.5, 4, "DOUBLE", "key type 'DOUBLE'; expected one of STRING, INT, BIGINT"),
    ],
)
def test_what_cannot_be_hashed_as_spark_does_is_refused(key, buckets, key_type, message):
    with pytest.raises(UsageError) as raised:
        bucket_of(key, buckets, key_type)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("fewest", "most", "buckets", "text"),
    [(4, 4, 4, "4"), (4, 7, None, "4 to 7"), (None, None, None, "not stated")],
)
def test_the_number_of_buckets_is_that_of_all_rows(fewest, most, buckets, text):
    layout = Layout(fewest, most, "STRING")
    assert (layout.buckets, str(layout)) == (buckets, text)
