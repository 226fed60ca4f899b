"""What people bring, one case a folder of ``cases``: landed and read by the real parser, without Spark or a lake.

``case.json`` has what people see and where they reported it; ``land``: the files and folders that are given to landing,
one after the other; ``links`` to be made first; ``are_records``: each line is a topic's record in place of that;
``expected``: the right answers, any of which will do; ``passes``: whether it is one of them by now.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from include.errors import ClickmillError
from include.hours import Hour
from include.landing import closed_hours, look_at
from include.settings import REPOSITORY, Settings
from include.sources import Source, load_sources
from spark_jobs.landing.land import land_all
from spark_jobs.lines.arrivals import LineParser, read_files, read_records, unique_ids
from spark_jobs.lines.kept import rule_of_reason
from spark_jobs.lines.read_lines import LandedFile
from tests.lines.lines import lines_table

CASES = Path(__file__).parent / "cases"
#: The log hour of records.
HOUR = Hour.parse("2026-03-10T12")


@dataclass
class Answer:
    """What became of a case's lines, and what landing has said."""

    messages: list[str] = field(default_factory=list)
    clicks: int = 0
    quarantined: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    per_url: Counter[str] = field(default_factory=Counter)
    per_country: Counter[str] = field(default_factory=Counter)
    visitors: int = 0

    def differs_from(self, expected: dict[str, Any]) -> dict[str, Any]:
        """What of a right answer it does not have, as it is here."""
        text = "\n".join(self.messages)
        wrong: dict[str, Any] = {}
        for name, value in expected.items():
            if name == "said":
                is_right, here = bool(re.search(value, text)), text
            elif name == "said_not":
                is_right, here = not re.search(value, text), text
            else:
                here = getattr(self, name)
                is_right = here == value
            if not is_right:
                wrong[name] = here
        return wrong


def answer_of(case: str, tmp_path: Path) -> Answer:
    """Land and read a case in a home of its own below ``tmp_path``."""
    shutil.copytree(CASES / case, tmp_path / "case")
    told = told_of(case)
    for link, target in told.get("links", {}).items():
        (tmp_path / "case" / link).symlink_to(target)
    settings = Settings(
        home=tmp_path / "home",
        sources_file=tmp_path / "case" / "sources.toml",
        pipeline_file=REPOSITORY / "config" / "pipeline.toml",
    )
    (source,) = load_sources(settings).values()
    answer = Answer()
    paths = [tmp_path / "case" / name for name in told["land"]]
    if told.get("are_records"):
        records = [line for file in paths for line in file.read_bytes().splitlines()]
        tables = read_records([lines_table(records, hour=HOUR, file="t/0")], LineParser.of(source, settings))
    else:
        for path in paths:
            _land(settings, source, path, answer)
        files = [
            LandedFile(file, hour, number)
            for hour in closed_hours(settings.landing, source.name)
            for number, file in enumerate(look_at(settings.landing, source.name, hour).files)
        ]
        tables = read_files(files, LineParser.of(source, settings), unique_ids, [])
    _count([table for table in tables if "reason" in table.column_names], answer)
    return answer


def told_of(case: str) -> dict[str, Any]:
    """What ``case.json`` says."""
    read: dict[str, Any] = json.loads((CASES / case / "case.json").read_text(encoding="utf-8"))
    return read


def _land(settings: Settings, source: Source, path: Path, answer: Answer) -> None:
    try:
        answer.messages.extend(land_all(settings, source.name, [path]))
    except ClickmillError as error:
        answer.messages.append(f"{type(error).__name__}: {error}")


def _count(tables: list[pa.Table], answer: Answer) -> None:
    for row in pa.concat_tables(tables).to_pylist() if tables else []:
        if row["read"] is not None:
            continue
        if row["reason"] is not None:
            rule = rule_of_reason(row["reason"])
            if rule is None:
                answer.quarantined[row["reason"]] += 1
            else:
                answer.left_out[rule] += 1
            continue
        answer.clicks += 1
        answer.per_url[row["url"]] += 1
        answer.per_country[row["country_code"]] += 1
    visitors = {row["visitor_id"] for table in tables for row in table.select(["visitor_id"]).to_pylist()}
    answer.visitors = len(visitors - {None})
