"""Lines inside of JSON objects, and in which of their fields: what containers, shippers and clouds put around them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pyarrow as pa

from include.source_fields import field_path
from spark_jobs.inspection.field_guesses import texts_of_records
from spark_jobs.inspection.json_texts import json_objects
from spark_jobs.lines.wrapped_lines import unwrapped

#: Without case, the last part of a path; what is not here may have lines too.
_NAMES = (
    "log", "message", "msg", "original", "textpayload", "jsonpayload", "line", "raw", "text", "body", "event", "data",
)  # fmt: skip
#: In a line of any log there is a time, and more. To be matched from the beginning: a search would go through a
#: long text again from each of its characters.
_LIKE_A_LINE = re.compile(r"(?=.{30})(?=.*(?:\d\d:\d\d|\d{10})).*\S[\s,|].*\S", re.DOTALL)
#: Of so large a share of the objects the field has such a line; others have what else an application writes.
_SHARE = 0.5
_MOST_FIELDS = 3
#: Docker's object is itself the text of a field where a shipper has not taken it apart.
_MOST_DEPTH = 2


def wrapped_texts(texts: Sequence[str], depth: int = _MOST_DEPTH) -> Iterator[tuple[str, list[str]]]:
    """The fields, as ``inside`` names them, that may have lines in these JSON objects; with the lines, without ends."""
    records = json_objects(texts)
    if not records or not depth:
        return
    fields = [
        (path, values)
        for path, values in texts_of_records(records).items()
        if sum(map(bool, map(_LIKE_A_LINE.match, values))) >= _SHARE * len(records)
    ]
    for path, _ in sorted(fields, key=lambda field: _rank(field[0]))[:_MOST_FIELDS]:
        lines = unwrapped(pa.array(texts, pa.string()), ((field_path(path),),))
        inside = [line for line in lines.to_pylist() if line]
        yield path, inside
        for inner, innermost in wrapped_texts(inside, depth - 1):
            yield f"{path}.{inner}", innermost


def _rank(path: str) -> int:
    name = path.rsplit(".", 1)[-1].lower()
    return _NAMES.index(name) if name in _NAMES else len(_NAMES)
