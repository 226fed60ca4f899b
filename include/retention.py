"""How long what is stored is kept: ``[retention]`` of ``config/pipeline.toml``, and of a source in ``sources.toml``."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class SourceRetention(BaseModel):
    """For how many days what came of a source is kept; None: as for all sources, and of them for good."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    landing_days: int | None = Field(None, ge=1)
    clicks_days: int | None = Field(None, ge=1)
    quarantined_days: int | None = Field(None, ge=1)

    def or_of(self, others: SourceRetention) -> SourceRetention:
        """These days; where one is not said, those of the others."""
        of_others = {name: getattr(others, name) for name in SourceRetention.model_fields}
        return SourceRetention.model_validate(of_others | self.model_dump(exclude_none=True))


class RetentionSettings(SourceRetention):
    """The same for all sources, and what is of no source; commented in ``config/pipeline.toml``."""

    landing_archive: Path | None = None
    counts_days: int | None = Field(None, ge=1)
    progress_days: int | None = Field(None, ge=1)
    visitor_key_days: int = Field(31, ge=1)
