"""Noise is distributed as epsilon says, and a key of one visitor alone is shown as seldom as delta says; no Spark."""

from __future__ import annotations

import math
from statistics import fmean

import pytest

from include.errors import UsageError
from include.settings import Settings
from spark_jobs.publish.noise import Noise
from spark_jobs.publish.release_counts import require_noise
from spark_jobs.publish.releases import has_budget, noise_of

#: So seldom may a test fail though all is right.
ALPHA = 1e-9
DRAWN = 20_000
NOISE = """
[publication.noise]
epsilon = 1.0
delta = 1e-6
clicks_per_visitor_per_day = 5
"""


def tail(distance: float, scale: float) -> float:
    """The probability that discrete Laplace noise is at least so large, a whole number from 0 on: p^n / (1 + p)."""
    p = math.exp(-1 / scale)
    return p**distance / (1 + p)


@pytest.mark.parametrize(("clicks", "epsilon"), [(1, 2.0), (10, 0.5), (3, 1 / 3)])
def test_counts_with_noise_are_about_the_true_count_as_widely_as_epsilon_says(clicks: int, epsilon: float) -> None:
    noise, true = Noise(clicks, epsilon, 1e-9), 1_000_000
    scale = clicks / epsilon
    assert noise.scale == pytest.approx(scale)
    drawn = noise.add_to({str(key): true for key in range(DRAWN)})
    errors = sorted(count - true for count in drawn.values())
    assert len(errors) == DRAWN
    p = math.exp(-1 / scale)
    deviation = math.sqrt(2 * p) / (1 - p)
    assert abs(fmean(errors)) < 6 * deviation / math.sqrt(DRAWN)
    # Dvoretzky, Kiefer, Wolfowitz, Massart: so far is what was drawn from its distribution at most.
    most = math.sqrt(math.log(2 / ALPHA) / (2 * DRAWN))
    for value in {*errors}:
        at_most = sum(error <= value for error in errors) / DRAWN
        expected = 1 - tail(value + 1, scale) if value >= 0 else tail(-value, scale)
        assert abs(at_most - expected) < most, value


def test_two_drawings_differ() -> None:
    counts = {str(key): 1_000 for key in range(100)}
    noise = Noise(10, 0.5, 1e-7)
    assert noise.add_to(counts) != noise.add_to(counts)


@pytest.mark.parametrize(
    ("clicks", "epsilon", "delta"), [(1, 0.5, 1e-6), (10, 0.5, 5e-8), (100, 0.1, 1e-9), (1, 0.5, 0.3)]
)
def test_keys_of_one_visitor_are_shown_as_seldom_as_delta_says(clicks: int, epsilon: float, delta: float) -> None:
    noise = Noise(clicks, epsilon, delta)
    # Whatever a visitor does with its clicks: so many keys with as many clicks each, that nobody else has.
    for keys in range(1, clicks + 1):
        probability = tail(noise.threshold - clicks // keys, clicks / epsilon)
        assert -math.expm1(keys * math.log1p(-probability)) <= delta, keys
    # And it is not needlessly high.
    assert clicks * tail(noise.threshold - 3 - clicks, clicks / epsilon) > delta


def test_so_many_keys_of_one_visitor_are_shown_as_the_threshold_says() -> None:
    noise = Noise(1, 0.5, 0.05)
    shown = noise.add_to({str(key): 1 for key in range(10 * DRAWN)})
    assert min(shown.values()) == noise.threshold
    expected = tail(noise.threshold - 1, 2.0)
    assert expected <= 0.05
    assert len(shown) / (10 * DRAWN) == pytest.approx(expected, abs=6 * math.sqrt(expected / (10 * DRAWN)))


def test_no_counts_are_no_counts() -> None:
    assert Noise(10, 0.5, 1e-7).add_to({}) == {}


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-300, 1e-7), (0.5, 1e-320)])
def test_noise_that_cannot_be_is_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(UsageError, match="no noise for epsilon"):
        _ = Noise(10, epsilon, delta).threshold


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("epsilon = 1.0", "epsilon = 0", "epsilon: Input should be greater than 0"),
        ("epsilon = 1.0", "epsilon = -1", "epsilon: Input should be greater than 0"),
        ("epsilon = 1.0", "epsilon = inf", "epsilon: Input should be a finite number"),
        ("delta = 1e-6", "delta = 0", "delta: Input should be greater than 0"),
        ("delta = 1e-6", "delta = 1", "delta: Input should be less than 1"),
        ("per_day = 5", "per_day = 0", "clicks_per_visitor_per_day: Input should be greater than or equal to 1"),
        ("delta = 1e-6\n", "", "delta: Field required"),
        ("per_day = 5", "per_day = 5\nreleases_per_day = 0", "releases_per_day: Input should be greater than"),
        (NOISE, "", r"has no \[publication.noise\]"),
    ],
)
def test_wrong_settings_are_refused_in_one_line(settings: Settings, before: str, after: str, message: str) -> None:
    assert before in NOISE
    with settings.pipeline_file.open("a", encoding="utf-8") as file:
        file.write(NOISE.replace(before, after))
    with pytest.raises(UsageError, match=message) as refused:
        require_noise(settings)
    assert "\n" not in str(refused.value)


def test_a_budget_lasts_for_so_many_releases(settings: Settings) -> None:
    with settings.pipeline_file.open("a", encoding="utf-8") as file:
        file.write(NOISE.replace("epsilon = 1.0", "epsilon = 0.1") + "releases_per_day = 3\n")
    noise = require_noise(settings)
    assert noise_of(noise).epsilon == 0.05
    once = {"epsilon": 0.1, "delta": 1e-6}
    assert [has_budget(noise, [once] * times) for times in (0, 1, 2, 3)] == [True, True, True, False]
    assert not has_budget(noise, [{"epsilon": 0.25, "delta": 1e-6}])
    assert not has_budget(noise, [{"epsilon": 0.1, "delta": 2.5e-6}])
