"""The bucket of a key, as Spark computes it, for whoever partitions rows outside Spark: a Kafka producer, a service.

``bucket_of(key, N)`` is Spark SQL's ``pmod(hash(key), N)``, and so the partition where ``repartition(N, key)`` puts the
row. The hash is MurmurHash3_x86_32 with seed 42, as in Spark's class of that name:
https://github.com/apache/spark/blob/v4.2.0/common/unsafe/src/main/java/org/apache/spark/unsafe/hash/Murmur3_x86_32.java
It is not quite the published MurmurHash3. Where the length of a text is no multiple of four, Spark mixes each byte that
is left over as a signed number of its own (``hashUnsafeBytes``), the published one all of them as one number: libraries
such as mmh3 give another result there.

A key of several columns: the hash of one is the seed of the next, ``spark_hash(second, seed=spark_hash(first))``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from include.errors import UsageError

SEED = 42
MAX_BUCKETS = 4096

KeyType = Literal["STRING", "INT", "BIGINT"]

_32_BITS = 0xFFFFFFFF


@dataclass(frozen=True)
class Layout:
    """What the rows of a stored table say about where they are, and the type of its key's column.

    ``fewest`` and ``most`` are the smallest and the largest number of buckets of a row; None if there are rows without.
    """

    fewest: int | None
    most: int | None
    key_type: str

    @property
    def buckets(self) -> int | None:
        """The number of buckets of all rows; None if they differ in it, or some have none."""
        return self.most if self.fewest == self.most else None

    def __str__(self) -> str:
        if self.fewest is None or self.most is None:
            return "not stated"
        return str(self.most) if self.fewest == self.most else f"{self.fewest} to {self.most}"


def is_misplaced(key: str) -> str:
    """True, in Spark's SQL, of a row whose ``bucket`` is another than its key's for its number of ``buckets``."""
    return f"NOT bucket <=> pmod(hash({key}), buckets)"


def bucket_of(key: str | int | None, buckets: int, key_type: KeyType | None = None) -> int:
    """The bucket, 0 to ``buckets`` - 1, of a key: Spark's ``pmod(hash(key), buckets)``.

    Raises:
        UsageError: if ``buckets`` is below 1, or the key has no such type.
    """
    if buckets < 1:
        raise UsageError(f"buckets = {buckets}; expected a whole number above 0")
    # Python's remainder has the divisor's sign, as pmod has.
    return spark_hash(key, key_type) % buckets


def spark_hash(key: str | int | None, key_type: KeyType | None = None, seed: int = SEED) -> int:
    """Spark's ``hash(key)``, -2**31 to 2**31 - 1. Null hashes to the seed.

    The type matters: 7 as INT and 7 as BIGINT have different hashes. Without ``key_type`` a text is STRING and a number
    BIGINT, as Spark takes values from Python. Texts are hashed as UTF-8, in Spark's default collation.

    Raises:
        UsageError: if the key is no text or number of that type, or a text that has no UTF-8.
    """
    if key is None:
        return _signed(seed)
    named = key_type or ("STRING" if isinstance(key, str) else "BIGINT")
    if named not in _BYTES_OF:
        raise UsageError(f"key type {named!r}; expected one of {', '.join(_BYTES_OF)}")
    return _murmur3(_BYTES_OF[named](key), seed)


def _text_bytes(key: object) -> bytes:
    if not isinstance(key, str):
        raise UsageError(f"key {key!r} is no text; expected a str for key type STRING")
    try:
        return key.encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(f"key {key!r} has no UTF-8; expected a text without lone surrogates") from None


def _number_bytes(format_: str, key_type: str) -> Callable[[object], bytes]:
    def number_bytes(key: object) -> bytes:
        # A bool is an int in Python, and a type of its own in Spark.
        if isinstance(key, int) and not isinstance(key, bool):
            try:
                return struct.pack(format_, key)
            except struct.error:
                pass
        raise UsageError(f"key {key!r} is no {key_type}; expected a whole number that fits")

    return number_bytes


_BYTES_OF: dict[str, Callable[[object], bytes]] = {
    "STRING": _text_bytes,
    "INT": _number_bytes("<i", "INT"),
    "BIGINT": _number_bytes("<q", "BIGINT"),
}


def _murmur3(data: bytes, seed: int) -> int:
    """Spark's MurmurHash3_x86_32: four bytes at a time as one number, then each that is left as a signed one."""
    whole = len(data) & ~3
    state = seed & _32_BITS
    for (block,) in struct.iter_unpack("<I", data[:whole]):
        state = _mixed(state, block)
    for (left_over,) in struct.iter_unpack("<b", data[whole:]):
        state = _mixed(state, left_over & _32_BITS)
    state ^= len(data)
    state = (state ^ state >> 16) * 0x85EBCA6B & _32_BITS
    state = (state ^ state >> 13) * 0xC2B2AE35 & _32_BITS
    return _signed(state ^ state >> 16)


def _mixed(state: int, block: int) -> int:
    block = block * 0xCC9E2D51 & _32_BITS
    block = (block << 15 | block >> 17) * 0x1B873593 & _32_BITS
    state ^= block
    return ((state << 13 | state >> 19) & _32_BITS) * 5 + 0xE6546B64 & _32_BITS


def _signed(number: int) -> int:
    number &= _32_BITS
    return number - (1 << 32) if number >> 31 else number
