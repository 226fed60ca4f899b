"""Panics of Rust's threads beside the error that a write raises, as delta-rs prints them."""

from __future__ import annotations

import os
from threading import Barrier, Thread

import pytest

from spark_jobs.lake.panics import panics_left_out

PANIC = (
    b"\nthread 'tokio-rt-worker' (2360) panicked at object_store/src/buffered.rs:369:41:\nAlready shut down\n"
    b"stack backtrace:\n   0: rust_begin_unwind\nnote: Some details are omitted, run with `RUST_BACKTRACE=full`\n"
)


def test_of_writes_at_the_same_time_all_panics_are_left_out_and_nothing_else(
    capfd: pytest.CaptureFixture[str],
) -> None:
    together = Barrier(3)

    def write(number: int) -> None:
        with panics_left_out():
            together.wait()
            os.write(2, f"said {number}\n".encode())
        # The first that ends leaves the others covered.
        if number == 0:
            ended.wait()

    ended = Barrier(2)

    def write_longest() -> None:
        with panics_left_out():
            together.wait()
            ended.wait()
            os.write(2, PANIC + b"said 2\n")

    threads = [Thread(target=write, args=(0,)), Thread(target=write, args=(1,)), Thread(target=write_longest)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.write(2, b"after\n")
    lines = capfd.readouterr().err.splitlines()
    assert sorted(lines[:-1]) == ["said 0", "said 1", "said 2"]
    assert lines[-1] == "after"
