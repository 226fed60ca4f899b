"""Which query of a stream may write: that of its newest start. Looked at in each micro-batch; see docs/adr/0019."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame

from include.errors import ClickmillError
from spark_jobs.engine.steps import marked

#: What is done with each micro-batch: its rows and its number.
BatchWork = Callable[[DataFrame, int], None]
#: What the error of a query says that has been overtaken.
OVERTAKEN = "was started again since this query was"


@dataclass(frozen=True)
class Fence:
    """The fencing token of a checkpoint's newest start: a query that was given an older one may no longer write."""

    file: Path
    token: str
    #: All that the work on micro-batches asks of its session has it: Spark ends a query, and not what Python asked for.
    tag: str

    def require_newest(self) -> None:
        """See that the checkpoint was not taken over.

        Raises:
            ClickmillError: if it was, or was removed.
        """
        try:
            newest = self.file.read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            raise ClickmillError(
                f"the checkpoint {self.file.parent} was removed while its stream ran; start the stream again"
            ) from None
        if newest != self.token:
            raise ClickmillError(f"the stream of {self.file.parent} {OVERTAKEN}, which ends")


@dataclass(frozen=True)
class FencedWork:
    """The work on micro-batches, as long as nobody has started the stream again.

    Spark stops a checkpoint's query when it is started again, but not one that it has lost sight of, nor one that a
    killed process has asked for and that starts only now: without this, such a one would write beside the new one.
    """

    work: BatchWork
    fence: Fence

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Do the work.

        Raises:
            ClickmillError: if the stream was started again; what then fails it fails for that.
        """
        self.fence.require_newest()
        try:
            with marked(rows.sparkSession, self.fence.tag):
                self.work(rows, batch_id)
        except Exception:
            self.fence.require_newest()
            raise
