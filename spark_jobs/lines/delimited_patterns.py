"""Regular expressions (RE2) of lines whose columns are known, with one blank between two: as servers write most.

They take a third of the time of cutting a line at each blank. A line that has what is harder to read (a tab or several
blanks between columns, a quotation mark inside of one) does not fit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from include.duckdb_sql import quoted
from spark_jobs.lines.pattern_steps import MOST_PARTS, Pattern

_COLUMN = r'"[^"\x1c-\x1f]*"|[^" \t\r\n\x1c-\x1f]+'
_QUOTE = quoted('"')
_ANY = f"(?:{_COLUMN})"

_WORD = r'[^" \t\r\n\x1c-\x1f]+'
_REST_OF_COLUMN = r'[^" \t\r\n\x1c-\x1f]*'
_NO_DIGIT = rf'[^"\d \t\r\n\x1c-\x1f]{_REST_OF_COLUMN}'
_QUOTED = r'"[^"\x1c-\x1f]*"'
#: One of the columns behind those that are needed, not the time of another line: that is in brackets, or a date which
#: no quoted column follows, as one does that of ALB's request.
_MORE = rf'-[^" \t\r\n\x1c-\x1f]{_REST_OF_COLUMN} {_QUOTED}|[^"\- \t\r\n\x1c-\x1f]{_REST_OF_COLUMN}'
for _ in range(3):
    _MORE = rf"{_NO_DIGIT}|\d(?:{_MORE})?"
_MORE = rf'{_QUOTED}|[^"[\d \t\r\n\x1c-\x1f]{_REST_OF_COLUMN}|\d(?:{_MORE})?'
#: The same found in the columns behind those that are needed.
ANOTHER_TIME = r'(?:^| )(?:\[\d\d/|\d{4}-\d\d-\d\d\S* [^"])'


def column_steps(numbers: Iterable[int], fewest: int, most: int | None) -> list[Pattern]:
    """The patterns that take out columns by their numbers, from 1, of a line with the ``fewest`` to ``most``, or more.

    The groups are named ``column1`` and so on, and are never empty: a quoted column has its quotation marks.
    """
    wanted = sorted(numbers)
    patterns, taken = [], 0
    while len(wanted) > MOST_PARTS:
        part, wanted = wanted[: MOST_PARTS - 1], wanted[MOST_PARTS - 1 :]
        columns = "".join(f"{_column(number, part)} " for number in range(taken + 1, part[-1] + 1))
        patterns.append(Pattern(f"^({columns})", ("before", *map(_name, part))))
        taken = part[-1]
    columns = " ".join(_column(number, wanted) for number in range(taken + 1, max(fewest, *wanted) + 1))
    more = "*" if most is None else f"{{0,{most - fewest}}}"
    return [*patterns, Pattern(rf"^{columns}(?: (?:{_MORE})){more}[\r\n]*$", (*map(_name, wanted),))]


#: The columns of AWS in which clients may have quotation marks; and those behind them that are words.
_TEXTS = ("request", "request_uri", "referer", "user_agent")
_WORDS_BEHIND = ("ssl_cipher", "ssl_protocol", "target_group_arn", "version_id")


def columns_with_quotes(columns: tuple[str, ...], numbers: Iterable[int], reading: Literal["short", "long"]) -> Pattern:
    """The pattern of a line of these columns whose texts, as short or as long as may be, have any quotation marks.

    The groups are the columns of these numbers, and all texts; the first is never empty.
    """
    wanted, last = {*numbers}, columns.index("user_agent") + 1
    needed = last + sum(name in _WORDS_BEHIND for name in columns)
    more = _WORD if "version_id" in columns else f'(?:"[^"]*"|{_WORD})'  # S3 quotes none of them
    texts = [number for number, name in enumerate(columns[:last], 1) if name in _TEXTS]

    def column(number: int) -> str:
        if number in texts:
            return f'"(.*{"?" * (reading == "short")})"'
        pattern = _WORD if number <= needed else more
        return f"({pattern})" if number in wanted else pattern

    behind = ""
    for number in range(max(wanted), needed, -1):  # of which older lines have fewer
        behind = f"(?: {column(number)}{behind})?"
    before = " ".join(map(column, range(1, needed + 1)))
    names = tuple(map(_name, sorted(wanted.union(texts))))
    return Pattern(rf"^{before}{behind}(?: {more})*[\r\n]*$", names)


def inner_text(column: str) -> str:
    """The SQL of a column's text, null for ``-``."""
    return f"nullif(replace({column}, {_QUOTE}, ''), '-')"


def _column(number: int, wanted: list[int]) -> str:
    return f"({_COLUMN})" if number in wanted else _ANY


def _name(number: int) -> str:
    return f"column{number}"
