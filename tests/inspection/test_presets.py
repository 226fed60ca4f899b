"""Each preset reads a sample of what it is for, and inspect finds it; a new one is two files more in presets/."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from include.settings import Settings
from include.source_presets import preset_names
from spark_jobs.inspection import readings
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


@pytest.fixture(scope="module")
def fitting() -> dict[str, tuple[str, ...]]:
    """The presets that make a click of any line of each sample: by one reading of all samples' lines.

    inspect leaves out the others, and takes most of its time for that.
    """
    samples = {name: sample_of(SAMPLES / f"{name}.log") for name in preset_names()}
    tables = []
    for name, sample in samples.items():
        place = sample.lines.schema.get_field_index("file")
        files = pa.array([name] * len(sample.lines)).cast(sample.lines.schema.field(place).type)
        tables.append(sample.lines.set_column(place, sample.lines.schema.field(place), files))
    of_all = replace(samples["combined"], lines=pa.concat_tables(tables))
    settings = Settings.from_environment()
    fits: dict[str, set[str]] = {name: set() for name in samples}
    for preset in preset_names():
        for base in ({}, {"base_url": readings.BASE_URL}):
            reading = read_by(of_all, {"preset": preset} | base, settings)
            if reading is not None:
                for name in set(reading.arrivals.filter(pc.is_null(reading.arrivals["reason"]))["file"].to_pylist()):
                    fits[name].add(preset)
    return {name: tuple(preset for preset in preset_names() if preset in presets) for name, presets in fits.items()}


@pytest.mark.parametrize("name", preset_names())
def test_a_sample_is_known_again(
    name: str, fitting: dict[str, tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    truth: dict[str, Any] = json.loads((SAMPLES / f"{name}.json").read_text())
    monkeypatch.setattr(readings, "preset_names", lambda: fitting[name])
    inspection = inspect(SAMPLES / f"{name}.log", Settings.from_environment())
    assert inspection.is_sure
    assert Counter(row["url"] for row in inspection.rows) == truth["urls"]
    assert Counter(row["country_code"] for row in inspection.rows) == truth["countries"]
