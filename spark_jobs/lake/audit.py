"""The audit: who had what done, why, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from include.errors import ClickmillError
from include.job_arguments import require_signed
from include.tables import AUDIT
from spark_jobs.engine.run_ids import new_run_id
from spark_jobs.lake.lake import Lake

#: Each event adds a file; when there are so many they are made one.
MOST_FILES = 100


@contextmanager
def audited(lake: Lake, act: str, subject: str, by: str, because: str) -> Iterator[dict[str, str]]:
    """Put an act on record, before it is done and after; what is put into the yielded details goes there too.

    Neither ``subject`` nor the details, nor an error's text, may name a visitor or an address: the record stays.

    Raises:
        UsageError: if nobody or no reason is named; then nothing is on record.
    """
    require_signed(by, because)
    lake.compact(AUDIT, above_files=MOST_FILES)
    begun = datetime.now(UTC)
    act_of = {
        "audit_id": new_run_id(begun),
        "act": act,
        "subject": subject,
        "actor": by.strip(),
        "because": because.strip(),
    }

    def say(event: str, details: dict[str, str]) -> None:
        lake.append_rows(AUDIT, [{**act_of, "at": datetime.now(UTC), "event": event, "details": details}])

    say("begun", {})
    details: dict[str, str] = {}
    try:
        yield details
    except Exception as error:
        # Another's error may have a line of a log in it.
        said = str(error) if isinstance(error, ClickmillError) else "see the log"
        say("failed", details | {"error": f"{type(error).__name__}: {said}"})
        raise
    say("completed", details)
