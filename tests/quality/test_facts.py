"""Facts are in their declared columns and types, whether they are rows or tables; what is not declared is refused."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest

from expectations.facts import SUBJECTS, as_facts
from include.stored_rows import arrow_schema
from include.tables import Table

HOUR = {"source": "web", "log_date": date(2026, 3, 1), "log_hour": 5}


def test_every_subject_is_there_with_its_columns() -> None:
    facts = as_facts({"duplicates": [HOUR]})
    assert {name: table.schema for name, table in facts.items()} == {
        name: arrow_schema(subject, subject.column_names) for name, subject in SUBJECTS.items()
    }
    assert {name for name, table in facts.items() if table.num_rows} == {"duplicates"}
    assert facts["duplicates"].to_pylist() == [{**HOUR, "duplicates": None}], "what is left out is null"


def test_a_table_is_cast_to_the_declared_types() -> None:
    measured = pa.table({"duplicate_event_ids": [3], "hour_number": pa.array([7], pa.int32()), "source": ["web"]})
    ids = as_facts({"duplicate_ids": measured})["duplicate_ids"]
    assert ids.schema.field("hour_number").type == pa.int64()
    assert ids.to_pylist() == [{"source": "web", "hour_number": 7, "duplicate_event_ids": 3}]


def test_what_is_not_declared_is_refused() -> None:
    with pytest.raises(KeyError, match="no facts are declared as click"):
        as_facts({"click": []})
    with pytest.raises(ValueError, match="facts of duplicates have no column lines"):
        as_facts({"duplicates": [{**HOUR, "lines": 3}]})
    with pytest.raises(ValueError, match="facts of duplicate_ids have no column hour"):
        as_facts({"duplicate_ids": pa.table({"source": ["web"], "hour": [3]})})


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=lambda subject: subject.name)
def test_a_subject_says_its_grain_and_what_each_column_is(subject: Table) -> None:
    assert subject.grain.startswith("one ")
    assert set(subject.key) <= set(subject.column_names)
    assert all(column.comment.endswith(".") for column in subject.columns)
