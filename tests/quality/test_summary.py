"""What a validation found, as programs read it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import orjson

from include.hours import Hour, LogHour
from include.job_arguments import JobArguments
from spark_jobs.hours.touched_hours import TouchedHours
from spark_jobs.quality.summary import as_json
from spark_jobs.quality.validation import Validation

FIVE = Hour.parse("2026-03-01T05")


def test_an_hour_that_is_left_to_another_run_names_its_log_hour_as_text() -> None:
    touched = TouchedHours([], {FIVE: LogHour("web", FIVE.plus(1))}, {}, [], frozenset(), {})
    arguments = JobArguments.of("web", None, None, str(FIVE))
    now = datetime(2026, 3, 1, 8, tzinfo=UTC)
    validation = Validation("run", now, arguments, touched, [], 1.0, Path("docs"))
    written = orjson.loads(orjson.dumps(as_json(validation)))
    assert written["left_to_other_runs"] == {"2026-03-01T05": "web 2026-03-01T06"}
