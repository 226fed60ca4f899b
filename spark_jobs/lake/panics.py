"""What threads of delta-rs print when a write has failed: noise beside the error that the write raises."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_PANIC = re.compile(
    rb"\n?thread '[^']*' (\(\d+\) )?panicked at [^\n]*\n[^\n]*\n(stack backtrace:\n([ \t]+[^\n]*\n)*)?(note: [^\n]*\n)?"
)


@contextmanager
def panics_left_out() -> Iterator[None]:
    """Leave their panics out of stderr, where all else comes after the write; of writes at the same time the last."""
    _stderr.divert()
    try:
        yield
    finally:
        _stderr.give_back()


class _Stderr:
    """The one of the process: in memory, because a disk may be full, while any write goes on."""

    def __init__(self) -> None:
        self._lock, self._writes = Lock(), 0
        self._kept = self._real = -1

    def divert(self) -> None:
        with self._lock:
            self._writes += 1
            if self._writes == 1:
                sys.stderr.flush()
                self._real, self._kept = os.dup(2), os.memfd_create("stderr")
                os.dup2(self._kept, 2)

    def give_back(self) -> None:
        with self._lock:
            self._writes -= 1
            if self._writes == 0:
                sys.stderr.flush()
                os.dup2(self._real, 2)
                os.close(self._real)
                with os.fdopen(self._kept, "r+b") as kept:
                    kept.seek(0)
                    os.write(2, _PANIC.sub(b"", kept.read()))


_stderr = _Stderr()
