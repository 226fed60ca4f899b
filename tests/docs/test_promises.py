"""The pages that promise something name tests that there are."""

from __future__ import annotations

import re

import pytest

from include.settings import REPOSITORY


@pytest.mark.parametrize("page", ["guides/security.md", "reference/guarantees.md"])
def test_every_promise_names_tests_that_there_are(page: str) -> None:
    named = set(re.findall(r"`(test_\w+)`", (REPOSITORY / "docs" / page).read_text(encoding="utf-8")))
    modules = (file.read_text(encoding="utf-8") for file in (REPOSITORY / "tests").rglob("test_*.py"))
    there = {name for module in modules for name in re.findall(r"^def (test_\w+)\(", module, re.MULTILINE)}
    assert len(named) > 20
    assert named <= there, named - there
