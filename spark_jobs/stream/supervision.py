"""A stream that goes on by itself: what is done when it gives no sign of life."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socket import gethostname

import psutil
from filelock import FileLock, Timeout

from include.errors import ClickmillError
from include.home import REPOSITORY
from include.settings import Settings
from include.sources import choose_sources
from include.streams.signs_of_life import SignOfLife, sign_of_life
from spark_jobs.stream.compatibility import require_fit

#: A stream says that it lives every second; after so long without one it counts as hung.
HUNG_AFTER = timedelta(minutes=2)
#: How long a stream is given to begin, and to end, in seconds.
PATIENCE = 120.0


def lock_file(settings: Settings, source: str) -> Path:
    """Whoever works on the source's checkpoint holds this lock."""
    return settings.locks / f"stream-{source}.lock"


def supervise(settings: Settings, source: str, *, hung_after: timedelta = HUNG_AFTER) -> str:
    """See to it that the source's stream runs: start it when nobody does, end it first when it hangs.

    Returns what was found and done, in a line.

    Raises:
        UsageError: if its checkpoint was made for something else; a stream that cannot go on is not started.
        ClickmillError: if it does not start, with the last lines of its log; or hangs on another machine.
    """
    last = sign_of_life(settings, source)
    if _is_owned(settings, source):
        if last is not None and datetime.now(UTC) - last.at <= hung_after:
            lag = "not known" if last.lag is None else f"{last.lag:,} records"
            return f"the stream of {source} runs (process {last.pid}), not yet read: {lag}"
        finding = (
            f"hung (process {last.pid}, last heard of at {last.at:%H:%M:%S}) and was ended" if last else "was silent"
        )
        if last is not None:
            _kill(last, source)
    else:
        finding = "did not run"
    (declared,) = choose_sources(settings, source)
    require_fit(settings, declared)
    return f"the stream of {source} {finding}; restarted as process {_start(settings, source)}"


def _start(settings: Settings, source: str) -> int:
    """Start the stream as a process that outlives this one, and wait for its first sign of life."""
    log = settings.logs / f"stream-{source}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    begun = datetime.now(UTC)
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "clickmill", "stream", "--source", source],
            cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            env=os.environ | {"CLICKMILL_HOME": str(settings.home), "CLICKMILL_DATA": str(settings.data)},
        )  # fmt: skip
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        alive = sign_of_life(settings, source)
        if alive is not None and alive.pid == process.pid and alive.at > begun:
            return process.pid
        time.sleep(0.2)
    process.kill()
    last_lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
    raise ClickmillError(f"the stream of {source} did not start; the end of {log}: {' / '.join(last_lines)}")


def _is_owned(settings: Settings, source: str) -> bool:
    lock_file(settings, source).parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(lock_file(settings, source), timeout=0):
            return False
    except Timeout:
        return True


def _kill(last: SignOfLife, source: str) -> None:
    """End a stream's process for good; one that has got the number since is left alone."""
    if last.host != gethostname():
        raise ClickmillError(f"the stream of {source} hangs on another machine: end process {last.pid} on {last.host}")
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(last.pid)
        if {"clickmill", "stream"} <= {Path(word).name for word in process.cmdline()}:
            process.kill()
            process.wait(PATIENCE)
