"""The guide on security names tests that there are."""

from __future__ import annotations

import re

from include.settings import REPOSITORY


def test_every_promise_names_tests_that_there_are() -> None:
    guide = (REPOSITORY / "docs" / "guides" / "security.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", guide))
    modules = (file.read_text(encoding="utf-8") for file in (REPOSITORY / "tests").rglob("test_*.py"))
    there = {name for module in modules for name in re.findall(r"^def (test_\w+)\(", module, re.MULTILINE)}
    assert len(named) > 20
    assert named <= there, named - there
