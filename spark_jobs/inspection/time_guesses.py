"""In which format texts are times."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.duckdb_sql import run_on_lines
from include.time_formats import NamedTimeFormat, TimeFormat, TimePattern
from spark_jobs.inspection.field_guesses import NEARLY_ALL
from spark_jobs.landing.land import FIRST_HOUR
from spark_jobs.lines.columns import as_numpy
from spark_jobs.lines.log_patterns import times_pattern
from spark_jobs.lines.times import HOUR_MICROS, clicked_at

#: Of times without an offset, unless a person says which zone they are of.
ASSUMED_ZONE = "UTC"
#: Microseconds: of a day, and from 1970 until 1990, when the first web server ran.
_A_DAY = 24 * HOUR_MICROS
_FIRST_CLICK = FIRST_HOUR.number * HOUR_MICROS
#: A day and a clock, and nothing after these that says where: of a day with two slashes nobody knows the month.
_LOCAL = re.compile(r"(?:\w{3},? )?\d{1,4}[-/. ]\w{2,3}[-/. ]\d{1,4}[ T:,]+\d\d?:\d\d(?::\d\d)?(?:[.,]\d+)?|"
                    r"\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4}")  # fmt: skip
#: What each time of a format has in it, in whatever fields its parts are; nothing of numbers.
_PARTS = {"iso8601": [r"\d{4}-\d\d-\d\d"], "access_log": [r"\d\d/[A-Za-z]{3}/\d{4}:\d\d:\d\d:\d\d"]}
_DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%b/%Y", "%d-%b-%Y", "%d %b %Y")
_LOCAL_PATTERNS = [
    *(f"{day}{between}{clock}" for day in _DAYS for between in " T:" for clock in ("%H:%M:%S", "%H:%M")),
    "%a %b %d %H:%M:%S %Y",
]


def time_format_of(texts: Sequence[str], zone: str | None = None) -> str | list[dict[str, str]] | dict[str, str] | None:
    """The format in which nearly all texts are times that clicks may have, as TOML has it; none if there is none.

    Of times without an offset it is a pattern, of this zone, or of ``ASSUMED_ZONE``.
    """
    if _share(texts, _LOCAL.fullmatch) >= NEARLY_ALL:
        fraction = next((mark for mark in ".," if any(re.search(rf":\d\d\{mark}\d", text) for text in texts)), "")
        for pattern in _LOCAL_PATTERNS:
            forms = [f"{pattern}{fraction}%f"] * bool(fraction) + [pattern]
            patterns = [TimePattern(pattern=form, zone=zone or ASSUMED_ZONE) for form in forms]
            if _fit(texts, patterns[:1]):
                return patterns[0].model_dump()
            if _fit(texts, patterns):
                return [each.model_dump() for each in patterns]
    return next((str(name) for name in get_args(NamedTimeFormat) if _fit(texts, [name])), None)


def may_have_times(lines: pa.ChunkedArray, formats: Sequence[TimeFormat]) -> bool:
    """Whether in these lines may be times of one of the formats: to look takes less than to take lines apart."""

    def is_somewhere(part: str) -> bool:
        return bool(pc.any(pc.match_substring_regex(lines, part), min_count=0).as_py())

    return any(all(map(is_somewhere, _parts_of(format_))) for format_ in formats)


def _parts_of(format_: TimeFormat) -> Sequence[str]:
    """What stands in lines with such a time, in any order, as regular expressions."""
    if not isinstance(format_, TimePattern):
        return _PARTS.get(format_, ())
    return list(map(times_pattern, format_.pattern.split()))


def _share(texts: Sequence[str], fits: Any) -> float:
    return sum(map(bool, map(fits, texts))) / max(len(texts), 1)


def _fit(texts: Sequence[str], formats: Sequence[TimeFormat]) -> bool:
    sql = f"SELECT {clicked_at('time', formats)} AS moment FROM lines"  # the same for all fields of a log
    moments = run_on_lines(sql, pa.table({"time": pa.array(texts, pa.string())}))["moment"]
    return bool(np.count_nonzero(are_plausible(moments)) >= NEARLY_ALL * len(texts))


def are_plausible(moments: pa.ChunkedArray | pa.Array) -> np.ndarray[Any, Any]:
    """Which are times that clicks may have: from the first web server's until now, with a day for clocks ahead."""
    end = int(datetime.now(UTC).timestamp() * 1e6) + _A_DAY
    is_plausible = pc.and_(pc.greater_equal(moments, _FIRST_CLICK), pc.less(moments, end))
    return as_numpy(is_plausible.fill_null(False))
