"""Which quarantined lines a replay recovers: put on record before they are, and told by log hour and reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.hours import Hour, log_hours_predicate
from include.tables import QUARANTINED_CLICKS, REPLAY_OUTCOMES, REPLAYED_LINES
from include.texts import as_literal
from spark_jobs.hours.replays import AskedReplay
from spark_jobs.ingest.decided_clicks import PLACE, DecidedClicks, decided_lines
from spark_jobs.lake.data_files import has_log_hours
from spark_jobs.lake.lake import Lake
from spark_jobs.lines.kept import LEFT_OUT
from spark_jobs.replay.withdrawals import counted_by_outcome

#: What is kept of a line that is recovered.
_KEPT = ("reason", "raw", "bytes", "digest")
CLICK, DUPLICATE, STAYS, BESIDE, LEFT_OUT_NOW = "clicks", "duplicates", "stay", "beside", "left out"
_RECOVERED = [CLICK, DUPLICATE]


@dataclass(frozen=True)
class Recovered:
    """The quarantined lines of log hours: their place, ``reason``, and what becomes of them, ``outcome``.

    ``counts`` are how many of each outcome, by log hour and reason. ``BESIDE`` are clicks by today's mapping whose
    reason was not asked for: the landing zone's lines are parsed as one. ``LEFT_OUT_NOW`` are those that one of today's
    rules leaves out.
    """

    asked: AskedReplay
    hours: Sequence[Hour]
    lines: DataFrame
    counts: Mapping[tuple[Hour, str], Counter[str]]

    @property
    def total(self) -> int:
        """How many the replay recovers."""
        return sum(counts[outcome] for counts in self.counts.values() for outcome in _RECOVERED)

    def _is_asked(self, reason: str) -> bool:
        return not self.asked.reasons or reason in self.asked.reasons

    def write(self, lake: Lake) -> None:
        """Put the lines that are recovered on record, beside those of other replays."""
        its = {"source": F.lit(self.asked.source), "replay_id": F.lit(self.asked.replay.id)}
        recovered = self.lines.where(F.col("outcome").isin(_RECOVERED)).withColumns(its)
        recorded = lake.read_log_hours(REPLAYED_LINES, self.asked.source, self.hours)
        of_others = recorded.where(F.col("replay_id") != self.asked.replay.id)
        rows = of_others.unionByName(recovered.select(*REPLAYED_LINES.column_names))
        lake.replace(REPLAYED_LINES, rows, has_log_hours(self.asked.source, self.hours))

    def write_outcomes(self, lake: Lake, *, is_dry_run: bool) -> None:
        """Keep what was found, for whoever looks at these log hours; in place of what was found there before."""
        now, replay_id = datetime.now(UTC), None if is_dry_run else self.asked.replay.id
        rows = [
            {
                "source": self.asked.source,
                "log_date": hour.day,
                "log_hour": hour.hour,
                "reason": reason,
                "clicks": counts[CLICK] + counts[BESIDE],
                "duplicates": counts[DUPLICATE],
                "stay": counts[STAYS],
                "replay_id": replay_id,
                "at": now,
            }
            for (hour, reason), counts in self.counts.items()
            if self._is_asked(reason)
        ]
        of_reasons = f" AND reason IN ({', '.join(map(as_literal, self.asked.reasons))})" if self.asked.reasons else ""
        predicate = f"{log_hours_predicate(self.asked.source, self.asked.log_hours)}{of_reasons}"
        lake.replace_rows(REPLAY_OUTCOMES, rows, predicate)

    def described(self) -> Iterator[str]:
        """A line for each log hour and reason."""
        for (hour, reason), counts in self.counts.items():
            if not self._is_asked(reason):
                beside = f"{counts[BESIDE]:,} are clicks by today's mapping all the same"
                yield f"  {hour} {reason}: not asked for, and {beside}"
            else:
                text = f"clicks {counts[CLICK]:,}, duplicates {counts[DUPLICATE]:,}, stay {counts[STAYS]:,}"
                left_out = f", left out {counts[LEFT_OUT_NOW]:,}" if counts[LEFT_OUT_NOW] else ""
                yield f"  {hour} {reason}: {text}{left_out}"


@contextmanager
def recovered_lines(
    lake: Lake, asked: AskedReplay, clicks: DecidedClicks, hours: Sequence[Hour]
) -> Iterator[Recovered]:
    """What becomes of the quarantined lines of these log hours, and of those that this replay has recovered already.

    They are staged until the end: they are counted, and then written.
    """
    columns = [*PLACE, "reason", "raw", "bytes"]
    recorded = lake.read_log_hours(REPLAYED_LINES, asked.source, hours).where(F.col("replay_id") == asked.replay.id)
    quarantined = lake.read_log_hours(QUARANTINED_CLICKS, asked.source, hours).select(*columns)
    # Of what it has recovered already, and is in no file any more, only the record has the digest.
    former = recorded.select(*columns, F.col("digest").alias("recorded_digest"))
    others = quarantined.join(former.select(*PLACE), PLACE, "left_anti")
    lines = former.unionByName(others.withColumn("recorded_digest", F.lit(None).cast("bigint")))
    is_left_out = F.col("reason").startswith(LEFT_OUT)
    now = decided_lines(clicks.arrivals.where(F.col("reason").isNull() | is_left_out), clicks.decided)
    is_its = F.col("replay_id").eqNullSafe(asked.replay.id).alias("is_its")
    parsed = now.select(*PLACE, is_its, "first_hour", "line_digest", is_left_out.alias("is_left_out"))
    outcome = (
        F.when(F.col("is_its").isNull(), STAYS)
        .when(F.col("is_left_out"), LEFT_OUT_NOW)
        .when(~F.col("is_its"), BESIDE)
        .when(F.col("first_hour").isNull(), CLICK)
        .otherwise(DUPLICATE)
    )
    rows = (
        lines.join(parsed, PLACE, "left")
        .withColumn("digest", F.coalesce("line_digest", "recorded_digest"))
        .select(*PLACE, *_KEPT, outcome.alias("outcome"))
    )
    if asked.reasons:
        rows = rows.where(F.col("reason").isin(list(asked.reasons)) | (F.col("outcome") == BESIDE))
    with lake.staged(rows, "recovered lines") as staged:
        counts = counted_by_outcome(staged.groupBy("log_date", "log_hour", "reason", "outcome"))
        yield Recovered(asked, hours, staged, counts)
