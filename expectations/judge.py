"""Judge metric frames by Great Expectations, and write Data Docs of each run.

And findings: numbers whose bounds differ from hour to hour, each with its own words, as what the past says of an hour.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import great_expectations as gx
import pandas as pd
from great_expectations.core.expectation_validation_result import ExpectationSuiteValidationResult
from great_expectations.data_context.types.base import ProgressBarsConfig
from great_expectations.expectations.metadata_types import FailureSeverity
from great_expectations.render.renderer import ValidationResultsPageRenderer
from great_expectations.render.view import DefaultJinjaPageView

from expectations.checks import CRITICAL, Check
from include.hours import Hour
from include.pages.render import write_page

PASS, FAIL = "pass", "fail"
#: The outcome where there is too little to judge by: neither a pass nor a failure.
NOT_ENOUGH_HISTORY = "not_enough_history"


@dataclass(frozen=True, order=True)
class Partition:
    """A source's log hour; a click hour when it is of no source."""

    hour: Hour
    source: str | None = None

    def __str__(self) -> str:
        return f"{self.source} {self.hour}" if self.source else str(self.hour)


@dataclass(frozen=True)
class Finding:
    """What one check found of one partition.

    ``judged`` is what the check's expectation looks at; None when there is not enough history. ``observed`` says what
    was found. ``value`` is the number that a reader knows, and ``lowest`` and ``highest`` are in its unit; None for
    none. ``examples`` are texts of what has failed, at most 20: rows, or fields.
    """

    judged: float | None
    observed: str
    value: float | None = None
    lowest: float | None = None
    highest: float | None = None
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """How one check came out for one partition: ``outcome`` is pass, fail, or the check's ``when_null``.

    ``page`` is the name of the Data Docs page; ``source`` is None where the partition is of all sources.
    """

    check: Check
    partition: str
    source: str | None
    hour: str
    page: str
    outcome: str
    finding: Finding

    @property
    def has_failed(self) -> bool:
        """Whether what was expected did not hold."""
        return self.outcome == FAIL

    @property
    def is_critical_failure(self) -> bool:
        """Whether this stops publishing."""
        return self.has_failed and self.check.severity == CRITICAL


#: By partition and the name of the check, which is the column that it judges.
Findings = Mapping[tuple[Partition, str], Finding]


def judge(
    page_name: str,
    frame: pd.DataFrame,
    checks: Sequence[Check],
    docs_folder: Path,
    findings: Mapping[tuple[str, str], Finding] | None = None,
) -> list[Outcome]:
    """One outcome per check and row of the frame; Data Docs as ``<docs_folder>/<page_name>.html``.

    Beside what is judged the frame has ``partition``, ``source`` and ``hour``. A row in which a judged value is null
    has no outcome, unless the check says which. Findings, if there are some, say what was found of a partition by a
    check; where there is none, there is no outcome.
    """
    if frame.empty:
        return []
    frame = frame.reset_index(drop=True)
    result = _validate(page_name, frame, checks)
    html = str(_page_view().render(ValidationResultsPageRenderer().render(result)))  # type: ignore[no-untyped-call]
    page = docs_folder / f"{page_name}.html"
    write_page(html, page)
    outcomes: list[Outcome] = []
    for checked in result.results:
        assert checked.expectation_config is not None
        check = checks[checked.expectation_config.meta["check"]]
        failed = set(checked.result.get("unexpected_index_list") or ())
        # An expectation that could not be evaluated holds for nothing.
        is_evaluated = bool(checked.success or failed)
        outcomes += _outcomes(check, frame, findings, failed, is_evaluated, page.name)
    return outcomes


def judge_findings(page_name: str, findings: Findings, checks: Sequence[Check], docs_folder: Path) -> list[Outcome]:
    """One outcome per finding; Data Docs as ``<docs_folder>/<page_name>.html``."""
    frame = pd.DataFrame(
        [
            {"partition": str(partition), "source": partition.source, "hour": str(partition.hour)}
            | {check.name: _judged(findings.get((partition, check.name))) for check in checks}
            for partition in dict.fromkeys(partition for partition, _ in findings)
        ]
    )
    by_name = {(str(partition), check): finding for (partition, check), finding in findings.items()}
    return judge(page_name, frame, checks, docs_folder, by_name)


def _judged(finding: Finding | None) -> float:
    return float("nan") if finding is None or finding.judged is None else finding.judged


@cache
def _page_view() -> DefaultJinjaPageView:
    """One for all pages: each compiles its templates again, 17 a page."""
    return DefaultJinjaPageView()


def _outcomes(
    check: Check,
    frame: pd.DataFrame,
    findings: Mapping[tuple[str, str], Finding] | None,
    failed: set[int],
    is_evaluated: bool,
    page: str,
) -> Iterator[Outcome]:
    columns = [value for name, value in check.expectation.configuration.kwargs.items() if name.startswith("column")]
    words = frame[check.finding] if check.finding else [None] * len(frame)
    judged = (frame[name] for name in columns)
    rows = zip(frame["partition"], frame["source"], frame["hour"], words, *judged, strict=True)
    for number, (partition, source, hour, more, *values) in enumerate(rows):
        outcome: str | None = PASS if is_evaluated and number not in failed else FAIL
        if is_evaluated and any(map(_is_null, values)):
            outcome = check.when_null
        if findings is None:
            finding: Finding | None = _finding(check, columns, values, more)
        else:
            finding = findings.get((partition, check.name))
        if outcome is not None and finding is not None:
            yield Outcome(check, partition, source, hour, page, outcome, finding)


def _finding(check: Check, columns: Sequence[str], values: Sequence[Any], more: Any) -> Finding:
    """The values that were judged, and what else the frame has to say of them."""
    kwargs = check.expectation.configuration.kwargs
    lowest, highest = kwargs.get("min_value"), kwargs.get("max_value")
    if len(values) == 2:
        lowest = highest = values[1]
    observed = ", ".join(f"{name} = {_shown(value)}" for name, value in zip(columns, values, strict=True))
    if not _is_null(more) and more != "":
        observed += f"; {more}"
    value = _number(values[0])
    return Finding(value, observed, value, _number(lowest), _number(highest))


def _shown(value: Any) -> str:
    if isinstance(value, float) and not _is_null(value):
        return f"{value:.0f}" if value.is_integer() else f"{value:.6g}"
    return "nothing" if _is_null(value) else str(value)


def _is_null(value: Any) -> bool:
    return bool(pd.isna(value))


def _number(value: Any) -> float | None:
    return None if isinstance(value, str) or value is None or _is_null(value) else float(value)


def _validate(page_name: str, frame: pd.DataFrame, checks: Sequence[Check]) -> ExpectationSuiteValidationResult:
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    for number, check in enumerate(checks):
        check.expectation.meta = {"check": number}
        check.expectation.severity = FailureSeverity(check.severity)
        check.expectation.notes = check.reason
    # All together: added one by one, of two that expect the same the second would be left out without a word.
    suite = gx.ExpectationSuite(page_name, expectations=[check.expectation for check in checks])
    batch = (
        context.data_sources.add_pandas("metrics")
        .add_dataframe_asset(page_name)
        .add_batch_definition_whole_dataframe("all")
        .get_batch({"dataframe": frame})
    )
    # Most frames pass. Which rows failed takes half as long again to find out.
    result = batch.validate(suite, result_format="BASIC")
    return result if result.success else batch.validate(suite, result_format={"result_format": "COMPLETE"})
