"""Lines inside of JSON: what shippers and containers put around the line of an application.

Docker's json-file has it in ``log``, with its line end (https://docs.docker.com/engine/logging/drivers/json-file/);
rsyslog's and Fluent Bit's JSON in ``msg``, ``message`` or ``log``, without.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.source_fields import Alternatives
from spark_jobs.lines import json_lines
from spark_jobs.lines.columns import as_numpy
from spark_jobs.lines.extraction import Extraction, take_apart

#: Docker cuts lines into parts of so many bytes; a letter that is cut in two takes up to three bytes more for each.
_PART_BYTES, _CUT_LETTER_BYTES = 1 << 14, 12
#: https://github.com/kubernetes/design-proposals-archive/blob/main/node/kubelet-cri-logging.md
_CRI_PART = r"^\S+ std(?:out|err) P "

Mask = np.ndarray[Any, Any]


def inside_of(extraction: Extraction, wrapper: Alternatives) -> Extraction:
    """The same for lines that are in a field of JSON objects; a line that is in none is not of the format."""
    return replace(
        extraction,
        prepared=lambda texts: extraction.prepared(unwrapped(texts, wrapper)),
        otherwise=extraction.otherwise and inside_of(extraction.otherwise, wrapper),
    )


def unwrapped(texts: pa.StringArray, wrapper: Alternatives) -> pa.StringArray:
    """The lines inside, without their ends; null where there is none, and for parts of one that Docker has cut."""
    inside = _inside(texts, wrapper)
    part = _is_part(inside)
    rest = np.zeros(len(part), bool)
    rest[1:] = part[:-1]  # the end of a line is none, either
    # rsyslog's msg begins with the space after the tag.
    lines = pc.utf8_ltrim(pc.utf8_rtrim(inside, "\r\n"), " ")
    return pc.if_else(pa.array(part | rest), None, lines)


def are_parts(texts: pa.StringArray, may_be: Mask, wrapper: Alternatives | None) -> Mask:
    """Which lines are parts of longer ones: Docker's in a field of JSON, or those that CRI marks with ``P``.

    ``may_be`` are those that are looked at; of them the line after a part is the rest of it.
    """
    places = np.flatnonzero(may_be)
    are = np.zeros(len(texts), bool)
    if not len(places):
        return are
    looked_at = texts.take(pa.array(places))
    are[places] = as_numpy(pc.match_substring_regex(looked_at, _CRI_PART).fill_null(False))
    if wrapper and pc.any(pc.greater_equal(pc.binary_length(looked_at), _PART_BYTES)).as_py():
        are[places] |= _is_part(_inside(looked_at, wrapper))
    are[1:] |= are[:-1] & may_be[1:]
    return are


def _inside(texts: pa.StringArray, wrapper: Alternatives) -> pa.StringArray:
    return take_apart(texts, json_lines.extraction({"line": wrapper}), _selected)["line"]


def _is_part(inside: pa.StringArray) -> Mask:
    has_end = pc.ends_with(inside, "\n")
    longer = pc.subtract(pc.binary_length(inside), _PART_BYTES)
    is_part = pc.and_(pc.invert(has_end), pc.and_(pc.greater_equal(longer, 0), pc.less(longer, _CUT_LETTER_BYTES)))
    return as_numpy(is_part.fill_null(False))


def _selected(reading: Extraction) -> str:
    values = ", ".join(f"{value} AS {role}" for role, value in reading.values.items())
    return f"SELECT {reading.is_formed} AS is_formed, {values} FROM taken"
