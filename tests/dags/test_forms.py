"""What a person fills in before a DAG is run: Airflow's form lets it be submitted as the guides say."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Param

from include.errors import UsageError
from include.settings import REPOSITORY
from tests.dags.test_dags import DAG_FILES, dags_of, load

DAGS = [dag for file in DAG_FILES for dag in dags_of(file)]
FIELDS: list[tuple[str, Param[Any]]] = [
    (f"{dag.dag_id}.{name}", dag.params.get_param(name)) for dag in DAGS for name in dag.params
]
#: A text that nobody needs to give would keep the form from being sent; these a person must give.
NEEDED = {
    "backfill_clicks.from",
    "backfill_clicks.to",
    "held_hours.hour",
    "replay_quarantined.from",
    "replay_quarantined.to",
    "replay_quarantined.reason",
    "undo_backfill.backfill",
    "undo_backfill.reason",
    "erase_visitor.reason",
}


def is_required(param: Param[Any]) -> bool:
    """As Airflow 3.3's form decides: a red asterisk, and no *Trigger* while the field is empty."""
    kind = param.schema.get("type")
    return bool(kind) and "null" not in ([kind] if isinstance(kind, str) else kind)


def test_only_what_must_be_given_is_required() -> None:
    assert {name for name, param in FIELDS if is_required(param)} == NEEDED


@pytest.mark.parametrize(("name", "param"), FIELDS, ids=[name for name, _ in FIELDS])
def test_a_field_is_to_be_filled_in_or_right_as_it_is(name: str, param: Param[Any]) -> None:
    if name in NEEDED:
        assert not param.has_value
    else:
        assert param.resolve() == param.value
        assert param.value != ""


@pytest.mark.parametrize(("name", "param"), FIELDS, ids=[name for name, _ in FIELDS])
def test_a_field_that_is_cleared_again_is_as_if_untouched(name: str, param: Param[Any]) -> None:
    """The form sends null then; switches and choices cannot be cleared."""
    if name not in NEEDED and "enum" not in param.schema:
        assert param.resolve(None) is None


@pytest.mark.parametrize(("name", "param"), FIELDS, ids=[name for name, _ in FIELDS])
def test_nobody_is_shown_a_regular_expression(name: str, param: Param[Any]) -> None:
    """Airflow says what a field does not match, not what to write: a task says that."""
    assert "pattern" not in param.schema


def test_requests_are_not_taken_from_a_variable_that_airflow_shows() -> None:
    with pytest.raises(UsageError, match="its name must have secret in it"):
        load(REPOSITORY / "dags" / "erase_visitor.py").requests_of({"variable": "visitors"})


def test_an_erasure_is_planned_then_asked_about_by_nobody_s_default() -> None:
    (dag,) = [dag for dag in DAGS if dag.dag_id == "erase_visitor"]
    assert [task.task_id for task in dag.topological_sort()] == ["plan_erasure", "ask", "erase_visitor"]
    ask = dag.get_task("ask")
    assert isinstance(ask, HITLOperator)
    assert (ask.options, ask.response_timeout, ask.defaults) == (["Erase", "Cancel"], None, None)
    assert dag.max_active_runs > 1, "an open question keeps no other erasure waiting"
