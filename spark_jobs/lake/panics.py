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
#: The process has one stderr.
_writes = Lock()


@contextmanager
def panics_left_out() -> Iterator[None]:
    """Leave their panics out of stderr, where else comes after the write; of two at the same time only of one."""
    if not _writes.acquire(blocking=False):
        yield
        return
    try:
        # In memory: a disk may be full.
        with os.fdopen(os.memfd_create("stderr"), "w+b") as said:
            sys.stderr.flush()
            stderr = os.dup(2)
            os.dup2(said.fileno(), 2)
            try:
                yield
            finally:
                sys.stderr.flush()
                os.dup2(stderr, 2)
                said.seek(0)
                os.write(stderr, _PANIC.sub(b"", said.read()))
                os.close(stderr)
    finally:
        _writes.release()
