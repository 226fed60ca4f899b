"""How the benchmarks time, and where they print."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console

console = Console(width=100)


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
