"""One Spark driver a lake, on whatever machine: of two, Delta would lose commits without an error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from include.errors import ClickmillError, LockHeldError, LockLostError, UsageError
from include.home import HomeFolders
from include.locks import Held, locks_of

#: How long the next one waits for one that was killed: its JVM is gone, the process that started it not yet.
PATIENCE_SECONDS = 20
#: How often it looks whether its lock is held still: another one takes longer to start.
LOOK_SECONDS = 3


@contextmanager
def the_only_spark(home: HomeFolders) -> Iterator[Held]:
    """Be the only Spark driver of the home's lake, on any machine that shares it, until the end.

    Raises:
        ClickmillError: if the lake has one.
    """
    try:
        with locks_of(home).held("spark-server", PATIENCE_SECONDS) as lock:
            yield lock
    except LockHeldError as error:
        raise ClickmillError(
            f"the lake {home.lake} has a Spark driver already: {error}; of two, Delta would lose commits. "
            "Wait for that one, or end it; jobs that are not run by spark-submit use the lake's Spark Connect server"
        ) from None


def halt_without(lock: Held, jvm: Any) -> None:
    """End the driver's JVM if its lock is lost: sooner than another one that has the lock now can write.

    Raises:
        Py4JError: of a JVM that ends, or has ended.
    """
    try:
        lock.require()
    except LockLostError as error:
        # Said first: the JVM prints it.
        print(f"failed: {error}", file=sys.stderr, flush=True)
        time.sleep(0.2)
        jvm.java.lang.Runtime.getRuntime().halt(1)


def require_safe_commits(setting: Callable[[str], str | None]) -> None:
    """See to it that Spark puts no object over another: Delta's commits would be lost without an error.

    Raises:
        UsageError: if Hadoop's settings for S3 say that it does.
    """
    flags = {flag.strip() for flag in (setting("fs.s3a.performance.flags") or "").lower().split(",")}
    for name, is_unsafe in (
        ("fs.s3a.performance.flags", bool(flags & {"create", "*"})),
        ("fs.s3a.create.performance", (setting("fs.s3a.create.performance") or "").lower() == "true"),
    ):
        if is_unsafe:
            raise UsageError(
                f"{name} is {setting(name)}: with it Spark overwrites commits of Delta's, and loses them without an "
                "error; expected none of 'create'; take it out of config/spark-defaults.conf"
            )
