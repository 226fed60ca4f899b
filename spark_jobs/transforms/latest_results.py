"""The newest outcome of each check of each partition."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

_CHECK = ["suite", "partition", "expectation"]


def latest_results(results: DataFrame) -> DataFrame:
    """Of ``quality_results``, one row per suite, partition and expectation: the one validated last."""
    rest = [name for name in results.columns if name not in (*_CHECK, "validated_at")]
    newest = F.max_by(F.struct(*rest), F.struct("validated_at", "run_id")).alias("newest")
    return results.groupBy(*_CHECK).agg(F.max("validated_at").alias("validated_at"), newest).select(
        *_CHECK, "validated_at", "newest.*"
    )
