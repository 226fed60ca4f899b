"""How long what is stored is kept: the section ``[retention]`` of ``config/pipeline.toml``."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class RetentionSettings(BaseModel):
    """For how many days what is stored; None: for good. What each is, is commented in ``config/pipeline.toml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    landing_days: int | None = Field(None, ge=1)
    clicks_days: int | None = Field(None, ge=1)
    counts_days: int | None = Field(None, ge=1)
    progress_days: int | None = Field(None, ge=1)
