"""Errors that a person can act on: what, which value, what was expected, what to do next.

Standard library only: set-up raises them before anything is installed.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterator
from shutil import disk_usage

from include.home import home_path


class ClickmillError(Exception):
    """A run failed for a reason that can be said in one line; exit code 1."""

    exit_code = 1
    #: What the line begins with.
    kind = "failed"


class UsageError(ClickmillError):
    """Arguments, configuration or the machine are not as they must be, found before any work; exit code 2."""

    exit_code = 2
    kind = "wrong arguments"


class EndedByHandError(ClickmillError):
    """Somebody has ended it, by Ctrl-C; exit code 130, as a shell gives it."""

    exit_code = 130
    kind = "interrupted"


class FinalError(ClickmillError):
    """A run would fail in the same way again, until a person has done something; exit code 1."""


class MissingLandingError(FinalError):
    """No landing partition where one was expected."""


class QualityError(ClickmillError):
    """A critical check failed: what it touches is held; exit code 3."""

    exit_code = 3


class LeftOutError(ClickmillError):
    """Some of the files that were given were left out, and all others are done; exit code 4."""

    exit_code = 4
    kind = "left out"


class NotALogError(ClickmillError):
    """A file cannot be landed; others can."""


class NotHeldError(ClickmillError):
    """A person decided on a click hour that is not held."""


class DecidedAlreadyError(FinalError):
    """A person decided on a backfill on which there is nothing to decide any more."""


class StreamRunsAlreadyError(ClickmillError):
    """Two streams on one checkpoint would each undo what the other does."""


class LockHeldError(ClickmillError):
    """Another process has the lock, and kept it for as long as was waited."""


class LockLostError(ClickmillError):
    """The lock's connection broke, and with it the lock: another job may have it."""


class SparkGoneError(ClickmillError):
    """The Spark server was ended or started again while a job used it, and with it the job's session."""


class DiskFullError(ClickmillError):
    """Nothing more can be written: a disk or a quota is full."""


class TooLargeError(ClickmillError):
    """Spark has refused, or was killed for, the size of something."""


#: Conditions of Spark Connect by which a server says that it is another one than that of the session.
_OF_ANOTHER_SERVER = (
    "NO_ACTIVE_SESSION",
    "INVALID_HANDLE.SESSION_CHANGED",
    "INVALID_HANDLE.SESSION_CLOSED",
    "INVALID_HANDLE.SESSION_NOT_FOUND",
    "INVALID_HANDLE.OPERATION_NOT_FOUND",
    "INVALID_HANDLE.OPERATION_ABANDONED",
    "RESPONSE_ALREADY_RECEIVED",
)
#: What Spark, its client or py4j say where there is no condition.
_ENDED = (
    "StatusCode.UNAVAILABLE",
    "incorrect server side session identifier",
    "SparkContext was shut down",
    "stopped SparkContext",
    "Answer from Java side is empty",
)
#: What the system, Spark, delta-rs, Arrow, DuckDB, SQLite and PostgreSQL say.
_FULL = ("No space left on device", "Disk quota exceeded", "database or disk is full", "Out of disk space")
_FEWER_HOURS = "run fewer hours at once (backfill --chunk)"
_MORE_MEMORY = "CLICKMILL_SPARK_DRIVER_MEMORY (on a cluster of executors CLICKMILL_SPARK_EXECUTOR_MEMORY) gives it more"
#: What Spark says of sizes, and what that means, of which {} is what it says.
_TOO_LARGE = (
    (
        re.compile(
            r"Total size of serialized results of [^\n]*? is bigger than spark\.driver\.maxResultSize \([^)\n]*\)"
        ),
        f"results are too large to be given back by Spark ({{}}): {_FEWER_HOURS}, or set spark.driver.maxResultSize in "
        "config/spark-defaults.conf, and CLICKMILL_SPARK_DRIVER_MEMORY with it",
    ),
    (
        re.compile(
            r"Requested array size exceeds VM limit|Cannot create array with[^\n]*|Cannot grow BufferHolder[^\n]*"
            r"|Kryo serialization failed[^\n]*|TOO_LARGE_PAGE[^\n]*|Received message larger than max[^\n]*"
            r"|COLLECTION_SIZE_LIMIT_EXCEEDED[^\n]*|Cannot broadcast the table[^\n]*"
        ),
        "one row, or what is put together in one, is too large for Spark ({}): no setting allows more; refuse lines "
        "that are so long by max_line_bytes of the source, or take fewer hours, or keys, together",
    ),
    (
        re.compile(
            r"java\.lang\.OutOfMemoryError: (?:Java heap space|GC overhead limit exceeded)"
            r"|UNABLE_TO_ACQUIRE_MEMORY[^\n]*|Not enough memory to build and broadcast[^\n]*|exited with code 52\b"
        ),
        f"what Spark has in memory at once is too large for Java's heap ({{}}): {_MORE_MEMORY}; or {_FEWER_HOURS}",
    ),
    (
        re.compile(r"Python worker exited unexpectedly[^\n]*"),
        "a Python worker of Spark's was killed, mostly because the machine has no memory left ({}): give it more, or "
        "Spark fewer cores by CLICKMILL_SPARK_MASTER=local[1], of which each has such a worker",
    ),
    (
        re.compile(r"ExecutorLostFailure \([^\n]*"),
        "an executor of Spark's was lost, killed for its memory or with its machine ({}): see the worker's log; if it "
        "was memory, give the machine more, or less to CLICKMILL_SPARK_EXECUTOR_MEMORY, beside which Python needs some",
    ),
)
#: A disk with less room than that is one that is full.
_LEAST_FREE = 1 << 20
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def in_one_line(error: BaseException) -> ClickmillError | None:
    """What a person can do about an error, wherever it was raised; None: it is a fault of the program.

    A full disk, what is too large for Spark, and a Spark server that has gone are named as such, also where somebody
    has taken them for another error, such as files that cannot be read.
    """
    if isinstance(error, (SparkGoneError, DiskFullError, TooLargeError)):
        return error
    chain = list(_chain(error))
    for cause in chain:
        if message := _full_disk_message(cause):
            return DiskFullError(
                f"a disk is full{_where()}: {message}; make room and run it again: "
                "what is half written counts for nothing"
            )
    for cause in chain:
        if message := _size_message(cause):
            return TooLargeError(f"{message}; what is half written counts for nothing")
    if any(_is_spark_gone(cause) for cause in chain):
        return SparkGoneError(
            "the Spark server was ended or started again meanwhile, and with it this job's session; "
            "run it again: what is half written counts for nothing"
        )
    return error if isinstance(error, ClickmillError) else None


def is_unanswered(error: BaseException) -> bool:
    """Whether it is gRPC's, or Spark's of gRPC's, that no server answers."""
    code = getattr(error, "getGrpcStatusCode", getattr(error, "code", None))
    return callable(code) and getattr(code(), "name", "") == "UNAVAILABLE"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error, and what it was raised from or while."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _full_disk_message(error: BaseException) -> str:
    """The words that say that a disk is full, and of which file; "" if there are none."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return " ".join(str(part) for part in (error.strerror, error.filename) if part)
    if isinstance(error, ClickmillError) or (type(error).__module__ == "builtins" and not isinstance(error, OSError)):
        return ""
    text = _COLOURS.sub("", str(error))
    if not any(full in text for full in _FULL):
        return ""
    lines = [line.strip(" \t↳") for line in text.partition("\nJVM stacktrace:")[0].splitlines()]
    return next(line for line in lines if any(full in line for full in _FULL))[:300]


def _size_message(error: BaseException) -> str:
    """What was too large for Spark, in its words and in ours; "" if nothing was."""
    if not _is_of_spark(error):
        return ""
    text = _COLOURS.sub("", str(error))
    for expression, meaning in _TOO_LARGE:
        if match := expression.search(text):
            return meaning.format(match[0].strip()[:200])
    return ""


def _is_of_spark(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] in ("pyspark", "grpc", "py4j")


def _where() -> str:
    """Which of the folders that are written to are on a full disk, as far as that can be seen now."""
    folders = {str(home_path(os.environ)), os.environ.get("CLICKMILL_DATA") or "", tempfile.gettempdir()}
    full = [folder for folder in sorted(folders) if os.path.isdir(folder) and disk_usage(folder).free < _LEAST_FREE]
    return f" ({', '.join(full)})" if full else ""


def _is_spark_gone(error: BaseException) -> bool:
    if not _is_of_spark(error):
        return False
    condition = getattr(error, "getCondition", lambda: None)()
    if condition in _OF_ANOTHER_SERVER:
        return True
    return is_unanswered(error) or any(words in str(error) for words in _ENDED)
