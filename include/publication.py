"""How much of single visitors may be seen in what is published; commented in ``config/pipeline.toml``."""

from __future__ import annotations

from datetime import date

from pydantic import BaseModel, ConfigDict, Field


class NoiseSettings(BaseModel):
    """Of counts that are released with noise."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    epsilon: float = Field(gt=0, allow_inf_nan=False)
    delta: float = Field(gt=0, lt=1)
    clicks_per_visitor_per_day: int = Field(ge=1)
    releases_per_day: int = Field(1, ge=1)
    first_day: date | None = None
    wait_days: int = Field(3, ge=0)


class PublicationSettings(BaseModel):
    """What the published tables may show: keys with fewer visitors are in one row; 0: every key has its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    smallest_visitors: int = Field(0, ge=0)
    noise: NoiseSettings | None = None
