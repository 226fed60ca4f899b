"""What the newest validation of each partition found."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def latest_results(results: DataFrame) -> DataFrame:
    """Of ``quality_results``, the rows of the run that validated each suite's partition last.

    Whole runs, not single checks: a check that is gone, or worded anew, leaves no outcome behind. Rows of an earlier
    version have no outcome, and are left out.
    """
    results = results.where("outcome IS NOT NULL")
    newest = results.groupBy("suite", "partition").agg(F.max_by("run_id", "validated_at").alias("run_id"))
    return results.join(newest, ["suite", "partition", "run_id"])
