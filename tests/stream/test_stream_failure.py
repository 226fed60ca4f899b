"""What a stream's failure comes to in one line; the texts are Spark's, shortened."""

from __future__ import annotations

from functools import partial

import pytest

from include.sources import KafkaTopic
from spark_jobs.stream.failure import failure_of, is_of_another_start, is_of_other_state
from spark_jobs.stream.fence import OVERTAKEN
from spark_jobs.stream.topic import lost_records

TOPIC = KafkaTopic(topic="clicks")
FAILED = "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: "
IN_BATCH = """\
[PYTHON_EXCEPTION] [session: 3] [userId: ] Found error inside foreachBatch Python process: \
Traceback (most recent call last):
  File "foreach_batch_worker.py", line 85, in main
    process(df_id, batch_id)
"""
QUERY = """
=== Streaming Query ===
Identifier: clicks
Caused by: nothing of this
"""


@pytest.mark.parametrize(
    ("told", "failure"),
    [
        (f"{FAILED}java.io.IOException: No space left SQLSTATE: XXKST", "java.io.IOException: No space left"),
        (f"{FAILED}Boundless heap: 3", "Boundless heap: 3"),
        (
            f"""{FAILED}{IN_BATCH}pyspark.errors.exceptions.connect.SparkException: [TASK_WRITE_FAILED] Task failed \
while writing rows to file:/lake/clicks. SQLSTATE: 58030

JVM stacktrace:
org.apache.spark.SparkException
\tat org.apache.spark.Somewhere(Some.scala:1)
Caused by: org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device
\tat org.apache.hadoop.Somewhere(Some.java:1)
Caused by: java.io.IOException: No space left on device
 SQLSTATE: 38000 SQLSTATE: XXKST""",
            "SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to file:/lake/clicks. "
            "(java.io.IOException: No space left on device)",
        ),
        (
            f"""{FAILED}{IN_BATCH}FileNotFoundError: first

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "io.py", line 1, in append_rows
    write_deltalake()
    ^^^^^^^^^^^^^^^^^
_internal.DeltaError: Generic error: no
 SQLSTATE: 38000""",
            "DeltaError: Generic error: no",
        ),
        ("", ""),
    ],
)
def test_a_failure_is_what_was_raised_and_why(told: str, failure: str) -> None:
    assert failure_of(told + QUERY, partial(lost_records, topic=TOPIC)) == failure


def test_lost_records_are_reported_with_what_to_do() -> None:
    told = f"""{FAILED}{IN_BATCH}pyspark.errors.exceptions.connect.UnknownException: Some data may have been lost \
because they are not available in Kafka any more;
either the data was aged out by Kafka or the topic may have been deleted before all the data in the
topic was processed.
Reason: Could not read records in offset [6, 12) for topic partition clicks-0
with consumer group spark.
"""
    assert failure_of(told, partial(lost_records, topic=TOPIC)) == (
        "records of topic clicks were removed before they were read (Reason: Could not read records in offset [6, 12) "
        "for topic partition clicks-0); they are lost: to go on without them, set fail_on_data_loss = false in the "
        "source's kafka table"
    )


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (
            "(STREAM_FAILED) [STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA] Streaming stateful operator "
            "name does not match with the operator in state metadata.\nStateful operators in the metadata: "
            "[(OperatorId: 0 -> OperatorName: dedupeWithinWatermark)]; Stateful operators in current batch: []. "
            "SQLSTATE: 42K03",
            "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA: Streaming stateful operator name does not match "
            "with the operator in state metadata. Stateful operators in the metadata: [(OperatorId: 0 -> "
            "OperatorName: dedupeWithinWatermark)]; Stateful operators in current batch: [].",
        ),
        (
            f"{FAILED}[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema does not match existing state key "
            "schema.\nExisting schema=a; provided schema=b SQLSTATE: XXKST",
            "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE: Provided key schema does not match existing state key schema. "
            "Existing schema=a; provided schema=b",
        ),
    ],
)
def test_state_of_another_query_is_reported_as_such(told: str, message: str) -> None:
    assert is_of_other_state(told + QUERY)
    refuses = "Spark refuses the checkpoint, its state is of another query"
    assert failure_of(told + QUERY, partial(lost_records, topic=TOPIC)) == f"{refuses} ({message})"


def test_other_failures_are_not_of_state() -> None:
    assert not is_of_other_state(f"{FAILED}java.io.IOException: No space left" + QUERY)


@pytest.mark.parametrize(
    ("told", "is_so"),
    [
        ("[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log. Multiple streaming jobs detected for 38.", True),
        (f"{IN_BATCH}include.errors.ClickmillError: the stream of /streams/web {OVERTAKEN}, which ends", True),
        ("java.io.IOException: No space left", False),
    ],
)
def test_a_failure_because_of_another_start_is_known_as_such(told: str, is_so: bool) -> None:
    assert is_of_another_start(FAILED + told + QUERY) == is_so
    assert not is_of_another_start(f"{FAILED}java.io.IOException: No space left{QUERY}{told}")
