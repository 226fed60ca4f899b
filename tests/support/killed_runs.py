"""Jobs as a killed process leaves them: cut off after any of their commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from itertools import count
from typing import Any

import pytest

from include.tables import Table

#: The methods of ``Lake`` that change rows, in one commit each. What makes, completes or compacts a table is none.
_COMMITTING = ("replace_files", "exchange_files", "append", "append_rows", "replace_rows", "merge_click_hours")
#: Who does several commits at the same time.
_IN_PARALLEL = (
    "spark_jobs.aggregate.job",
    "spark_jobs.aggregate.days",
    "spark_jobs.publish.publish_hours",
    "spark_jobs.publish.publish_days",
    "spark_jobs.backfill.undo",
)


class Killed(BaseException):
    """The process is gone: locks end, as they do with a process, and nothing is committed any more."""


@contextmanager
def after_each_commit(then: Callable[[str], None], first: int = 0) -> Iterator[None]:
    """Call ``then`` with the table's name after each commit of the jobs until the end; it may raise ``Killed``.

    What is done at the same time is done one after the other here, beginning with the piece of number ``first``: with
    every ``first``, up to three commits are cut off in each way in which some have been made and others not.
    """
    from spark_jobs.lake.lake import Lake

    is_dead = False

    def committing(commit: Callable[..., None]) -> Callable[..., None]:
        def commit_and_tell(lake: Lake, table: Table, *arguments: Any, **options: Any) -> None:
            nonlocal is_dead
            if is_dead:
                raise Killed
            commit(lake, table, *arguments, **options)
            try:
                then(table.name)
            except Killed:
                is_dead = True
                raise

        return commit_and_tell

    def one_after_another(_: Any, *work: Callable[[], Any]) -> tuple[Any, ...]:
        order = [(number + first) % len(work) for number in range(len(work))]
        done = {number: work[number]() for number in order}
        return tuple(done[number] for number in range(len(work)))

    with pytest.MonkeyPatch.context() as patch:
        for name in _COMMITTING:
            patch.setattr(Lake, name, committing(getattr(Lake, name)))
        for module in _IN_PARALLEL:
            patch.setattr(import_module(module), "in_parallel", one_after_another)
        yield


def killed_after(commits: int | None, first: int = 0) -> AbstractContextManager[None]:
    """``after_each_commit`` that kills after so many; None: never."""
    numbers = count(1)

    def kill(_: str) -> None:
        if next(numbers) == commits:
            raise Killed

    return after_each_commit(kill, first)
