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
    """Whether one check held for one partition; ``observed`` says what was found.

    ``page`` is the name of the Data Docs page; ``source`` is None where the partition is of all sources.
    ``observed_value``, ``lowest`` and ``highest`` are numbers where the check is on one number; None else.
    """

    check: Check
    partition: str
    source: str | None
    hour: str
    page: str
    success: bool
    observed: str
    observed_value: float | None
    lowest: float | None
    highest: float | None

    @property
    def is_critical_failure(self) -> bool:
        """Whether this stops publishing."""
        return not self.success and self.check.severity == CRITICAL


def judge(page_name: str, frame: pd.DataFrame, checks: Sequence[Check], docs_folder: Path) -> list[Outcome]:
    """One outcome per check and row of the frame; Data Docs as ``<docs_folder>/<page_name>.html``.

    Beside what is judged the frame has ``partition``, ``source`` and ``hour``.
    """
    if frame.empty:
        return []
    result = _validate(page_name, frame, checks)
    docs_folder.mkdir(parents=True, exist_ok=True)
    html = str(DefaultJinjaPageView().render(ValidationResultsPageRenderer().render(result)))  # type: ignore[no-untyped-call]
    page = docs_folder / f"{page_name}.html"
    page.write_text(html, encoding="utf-8")
    outcomes = []
    for checked in result.results:
        assert checked.expectation_config is not None
        check = checks[checked.expectation_config.meta["check"]]
        kwargs = check.expectation.configuration.kwargs
        columns = [value for name, value in kwargs.items() if name.startswith("column")]
        failed = set(checked.result.get("unexpected_index_list") or ())
        for index, row in frame.iterrows():
            # An expectation that could not be evaluated holds for nothing.
            success = index not in failed and (checked.success or bool(failed))
            outcomes.append(
                Outcome(
                    check,
                    row["partition"],
                    row["source"],
                    row["hour"],
                    page.name,
                    success,
                    _observed(row, columns),
                    _number(row[columns[0]]) if len(columns) == 1 else None,
                    _number(kwargs.get("min_value")),
                    _number(kwargs.get("max_value")),
                )
            )
    return outcomes


def _observed(row: pd.Series[Any], columns: Sequence[str]) -> str:
    """The values that were judged, and what the frame has to say of them in its column ``finding``, if it has one."""
    values = ", ".join(f"{name} = {row[name]}" for name in columns)
    return f"{values}; {row['finding']}" if "finding" in row else values


def _number(value: Any) -> float | None:
    return None if isinstance(value, str) or pd.isna(value) else float(value)


def _validate(page_name: str, frame: pd.DataFrame, checks: Sequence[Check]) -> ExpectationSuiteValidationResult:
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    suite = gx.ExpectationSuite(page_name)
    for number, check in enumerate(checks):
        check.expectation.meta = {"check": number}
        check.expectation.severity = FailureSeverity(check.severity)
        check.expectation.notes = check.reason
        suite.add_expectation(check.expectation)
    batch = (
        context.data_sources.add_pandas("metrics")
        .add_dataframe_asset(page_name)
        .add_batch_definition_whole_dataframe("all")
        .get_batch({"dataframe": frame})
    )
    return batch.validate(suite, result_format={"result_format": "COMPLETE"})
