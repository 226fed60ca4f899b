"""What a fault is that the tests plant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from include.hours import Hour
from tests.support.temporary_lake import TemporaryLake

Lines = list[bytes]


@dataclass(frozen=True)
class Fault:
    """One fault: what it is, the check that must fail, and those that cannot but fail with it.

    Checks are named ``suite.name``. It is either in what lands (``lines`` in place of an hour's, ``is_closed``,
    ``files``, how many, and a ``folder`` beside it), or planted afterwards, by ``plant``, in the lake and that hour.
    ``observed`` is a part of what the check says that it found.
    """

    description: str
    severity: str
    check: str
    observed: str
    also: tuple[str, ...] = ()
    lines: Callable[[Hour], Lines] | None = None
    is_closed: bool = True
    files: int = 1
    folder: str | None = None
    plant: Callable[[TemporaryLake, Hour], None] | None = None
    has_examples: bool = False
