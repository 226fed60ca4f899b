"""Who holds which lock of the data, and who waits for one: `python -m ops.locks`.

One line a lock that is held: its name, what runs, on which host as which process, and since when; below it one line for
each that waits for it, in the order of their turns. Where locks are
files, those of streams and receivers are left out: `make status` and the DAG clicks_stream tell of them.
"""

from __future__ import annotations

import argparse

from include.command import exit_with
from include.locks import locks_of
from ops.home import find_home

#: Why somebody holds a lock, by how its name begins.
_REASONS = {
    "lake": "a job works on the lake",
    "write-": "one table is written, made or completed",
    "land-": "logs of a source are landed",
    "spark-server": "the lake's Spark server runs",
    "stream-": "a stream runs",
    "receiver-": "a source's lines are received",
}


def main() -> None:
    """Run from the command line."""
    argparse.ArgumentParser(prog="ops.locks", description=str(__doc__).partition("\n")[0]).parse_args()
    home = find_home()
    locks = locks_of(home)
    holders, waiters = locks.holders(), locks.waiters()
    for holder in holders:
        reason = next((why for start, why in _REASONS.items() if holder.name.startswith(start)), "")
        print(f"{holder.name}: {reason}: {holder}")
        for waiter in waiters:
            if waiter.name == holder.name:
                print(f"{waiter.name}: waits: {waiter}")
    if not holders:
        print(f"nobody holds a lock of {home.data}")


if __name__ == "__main__":
    exit_with(main, "locks")
