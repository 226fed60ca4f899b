"""How much of single visitors may be seen in what is published; commented in ``config/pipeline.toml``."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class PublicationSettings(BaseModel):
    """What the published tables may show: keys with fewer visitors are in one row; 0: every key has its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    smallest_visitors: int = Field(0, ge=0)
