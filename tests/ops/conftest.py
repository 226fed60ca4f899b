"""A home in which nothing has been started."""

from __future__ import annotations

from pathlib import Path

import pytest

from ops.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.make()
    return made
