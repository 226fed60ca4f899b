"""Texts that are JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa

from spark_jobs.lines.json_repairs import without_prefix


def json_objects(texts: Sequence[str]) -> list[dict[str, Any]]:
    """The objects among them, without what other programs have put before some."""
    records = []
    for text in without_prefix(pa.array(texts, pa.string())).to_pylist():
        try:
            record = orjson.loads(text)
        except orjson.JSONDecodeError:
            continue
        if isinstance(record, dict):
            records.append(record)
    return records
