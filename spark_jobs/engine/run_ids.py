"""Names for what is done once: a run of a job, a replay, an erasure, an act of the journal."""

from __future__ import annotations

from datetime import datetime
from uuid import uuid4


def new_run_id(now: datetime) -> str:
    """A name that nothing else has; names are in the order of time."""
    return f"{now:%Y%m%dT%H%M%S}-{uuid4().hex[:8]}"
