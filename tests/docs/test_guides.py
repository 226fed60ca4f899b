"""What the guides tell people to type runs, and says what they say."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from include.hours import Hour
from include.settings import REPOSITORY
from samples.sample_logs import make_sample
from samples.sample_spec import SampleSpec
from tests.support.temporary_lake import TemporaryLake

pytestmark = pytest.mark.spark

SPEC = SampleSpec(start=Hour.parse("2026-03-01T10"), hours=2, clicks_per_hour=1500, seed=5)


@pytest.fixture(scope="module")
def sample_lake(make_lake: Callable[[str], TemporaryLake]) -> TemporaryLake:
    lake = make_lake("guides")
    make_sample(SPEC, lake.settings.landing)
    lake.run("ingest", str(SPEC.log_hours.start), str(SPEC.log_hours.end))
    return lake


def blocks(guide: Path) -> list[str]:
    """The Python of a guide, block by block."""
    return re.findall(r"^```python\n(.*?)^```$", guide.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_groupings_guide_runs(
    sample_lake: TemporaryLake, spark_remote: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLICKMILL_HOME", str(sample_lake.settings.home))
    monkeypatch.setenv("SPARK_REMOTE", spark_remote)
    names: dict[str, Any] = {}
    code = blocks(REPOSITORY / "docs" / "guides" / "groupings.md")
    assert len(code) >= 7
    for block in code:
        exec(compile(block, "groupings.md", "exec"), names)
    output = capsys.readouterr().out
    loads = {
        name: [int(number) for number in numbers.split(", ")]
        for name, numbers in re.findall(r"^(\w+) +\[([\d, ]+)\]$", output, re.MULTILINE)
    }
    clicks = names["clicks"].count()
    assert {sum(load) for load in loads.values()} == {clicks}
    assert max(loads["custom"]) > max(loads["fields"]) > max(loads["shuffle"])
    assert int(re.findall(r"^as they arrive +(\d+)$", output, re.MULTILINE)[0]) > 0
