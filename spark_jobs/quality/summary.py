"""What a validation found, for the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from expectations.checks import CRITICAL
from expectations.judge import Outcome
from include.documents.model import Column, Document, Line, Table, Tone
from include.texts import as_count, crop_middle
from spark_jobs.quality.job import row_of

if TYPE_CHECKING:
    from spark_jobs.quality.validation import Validation

#: So many partitions of a failed check are named, and so many of its rows are shown.
MOST_PARTITIONS, MOST_ROWS = 5, 3
MAX_ROW_CHARACTERS = 200


def verdict(validation: Validation) -> str:
    """failed, warnings or passed."""
    if validation.critical_failures:
        return "failed"
    return "warnings" if validation.warnings else "passed"


def validation_document(validation: Validation) -> Document:
    """How many checks of each suite held, and what failed: some lines for each check, critical ones first."""
    verdicts: dict[str, tuple[str, Tone]] = {
        "failed": ("FAILED", "failed"),
        "warnings": ("PASSED with warnings", "warned"),
        "passed": ("PASSED", "good"),
    }
    words, tone = verdicts[verdict(validation)]
    arguments = validation.arguments
    failures = [
        line
        for of_check in _by_check([*validation.critical_failures, *validation.warnings])
        for line in _failure_lines(of_check)
    ]
    left = [Line(line.strip()) for line in validation.touched.described_left()]
    return Document(
        (_suites(validation.outcomes), *failures, *left, Line(f"Data Docs: {validation.data_docs}")),
        verdict=(Line(f"{words}: source {arguments.source}, log hours {arguments.log_hours}", tone),),
    )


def as_json(validation: Validation) -> dict[str, Any]:
    """The same as plain values; every failure in full, checks that held only as numbers."""
    log_hours = validation.arguments.log_hours
    return {
        "run_id": validation.run_id,
        "validated_at": validation.validated_at.isoformat(),
        "source": validation.arguments.source,
        "from": str(log_hours.start),
        "to": str(log_hours.end),
        "verdict": verdict(validation),
        "checks": len(validation.outcomes),
        "partitions": len({outcome.partition for outcome in validation.outcomes}),
        "critical_failures": len(validation.critical_failures),
        "warnings": len(validation.warnings),
        "seconds": round(validation.seconds, 3),
        "data_docs": str(validation.data_docs),
        "left_to_other_runs": {str(hour): str(owner) for hour, owner in validation.touched.left.items()},
        "failures": [row_of(outcome) for outcome in [*validation.critical_failures, *validation.warnings]],
    }


def _suites(outcomes: Sequence[Outcome]) -> Table:
    rows = []
    for suite in dict.fromkeys(outcome.check.suite for outcome in outcomes):
        of_suite = [outcome for outcome in outcomes if outcome.check.suite == suite]
        passed = sum(outcome.outcome == "pass" for outcome in of_suite)
        critical = sum(outcome.is_critical_failure for outcome in of_suite)
        failed = sum(outcome.has_failed for outcome in of_suite)
        counts = (passed, failed - critical, critical, len(of_suite) - passed - failed)
        rows.append((suite, *map(as_count, counts)))
    headings = ("Passed", "Warnings", "Critical", "Not judged")
    return Table("Checks", (Column("Suite", "name"), *map(Column, headings)), tuple(rows))


def _by_check(failures: Sequence[Outcome]) -> list[list[Outcome]]:
    by_check: dict[tuple[str, str, str | None], list[Outcome]] = {}
    for outcome in failures:
        by_check.setdefault((outcome.check.suite, outcome.check.name, outcome.source), []).append(outcome)
    return list(by_check.values())


def _failure_lines(failures: Sequence[Outcome]) -> list[Line]:
    """One check that failed, of the partitions that it failed for; found and rows are the first one's."""
    first, check = failures[0], failures[0].check
    more = len(failures) - MOST_PARTITIONS
    named = ", ".join(outcome.partition for outcome in failures[:MOST_PARTITIONS])
    return [
        Line(f"{check.severity}: {check.suite}.{check.name}", "failed" if check.severity == CRITICAL else "warned"),
        Line(f"  in       {named}{f' and {more} more' if more > 0 else ''}"),
        Line(f"  expected {check.holds}"),
        Line(f"  found    {first.finding.observed}"),
        *(Line(f"  such as  {crop_middle(text, MAX_ROW_CHARACTERS)}") for text in first.finding.examples[:MOST_ROWS]),
        Line(f"  {check.reason}"),
        Line(""),
    ]
