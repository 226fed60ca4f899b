"""Spark's word on a micro-batch as rows of stream_progress; the words are Spark 4.2's own, shortened."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from include.tables import STREAM_PROGRESS
from spark_jobs.stream.progress import bound_of, progress_rows

STATE = {"numRowsTotal": 13067, "memoryUsedBytes": 113251344, "numRowsDroppedByWatermark": 3}
TOPIC: dict[str, Any] = {
    "timestamp": "2026-11-21T19:24:10.500Z",
    "batchId": 7,
    "durationMs": {"addBatch": 1500, "triggerExecution": 2000},
    "eventTime": {"watermark": "2026-11-21T12:00:00.000Z"},
    "stateOperators": [STATE],
    "sources": [
        {
            "description": "KafkaV2[Subscribe[clicks]]",
            "startOffset": '{"clicks":{"0":100,"1":50}}',
            "endOffset": '{"clicks":{"0":160,"1":80,"2":10}}',
            "latestOffset": '{"clicks":{"0":160,"1":95,"2":10}}',
            "numInputRows": 200,
        }
    ],
}
TABLE: dict[str, Any] = TOPIC | {
    "sources": [{"description": "DeltaSource[file:/lake/clicks]", "numInputRows": 40}],
    "eventTime": {"watermark": "2026-11-21T19:00:00.000Z"},
    "observedMetrics": {"clicks": {"values": ['[{"x":494393.0,"y":3.0},{"x":494394.0,"y":2.0}]', "[]", 2]}},
}
#: Hours since 1970 of 2026-11-21T18, by the calendar.
HOUR_18 = int(datetime(2026, 11, 21, 18, tzinfo=UTC).timestamp()) // 3600


def test_each_partition_of_a_topic_has_what_was_read_and_what_is_left() -> None:
    rows = progress_rows("web", "clicks", TOPIC)
    assert [(row["partition"], row["first_offset"], row["next_offset"], row["rows"], row["lag"]) for row in rows] == [
        (0, 100, 160, 60, 0),
        (1, 50, 80, 30, 15),
        (2, 0, 10, 10, 0),
    ]
    assert {row["rows_per_second"] for row in rows} == {50.0}, "100 records in 2 seconds; Spark read them twice"
    assert {row["watermark_delay"] for row in rows} == {7 * 3600 + 24 * 60 + 10.5}
    assert {(row["state_rows"], row["state_bytes"]) for row in rows} == {(13067, 113251344)}
    assert set(rows[0]) <= set(STREAM_PROGRESS.column_names)


def test_what_is_too_late_for_live_is_reported_by_the_hours_that_the_watermark_has_passed() -> None:
    # Spark merges the tasks' histograms without adding up what is of the same hour.
    observed = f'[{{"x":{HOUR_18}.0,"y":2.0}},{{"x":{HOUR_18}.0,"y":1.0}},{{"x":{HOUR_18 + 1}.0,"y":2.0}}]'
    progress = TABLE | {"observedMetrics": {"clicks": {"values": [observed, "[]", 2]}}}
    (row,) = progress_rows("web", "url", progress)
    assert (row["rows"], row["too_late"], row["rows_per_second"]) == (40, 3, 20.0)
    assert row["too_late_by_hour"] == {"2026-11-21T18": 3}
    before = progress | {"eventTime": {"watermark": "2026-11-21T18:59:59.999Z"}}
    (row,) = progress_rows("web", "url", before)
    assert (row["too_late"], row["too_late_by_hour"]) == (0, {})


def test_of_files_the_lines_are_counted_once_and_nobody_knows_how_many_wait() -> None:
    files = [{"description": "FileStreamSource[file:/landing/web]", "endOffset": {"logOffset": 3}, "numInputRows": 3}]
    observed = {"lines_read": {"values": [40]}}
    (row,) = progress_rows("web", "clicks", TOPIC | {"sources": files, "observedMetrics": observed})
    assert (row["rows"], row["rows_per_second"]) == (40, 20.0)
    assert (row.get("partition"), row.get("lag"), row.get("next_offset")) == (None, None, None)


def test_before_the_first_event_there_is_no_watermark() -> None:
    (row,) = progress_rows("web", "url", TABLE | {"eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}})
    assert (row["watermark"], row["watermark_delay"]) == (None, None)


def observed_rows_per_instance(histogram: str, least: int) -> list[int] | None:
    observed = {"observedMetrics": {"clicks": {"values": ["[]", histogram, least]}}}
    rows_per_instance: list[int] | None = progress_rows("web", "url", TABLE | observed)[0]["rows_per_instance"]
    return rows_per_instance


def test_rows_per_instance_are_there_for_all_instances_that_the_grouping_has() -> None:
    histogram = '[{"x":0.0,"y":20.0},{"x":0.0,"y":10.0},{"x":2.0,"y":10.0}]'
    assert observed_rows_per_instance(histogram, 4) == [30, 0, 10, 0]
    assert observed_rows_per_instance(histogram, 0) == [30, 0, 10], "as many as have read the micro-batch"


def test_without_clicks_there_are_no_rows_per_instance() -> None:
    without = {"observedMetrics": {"clicks": {"values": [None, None, None]}}}
    for progress in (TABLE, TABLE | without):
        assert progress_rows("web", "url", progress)[0]["rows_per_instance"] is None
    assert {row.get("rows_per_instance") for row in progress_rows("web", "clicks", TOPIC)} == {None}


def test_a_micro_batch_may_take_ten_times_as_long_as_the_longest_of_the_last_ones() -> None:
    assert bound_of([], 1800) == 1800
    assert bound_of([3.0, 20.0], 1800) == 1800
    assert bound_of([600.0, 20.0], 1800) == 6000
