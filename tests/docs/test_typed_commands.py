"""What the pages say can be typed."""

from __future__ import annotations

import re

import pytest

from include.settings import REPOSITORY

PAGES = sorted([REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md"), *(REPOSITORY / "dags").glob("*.py")])
#: What commands over log hours have in common is declared there.
SHARED = ("include/job_arguments.py", "include/command.py")
TYPED = [
    (command, option)
    for page in PAGES
    for command, rest in re.findall(
        r"-m spark_jobs\.(\w+)([^\n`#|]*)", page.read_text(encoding="utf-8").replace("\\\n", " ")
    )
    for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", rest)
]


@pytest.mark.parametrize(("command", "option"), sorted(set(TYPED)))
def test_an_option_that_a_page_names_is_declared(command: str, option: str) -> None:
    files = (f"spark_jobs/{command}.py", *SHARED)
    declared = "".join((REPOSITORY / file).read_text(encoding="utf-8") for file in files)
    assert option == "--help" or f'"{option}"' in declared


def test_commands_are_typed() -> None:
    assert {("maintain_lake", "--dry-run"), ("replay_quarantined", "--dry-run")} <= set(TYPED)
