"""Wrong arguments of the advice are one line and exit code 2, before any server is asked for."""

from __future__ import annotations

import os
import sys

import pytest

from clickmill.app import main
from include.settings import Settings


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
def test_wrong_arguments(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    for name in os.environ:
        if name.startswith(("SPARK_", "CLICKMILL_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("CLICKMILL_HOME", str(settings.home))
    monkeypatch.setenv("CLICKMILL_SOURCES", str(settings.sources_file))
    monkeypatch.setenv("CLICKMILL_PIPELINE", str(settings.pipeline_file))
    monkeypatch.setattr(sys, "argv", ["clickmill", "advise", "--hour", "2026-03-01T05", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    refused = capsys.readouterr()
    assert ended.value.code == 2
    assert said in refused.err
    assert (refused.err.count("\n"), refused.out) == (1, "")
