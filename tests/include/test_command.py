from __future__ import annotations

import pytest

from include.command import exit_with
from include.errors import ClickmillError, QualityError, UsageError


@pytest.mark.parametrize("error", [ClickmillError("what"), UsageError("what"), QualityError("what")])
def test_errors_are_one_line_and_an_exit_code(error: ClickmillError, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise error

    with pytest.raises(SystemExit) as left:
        exit_with(fail)
    assert left.value.code == error.exit_code == {"ClickmillError": 1, "UsageError": 2}.get(type(error).__name__, 3)
    assert capsys.readouterr().err in ("failed: what\n", "wrong arguments: what\n")


@pytest.mark.parametrize(("returned", "code"), [(None, 0), (0, 0), (1, 1)])
def test_exit_code_is_what_main_returns(returned: int | None, code: int) -> None:
    with pytest.raises(SystemExit) as left:
        exit_with(lambda: returned)
    assert (left.value.code or 0) == code


def test_a_command_that_has_a_name_says_it(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise UsageError("what")

    with pytest.raises(SystemExit) as left:
        exit_with(fail, "run")
    assert (left.value.code, capsys.readouterr().err) == (2, "run: what\n")


def test_an_interrupted_command_says_what_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as left:
        exit_with(interrupt, "run", interrupted="make stop ends everything")
    assert (left.value.code, capsys.readouterr().err) == (130, "run: interrupted; make stop ends everything\n")
    with pytest.raises(KeyboardInterrupt):
        exit_with(interrupt)
