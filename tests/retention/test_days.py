"""Days that do not fit together are refused, before anything is removed."""

from __future__ import annotations

import pytest

from include.errors import UsageError
from include.hours import Hour, hours_in_words
from include.settings import Settings
from spark_jobs.retention import job as retention_job
from spark_jobs.retention.days import retention_of


def configure(settings: Settings, retention: str, of_web: str = "") -> Settings:
    with settings.pipeline_file.open("a") as file:
        file.write(f"[retention]\n{retention}\n")
    with settings.sources_file.open("a") as file:
        file.write(f"[sources.web.retention]\n{of_web}\n")
    return settings


def test_a_source_has_days_of_its_own_and_else_those_of_all(settings: Settings) -> None:
    days = retention_of(configure(settings, "clicks_days = 30\nlanding_days = 5", "clicks_days = 90"))
    assert [(name, of.clicks_days, of.landing_days, of.quarantined_days) for name, of in days.items()] == [
        ("web", 90, 5, None),
        ("access", 30, 5, None),
    ]


@pytest.mark.parametrize(
    ("retention", "of_web", "message"),
    [
        # A week that a click may be old, six hours of duplicates, and a day.
        ("clicks_days = 8", "", r"^clicks_days of source web is 8; expected at least 9: .*168.*\(6\) back$"),
        ("", "clicks_days = 8", r"^clicks_days of source web is 8; expected at least 9: "),
        ("clicks_days = 20\nquarantined_days = 21", "", r"^quarantined_days of source web is 21; expected at most"),
        ("clicks_days = 20\ncounts_days = 21", "", r"^counts_days is 21; expected at least 22, two more than clicks_d"),
        ("clicks_days = 0", "", r"retention.clicks_days: Input should be greater than or equal to 1"),
        ("click_days = 20", "", r"retention.click_days: Extra inputs are not permitted"),
        ("", "counts_days = 20", r"retention.counts_days: Extra inputs are not permitted"),
    ],
)
def test_days_that_do_not_fit_are_refused(settings: Settings, retention: str, of_web: str, message: str) -> None:
    configure(settings, retention, of_web)
    with pytest.raises(UsageError, match=message):
        retention_job.maintain(settings, dry_run=False)


def test_nine_days_are_enough(settings: Settings) -> None:
    assert retention_of(configure(settings, "clicks_days = 9\ncounts_days = 11\nquarantined_days = 9"))


def test_many_hours_are_said_in_few_words() -> None:
    first = Hour.parse("2026-03-01T05")
    some = [first, first.plus(1), first.plus(3)]
    assert hours_in_words(some) == "2026-03-01T05..2026-03-01T07, 2026-03-01T08"
    every_other = [first.plus(2 * number) for number in range(1200)]
    assert hours_in_words(every_other) == f"1,200 log hours from {first} to {first.plus(2398)}"
