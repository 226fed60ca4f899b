"""Writes the journal: events of what jobs do, and of what a person has done, from its first word to its last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from include.errors import ClickmillError
from include.job_arguments import require_signed
from include.journal import ACT, BEGUN, CLICK_HOUR, COMPLETED, FAILED, Act, journal_row
from include.quality_index import catch_up_if_possible
from include.tables import JOURNAL
from spark_jobs.engine.run_ids import new_run_id
from spark_jobs.lake.lake import Lake


def new_act(name: str) -> Act:
    """What a job begins to do now."""
    return Act(new_run_id(datetime.now(UTC)), name)


def append_events(lake: Lake, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows in one commit, as ``Lake.append_rows``; and bring the index of the pages up to it. None adds nothing."""
    if not rows:
        return
    lake.append_rows(JOURNAL, rows)
    if any(row["kind"] == CLICK_HOUR for row in rows):
        catch_up_if_possible(lake.settings)


@dataclass
class SignedAct:
    """What a person has asked for, while it is done. Who asked, and why, its end says only if no event has it.

    ``subject`` is what was asked for; ``details``, what was done, go into its last event.
    """

    lake: Lake
    act: Act
    subject: str
    details: dict[str, str] = field(default_factory=dict)
    is_dry_run: bool = False
    _is_on_record: bool = False

    def decide(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append events that say who decided, and why."""
        append_events(self.lake, rows)
        self._is_on_record = self._is_on_record or bool(rows)

    def begin(self) -> None:
        """Say that it begins, where no other event does."""
        self.say(BEGUN, {})

    def say(self, event: str, details: Mapping[str, str]) -> None:
        """Append an event of the act itself."""
        actor, because = (None, None) if self._is_on_record else (self.act.actor, self.act.because)
        now = datetime.now(UTC)
        self.decide(
            [journal_row(self.act, ACT, self.subject, event, now, actor=actor, because=because, details=details)]
        )


@contextmanager
def signed_act(
    lake: Lake, name: str, subject: str, by: str, because: str, *, is_dry_run: bool = False
) -> Iterator[SignedAct]:
    """Put on the journal that an act was completed, or failed; what it does says so before, by ``decide`` or ``begin``.

    Of a dry run nothing is. Neither ``subject`` nor the details, nor an error's text, may name a visitor or an address:
    the record stays.

    Raises:
        UsageError: if nobody or no reason is named; then nothing is on record.
    """
    require_signed(by, because)
    act = Act(new_run_id(datetime.now(UTC)), name, by.strip(), because.strip())
    signed = SignedAct(lake, act, subject, is_dry_run=is_dry_run)
    if is_dry_run:
        yield signed
        return
    try:
        yield signed
    except Exception as error:
        # Another's error may have a line of a log in it.
        text = str(error) if isinstance(error, ClickmillError) else "see the log"
        signed.say(FAILED, signed.details | {"error": f"{type(error).__name__}: {text}"})
        raise
    signed.say(COMPLETED, signed.details)
