"""Wrong arguments of the advice are one line and exit code 2, before any server is asked for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from include.settings import REPOSITORY, Settings


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--key", "colour"], "invalid value for '--key': 'colour' is not one of 'url', 'country_code'"),
        (["--key", "url", "--groupings", "fields,magic"], "--groupings magic: expected some of fields, range"),
        (["--key", "url", "--instances", "2,0"], "--instances 0: expected whole numbers from 1 to 128"),
        (["--key", "url", "--instances", "2,many"], "--instances '2,many': expected whole numbers"),
        (["--key", "url", "--instances", "1,4", "--salt", "5"], "--salt 5: expected 1 to 4, the largest number"),
        (["--key", "url", "--groupings", "custom"], "--expression belongs to grouping custom, and it needs one"),
        (["--key", "url", "--html", "/nowhere/x.html"], "--html /nowhere/x.html: expected a file in a folder"),
        ([], "missing option '--key': expected one of url, country_code"),
    ],
)
def test_wrong_arguments(settings: Settings, arguments: list[str], said: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "CLICKMILL_"))}
    environment |= {
        "CLICKMILL_HOME": str(settings.home),
        "CLICKMILL_SOURCES": str(settings.sources_file),
        "CLICKMILL_PIPELINE": str(settings.pipeline_file),
    }
    command = [sys.executable, "-m", "clickmill", "advise", "--hour", "2026-03-01T05", *arguments]
    refused = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert said in refused.stderr
    assert (refused.stderr.count("\n"), refused.stdout) == (1, "")
