"""Lines taken apart in steps, by a regular expression (RE2) each, which goes on where the one before it ended.

Where there is one way on at each character, and at most four parts are taken out, RE2 takes a step in one pass, which
is a tenth of the time.
"""

from __future__ import annotations

from dataclasses import dataclass

from include.duckdb_sql import quoted

#: More parts than these RE2 does not take out in one pass; one is needed for the line up to the next step.
MOST_PARTS = 4

#: Of a part that is not there servers write this; nothing where a format says so.
_ABSENT = "-"

#: A group that is never empty where its step fits; ``before`` and ``all`` are the texts up to the step's end.
_NEVER_EMPTY = ("before", "all", "time", "status")


@dataclass(frozen=True)
class Pattern:
    """A regular expression, and what its groups are; one of them, or else the first, is in ``_NEVER_EMPTY``."""

    text: str
    names: tuple[str, ...]


def in_steps(patterns: list[Pattern]) -> tuple[str, str, dict[str, str]]:
    """The SQL of a table of ``lines``, of whether a line fits all the steps, and of each group by its name.

    Each pattern but the last has the group ``before``: the whole text that it took.
    """
    source, tables = "lines", []
    is_formed: list[str] = []
    taken: list[str] = []
    values: dict[str, str] = {}
    for number, pattern in enumerate(patterns):
        step = f"step{number}"
        text = f"substr(text, length({taken[-1]}['before']) + 1)" if taken else "text"
        tables.append(
            f"SELECT {', '.join([f'{text} AS text', *taken])}, {extracted(text, pattern)} AS {step} FROM {source}"
        )
        taken.append(step)
        source = f"taken{number}"
        always = next((name for name in _NEVER_EMPTY if name in pattern.names), pattern.names[0])
        is_formed.append(f"{step}['{always}'] <> ''")
        values |= {name: f"{step}['{name}']" for name in pattern.names if name not in ("before", "all")}
    # What is taken apart twice is taken apart once.
    before = [f"taken{number} AS MATERIALIZED ({table})" for number, table in enumerate(tables[:-1])]
    return (f"WITH {', '.join(before)} " if before else "") + tables[-1], " AND ".join(is_formed), values


def extracted(text: str, pattern: Pattern) -> str:
    """The SQL of what the pattern takes out of a text: a structure of its groups, empty where it does not fit."""
    return f"regexp_extract({text}, {quoted(pattern.text)}, [{', '.join(map(quoted, pattern.names))}], 's')"


def or_null(value: str) -> str:
    """The SQL of a part that may be absent."""
    return f"nullif({value}, '{_ABSENT}')"
