"""What earlier hours say about an hour: how far back is looked, and what a number usually is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pydantic import BaseModel, ConfigDict, Field, model_validator

from include.hours import Hour

#: Makes the median absolute deviation of normally distributed numbers their standard deviation: 1 / Φ⁻¹(3/4).
#: Source: P. J. Rousseeuw and C. Croux, "Alternatives to the Median Absolute Deviation", Journal of the American
#: Statistical Association 88 (424), 1993, pages 1273 to 1283.
MAD_SCALE = 1.4826


class VolumeSettings(BaseModel):
    """How an hour's volume is judged; what each setting means is commented in ``config/pipeline.toml``.

    3.5 scaled MADs: B. Iglewicz and D. Hoaglin, "How to Detect and Handle Outliers", ASQC Quality Press, 1993.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    days: int = Field(28, ge=1, le=366)
    min_points: int = Field(7, ge=3)
    warning_deviations: float = Field(3.5, gt=0)
    critical_deviations: float | None = Field(None, gt=0)
    smallest_deviation: float = Field(0.05, ge=0, le=1)
    smallest_share_deviation: float = Field(0.005, ge=0, le=1)
    smallest_count_deviation: float = Field(3, gt=0)

    @model_validator(mode="after")
    def fit_together(self) -> VolumeSettings:
        """There must be enough days for the points, and critical is worse than a warning."""
        if self.min_points > self.days:
            raise ValueError(f"min_points {self.min_points} is above days {self.days}: no hour would ever be judged")
        if self.critical_deviations is not None and self.critical_deviations < self.warning_deviations:
            raise ValueError("critical_deviations is below warning_deviations")
        return self


class SchemaDriftSettings(BaseModel):
    """How the fields of a JSON source are judged; commented in ``config/pipeline.toml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hours: int = Field(24, ge=1, le=744)
    days: int = Field(28, ge=0, le=366)
    min_hours: int = Field(6, ge=1)

    @model_validator(mode="after")
    def fit_together(self) -> SchemaDriftSettings:
        """There must be enough earlier hours."""
        if self.min_hours > self.hours + self.days:
            raise ValueError(f"min_hours {self.min_hours} is above hours + days: no hour would ever be judged")
        return self


def same_hour_before(hour: Hour, days: int) -> list[Hour]:
    """The same hour of the days before, the newest first."""
    return [hour.plus(-24 * day) for day in range(1, days + 1)]


def hours_looked_at(hour: Hour, settings: SchemaDriftSettings) -> set[Hour]:
    """The earlier log hours whose fields an hour's fields are compared with."""
    return {hour.plus(-shift) for shift in range(1, settings.hours + 1)}.union(same_hour_before(hour, settings.days))


@dataclass(frozen=True)
class UsualRange:
    """What a number usually is: the middle of its history, and how far from it is one deviation (above 0)."""

    median: float
    deviation: float

    def distance(self, value: float) -> float:
        """How many deviations the value is above the median; negative below it."""
        return (value - self.median) / self.deviation

    def bounds(self, deviations: float) -> tuple[float, float]:
        """The smallest and the largest value that so many deviations allow; no count or share is below 0."""
        reach = deviations * self.deviation
        return max(0.0, self.median - reach), self.median + reach


def usual_range(points: Sequence[float], smallest_part: float, smallest: float) -> UsualRange:
    """Median and scaled median absolute deviation of the points.

    The deviation is ``MAD_SCALE`` times the median of the points' distances from their median; so up to half of the
    points may be anything without moving it much. It is taken as no less than ``smallest_part`` of the median and than
    ``smallest``, which is above 0: points that are all alike would allow nothing else.

    Raises:
        statistics.StatisticsError: if there are no points.
    """
    middle = median(points)
    mad = median(abs(point - middle) for point in points)
    return UsualRange(middle, max(MAD_SCALE * mad, smallest_part * abs(middle), smallest))
