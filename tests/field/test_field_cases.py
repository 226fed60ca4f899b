"""Cases that people have reported: each gives one of its right answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.field.field_case import CASES, answer_of, told_of

NAMES = sorted(folder.name for folder in CASES.iterdir())


@pytest.mark.parametrize("case", [name for name in NAMES if told_of(name)["passes"]])
def test_what_people_bring_is_counted_as_they_mean_it(case: str, tmp_path: Path) -> None:
    answer = answer_of(case, tmp_path)
    differences = [answer.differs_from(expected) for expected in told_of(case)["expected"]]
    assert {} in differences, (differences, answer)
