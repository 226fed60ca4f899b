"""Bounds of the quality checks, and further checks, as ``config/`` names them: for all sources, or for one."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from include.shares import SHARES
from include.tables import CLICKS

#: What a source's log hour has been measured by. Shares are 0 to 1; of nothing there is none, and nothing to judge.
LOG_HOUR_METRICS = (
    "lines", "accepted", "files", "bytes", "duplicate_share", "left_out_share", "out_of_order_share", *SHARES,
)  # fmt: skip

#: And what is measured of a column of the clicks.
COLUMN_METRICS = {
    "null_share": "clicks in which the column is null among the clicks",
    "matching_share": "clicks in which the column's text fits the pattern among the clicks",
}
COLUMNS = tuple(name for name in CLICKS.column_names if name not in ("log_date", "log_hour", "source"))


class Threshold(BaseModel):
    """Above ``warning`` a partition is published and shown, above ``critical`` it is held; null: no such bound."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    warning: float | None = Field(None, ge=0)
    critical: float | None = Field(None, ge=0)

    @model_validator(mode="after")
    def critical_is_not_below_warning(self) -> Threshold:
        """Nothing is held that would not have been warned of."""
        self._require_order()
        return self

    def or_of(self, general: Threshold) -> Threshold:
        """This one; a bound that it leaves out is the general one.

        Raises:
            ValueError: if the two bounds do not fit each other.
        """
        whole = general.model_copy(update=self.model_dump(exclude_none=True))
        whole._require_order(" (the bound that is left out is the general one)")
        return whole

    @property
    def lowest(self) -> float:
        """The bound that is met first; infinity if there is none."""
        return min((bound for bound in (self.warning, self.critical) if bound is not None), default=math.inf)

    def _require_order(self, whence: str = "") -> None:
        if self.warning is not None and self.critical is not None and self.critical < self.warning:
            raise ValueError(
                f"critical = {self.critical:g} is below warning = {self.warning:g}{whence}; expected it above"
            )


#: The bounds that each source has unless it, or the pipeline, says otherwise.
SOURCE_THRESHOLDS = {
    metric: Threshold(warning=share.warning, critical=share.critical) for metric, share in SHARES.items()
}
#: Bounds of what is of all sources together.
THRESHOLDS = SOURCE_THRESHOLDS | {
    "top_url_share": Threshold(warning=0.5),
    "files_per_partition": Threshold(warning=64),
    "landed_files": Threshold(warning=5000),
    "skew": Threshold(warning=2.5),
}


def checked_thresholds(thresholds: Mapping[str, Threshold], known: Mapping[str, Threshold]) -> dict[str, Threshold]:
    """The thresholds, if all are known, and none of a share is above 1.

    Raises:
        ValueError: naming those that are not, and what is known.
    """
    _require_known("threshold", thresholds, known)
    for metric, threshold in thresholds.items():
        bounds = [bound for bound in (threshold.warning, threshold.critical) if bound is not None]
        if not bounds:
            raise ValueError(f"{metric} has no bound; expected warning, critical or both")
        if metric.endswith("_share") and max(bounds) > 1:
            raise ValueError(f"{metric} has the bound {max(bounds):g}; expected a share, 0 to 1")
    return dict(thresholds)


class ConfiguredCheck(BaseModel):
    """One check of a source's log hours that is declared in ``config/``; commented in ``config/sources.toml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)
    metric: str
    column: str | None = None
    pattern: str | None = None
    lowest: float | None = None
    highest: float | None = None
    severity: Literal["critical", "warning"] = "warning"
    reason: str = Field(min_length=1)

    @model_validator(mode="after")
    def is_of_something_that_is_measured(self) -> ConfiguredCheck:
        """Metric and column are known, and fit each other; there is a bound."""
        _require_known("metric", [self.metric], [*LOG_HOUR_METRICS, *COLUMN_METRICS])
        if (self.metric in COLUMN_METRICS) != (self.column is not None):
            raise ValueError(f"column belongs to the metrics {', '.join(COLUMN_METRICS)}, and they need one")
        if self.column is not None:
            _require_known("column", [self.column], COLUMNS)
        if (self.metric == "matching_share") != (self.pattern is not None):
            raise ValueError("pattern belongs to the metric matching_share, and it needs one")
        if self.lowest is None and self.highest is None:
            raise ValueError("no bound; expected lowest, highest or both")
        if self.lowest is not None and self.highest is not None and self.highest < self.lowest:
            raise ValueError(f"highest = {self.highest:g} is below lowest = {self.lowest:g}")
        if self.pattern is not None:
            try:
                re.compile(self.pattern)
            except re.error as error:
                raise ValueError(f"pattern {self.pattern!r} is no regular expression: {error}") from None
        return self

    @property
    def measured(self) -> str:
        """The number that is judged, such as ``late_share``, ``null_share(referrer)``."""
        parameters = [text for text in (self.column, self.pattern) if text is not None]
        return f"{self.metric}({', '.join(parameters)})" if parameters else self.metric


def checked_names(checks: tuple[ConfiguredCheck, ...]) -> tuple[ConfiguredCheck, ...]:
    """The checks, if no name comes twice.

    Raises:
        ValueError: naming one that does.
    """
    names = [check.name for check in checks]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"the check {twice[0]!r} is there twice; expected a different name for each")
    return checks


def _require_known(noun: str, names: Iterable[str], known: Iterable[str]) -> None:
    allowed = list(known)
    unknown = [name for name in names if name not in allowed]
    if unknown:
        raise ValueError(f"unknown {noun} {unknown[0]!r}; expected one of {', '.join(allowed)}")
