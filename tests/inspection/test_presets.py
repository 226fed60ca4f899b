"""Each preset reads a sample of what it is for, and inspect finds it; a new one is two files more in presets/."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from include.settings import Settings
from include.source_presets import preset_names
from spark_jobs.inspection.inspection import inspect
from spark_jobs.inspection.readings import read_by
from spark_jobs.inspection.sample import sample_of
from spark_jobs.lines.kept import rule_of_reason

SAMPLES = Path(__file__).parent / "presets"


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_reads_its_sample(name: str) -> None:
    truth: dict[str, Any] = json.loads((SAMPLES / f"{name}.json").read_text())
    reading = read_by(sample_of(SAMPLES / f"{name}.log"), {"preset": name}, Settings.from_environment())

    assert reading is not None
    clicks = reading.arrivals.filter(pc.is_null(reading.arrivals["reason"]))
    reasons = Counter(filter(None, reading.arrivals["reason"].to_pylist()))
    assert Counter(clicks["url"].to_pylist()) == truth["urls"]
    assert Counter(clicks["country_code"].to_pylist()) == truth["countries"]
    assert {rule_of_reason(reason): count for reason, count in reasons.items()} == truth.get("left_out", {})
    assert not clicks["is_bot"].null_count


@pytest.mark.parametrize("name", preset_names())
def test_a_sample_is_known_again(name: str) -> None:
    truth: dict[str, Any] = json.loads((SAMPLES / f"{name}.json").read_text())
    inspection = inspect(SAMPLES / f"{name}.log", Settings.from_environment())
    assert inspection.is_sure
    assert Counter(row["url"] for row in inspection.rows) == truth["urls"]
    assert Counter(row["country_code"] for row in inspection.rows) == truth["countries"]
