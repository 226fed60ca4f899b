"""What Spark says of a stream's micro-batches, as rows of ``stream_progress``."""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from pyspark.sql.streaming.query import StreamingQuery

from include.counting import CountKey
from include.hours import Hour
from include.tables import STREAM_PROGRESS
from spark_jobs.lake.lake import Lake
from spark_jobs.stream.files import LINES_READ
from spark_jobs.stream.id_folder import IdFolder
from spark_jobs.stream.live import OBSERVED

#: That of a source's clicks, or the key that is counted live.
QueryName = Literal["clicks"] | CountKey
#: With more files than this, the table is written as few.
MOST_FILES = 200
#: A micro-batch may take so many times as long as the longest of so many before it.
TIMES_AS_LONG, BATCHES_COMPARED = 10, 100
#: Before its first event, a query's watermark is 1970.
_NO_WATERMARK = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class ProgressLog:
    """The progress of one query, each micro-batch once."""

    source: str
    query: QueryName
    handle: StreamingQuery
    #: Of the query of its clicks: the ids that it knows, which are no state of Spark's.
    ids: IdFolder | None = None
    last_batch: int = -1
    #: Records that were not yet read when the last micro-batch began; none before it, of a table and of files.
    lag: int | None = None
    #: Whether the query has looked for more after its last micro-batch, and there was none.
    is_exhausted: bool = False
    #: When the query was last started again, because something else had ended it; by the monotonic clock.
    taken_back: list[float] = field(default_factory=list)
    #: How often it was started again because the micro-batch that is now under way hung.
    hung: int = 0
    #: How long the last micro-batches took, in seconds.
    took: deque[float] = field(default_factory=lambda: deque(maxlen=BATCHES_COMPARED))
    #: Until when it was seen to get on: it waited, or said something new; by the monotonic clock.
    got_on_at: float = field(default_factory=time.monotonic)
    _last_progress: str | None = None

    def new_rows(self) -> list[dict[str, Any]]:
        """Rows of the micro-batches that have ended since the last call."""
        rows = []
        last_progress = None
        self.is_exhausted = False
        for progress in self.handle.recentProgress:
            report = json.loads(progress.json)
            last_progress = progress.json
            self.is_exhausted = "addBatch" not in report["durationMs"]
            if report["batchId"] > self.last_batch and not self.is_exhausted:
                self.last_batch = report["batchId"]
                self.took.append(report["durationMs"]["triggerExecution"] / 1000)
                self.hung = 0
                batch_rows = progress_rows(self.source, self.query, report)
                if self.ids:
                    ids, size = self.ids.size()
                    batch_rows = [row | {"state_rows": ids, "state_bytes": size} for row in batch_rows]
                lags = [row["lag"] for row in batch_rows if "lag" in row]
                self.lag = sum(lags) if lags else None
                rows += batch_rows
        if last_progress != self._last_progress:
            self._last_progress, self.got_on_at = last_progress, time.monotonic()
        return rows

    def seconds_over_bound(self, least_bound: float) -> float | None:
        """How long its micro-batch is under way, if that is longer than any should take; ask for ``new_rows`` before.

        ``least_bound`` is in seconds.
        """
        now = time.monotonic()
        if not self.handle.status["isTriggerActive"]:
            self.got_on_at = now
        seconds = now - self.got_on_at
        return seconds if seconds > bound_of(self.took, least_bound) else None


def bound_of(took: Iterable[float], least_bound: float) -> float:
    """How long a micro-batch may take after these, in seconds, before it counts as hung."""
    return max(least_bound, TIMES_AS_LONG * max(took, default=0.0))


def progress_rows(source: str, query: str, report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row for each partition of the input; one with a null partition where the input is no topic.

    ``report`` is Spark's StreamingQueryProgress as JSON.
    """
    began_at = _moment(report["timestamp"])
    watermark = _moment(report.get("eventTime", {}).get("watermark", "1970-01-01T00:00:00Z"))
    states = report["stateOperators"]
    common = {
        "source": source,
        "query": query,
        "batch_id": report["batchId"],
        "began_at": began_at,
        "milliseconds": report["durationMs"],
        "watermark": watermark if watermark > _NO_WATERMARK else None,
        "watermark_delay": (began_at - watermark).total_seconds() if watermark > _NO_WATERMARK else None,
        "state_rows": sum(state["numRowsTotal"] for state in states),
        "state_bytes": sum(state["memoryUsedBytes"] for state in states),
    }
    seconds = report["durationMs"]["triggerExecution"] / 1000
    partitions = _partitions(report["sources"][0])
    rows = sum(partition["rows"] for partition in partitions) if partitions else _row_count(report)
    common["rows_per_second"] = rows / seconds if seconds else 0.0
    if not partitions:
        late = too_late_by_hour(report, watermark)
        of_clicks = {
            "too_late": sum(late.values()),
            "too_late_by_hour": late,
            "rows_per_instance": per_instance(report),
        }
        return [common | {"rows": rows} | of_clicks]
    return [common | {"too_late": 0} | partition for partition in partitions]


def too_late_by_hour(report: Mapping[str, Any], watermark: datetime) -> dict[str, int]:
    """How many clicks of a micro-batch are of each hour that was over, by its watermark, when it began."""
    passed = watermark.timestamp() / 3600
    per_hour, _, _ = _observed(report, OBSERVED, 3)
    clicks = _counts(per_hour)
    return {str(Hour.of_number(hour)): count for hour, count in clicks.items() if hour + 1 <= passed}


def per_instance(report: Mapping[str, Any]) -> list[int] | None:
    """The clicks of a micro-batch by the instance that counted them; none if there were none."""
    _, histogram, least = _observed(report, OBSERVED, 3)
    clicks = _counts(histogram)
    return [clicks[instance] for instance in range(max(least, max(clicks) + 1))] if clicks else None


def _observed(report: Mapping[str, Any], name: str, count: int) -> Sequence[Any]:
    """What the query has observed under this name, so many values; nulls where there was nothing."""
    values: Sequence[Any] = report.get("observedMetrics", {}).get(name, {}).get("values", (None,) * count)
    return values


def _counts(histogram: str | None) -> Counter[int]:
    counts: Counter[int] = Counter()
    # A value may be there more than once: Spark merges the tasks' histograms as they are.
    for seen in json.loads(histogram or "[]"):
        counts[int(seen["x"])] += int(seen["y"])
    return counts


def keep(lake: Lake, rows: list[dict[str, Any]]) -> None:
    """Append the rows, and now and then write the table as few files."""
    lake.append_rows(STREAM_PROGRESS, rows)
    lake.compact(STREAM_PROGRESS, above_files=MOST_FILES)


def _row_count(report: Mapping[str, Any]) -> int:
    """The rows of an input without partitions, which are the lines of files, or rows of a table."""
    source = report["sources"][0]
    if not source["description"].startswith("FileStreamSource"):
        rows: int = source["numInputRows"]
        return rows
    (lines,) = _observed(report, LINES_READ, 1)
    return lines or 0


def _partitions(source: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What was read of each partition of a topic; none where the source is no topic."""
    if not source["description"].startswith("KafkaV2"):
        return []
    start, end, latest = (_offsets(source.get(name)) for name in ("startOffset", "endOffset", "latestOffset"))
    return [
        {
            "partition": partition,
            "first_offset": start.get(partition, 0),
            "next_offset": offset,
            "lag": max(0, latest.get(partition, offset) - offset),
            "rows": offset - start.get(partition, 0),
        }
        for partition, offset in sorted(end.items())
    ]


def _offsets(offsets: Any) -> dict[int, int]:
    """Offsets by partition: Spark has ``{"topic": {"0": 17}}``, as JSON or as text of it."""
    parsed = json.loads(offsets) if isinstance(offsets, str) else offsets
    return {int(partition): offset for of_topic in (parsed or {}).values() for partition, offset in of_topic.items()}


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
