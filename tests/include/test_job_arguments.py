from __future__ import annotations

import pytest

from include.errors import UsageError
from include.job_arguments import JobArguments


def test_one_hour_is_a_range_of_length_one() -> None:
    arguments = JobArguments.of("web", None, None, "2026-03-01T05")
    assert [str(hour) for hour in arguments.log_hours] == ["2026-03-01T05"]
    assert arguments == JobArguments.of("web", "2026-03-01T05", "2026-03-01T06")


@pytest.mark.parametrize(
    "hours",
    [(None, None, None), ("2026-03-01T05", None, None), (None, "2026-03-01T05", None),
     ("2026-03-01T05", "2026-03-01T06", "2026-03-01T05"), (None, "2026-03-01T06", "2026-03-01T05")],
)  # fmt: skip
def test_hours_are_given_one_way_or_the_other(hours: tuple[str | None, str | None, str | None]) -> None:
    with pytest.raises(UsageError, match="expected either --hour, or both --from and --to"):
        JobArguments.of("web", *hours)
