from __future__ import annotations

import random
import sqlite3
from datetime import UTC, date, datetime, timedelta

import pytest

from include.errors import UsageError
from include.hours import MOST_HOURS_A_RUN, Hour, HourRange, contiguous, hours_predicate, near_each_other

FIVE = Hour.parse("2026-03-01T05")


@pytest.mark.parametrize(
    "text",
    ["2026-03-01T05", " 2026-03-01T05 ", "2026-03-01T05:00", "2026-03-01T05:00:00Z", "2026-03-01T06:00+01:00"],
)
def test_hour_is_read_as_utc(text: str) -> None:
    assert Hour.parse(text).start == datetime(2026, 3, 1, 5, tzinfo=UTC)
    assert str(Hour.parse(text)) == "2026-03-01T05"


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "2026-03-01", "2026-03-01T24", "2026-02-30T05", "0001-01-01T00:00+05:00", "9999-12-31T23",
     "1969-12-31T23"],
)  # fmt: skip
def test_what_is_no_hour_is_refused_with_the_text_and_an_example(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        Hour.parse(text)
    assert repr(text) in str(raised.value)
    assert "such as 2026-03-01T05" in str(raised.value)


@pytest.mark.parametrize("text", ["2026-03-01T05:30", "2026-03-01T05:00:00.000001", "2026-03-01T11:29+05:30"])
def test_of_a_time_off_the_hour_the_hours_around_it_are_named(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        Hour.parse(text)
    assert str(raised.value) == f"not on the full hour: {text!r}; expected 2026-03-01T05 or 2026-03-01T06"


def test_hour_has_day_hour_end_and_number() -> None:
    assert (FIVE.day, FIVE.hour) == (date(2026, 3, 1), 5)
    assert FIVE.end == datetime(2026, 3, 1, 6, tzinfo=UTC)
    assert FIVE.number * 3600 == FIVE.start.timestamp()
    assert Hour.of_number(FIVE.number) == FIVE == Hour.of(date(2026, 3, 1), 5)
    assert str(FIVE.plus(-6)) == "2026-02-28T23"


def test_range_is_half_open_and_in_order() -> None:
    hours = HourRange(FIVE, FIVE.plus(30))
    assert list(hours) == [FIVE.plus(n) for n in range(30)]
    assert len(hours) == 30
    assert FIVE in hours
    assert FIVE.plus(30) not in hours
    assert "2026-03-01T05" not in hours
    assert str(hours) == "2026-03-01T05..2026-03-02T11"
    assert (str(HourRange.single(FIVE)), list(HourRange.single(FIVE))) == ("2026-03-01T05", [FIVE])


@pytest.mark.parametrize("hours", [0, -3])
def test_empty_range_is_refused(hours: int) -> None:
    with pytest.raises(UsageError, match=r"empty range of hours: from 2026-03-01T05 to .*half-open"):
        HourRange(FIVE, FIVE.plus(hours))


def test_predicate_is_true_for_exactly_its_hours() -> None:
    rng = random.Random(4)
    everything = [Hour.parse("2026-02-27T00").plus(n) for n in range(24 * 6)]
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE hours (d TEXT, h INT)")
    database.executemany("INSERT INTO hours VALUES (?, ?)", [(hour.day.isoformat(), hour.hour) for hour in everything])
    whole_day = everything[24:48]
    for chosen in (
        [],
        whole_day,
        whole_day[:-1],
        everything,
        [*whole_day, *whole_day, everything[50]],
        *(rng.sample(everything, rng.randrange(1, 80)) for _ in range(50)),
    ):
        predicate = hours_predicate(chosen, "d", "h")
        rows = database.execute(f"SELECT d, h FROM hours WHERE {predicate.replace('DATE', '')}").fetchall()
        assert sorted(rows) == sorted({(hour.day.isoformat(), hour.hour) for hour in chosen})


def test_predicate_of_a_month_stays_short() -> None:
    month = HourRange(FIVE, Hour(FIVE.start + timedelta(days=30)))
    assert len(hours_predicate(month, "log_date", "log_hour")) < 2000


def test_hours_are_grouped_into_ranges_without_gaps_that_are_too_long() -> None:
    hours = [FIVE.plus(number) for number in (9, 3, 4, 4, 23, 24)]

    def ranges(*numbers: tuple[int, int]) -> list[HourRange]:
        return [HourRange(FIVE.plus(start), FIVE.plus(end)) for start, end in numbers]

    assert contiguous(hours) == contiguous(hours, 3) == ranges((3, 5), (9, 10), (23, 25))
    assert contiguous(hours, 4) == ranges((3, 10), (23, 25))
    assert contiguous([]) == []


def test_hours_near_each_other_are_one_run_that_has_only_them() -> None:
    (hours,) = near_each_other(FIVE.plus(number) for number in (3, 4, 28, 53, 3))
    assert [hour.number - FIVE.number for hour in hours] == [3, 4, 28, 53]
    assert (hours.start, hours.end, len(hours)) == (FIVE.plus(3), FIVE.plus(54), 4)
    assert FIVE.plus(28) in hours
    assert FIVE.plus(27) not in hours
    assert [list(part) for part in hours.chunks(3)] == [list(hours)[:3], list(hours)[3:]]
    assert near_each_other([FIVE, FIVE.plus(1), FIVE.plus(27)]) == [
        HourRange(FIVE, FIVE.plus(2)),
        HourRange.single(FIVE.plus(27)),
    ]
    everything = range(2 * MOST_HOURS_A_RUN)
    assert [len(run) for run in near_each_other(FIVE.plus(2 * number) for number in everything)] == [744, 744]
