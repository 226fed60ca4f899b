"""What the guides tell people to type, job by job, goes on after a hold and ends at a failure."""

from __future__ import annotations

import os
import re
import subprocess
import textwrap
from pathlib import Path

import pytest

from include.settings import REPOSITORY

JOBS = ["ingest", "aggregate", "validate", "publish"]
#: In place of a command that runs a job: writes down which, and ends as it is told to.
COMMAND = """#!/bin/sh
job=${*##*clickmill }
job=${job%% *}
echo "$job" >> jobs
[ "$job" != "$ENDS" ] || exit "$WITH"
"""


def loops() -> list[tuple[str, str]]:
    """Each guide's name and its commands that run the jobs one after the other."""
    guides = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs" / "guides").glob("*.md"))]
    commands = []
    for guide in guides:
        blocks = re.findall(r"^ *```sh\n(.*?)^ *```$", guide.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        commands += [(guide.name, textwrap.dedent(block)) for block in blocks if "for job in" in block]
    return commands


def jobs_run(folder: Path, commands: str, ends: str, code: int) -> list[str]:
    """Which jobs the commands run, in a folder of their own, when one of them ends with this exit code."""
    for command in (folder / "docker", folder / "clickmill"):
        command.write_text(COMMAND)
        command.chmod(0o755)
    environment = os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "ENDS": ends, "WITH": str(code)}
    subprocess.run(["sh", "-c", commands], cwd=folder, env=environment, check=True)
    return (folder / "jobs").read_text().split()


def test_the_guides_that_run_jobs_by_hand_are_found() -> None:
    assert {name for name, _ in loops()} >= {"backfill.md", "docker.md", "held-hours.md"}


@pytest.mark.parametrize("commands", [pytest.param(commands, id=name) for name, commands in loops()])
def test_after_a_hold_the_rest_is_published_and_after_a_failure_nothing(tmp_path: Path, commands: str) -> None:
    for name in ("held", "failed"):
        (tmp_path / name).mkdir()
    assert jobs_run(tmp_path / "held", commands, "validate", 3) == JOBS
    assert jobs_run(tmp_path / "failed", commands, "aggregate", 1) == JOBS[:2]
