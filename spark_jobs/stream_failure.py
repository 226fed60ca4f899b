"""Why a stream failed, in one line: Spark tells it over hundreds, the reason somewhere among them."""

from __future__ import annotations

import re

from include.sources import KafkaTopic

_LOST = re.compile(r"data may have been (?:lost|missed)")
_UNREAD = re.compile(r"(?:Could not read records in offset|Partition \S+ offset was changed|Reason:) .*")
_RAISED = re.compile(r"Traceback \(most recent call last\):\n(?:\s.*\n)*(?:\w+\.)*(\S.*)")
_CAUSE = re.compile(r"^Caused by: (.+)$", re.MULTILINE)
_SQL_STATE = re.compile(r"\s*SQLSTATE: \w+")


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
    first = (reason.strip().splitlines() or [""])[0]
    what = _SQL_STATE.sub("", raised[-1] if raised else first.rpartition("terminated with exception: ")[2])
    if causes and causes[-1] not in what:
        return f"{what} ({_SQL_STATE.sub('', causes[-1])})"
    return what
