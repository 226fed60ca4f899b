"""Who holds which lock of the data, and who waits for one.

Where locks are files, those of streams and receivers are left out: `clickmill status` and the DAG clicks_stream show
them.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from include.locks import locks_of
from ops.home import Home

#: Why somebody holds a lock, by how its name begins.
_REASONS = {
    "lake": "a job works on the lake",
    "write-": "one table is written, made or completed",
    "land-": "logs of a source are landed",
    "spark-server": "the lake's Spark server runs",
    "stream-": "a stream runs",
    "receiver-": "a source's lines are received",
}


def lock_lines(home: Home) -> list[str]:
    """A line a lock that is held, and below it one for each that waits for it."""
    locks = locks_of(home)
    holders, waiters = locks.holders(), locks.waiters()
    lines = []
    for holder in holders:
        lines.append(f"{holder.name}: {_reason(holder.name)}: {holder}")
        lines += [f"{waiter.name}: waits: {waiter}" for waiter in waiters if waiter.name == holder.name]
    return lines or [f"nobody holds a lock of {home.data}"]


def lock_values(home: Home) -> list[dict[str, Any]]:
    """The same, for a program."""
    locks = locks_of(home)
    return [
        {"lock": owner.name, "holds": holds, "reason": _reason(owner.name)} | asdict(owner)
        for holds, owners in ((True, locks.holders()), (False, locks.waiters()))
        for owner in owners
    ]


def _reason(lock: str) -> str:
    return next((why for start, why in _REASONS.items() if lock.startswith(start)), "")
