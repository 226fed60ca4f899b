"""Waiting for what another process or thread does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def wait_until(look: Callable[[], Found], condition: str, seconds: float = 420) -> Found:
    """Look until something true is found, soon at first, then twice a second; return it.

    Raises:
        AssertionError: if nothing is found in so many seconds; or what ``look`` raises.
    """
    deadline, pause = time.monotonic() + seconds, 0.02
    while not (result := look()):
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {condition}"
        time.sleep(pause)
        pause = min(1.5 * pause, 0.5)
    return result
