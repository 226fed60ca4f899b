"""Wrong arguments of the advice are one line and exit code 2, before any server is asked for."""

from __future__ import annotations

import pytest

from include.settings import Settings
from tests.support.refusals import enter_home, refusal


@pytest.mark.parametrize(
    ("arguments", "message"),
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
    message: str,
) -> None:
    enter_home(settings, monkeypatch)
    code, line = refusal(capsys, monkeypatch, "advise", "--hour", "2026-03-01T05", *arguments)
    assert code == 2
    assert message in line
