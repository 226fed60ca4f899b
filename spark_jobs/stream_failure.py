"""Why a stream failed, in one line: Spark tells it over hundreds, the reason somewhere among them."""

from __future__ import annotations

import re

from include.sources import KafkaTopic

_LOST = re.compile(r"data may have been (?:lost|missed)")
_UNREAD = re.compile(r"(?:Could not read records in offset|Partition \S+ offset was changed|Reason:) .*")
_RAISED = re.compile(r"Traceback \(most recent call last\):\n(?:\s.*\n)*(?:\w+\.)*(\S.*)")
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


def is_of_other_state(told: str) -> bool:
    """Whether Spark refuses the checkpoint for what is in it: the same again would fail again."""
    return _OTHER_STATE.search(told.partition("=== Streaming Query ===")[0]) is not None


def failure_of(told: str, topic: KafkaTopic) -> str:
    """The reason in what a failed query's exception tells.

    An error of the batch's Python comes inside another one, and has the JVM's causes at its own end.
    """
    reason = told.partition("=== Streaming Query ===")[0]
    if _LOST.search(reason):
        found = _UNREAD.search(reason)
        return (
            f"records of topic {topic.topic} were removed before they were read ({found[0] if found else 'not said'}); "
            "they are lost: to go on without them, set fail_on_data_loss = false in the source's kafka table"
        )
    raised, causes = _RAISED.findall(reason), _CAUSE.findall(reason)
    if other := _OTHER_STATE.search(reason):
        said = " ".join(other[2].split())
        return f"Spark refuses the checkpoint, its state is of another query ({other[1]}: {said})"
    first = (reason.strip().splitlines() or [""])[0]
    what = _SQL_STATE.sub("", raised[-1] if raised else first.rpartition("terminated with exception: ")[2])
    if causes and causes[-1] not in what:
        return f"{what} ({_SQL_STATE.sub('', causes[-1])})"
    return what
