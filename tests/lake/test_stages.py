"""Acts in stages: what is explained is what is done, one after the other, and goes on when it was killed."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import pytest

from include.tables import JOURNAL
from spark_jobs.lake.journal import signed_act
from spark_jobs.lake.lake import Lake
from spark_jobs.lake.stages import Stage, Stages, evaluate, explain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from include.settings import Settings


class Jars:
    """Some jars to fill, under a lock, and a note to write about it."""

    def __init__(self, *names: str, broken: str = "", kills: type[BaseException] = OSError) -> None:
        self.names, self.broken, self.kills = names, broken, kills
        self.full: list[str] = []
        self.is_locked = False

    @contextmanager
    def locked(self) -> Iterator[None]:
        self.is_locked = True
        try:
            yield
        finally:
            self.is_locked = False

    def stages(self) -> Stages:
        with self.locked():
            for name in self.names:
                if name in self.full:
                    yield Stage(name, [f"{name} is full already"])
                else:
                    yield Stage(
                        name, [f"{name} would be filled, as jar {len(self.full) + 1}"], partial(self.fill, name)
                    )
        yield Stage("note", [f"{len(self.names)} jars"])

    def fill(self, name: str) -> list[str]:
        assert self.is_locked
        if name == self.broken:
            raise self.kills(name)
        self.full.append(name)
        return [f"{name} is filled"]


def test_what_is_explained_is_not_done() -> None:
    jars = Jars("red", "blue")
    assert explain(jars.stages()) == ["red would be filled, as jar 1", "blue would be filled, as jar 1", "2 jars"]
    assert (jars.full, jars.is_locked) == ([], False)


def test_each_stage_is_planned_when_those_before_it_are_done() -> None:
    jars, details = Jars("red", "red"), dict[str, str]()
    assert evaluate(jars.stages(), details) == ["red is filled", "red is full already", "2 jars"]
    assert (jars.is_locked, details) == (False, {})


@pytest.mark.parametrize("kills", [OSError, KeyboardInterrupt])
def test_what_breaks_off_keeps_no_lock_and_goes_on(kills: type[BaseException]) -> None:
    jars, details = Jars("red", "blue", broken="blue", kills=kills), dict[str, str]()
    with pytest.raises(kills):
        evaluate(jars.stages(), details)
    assert (jars.full, jars.is_locked, details) == (["red"], False, {"stage": "blue"})
    jars.broken = ""
    assert evaluate(jars.stages(), {}) == ["red is full already", "blue is filled", "2 jars"]


def test_the_journal_says_which_stage_has_failed(settings: Settings) -> None:
    lake, jars = Lake(None, settings), Jars("red", "blue", broken="blue")
    with pytest.raises(OSError, match="blue"), signed_act(lake, "fill", "jars", "Ada", "winter") as signed:
        evaluate(jars.stages(), signed.details)
    (failed,) = lake.read_rows(JOURNAL, ["event", "details"], [])
    assert (failed["event"], dict(failed["details"])["stage"]) == ("failed", "blue")


def test_a_dry_run_leaves_nothing_on_the_journal(settings: Settings) -> None:
    lake = Lake(None, settings)
    with signed_act(lake, "fill", "jars", "Ada", "winter", is_dry_run=True) as signed:
        assert signed.is_dry_run
    with pytest.raises(OSError, match="gone"), signed_act(lake, "fill", "jars", "Ada", "winter", is_dry_run=True):
        raise OSError("gone")
    assert not lake.exists(JOURNAL)
