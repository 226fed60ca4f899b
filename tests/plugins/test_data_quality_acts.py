"""What the pages on data quality offer to do, and to whom: the questions that are open, the plan of a backfill."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from datetime import UTC, date, datetime
from uuid import uuid4

import pyarrow as pa
import pytest
from airflow.models.hitl import HITLDetail
from airflow.models.taskinstance import TaskInstance
from airflow.utils.state import DagRunState, TaskInstanceState
from deltalake import write_deltalake
from fastapi import FastAPI
from sqlalchemy import insert
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from include.holds import Event, Failure, cause_of
from include.hours import Hour, HourRange
from include.journal import BACKFILL, Act, journal_row
from include.landing import hour_folder
from include.settings import Settings
from plugins.data_quality.held_groups import grouped
from plugins.data_quality.rights import Rights
from spark_jobs.lake.journal import append_events
from spark_jobs.lake.lake import Lake
from tests.plugins.conftest import grant
from tests.plugins.quality_pages import EVIL, HOUR, dag_run
from tests.support.quality_rows import append, event

HOURS = [f"2026-03-01T{number:02d}" for number in range(6)]


def ask(
    session: Session,
    run_id: str,
    dag_id: str = "held_hours",
    *,
    state: TaskInstanceState = TaskInstanceState.AWAITING_INPUT,
    responded_at: datetime | None = None,
    task_id: str = "ask",
    **conf: str,
) -> None:
    """A run that asks, as Airflow has it."""
    dag_run(session, run_id, None, dag_id=dag_id, conf=conf, state=DagRunState.RUNNING)
    of_task = {"id": uuid4(), "task_id": task_id, "dag_id": dag_id, "run_id": run_id, "map_index": -1}
    session.execute(insert(TaskInstance).values(**of_task, state=state, pool="default_pool", pool_slots=1))
    asked = {"options": ["a"], "subject": "?", "params": {}, "responded_at": responded_at}
    session.execute(insert(HITLDetail).values(ti_id=of_task["id"], **asked))
    session.commit()


def hold(settings: Settings, reasons: dict[str, str]) -> None:
    """Click hours that are held, each for the reasons given."""
    append(settings.lake, [event(hour, "held", because) for hour, because in reasons.items()])


def boxes(text: str) -> list[list[str]]:
    """By form, the runs that it answers."""
    forms = re.findall(r'<form class="act".*?</form>', text, re.DOTALL)
    return [re.findall(r'name="run" value="([^"]*)"', form) for form in forms]


# --- held hours by cause --------------------------------------------------------------------------


def test_hours_that_are_held_for_the_same_are_decided_on_together_and_others_apart(
    client: TestClient, settings: Settings, session: Session
) -> None:
    shares = {hour: f"web {hour}: quarantined_share; shop {hour}: no_new_fields" for hour in HOURS[:4]}
    hold(settings, shares | {HOURS[4]: f"web {HOURS[4]}: lines_add_up"})
    for hour in HOURS[1:5]:
        ask(session, f"{hour}_act", hour=hour)
    answer = client.get("")
    assert boxes(answer.text) == [[f"{HOURS[4]}_act"], [f"{hour}_act" for hour in (HOURS[3], HOURS[2], HOURS[1])]]
    assert "4 click hours" in answer.text
    assert f"{HOURS[0]} to {HOURS[3]}" in answer.text
    assert "shop: no_new_fields; web: quarantined_share</a>. In the newest:" in answer.text
    assert re.search(rf"{HOURS[0]}</a> <span class=\"quiet\">is not asked about yet", answer.text)
    assert "connect-src 'self';" in answer.headers["content-security-policy"]


def test_a_question_that_is_answered_or_over_is_not_offered(
    client: TestClient, settings: Settings, session: Session
) -> None:
    hold(settings, {hour: "why" for hour in HOURS})
    ask(session, "answered", hour=HOURS[0], responded_at=datetime(2026, 3, 1, tzinfo=UTC))
    ask(session, "overtaken", hour=HOURS[1], state=TaskInstanceState.SKIPPED)
    ask(session, "of_another_dag", "erase_visitor", hour=HOURS[2])
    ask(session, "other_task", hour=HOURS[3], task_id="confirm")
    ask(session, "older", hour=HOURS[4])
    ask(session, "newer", hour=HOURS[4])
    answer = client.get("")
    assert boxes(answer.text) == [["newer"]]
    for hour, runs in ((HOURS[0], []), (HOURS[4], [["newer"]])):
        of_hour = client.get(f"hours/{hour}")
        assert boxes(of_hour.text) == runs
        assert ("connect-src" in of_hour.headers["content-security-policy"]) == bool(runs)


def test_an_hour_that_is_not_held_any_more_is_not_decided_on(
    client: TestClient, settings: Settings, session: Session
) -> None:
    append(settings.lake, [event(HOUR, "held", "why"), event(HOUR, "published", at=datetime(2026, 3, 2, tzinfo=UTC))])
    ask(session, "still_open", hour=HOUR)
    assert boxes(client.get(f"hours/{HOUR}").text) == []
    assert boxes(client.get("").text) == []


def test_who_may_do_nothing_is_offered_nothing(
    app: FastAPI, client: TestClient, settings: Settings, session: Session
) -> None:
    hold(settings, {hour: f"web {hour}: share" for hour in HOURS})
    ask(session, "open", hour=HOURS[5])
    all_of_them = grant(app, Rights(True, True, True, True, True))
    assert "/plan?" in client.get("").text
    for may_backfill in (False, True):
        grant(app, replace(all_of_them, decide_hours=False, replay=False, backfill=may_backfill))
        for path in ("", f"hours/{HOURS[5]}"):
            answer = client.get(path)
            assert boxes(answer.text) == []
            assert ("/plan?" in answer.text) == may_backfill
            assert "<button" not in re.sub(r'<form class="filters".*?</form>', "", answer.text, flags=re.DOTALL)
            assert "connect-src" not in answer.headers["content-security-policy"]
            assert "hitlDetails" not in answer.text


@pytest.mark.parametrize(
    ("because", "cause"),
    [
        ("web 2026-03-01T05: share", "web: share"),
        ("2026-03-01T05: urls; web 2026-03-01T05: b; web 2026-03-01T06: b", "urls; web: b"),
        ("ids are there twice", "ids are there twice"),
        ("", ""),
    ],
)
def test_a_cause_is_what_stays_from_hour_to_hour(because: str, cause: str) -> None:
    assert cause_of(because) == cause


def test_what_is_run_again_are_the_log_hours_that_failed() -> None:
    def held(hour: str, *partitions: str) -> Event:
        failures = [Failure(partition, "a", "") for partition in partitions]
        return Event.of(event(hour, "held", "why", findings=failures))

    of_web = grouped([held("2026-03-09T05", "web 2026-03-09T06"), held("2026-03-01T05", "web 2026-03-01T05")], {})
    first, last = (HourRange.single(Hour.parse(hour)) for hour in ("2026-03-01T05", "2026-03-09T06"))
    assert of_web[0].to_run_again == ("web", [first, last])
    of_both = grouped([held("2026-03-01T05", "web 2026-03-01T05", "shop 2026-03-01T07")], {})
    assert of_both[0].to_run_again == ("all", [HourRange(first.start, first.start.plus(3))])
    of_counts = grouped([held("2026-03-01T05", "2026-03-01T05")], {})
    assert of_counts[0].to_run_again == ("all", [first])


# --- backfills ------------------------------------------------------------------------------------


DETAILS = {
    "begun": {"chunk_hours": "1", "is_staged": "true"},
    "compared": {"counts": "c"},
    "publishing": {"versions": "{}", "click_hours": json.dumps(HOURS[:2])},
}


def begin_backfill(settings: Settings, backfill_id: str, *events: str) -> None:
    """A staged backfill of two hours of web, with these events."""
    hours = HourRange(Hour.parse(HOURS[0]), Hour.parse(HOURS[2]))
    rows = [
        journal_row(
            Act("run", "backfill_clicks"), BACKFILL, backfill_id, name, datetime(2026, 3, 2, 0, number, tzinfo=UTC),
            hours=hours, source="web", actor="Ada", because="why",
            details=DETAILS.get(name, {}),
        )
        for number, name in enumerate(("begun", *events))
    ]  # fmt: skip
    append_events(Lake(None, settings), rows)


def test_a_staged_backfill_that_waits_is_decided_on_where_it_is_listed(
    app: FastAPI, client: TestClient, settings: Settings, session: Session
) -> None:
    begin_backfill(settings, "20260302T000000-ab12", "compared")
    conf = {"source": "web", "from": f"{HOURS[0]}:00:00Z", "to": f"{HOURS[2]}:00:00Z"}
    ask(session, "other_hours", "backfill_clicks", **conf | {"to": f"{HOURS[3]}:00:00Z"})
    assert boxes(client.get("backfills").text) == []
    ask(session, "by_hand", "backfill_clicks", **conf | {"from": EVIL})
    ask(session, "asks", "backfill_clicks", **conf)
    text = client.get("backfills").text
    assert boxes(text) == [["asks"]]
    assert re.search(r'data-task="decide_backfill" data-reason="why"', text)
    grant(app, Rights(decide_hours=True, backfill=True))
    assert boxes(client.get("backfills").text) == []


def test_one_that_was_interrupted_leads_to_the_plan_of_what_is_left(client: TestClient, settings: Settings) -> None:
    begin_backfill(settings, "20260302T000000-ab12")
    plan = f"plan?source=web&amp;from={HOURS[0]}&amp;to={HOURS[2]}&amp;staged=on&amp;chunk=1"
    assert plan in client.get("backfills").text


def test_a_published_backfill_is_undone_where_it_is_listed_by_who_may(
    app: FastAPI, client: TestClient, settings: Settings, session: Session
) -> None:
    begin_backfill(settings, "20260302T000000-ab12", "compared", "approved", "publishing", "finished")
    dag_run(session, "undone_before", None, dag_id="undo_backfill")
    conf = {"backfill": "20260302T000000-ab12", "force": False}
    assert starts(client.get("backfills").text) == [("20260302T000000-ab12_after_1", conf)]
    grant(app, Rights(backfill=True))
    answer = client.get("backfills")
    assert starts(answer.text) == []
    assert "connect-src" not in answer.headers["content-security-policy"]


def test_lines_of_a_quarantine_reason_are_replayed_after_a_preview(
    app: FastAPI, client: TestClient, settings: Settings
) -> None:
    hold(settings, {HOUR: "why"})
    rows = {"source": ["web"], "log_date": [date(2026, 3, 1)], "log_hour": [5], "file": ["a"], "line": [1]}
    lines = pa.table(rows | {"reason": ["not_json"], "raw": ["?"]})
    write_deltalake(settings.lake / "quarantined_clicks", lines, partition_by=["source", "log_date", "log_hour"])
    text = client.get(f"hours/{HOUR}").text
    hours = {"from": "2026-03-01T05:00:00+00:00", "to": "2026-03-01T06:00:00+00:00"}
    assert starts(text) == [(f"web_{HOUR}_not_json_after_0", {"source": "web", **hours, "reasons": ["not_json"]})]
    choices = json.loads(html.unescape(re.findall(r'data-choices="([^"]*)"', text)[0]))
    assert choices == {"Preview": ["_preview", {"dry_run": True}], "Replay": ["", {"dry_run": False}]}
    grant(app, Rights(decide_hours=True, backfill=True))
    assert starts(client.get(f"hours/{HOUR}").text) == []


# --- plans ----------------------------------------------------------------------------------------


@pytest.fixture
def environment(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process that Airflow starts knows of the home."""
    monkeypatch.setenv("CLICKMILL_HOME", str(settings.home))
    monkeypatch.setenv("CLICKMILL_SOURCES", str(settings.sources_file))
    monkeypatch.setenv("CLICKMILL_PIPELINE", str(settings.pipeline_file))


def land(settings: Settings, source: str, hour: str) -> None:
    folder = hour_folder(settings.landing, source, Hour.parse(hour))
    folder.mkdir(parents=True)
    (folder / "a.json").write_text('{"url": "/"}\n')
    (folder / "_SUCCESS").touch()


def starts(text: str) -> list[tuple[str, dict[str, object]]]:
    """The runs that the page starts, each with its conf."""
    runs = re.findall(r'<output data-run="([^"]*)" data-conf="([^"]*)">', text)
    return [(run_id, json.loads(html.unescape(conf))) for run_id, conf in runs]


@pytest.mark.usefixtures("environment")
def test_a_plan_is_shown_for_each_source_and_started_by_one_button(
    client: TestClient, settings: Settings, session: Session
) -> None:
    for hour in HOURS[:3]:
        land(settings, "web", hour)
    land(settings, "access", HOURS[1])
    hours = {"from": HOURS[0], "to": HOURS[4]}
    text = client.get("plan", params={"source": "all", **hours}).text
    conf = {"from": f"{HOURS[0]}:00:00+00:00", "to": f"{HOURS[4]}:00:00+00:00", "chunk": 168, "staged": False}
    span = f"{HOURS[0]}_to_{HOURS[4]}"
    assert sorted(starts(text)) == [
        (f"access_{span}_after_0", {"source": "access", **conf}),
        (f"web_{span}_after_0", {"source": "web", **conf}),
    ]
    assert "Start 2 backfills" in text
    assert "3 (2026-03-01T00..2026-03-01T03)" in text
    # Who looks before it is started starts the same run; who looks after, another one.
    of_web = {"source": "web", **hours, "staged": "on", "chunk": 2}
    before = starts(client.get("plan", params=of_web).text)
    assert before == starts(client.get("plan", params=of_web).text)
    assert before == [(f"web_{span}_staged_after_0", {"source": "web", **conf, "staged": True, "chunk": 2})]
    dag_run(session, before[0][0], None, dag_id="backfill_clicks")
    assert starts(client.get("plan", params=of_web).text) != before


@pytest.mark.usefixtures("environment")
def test_what_cannot_be_started_says_why_and_has_no_button(client: TestClient, settings: Settings) -> None:
    text = client.get("plan", params={"source": "web", "from": HOURS[0], "to": HOURS[2]}).text
    assert "web: blocked" in text
    assert "none of the 2 log hours has landed" in text
    assert starts(text) == []
    assert "Start" not in text


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"source": EVIL}, "expected all, or one of"),
        ({"from": "yesterday"}, "not an hour"),
        ({"from": HOURS[3]}, "empty range of hours"),
        ({"chunk": "0"}, "greater than or equal to 1"),
        ({"chunk": "many"}, "valid integer"),
    ],
)
def test_a_wrong_form_is_a_sentence(client: TestClient, query: dict[str, str], sentence: str) -> None:
    answer = client.get("plan", params={"source": "web", "from": HOURS[0], "to": HOURS[2]} | query)
    assert answer.status_code == 400
    assert sentence in answer.text
    assert "<script>alert" not in answer.text
