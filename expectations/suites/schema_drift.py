"""Suite ``schema_drift``: a JSON source's fields against those of its earlier log hours.

Fields are those of a sample of the lines (``spark_jobs/lines/json_fields.py``). Lines of access logs have none, and no
outcome.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from statistics import median
from typing import Any

from expectations.checks import WARNING, Check, zero
from expectations.facts import Facts
from expectations.judge import NOT_ENOUGH_HISTORY, Finding, Findings, Partition
from include.hours import Hour, LogHour
from include.sources import Source
from include.tables import INGEST_ACCOUNTING
from include.texts import as_printable
from include.usual_range import SchemaDriftSettings, hours_looked_at

#: A field is gone when it is in none of the lines, and by its usual share would be in so many: in none of them by
#: chance once in e^10 times, if lines have it independently of each other.
MISSED_LINES = 10
MAX_LISTED, MAX_EXAMPLES = 5, 20

NEW, GONE, CHANGED = "no_new_fields", "no_fields_gone", "no_types_changed"

#: What a mapped field is in the clicks, by its path.
Mapped = Mapping[str, str]


@dataclass(frozen=True)
class HourFields:
    """The fields of one log hour's sampled lines: ``observed`` has path, type, lines and perhaps an example of each."""

    lines: int
    observed: Sequence[Mapping[str, Any]]

    @cached_property
    def types(self) -> dict[str, dict[str, Mapping[str, Any]]]:
        """What was found by path and type; null is no type, but a field that is always null is there, of no types."""
        by_path: dict[str, dict[str, Mapping[str, Any]]] = {}
        for observed in self.observed:
            types = by_path.setdefault(observed["path"], {})
            if observed["type"] != "null":
                types[observed["type"]] = observed
        return by_path

    def share(self, path: str) -> float:
        """The share of the lines that have a value of the field; above 1 for what is in arrays of mixed types."""
        lines: int = sum(observed["lines"] for observed in self.types.get(path, {}).values())
        return lines / self.lines


def log_hour_checks(settings: SchemaDriftSettings) -> list[Check]:
    """Warnings all: what the counts need of a field is judged by what became of the lines."""
    earlier = f"in the last {settings.hours} hours and the same hour of the last {settings.days} days"
    return [
        _check(
            NEW,
            f"no field that was in no sampled line {earlier}",
            "The source has begun to send more. Nothing is lost; map the field in config/sources.toml if it is of use, "
            "or name it in unwatched_fields.",
        ),
        _check(
            GONE,
            f"every field that is usual {earlier} is still there",
            "A mapped field that is gone is null in the clicks, or sends the lines to quarantine: ask the source, and "
            "fix the mapping in config/sources.toml. Others nobody reads.",
        ),
        _check(
            CHANGED,
            f"no field has values of a type that it did not have {earlier}",
            "Values of another type may be read in another way, or not at all: see the clicks and quarantined_clicks. "
            "Integers where there were numbers with a point are no change; the other way round is one.",
        ),
    ]


def _check(name: str, holds: str, reason: str) -> Check:
    table = INGEST_ACCOUNTING.name
    return Check(
        suite="schema_drift",
        name=name,
        table=table,
        expectation=zero(name),
        severity=WARNING,
        holds=holds,
        reason=reason,
        when_null=NOT_ENOUGH_HISTORY,
    )


def schema_drift_findings(
    log_hours: Iterable[Hour], sources: Iterable[Source], facts: Facts, settings: SchemaDriftSettings
) -> Findings:
    """New, gone and changed fields of each source's log hours."""
    accounts = {
        LogHour.of(fact): HourFields(fact["sampled_lines"], fact["sampled_fields"])
        for fact in facts["accounting_history"].to_pylist()
        # Null for access logs, and for hours ingested before fields were looked at.
        if fact["sampled_lines"]
    }
    findings: dict[tuple[Partition, str], Finding] = {}
    for source, hour in product(sources, log_hours):
        now = accounts.get(LogHour(source.name, hour))
        if now is not None and source.fields is not None:
            others = (LogHour(source.name, earlier) for earlier in hours_looked_at(hour, settings))
            before = [accounts[other] for other in others if other in accounts]
            mapped = source.fields.sampled_paths()
            for check, drifted in _drift(now, before, mapped):
                findings[Partition(hour, source.name), check] = _finding(drifted, now, len(before), settings)
    return findings


def _drift(now: HourFields, before: Sequence[HourFields], mapped: Mapped) -> Iterator[tuple[str, list[str]]]:
    """Each check with what it finds, in words, the mapped fields first."""
    known: dict[str, set[str]] = {}
    for hour in before:
        for path, types in hour.types.items():
            known.setdefault(path, set()).update(types)
    for check, words_of_path in (
        (NEW, {path: _seen(path, now) for path in now.types if path not in known}),
        (GONE, dict(_gone(now, before, known, mapped))),
        (CHANGED, dict(_changed(now, known))),
    ):
        paths = sorted(words_of_path, key=lambda path: (path not in mapped, path))
        yield check, [f"{_named(path, mapped)}: {words_of_path[path]}" for path in paths]


def _gone(
    now: HourFields, before: Sequence[HourFields], known: Collection[str], mapped: Mapped
) -> Iterator[tuple[str, str]]:
    for path in known:
        share = median(hour.share(path) for hour in before) if before else 0
        if not now.types.get(path) and share * now.lines >= MISSED_LINES:
            where = "null in all" if path in now.types else "in none"
            worse = ", and the clicks are without it" if path in mapped else ""
            yield path, f"{where} of {now.lines:,} sampled lines, before in {min(share, 1):.0%}{worse}"


def _changed(now: HourFields, known: Mapping[str, set[str]]) -> Iterator[tuple[str, str]]:
    for path, types in now.types.items():
        before = known.get(path, set())
        # Who reads numbers reads whole ones.
        fit = before | {"integer"} if "number" in before else before
        others = [_seen_as(type_, observed, now) for type_, observed in sorted(types.items()) if type_ not in fit]
        if before and others:
            yield path, f"{', '.join(others)}; before {', '.join(sorted(before))}"


def _seen(path: str, now: HourFields) -> str:
    types = now.types[path]
    return ", ".join(_seen_as(type_, observed, now) for type_, observed in sorted(types.items())) or "null"


def _seen_as(type_: str, observed: Mapping[str, Any], now: HourFields) -> str:
    example = f", such as {observed['example']}" if observed.get("example") is not None else ""
    return f"{type_} in {observed['lines']:,} of {now.lines:,} sampled lines{example}"


def _named(path: str, mapped: Mapped) -> str:
    return as_printable(path) + (f" (mapped: {mapped[path]})" if path in mapped else "")


def _finding(drifted: Sequence[str], now: HourFields, earlier_hours: int, settings: SchemaDriftSettings) -> Finding:
    looked_at = f"{len(now.types):,} fields in {now.lines:,} sampled lines; {earlier_hours} earlier log hours"
    if earlier_hours < settings.min_hours:
        return Finding(None, f"{looked_at} of the {settings.min_hours} needed")
    fields = f"{len(drifted)} field{'s' if len(drifted) > 1 else ''}"
    text = "; ".join((fields, *drifted[:MAX_LISTED])) if drifted else "none"
    return Finding(len(drifted), f"{text}; of {looked_at}", len(drifted), 0, 0, tuple(drifted[:MAX_EXAMPLES]))
