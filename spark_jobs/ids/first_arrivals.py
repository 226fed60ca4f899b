"""A task of a stream drops duplicates: clicks whose event id is known."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Row

from spark_jobs.ids.id_manifest import IdManifest
from spark_jobs.ids.known_ids import KnownIds
from spark_jobs.ids.partitions import HIGH, LOW, HashRange
from spark_jobs.lines.columns import as_numpy

#: What a task says: the files of its partition from the next micro-batch on, in JSON as a manifest has them.
LEFT = pa.schema([("partition", pa.int32()), ("newest_hour", pa.int32()), ("files", pa.string())])


@dataclass(frozen=True)
class BatchIds:
    """The ids for one micro-batch, of so many tasks: of ``repartition_by_id``."""

    folder: Path
    manifest: IdManifest
    partitions: int

    def first_arrivals(self, partition: int) -> FirstArrivals:
        """Those of one task."""
        hashes = HashRange.of_partition(partition, self.partitions)
        known = self.manifest
        files = known.within(hashes)
        ids = KnownIds(self.folder, hashes, files, known.lateness_hours, known.newest_hour, known.kept_hours)
        return FirstArrivals(partition, ids)

    def after(self, left: list[Row], lateness_hours: int) -> IdManifest:
        """The manifest of this micro-batch, of what its tasks have said; the next one looks within these hours.

        Raises:
            ValueError: if not each of the tasks has said so: where nothing was read, none does.
        """
        row_of_task = {row["partition"]: row for row in left}
        if row_of_task and set(row_of_task) != set(range(self.partitions)):
            raise ValueError(f"of {self.partitions} tasks only {sorted(row_of_task)} have said what ids they know")
        changed: dict[str, Any] = {"lateness_hours": lateness_hours, "raised_lateness_hours": 0}
        if row_of_task:
            changed["files"] = [file for row in row_of_task.values() for file in json.loads(row["files"])]
            changed["newest_hour"] = max(row["newest_hour"] for row in row_of_task.values())
        return self.manifest.changed(**changed)


@dataclass(frozen=True)
class FirstArrivals:
    """One task's arrivals, in the order of ``repartition_by_id``, less duplicates."""

    partition: int
    known: KnownIds

    def of(self, arrivals: pa.Table) -> pa.Table:
        """These without duplicates, and without the hashes.

        Raises:
            ValueError: if one of them is of another partition: its id would not be looked up where it is known.
        """
        clicks = np.flatnonzero(as_numpy(pc.is_valid(arrivals[HIGH])))
        is_first = np.ones(len(arrivals), bool)
        if len(clicks):
            rows = arrivals.take(pa.array(clicks)) if len(clicks) < len(arrivals) else arrivals
            high, low = (as_numpy(rows[name]) for name in (HIGH, LOW))
            hours = as_numpy(rows["log_date"].cast(pa.int32())) * 24 + as_numpy(rows["log_hour"])
            if not self.known.hashes.have(high):
                raise ValueError(f"ids of another partition than {self.partition}")
            is_first[clicks] = self.known.add(high, low, hours)
        rows = arrivals.drop_columns([HIGH, LOW])
        return rows if is_first.all() else rows.filter(pa.array(is_first))

    def end(self) -> dict[str, Any]:
        """Keep the ids of its clicks; a row of ``LEFT``."""
        files = json.dumps(self.known.end())
        return {"partition": self.partition, "newest_hour": self.known.newest_hour, "files": files}
