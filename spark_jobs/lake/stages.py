"""Acts in stages: what is to be done next, which is either explained or done.

An act is a function that yields its stages. So each is planned when those before it are done, under the locks under
which it is done, and a dry run plans it by the same lines. Killed, the act is planned again, by what is there then.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """One thing that an act does: a name, and lines that say what it will do, with its numbers.

    ``run`` does it, and returns lines on what was done; None if those before say it. By default there is nothing to do.
    """

    name: str
    lines: Sequence[str]
    run: Callable[[], Sequence[str] | None] = lambda: None


Stages = Generator[Stage, None, None]


def explain(stages: Stages) -> list[str]:
    """What the stages would do, of which none is done."""
    with closing(stages):
        return [line for stage in stages for line in stage.lines]


def evaluate(stages: Stages, details: dict[str, str]) -> list[str]:
    """Do the stages, one after the other; returns what was done. ``details`` says which has not ended, if one fails."""
    lines: list[str] = []
    with closing(stages):
        for stage in stages:
            details["stage"] = stage.name
            done = stage.run()
            lines += stage.lines if done is None else done
            del details["stage"]
    return lines
