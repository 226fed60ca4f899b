"""Commands that are refused, run in this process: in a home without services, and what they say."""

from __future__ import annotations

import os
import sys

import pytest

from clickmill.app import main
from include.settings import Settings


def enter_home(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home without services, and no variables of others."""
    for name in os.environ:
        if name.startswith(("SPARK_", "CLICKMILL_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("CLICKMILL_HOME", str(settings.home))
    monkeypatch.setenv("CLICKMILL_SOURCES", str(settings.sources_file))
    monkeypatch.setenv("CLICKMILL_PIPELINE", str(settings.pipeline_file))


def refusal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, str]:
    """The exit code, and the one line that is said."""
    monkeypatch.setattr(sys, "argv", ["clickmill", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1, printed.err
    assert printed.out == ""
    assert isinstance(ended.value.code, int)
    return ended.value.code, printed.err.rstrip("\n")
