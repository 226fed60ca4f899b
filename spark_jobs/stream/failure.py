"""Why a stream failed, in one line: Spark says it in hundreds, the reason somewhere among them."""

from __future__ import annotations

import re
from collections.abc import Callable

from spark_jobs.engine.worker_tasks import BEFORE_RAISED
from spark_jobs.stream.fence import OVERTAKEN

_RAISED = re.compile(rf"{BEFORE_RAISED}(?:\w+\.)*(?:ClickmillError: )?(\S.*)")
_CAUSE = re.compile(r"^Caused by: (.+)$", re.MULTILINE)
#: Spark's names for what a checkpoint has and the query has not, or the other way round.
_OTHER_STATE = re.compile(
    r"\[(STREAMING_STATEFUL_OPERATOR_(?:NOT_MATCH_IN_STATE_METADATA|MISSING_STATE_DIRECTORY)"
    r"|(?:CANNOT_LOAD_STATE_STORE\.|STATE_STORE_)(?:KEY|VALUE)_(?:SCHEMA_NOT_COMPATIBLE|ROW_FORMAT_VALIDATION_FAILURE)"
    r"|STATE_STORE_INVALID_CONFIG_AFTER_RESTART"
    r"|DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE)\]"
    r" ([\s\S]*?)(?=\s*SQLSTATE: |\n\tat |\nJVM |\s*\Z)"
)
_SQL_STATE = re.compile(r"\s*SQLSTATE: \w+")
#: Another query has written the checkpoint's next entry, or has taken the checkpoint over.
_ANOTHER_START = ("[CONCURRENT_STREAM_LOG_UPDATE]", OVERTAKEN)


def is_of_another_start(message: str) -> bool:
    """Whether the query failed because another start of it works on its checkpoint, or did."""
    reason = _reason_of(message)
    return any(sign in reason for sign in _ANOTHER_START)


def is_of_other_state(message: str) -> bool:
    """Whether Spark refuses the checkpoint for what is in it: the same again would fail again."""
    return _OTHER_STATE.search(_reason_of(message)) is not None


def failure_of(message: str, explained: Callable[[str], str | None]) -> str:
    """The reason in a failed query's exception; ``explained`` is its input's, ``FilesInput`` or ``TopicInput``.

    An error of the batch's Python comes inside another one, and has the JVM's causes at its own end.
    """
    reason = _reason_of(message)
    if explanation := explained(reason):
        return explanation
    raised, causes = _RAISED.findall(reason), _CAUSE.findall(reason)
    if other := _OTHER_STATE.search(reason):
        difference = " ".join(other[2].split())
        return f"Spark refuses the checkpoint, its state is of another query ({other[1]}: {difference})"
    first = (reason.strip().splitlines() or [""])[0]
    message_of_error = _SQL_STATE.sub("", raised[-1] if raised else first.rpartition("terminated with exception: ")[2])
    if causes and causes[-1] not in message_of_error:
        return f"{message_of_error} ({_SQL_STATE.sub('', causes[-1])})"
    return message_of_error


def _reason_of(message: str) -> str:
    """What comes before the query itself, with its plan."""
    return message.partition("=== Streaming Query ===")[0]
