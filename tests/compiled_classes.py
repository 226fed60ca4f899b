"""How much generated code a Spark has compiled."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING

from spark_jobs.spark_status import SparkStatus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def compiled_classes(spark: SparkSession) -> int:
    """How often this Spark has compiled generated code, from the metrics beside its UI."""
    status = SparkStatus.of(spark)
    assert status is not None
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{status.address}/metrics/json", timeout=10) as answer:
        histograms = json.load(answer)["histograms"]
    return sum(
        int(found["count"]) for name, found in histograms.items() if name.endswith("CodeGenerator.compilationTime")
    )
