"""Judge metric frames by Great Expectations, and write Data Docs of each run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import great_expectations as gx
import pandas as pd
from great_expectations.core.expectation_validation_result import ExpectationSuiteValidationResult
from great_expectations.data_context.types.base import ProgressBarsConfig
from great_expectations.expectations.metadata_types import FailureSeverity
from great_expectations.render.renderer import ValidationResultsPageRenderer
from great_expectations.render.view import DefaultJinjaPageView

from expectations.suites import CRITICAL, Check


@dataclass(frozen=True)
class Outcome:
    """Whether one expectation held for one partition; ``observed`` says what was found where it did not."""

    suite: str
    partition: str
    expectation: str
    severity: str
    success: bool
    observed: str | None
    advice: str

    @property
    def is_critical_failure(self) -> bool:
        """Whether this stops publishing."""
        return not self.success and self.severity == CRITICAL


def judge(suite_name: str, frame: pd.DataFrame, checks: Sequence[Check], docs_folder: Path) -> list[Outcome]:
    """One outcome per check and row of the frame; Data Docs as ``<docs_folder>/<suite>.html``."""
    if frame.empty:
        return []
    result = _validate(suite_name, frame, checks)
    docs_folder.mkdir(parents=True, exist_ok=True)
    page = str(DefaultJinjaPageView().render(ValidationResultsPageRenderer().render(result)))  # type: ignore[no-untyped-call]
    (docs_folder / f"{suite_name}.html").write_text(page, encoding="utf-8")
    outcomes = []
    for checked in result.results:
        assert checked.expectation_config is not None
        check = checks[checked.expectation_config.meta["check"]]
        columns = [v for k, v in check.expectation.configuration.kwargs.items() if k.startswith("column")]
        failed = set(checked.result.get("unexpected_index_list") or ())
        for index, row in frame.iterrows():
            # An expectation that could not be evaluated holds for nothing.
            success = index not in failed and (checked.success or bool(failed))
            observed = None if success else _observed(row, columns)
            outcomes.append(
                Outcome(suite_name, row["partition"], check.holds, check.severity, success, observed, check.reason)
            )
    return outcomes


def _observed(row: pd.Series[Any], columns: Sequence[str]) -> str:
    """The values that were judged, and what the frame has to say of them in its column ``finding``, if it has one."""
    values = ", ".join(f"{name} = {row[name]}" for name in columns)
    return f"{values}; {row['finding']}" if "finding" in row else values


def _validate(suite_name: str, frame: pd.DataFrame, checks: Sequence[Check]) -> ExpectationSuiteValidationResult:
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    suite = gx.ExpectationSuite(suite_name)
    for number, check in enumerate(checks):
        check.expectation.meta = {"check": number}
        check.expectation.severity = FailureSeverity(check.severity)
        check.expectation.notes = check.reason
        suite.add_expectation(check.expectation)
    batch = (
        context.data_sources.add_pandas("metrics")
        .add_dataframe_asset(suite_name)
        .add_batch_definition_whole_dataframe("all")
        .get_batch({"dataframe": frame})
    )
    return batch.validate(suite, result_format={"result_format": "COMPLETE"})
