"""Facts about large tables: frames of them as one, so that one Spark action measures all."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def together(**facts: DataFrame) -> DataFrame:
    """One row per fact: ``subject`` (the keyword it was given under) and ``facts``, a JSON object."""
    frames = (
        frame.select(F.lit(subject).alias("subject"), F.to_json(F.struct("*")).alias("facts"))
        for subject, frame in facts.items()
    )
    return reduce(DataFrame.unionAll, frames)
