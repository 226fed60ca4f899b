"""Why a stream failed, in one line: Spark tells it over hundreds, the reason somewhere among them."""

from __future__ import annotations

import re
from collections.abc import Callable

_RAISED = re.compile(r"Traceback \(most recent call last\):\n(?:\s.*\n)*(?:\w+\.)*(\S.*)")
_CAUSE = re.compile(r"^Caused by: (.+)$", re.MULTILINE)
_SQL_STATE = re.compile(r"\s*SQLSTATE: \w+")


def failure_of(told: str, explained: Callable[[str], str | None]) -> str:
    """The reason in what a failed query's exception tells; ``explained`` is its input's, see ``StreamInput``.

    An error of the batch's Python comes inside another one, and has the JVM's causes at its own end.
    """
    reason = told.partition("=== Streaming Query ===")[0]
    if explanation := explained(reason):
        return explanation
    raised, causes = _RAISED.findall(reason), _CAUSE.findall(reason)
    first = (reason.strip().splitlines() or [""])[0]
    what = _SQL_STATE.sub("", raised[-1] if raised else first.rpartition("terminated with exception: ")[2])
    if causes and causes[-1] not in what:
        return f"{what} ({_SQL_STATE.sub('', causes[-1])})"
    return what
