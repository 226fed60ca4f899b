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
_QUOTED = r'"[^"\x1c-\x1f]*"'
_WORD = r'[^" \t\r\n\x1c-\x1f]+'
#: The time of another line, found in the columns behind those that are needed: in brackets, or a date which no quoted
#: column follows, as one does that of ALB's request.
ANOTHER_TIME = r'(?:^| )(?:\[\d\d/|\d{4}-\d\d-\d\d\S* [^"])'

#: The columns of AWS in which clients may have quotation marks.
_TEXTS = ("request", "request_uri", "referer", "user_agent")
#: Those behind them that are words, of which lines have the first ones always; the others are quoted.
_WORDS_BEHIND = ("ssl_cipher", "ssl_protocol", "target_group_arn", "version_id")
_WORDS = (
    *_WORDS_BEHIND,
    *("matched_rule_priority", "request_creation_time", "conn_trace_id", "host_id", "signature_version"),
    *("cipher_suite", "authentication_type", "host_header", "tls_version", "access_point_arn", "acl_required"),
)
_WORD_BEHIND, _QUOTED_BEHIND = r'[^"\[ \t\r\n\x1c-\x1f][^" \t\r\n\x1c-\x1f]*', f"(?:{_QUOTED}|-)"


def columns_behind(columns: tuple[str, ...], after: int, wanted: Iterable[int] = (), *, are_cut: bool = False) -> str:
    """The pattern of the columns behind one of them as AWS writes them; of a line as many as it has, and newer ones.

    To S3's words others may come, to ALB's texts; not to those of the classic balancer. ``are_cut``: no quoted column
    has a blank any more.
    """
    word, text = (r'[^"\[ ][^ ]*', r'(?:"[^ ]*|-)') if are_cut else (_WORD_BEHIND, _QUOTED_BEHIND)
    more = {"acl_required": f"(?: {word})*", "conn_trace_id": f"(?: {text})*"}.get(columns[-1], "")
    for number in range(len(columns), after, -1):
        pattern = word if columns[number - 1] in _WORDS else text
        more = f"(?: {f'({pattern})' if number in wanted else pattern}{more})?"
    return more


def column_steps(columns: tuple[str, ...], numbers: Iterable[int], fewest: int) -> list[Pattern]:
    """The patterns that take out columns by their numbers, from 1, of a line with the ``fewest`` or more.

    The groups are named ``column1`` and so on, and are never empty: a quoted column has its quotation marks.
    """
    wanted = sorted(numbers)
    patterns, taken = [], 0

    def column(number: int) -> str:
        pattern = _COLUMN
        if number > columns.index("user_agent") + 1:
            pattern = _WORD_BEHIND if columns[number - 1] in _WORDS else _QUOTED_BEHIND
        return f"({pattern})" if number in wanted else f"(?:{pattern})"

    while len(wanted) > MOST_PARTS:
        part, rest = wanted[: MOST_PARTS - 1], wanted[MOST_PARTS - 1 :]
        texts = "".join(f"{column(number)} " for number in range(taken + 1, part[-1] + 1))
        patterns.append(Pattern(f"^({texts})", ("before", *map(_name, part))))
        taken, wanted = part[-1], rest
    last = max(fewest, *wanted)
    texts = " ".join(map(column, range(taken + 1, last + 1)))
    return [*patterns, Pattern(rf"^{texts}{columns_behind(columns, last)}[\r\n]*$", (*map(_name, wanted),))]


def columns_with_quotes(columns: tuple[str, ...], numbers: Iterable[int], reading: Literal["short", "long"]) -> Pattern:
    """The pattern of a line of these columns whose texts, as short or as long as may be, have any quotation marks.

    The groups are the columns of these numbers, and all texts; the first is never empty.
    """
    wanted, last = {*numbers}, columns.index("user_agent") + 1
    needed = last + sum(name in _WORDS_BEHIND for name in columns)
    texts = [number for number, name in enumerate(columns[:last], 1) if name in _TEXTS]
    any_text = ".*?" if reading == "short" else ".*"

    def column(number: int) -> str:
        if number not in texts:
            return f"({_WORD})" if number in wanted else _WORD
        # A quotation mark behind anything else is the client's.
        is_request = columns[number - 1].startswith("request")
        return f'"({any_text} (?:HTTP/[\\d.]+|-)?|-)"' if is_request else f'"({any_text})"'

    before = " ".join(map(column, range(1, needed + 1)))
    names = tuple(map(_name, sorted(wanted.union(texts))))
    return Pattern(rf"^{before}{columns_behind(columns, needed, wanted)}[\r\n]*$", names)


def inner_text(column: str) -> str:
    """The SQL of a column's text, null for ``-``."""
    return f"nullif(replace({column}, {_QUOTE}, ''), '-')"


def _name(number: int) -> str:
    return f"column{number}"
