"""A stream's process is asked to end by one signal, and ended by a second one."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from include.settings import REPOSITORY

PROGRAM = """
import time
from spark_jobs.stream.end_request import EndRequest
asked_to_end = EndRequest()
asked_to_end.listen()
print("listens", flush=True)
while not asked_to_end.made:
    time.sleep(0.01)
print("goes on", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_is_noted_and_the_second_ends_the_process(ending: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], cwd=REPOSITORY, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "listens\n"
            process.send_signal(ending)
            assert process.stdout.readline() == "goes on\n"
            process.send_signal(ending)
            assert process.wait(30) == -ending
            assert process.stderr is not None
            assert process.stderr.read() == "asked to end; a second signal ends this at once\n"
        finally:
            process.kill()
