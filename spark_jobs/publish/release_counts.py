"""Daily counts released with noise, each once."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from pyspark.sql import SparkSession

from include.errors import UsageError
from include.publication import NoiseSettings
from include.settings import Settings
from spark_jobs.lake.lake import Lake
from spark_jobs.publish.releases import bounded_day, draw, drawings, has_budget, noise_of, show, why_not_yet


def release(spark: SparkSession, settings: Settings, first: date, end: date, *, dry_run: bool = False) -> list[str]:
    """Release the days from ``first`` to before ``end`` that may be; a line for each on what was done.

    A dry run draws and writes nothing.

    Raises:
        UsageError: if there are no such days, or no noise is configured that can be drawn.
    """
    noise = require_noise(settings)
    if first >= end:
        raise UsageError(f"days from {first} to {end}: expected --to after --from; --to itself is not included")
    drawn = noise_of(noise)
    lake = Lake(spark, settings)
    lines = [
        f"{'dry run, ' if dry_run else ''}epsilon {noise.epsilon:g} and delta {noise.delta:g} a day for both tables, "
        f"{noise.clicks_per_visitor_per_day} clicks a visitor: Laplace noise of scale {drawn.scale:g}, counts from "
        f"{drawn.threshold} on"
    ]
    # Until the day is written, nobody may count or publish its hours again.
    with lake.locked():
        for number in range((end - first).days):
            lines.append(_release(lake, noise, first + timedelta(days=number), dry_run=dry_run))
    return lines


def require_noise(settings: Settings) -> NoiseSettings:
    """How much noise is configured.

    Raises:
        UsageError: if none is.
    """
    noise = settings.pipeline.publication.noise
    if noise is None:
        raise UsageError(
            f"{settings.pipeline_file} has no [publication.noise]; expected it, with epsilon, delta and "
            "clicks_per_visitor_per_day, as docs/guides/privacy.md says"
        )
    return noise


def _release(lake: Lake, noise: NoiseSettings, day: date, *, dry_run: bool) -> str:
    now = datetime.now(UTC)
    drawn = drawings(lake, day)
    reason = why_not_yet(lake, noise, day, now)
    if reason and not drawn:
        return f"{day}: not released: {reason}"
    counted = None if reason else bounded_day(lake, noise, day)
    if counted and not (drawn and drawn[-1]["input_digest"] == counted.digest) and has_budget(noise, drawn):
        if dry_run:
            return f"{day}: would be released{', again: its counts before noise have changed' if drawn else ''}"
        drawing = draw(lake, noise, day, counted, now)
        urls, countries = show(lake, drawing)
        times = len(drawn) + 1
        return (
            f"{day}: released: {urls} URLs of countries, {countries} countries; noise drawn {times} of "
            f"{noise.releases_per_day} times"
        )
    newest = drawn[-1]
    if not dry_run:
        # Again, if it was killed before it could.
        show(lake, newest)
    stays = f"{day}: stays as released at {newest['released_at']:%Y-%m-%d %H:%M} UTC"
    if counted is None:
        return f"{stays}: {reason}"
    if newest["input_digest"] == counted.digest:
        return f"{stays}: its counts before noise are the same"
    spent = sum(drawing["epsilon"] for drawing in drawn)
    return f"{stays}: its counts before noise have changed, and its budget is spent (epsilon {spent:g})"
