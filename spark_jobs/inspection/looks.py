"""What lines look like that no format reads, and what to do about them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from spark_jobs.inspection.field_guesses import Field
from spark_jobs.inspection.json_texts import json_objects
from spark_jobs.landing.file_kinds import look_of

_SHOWN_FIELDS = 12
_CLOCK = re.compile(r"\d\d:\d\d|\d{10}")


def look_of_lines(texts: Sequence[str], kinds: Sequence[tuple[str, list[Field]]]) -> str:
    """In one line; ``kinds`` are the titles of what they may be records of, each with its fields."""
    if several := _list_of_objects(json_objects(texts)):
        return f"each line is an object with several in it: jq -c '.{several}[]' FILE writes a line for each"
    if any(text.startswith("#Fields:") for text in texts):
        return "W3C extended, but #Fields: names no date and time (UTC), or other columns than the lines have"
    if kinds:
        title, fields = kinds[0]
        names = ", ".join(each.path for each in fields[:_SHOWN_FIELDS]) + ", …" * (len(fields) > _SHOWN_FIELDS)
        return f"{title}, but which field is the time and which the URL is not known: name them in [fields], of {names}"
    if look := look_of("\n".join(texts).encode()):
        return f"they look like {look}"
    if sum(map(bool, map(_CLOCK.search, texts))) < len(texts) / 2:
        return "most have no time, and a click is counted in the hour of its time: have your server write it"
    return "an access log needs the log_format of your server: format = \"access\", log_format = '…'"


def _list_of_objects(records: Sequence[dict[str, Any]]) -> str | None:
    """The field that has several objects, as in the batches that CloudWatch and others send."""
    for record in records:
        for name, value in record.items():
            if isinstance(value, list) and len(value) > 1 and all(isinstance(each, dict) for each in value):
                return name if re.fullmatch(r"\w+", name) else f'"{name}"'
    return None
