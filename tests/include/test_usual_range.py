from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from include.hours import Hour
from include.usual_range import (
    MAD_SCALE,
    SchemaDriftSettings,
    VolumeSettings,
    hours_looked_at,
    same_hour_before,
    usual_range,
)

FIVE = Hour.parse("2026-03-02T05")
COUNTS = st.lists(st.integers(0, 10**9), min_size=1, max_size=40)


@given(COUNTS)
def test_range_is_numpys_median_and_median_distance(points: list[int]) -> None:
    usual = usual_range(points, 0, 1e-12)
    assert usual.median == np.median(points)
    assert usual.deviation == pytest.approx(
        max(1.4826 * np.median(np.abs(np.array(points) - np.median(points))), 1e-12)
    )


def test_scaled_deviation_of_normal_numbers_is_their_standard_deviation() -> None:
    assert pytest.approx(1 / statistics.NormalDist().inv_cdf(0.75), abs=1e-4) == MAD_SCALE
    numbers = np.random.default_rng(5).normal(10_000, 700, 100_001)
    assert usual_range(numbers.tolist(), 0, 1).deviation == pytest.approx(700, rel=0.02)


@given(COUNTS, st.floats(0, 1), st.floats(0.001, 100), st.floats(0.1, 20))
def test_within_bounds_is_within_that_many_deviations(
    points: list[int], part: float, smallest: float, deviations: float
) -> None:
    usual = usual_range(points, part, smallest)
    assert usual.deviation >= max(smallest, part * usual.median)
    lowest, highest = usual.bounds(deviations)
    assert 0 <= lowest <= usual.median <= highest
    assert highest == pytest.approx(usual.median + deviations * usual.deviation)
    assert usual.distance(usual.median + 2 * usual.deviation) == pytest.approx(2, rel=1e-3)
    assert usual.distance(usual.median - 2 * usual.deviation) == pytest.approx(-2, rel=1e-3)
    assert usual.distance(usual.median) == 0


@given(COUNTS, st.randoms())
def test_order_of_days_does_not_matter(points: list[int], random: st.DataObject) -> None:
    shuffled = list(points)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert usual_range(points, 0.05, 3) == usual_range(shuffled, 0.05, 3)


@given(st.integers(1, 10**6), st.lists(st.integers(0, 10**9), max_size=4))
def test_fewer_than_half_of_the_days_cannot_hide_a_fault(usual: int, faulty: list[int]) -> None:
    points = [usual] * 5 + faulty
    assert usual_range(points, 0, 1e-9).median == usual


def test_days_all_alike_still_allow_a_little() -> None:
    assert usual_range([1000] * 9, 0.05, 3).bounds(3.5) == (825, 1175)
    assert usual_range([10] * 9, 0.05, 3).bounds(3.5) == (0, 20.5)


def test_no_points_have_no_range() -> None:
    with pytest.raises(statistics.StatisticsError):
        usual_range([], 0, 1)


def test_hours_that_are_looked_at() -> None:
    assert [str(hour) for hour in same_hour_before(FIVE, 2)] == ["2026-03-01T05", "2026-02-28T05"]
    looked_at = sorted(map(str, hours_looked_at(FIVE, SchemaDriftSettings(hours=2, days=2, min_hours=1))))
    assert looked_at == ["2026-02-28T05", "2026-03-01T05", "2026-03-02T03", "2026-03-02T04"]


@pytest.mark.parametrize(
    ("settings", "wrong", "message"),
    [
        (VolumeSettings, {"days": 6}, "min_points 7 is above days 6"),
        (VolumeSettings, {"critical_deviations": 3}, "critical_deviations is below warning_deviations"),
        (VolumeSettings, {"smallest_count_deviation": 0}, "greater than 0"),
        (SchemaDriftSettings, {"hours": 2, "days": 3}, r"min_hours 6 is above hours \+ days"),
    ],
)
def test_settings_that_do_not_fit_are_named(
    settings: type[VolumeSettings], wrong: dict[str, float], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        settings(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "values"),
    [
        (VolumeSettings, {"warning_deviations": 3.5, "critical_deviations": 3.5}),
        (VolumeSettings, {"days": 7, "min_points": 7}),
        (SchemaDriftSettings, {"hours": 3, "days": 1, "min_hours": 4}),
    ],
)
def test_settings_that_just_fit_together_are_taken(
    settings: type[VolumeSettings | SchemaDriftSettings], values: dict[str, float]
) -> None:
    assert values.items() <= settings.model_validate(values).model_dump().items()
