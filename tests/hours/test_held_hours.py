"""A held hour from the bad log hour to its lifting, in every way there is, on a real lake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from dags.tasks import held
from dags.tasks.held import body
from dags.tasks.trigger import AGAIN
from include.errors import NotHeldError, QualityError
from include.holds import findings_text
from include.hours import Hour, HourRange
from include.settings import Settings
from include.tables import PUBLISHED_CLICKS_BY_COUNTRY_HOURLY, PUBLISHED_CLICKS_BY_URL_HOURLY
from spark_jobs.hours.held_hours import state_of_hour
from spark_jobs.lake.lake import Lake
from spark_jobs.publish import decide_held
from spark_jobs.publish.shown_hold import numbers_of_hold
from tests.dags.test_dags import task_function
from tests.support.killed_runs import Killed, killed_after
from tests.support.temporary_lake import TemporaryLake, click

pytestmark = pytest.mark.spark

HOUR, NEXT, THIRD = "2026-03-01T05", "2026-03-01T06", "2026-03-01T07"
NOISE = b"<html>502 Bad Gateway</html>\n"


def land(lake: TemporaryLake, hour: str, clicks: int, *, noise: int = 0, late: str | None = None) -> None:
    """So many clicks in the hour, one more for an earlier hour if told, and so many lines that are none."""
    lines = [click(f"{hour}-{n}", f"{hour}:{n:02d}:00Z", f"http://shop.test/{n % 2}") for n in range(clicks)]
    if late:
        lines.append(click(f"{hour}-late", f"{late}:59:00Z", "http://shop.test/late"))
    lake.land(hour, {"a.json": b"".join(lines) + NOISE * noise})


def count(lake: TemporaryLake, hour: str) -> None:
    for job in ("ingest", "aggregate"):
        lake.run(job, hour)


def validate_red(lake: TemporaryLake, hour: str) -> str:
    with pytest.raises(QualityError) as raised:
        lake.run("validate", hour)
    return str(raised.value)


def decide(lake: TemporaryLake, decision: str, hour: str = HOUR, by: str = "Ada", because: str = "seen") -> list[str]:
    return decide_held.decide(lake.spark, lake.settings, decide_held.Decision(Hour.parse(hour), decision, by, because))


def published(lake: TemporaryLake) -> dict[str, int]:
    """Published clicks by click hour; both tables say the same."""
    by_table = []
    for table in (PUBLISHED_CLICKS_BY_URL_HOURLY, PUBLISHED_CLICKS_BY_COUNTRY_HOURLY):
        counts: Counter[str] = Counter()
        for row in lake.rows(table):
            counts[str(Hour.of(row["click_date"], row["click_hour"]))] += row["click_count"]
        by_table.append(dict(counts))
    assert by_table[0] == by_table[1]
    return by_table[0]


def events(lake: TemporaryLake, hour: str = HOUR) -> list[str]:
    """What became of the hour, oldest first."""
    return [event.outcome for event in lake.events(hour)]


def held_base(make_lake: Callable[[str], TemporaryLake], clicks: int, noise: int) -> TemporaryLake:
    lake = make_lake("held")
    land(lake, HOUR, clicks, noise=noise)
    count(lake, HOUR)
    validate_red(lake, HOUR)
    return lake


@pytest.fixture(scope="module")
def two_clicks(make_lake: Callable[[str], TemporaryLake]) -> TemporaryLake:
    return held_base(make_lake, 2, 9)


@pytest.fixture(scope="module")
def four_clicks(make_lake: Callable[[str], TemporaryLake]) -> TemporaryLake:
    return held_base(make_lake, 4, 5)


@pytest.fixture
def held_lake(two_clicks: TemporaryLake, tmp_path: Path) -> TemporaryLake:
    """The hour is held, and has never been published: two clicks and nine lines that are none."""
    return two_clicks.copy(tmp_path / "held")


@pytest.fixture
def lake_in_task(four_clicks: TemporaryLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TemporaryLake:
    """The hour is held: four clicks and five lines that are none. A task knows this home as its own."""
    lake = four_clicks.copy(tmp_path / "held")
    monkeypatch.setattr(Settings, "from_environment", lambda: lake.settings)
    return lake


@pytest.mark.path
def test_a_bad_log_hour_is_held_until_it_is_fixed_and_the_others_go_on(lake: TemporaryLake) -> None:
    land(lake, HOUR, 4)
    lake.run_all(HOUR)
    assert published(lake) == {HOUR: 4}
    # The log hour comes again, and most of it is noise.
    land(lake, HOUR, 2, noise=9)
    count(lake, HOUR)
    message = validate_red(lake, HOUR)
    assert f"web {HOUR}: expected at most 50% of the lines are in quarantine; found" in message
    assert f"{HOUR} is held" in message
    (held,) = lake.events(HOUR)[1:]
    assert (held.outcome, held.actor) == ("held", None)
    assert held.because.startswith(f"web {HOUR}: ")
    assert any("found quarantined_share" in example for example in held.examples)
    output = "\n".join(lake.run("publish", HOUR))
    assert "0 click hours published, 1 held at their last good version" in output
    assert f"--hour {HOUR}" in output
    assert published(lake) == {HOUR: 4}

    # The next hour brings a late click for the held one: it is counted, not published, and fails nothing.
    land(lake, NEXT, 3, late=HOUR)
    lake.run_all(NEXT)
    assert published(lake) == {HOUR: 4, NEXT: 3}
    # It fails again in the same way: no new hold.
    validate_red(lake, HOUR)
    assert events(lake) == ["published", "held"]
    report = (lake.settings.reports / "report.html").read_text(encoding="utf-8")
    assert "Held: 1 click hour" in report

    # Fixed and run again, the hold lifts itself, with the late click.
    land(lake, HOUR, 5)
    lake.run_all(HOUR)
    assert published(lake) == {HOUR: 6, NEXT: 3}
    assert events(lake) == ["published", "held", "published"]
    assert "Held:" not in (lake.settings.reports / "report.html").read_text(encoding="utf-8")
    with pytest.raises(NotHeldError, match=f"{HOUR} is not held: published at 20"):
        decide(lake, "publish")


def test_a_person_publishes_anyway_these_counts_and_no_others(lake: TemporaryLake) -> None:
    with pytest.raises(NotHeldError, match="no log hour has clicks of it"):
        decide(lake, "drop")
    land(lake, HOUR, 2, noise=9)
    count(lake, HOUR)
    validate_red(lake, HOUR)
    lake.run("publish", HOUR)
    assert published(lake) == {}
    assert f"{HOUR}: published anyway by Ada" in decide(lake, "publish", because=" seen with Bob ")[0]
    assert published(lake) == {HOUR: 2}
    assert (lake.settings.reports / "exports").is_dir()
    decided = lake.events(HOUR)[-1]
    assert (decided.outcome, decided.actor, decided.because) == ("published_anyway", "Ada", "seen with Bob")
    assert lake.acts() == [("decide_held", "failed"), ("decide_held", "completed")]

    # Run again without new counts, it stays published, and decided.
    validate_red(lake, HOUR)
    assert f"{HOUR} is published anyway by Ada: seen with Bob" in "\n".join(lake.run("publish", HOUR))
    assert events(lake) == ["held", "published_anyway"]
    assert f"{HOUR}: published anyway (as Ada had decided)" in decide(lake, "publish", by="Bob")[0]
    with pytest.raises(NotHeldError, match=r"published anyway at .* by Ada: seen with Bob"):
        decide(lake, "drop", by="Bob")
    assert events(lake) == ["held", "published_anyway"]

    # A late click counts it again: the same is found, and the decision stands.
    land(lake, NEXT, 3, late=HOUR)
    count(lake, NEXT)
    assert "as Ada had decided" in decide(lake, "publish")[0]
    assert published(lake) == {HOUR: 2}, "not before it is validated"
    lake.run("validate", NEXT)
    assert f"{HOUR} is published anyway by Ada: seen with Bob" in "\n".join(lake.run("publish", NEXT))
    assert published(lake) == {HOUR: 3, NEXT: 3}
    assert events(lake) == ["held", "published_anyway", "published_anyway"]
    first, carried = lake.events(HOUR)[1:]
    assert (carried.actor, carried.answered_at) == ("Ada", first.at)
    assert carried.findings == first.findings

    # Worse than Ada was shown.
    land(lake, HOUR, 1, noise=99)
    count(lake, HOUR)
    validate_red(lake, HOUR)
    lake.run("publish", HOUR)
    assert published(lake) == {HOUR: 3, NEXT: 3}
    assert events(lake)[3:] == ["held"]
    decide(lake, "drop", because="no")
    assert published(lake) == {HOUR: 3, NEXT: 3}
    assert events(lake)[3:] == ["held", "dropped"]


def test_what_a_person_has_dropped_stays_whoever_counts_it_until_it_is_released(lake: TemporaryLake) -> None:
    land(lake, HOUR, 4)
    lake.run_all(HOUR)
    land(lake, HOUR, 2, noise=9)
    count(lake, HOUR)
    validate_red(lake, HOUR)
    with pytest.raises(NotHeldError, match=f"{HOUR} has no decision to release: it is held"):
        decide(lake, "release")
    decide(lake, "drop", because="half of it is lost")

    # A late click; then the log hour again, and it is fine.
    land(lake, NEXT, 3, late=HOUR)
    lake.run_all(NEXT)
    land(lake, HOUR, 5)
    for job in ("ingest", "aggregate", "validate"):
        lake.run(job, HOUR)
    output = "\n".join(lake.run("publish", HOUR))
    assert f"{HOUR} is not published: dropped by Ada: half of it is lost" in output
    assert f"clickmill decide --hour {HOUR} --decision release" in output
    assert published(lake) == {HOUR: 4, NEXT: 3}
    assert events(lake) == ["published", "held", "dropped", "dropped", "dropped"]
    assert {event.answered_at for event in lake.events(HOUR)[2:]} == {lake.events(HOUR)[2].at}

    assert f"{HOUR}: released by Bob" in decide(lake, "release", by="Bob", because="it is right now")[0]
    assert published(lake) == {HOUR: 6, NEXT: 3}
    assert events(lake)[5:] == ["released", "published"]
    with pytest.raises(NotHeldError, match="has no decision to release: published at"):
        decide(lake, "release")


def test_what_fails_when_it_is_released_is_held_again(held_lake: TemporaryLake) -> None:
    lake = held_lake
    decide(lake, "publish")
    assert "held, because critical checks fail" in decide(lake, "release", because="a mistake")[0]
    assert events(lake) == ["held", "published_anyway", "released", "held"]
    land(lake, NEXT, 3, late=HOUR)
    lake.run_all(NEXT)
    assert published(lake) == {HOUR: 2, NEXT: 3}


def test_hours_of_one_cause_are_decided_on_together(lake: TemporaryLake) -> None:
    for hour in (HOUR, NEXT, THIRD):
        land(lake, hour, 2, noise=9)
    lake.run_jobs(HOUR, str(Hour.parse(THIRD).plus(1)), "ingest", "aggregate", "validate")
    hours = HourRange(Hour.parse(HOUR), Hour.parse(THIRD))

    def decide_range(decision: str, reason: str = "") -> list[str]:
        return decide_held.decide_range(lake.spark, lake.settings, hours, decision, "Ada", "one cause", reason)

    refused = f"no hour of {HOUR}..{THIRD} waits for that decision with 'other'"
    with pytest.raises(NotHeldError, match=refused) as error:
        decide_range("publish", "other")
    # An hour, and below it each finding, has a line of its own.
    lines = str(error.value).splitlines()
    assert [line for line in lines if line.endswith(" stays as it is:")] == [
        f"  {HOUR} stays as it is:", f"  {NEXT} stays as it is:",
    ]  # fmt: skip
    assert all(line.startswith("    ") == (": expected " in line) for line in lines)
    with pytest.raises(NotHeldError, match=r"waits for that decision$"):
        decide_range("release")
    output = "\n".join(decide_range("publish", "quarantined_share"))
    assert f"{HOUR}: published anyway by Ada" in output
    assert published(lake) == {HOUR: 2, NEXT: 2}
    for hour in (HOUR, NEXT):
        assert [(event.outcome, event.actor) for event in lake.events(hour)][1:] == [("published_anyway", "Ada")]
    assert events(lake, THIRD) == ["held"]
    with pytest.raises(NotHeldError):
        decide_range("drop")


def question(lake: TemporaryLake, hour: str) -> dict[str, Any]:
    """The run of held_hours that the run of a log hour asks for: publish_clicks as its task runs it."""
    log_hours = {"from": hour, "to": str(Hour.parse(hour).plus(1))}
    chosen = SimpleNamespace(xcom_pull=lambda task_ids: log_hours)
    publish = task_function("clicks_hourly", "publish_clicks")
    (asked,) = publish(params={"source": "web"}, dag_run=None, ti=chosen, spark=lake.spark)
    return asked


def ended(lake: TemporaryLake, run_id: str, of_run: str) -> str:
    """Why the question of this run ends by itself, which has shown this; empty if it stays open."""
    try:
        held.require_open(Hour.parse(HOUR), of_run, run_id)
    except AirflowSkipException as error:
        return str(error)
    return ""


class Answered:
    """A task instance; ``left`` is what it leaves word of."""

    def __init__(self) -> None:
        self.left: dict[str, Any] = {}

    def xcom_push(self, key: str, value: Any) -> None:
        self.left[key] = value


def answer(lake: TemporaryLake, shown: str, chosen: str = "Publish anyway") -> dict[str, Any]:
    """Answer the question that has shown this; returns the run that asks again, none if the answer was carried out."""
    response = {"chosen_options": [chosen], "params_input": {"reason": "seen"}, "responded_by_user": {"name": "Ada"}}
    task = Answered()
    with suppress(AirflowFailException):
        decide = task_function("held_hours", "decide_held")
        decide(response, shown, params={"hour": HOUR}, ti=task, spark=lake.spark)
        assert not task.left
    return task.left.get(AGAIN, {})


def shown(lake: TemporaryLake) -> str:
    """What a question shows that is asked now."""
    state = state_of_hour(Lake(None, lake.settings), Hour.parse(HOUR))
    assert state
    return findings_text(state.failures)


def test_the_first_answer_has_effect_though_the_hour_was_counted_since(lake_in_task: TemporaryLake) -> None:
    lake = lake_in_task
    first, of_first = question(lake, HOUR), shown(lake)
    assert first["conf"]["hour"] == HOUR
    land(lake, NEXT, 3, late=HOUR)
    count(lake, NEXT)
    lake.run("validate", NEXT)
    assert question(lake, NEXT) == first, "counted again, it is the same question"
    assert answer(lake, of_first) == {}
    assert published(lake) == {HOUR: 5, NEXT: 3}
    assert events(lake) == ["held", "published_anyway"]


def test_an_answer_between_counting_and_checking_is_carried_out_by_the_run_that_checks(
    lake_in_task: TemporaryLake,
) -> None:
    lake = lake_in_task
    of_first = shown(lake)
    land(lake, NEXT, 3, late=HOUR)
    count(lake, NEXT)
    assert answer(lake, of_first) == {}
    assert published(lake) == {}
    lake.run("validate", NEXT)
    lake.run("publish", NEXT)
    assert published(lake) == {HOUR: 5, NEXT: 3}


def test_something_worse_is_another_question_and_an_answer_to_the_first_is_not_carried_out(
    lake_in_task: TemporaryLake,
) -> None:
    lake = lake_in_task
    first, of_first = question(lake, HOUR), shown(lake)
    land(lake, HOUR, 1, noise=99)
    count(lake, HOUR)
    validate_red(lake, HOUR)
    worse, of_worse = question(lake, HOUR), shown(lake)
    assert worse["trigger_run_id"] != first["trigger_run_id"]
    assert f"overtaken, another run asks about {HOUR}: web {HOUR}: quar" in ended(
        lake, first["trigger_run_id"], of_first
    )
    assert "overtaken" in ended(lake, "manual__1", of_first)
    for run_id in (worse["trigger_run_id"], "manual__2"):
        assert ended(lake, run_id, of_worse) == ""
    # Somebody answers the first one.
    again = answer(lake, of_first)
    assert again["trigger_run_id"] not in ("", first["trigger_run_id"])
    assert f"web {HOUR}: quarantined_share_critical: 0.99, was 0.55" in again["note"]
    assert published(lake) == {}
    assert events(lake) == ["held", "held", "held"]
    assert lake.events(HOUR)[-1].note == "the answer of Ada, publish: seen, was not carried out"
    assert question(lake, HOUR)["trigger_run_id"] == again["trigger_run_id"]
    assert ended(lake, worse["trigger_run_id"], of_worse) == f"overtaken, another run asks about {HOUR}"
    # What was not shown at all is for nothing.
    assert answer(lake, "[]", "Drop")["trigger_run_id"] != again["trigger_run_id"]
    assert answer(lake, shown(lake)) == {}
    assert published(lake) == {HOUR: 1}
    assert f"{HOUR} is not held: published anyway" in ended(lake, "manual__2", of_worse)

    # Asked again for something else, the former answer is shown.
    land(lake, HOUR, 1, noise=999)
    count(lake, HOUR)
    validate_red(lake, HOUR)
    lake.run("publish", HOUR)
    state = state_of_hour(Lake(None, lake.settings), Hour.parse(HOUR))
    assert state
    asked = body(state, numbers_of_hold(Lake(None, lake.settings), state), "http://page")
    assert "    decided before: published anyway at" in asked
    assert "by Ada: seen" in asked
    assert f"    new since: web {HOUR}: quarantined_share_critical: 0.999, was 0.99" in asked
    assert "    counted: 1 clicks in this hour" in asked
    assert f"    web {HOUR}: 1,000 lines: 1 clicks, 999 in quarantine" in asked
    assert "    readers see: 1 clicks, published anyway at" in asked


def test_of_two_decisions_at_once_one_is_made(held_lake: TemporaryLake) -> None:
    lake = held_lake

    def outcome(decision: str) -> str:
        try:
            return decide(lake, decision)[0]
        except NotHeldError as error:
            return str(error)

    with ThreadPoolExecutor(2) as both:
        outcomes = sorted(both.map(outcome, ("publish", "drop")))
    assert outcomes[0].startswith(f"{HOUR} is not held: ")
    assert outcomes[1].startswith(f"{HOUR}: ")
    was_published = "published anyway" in outcomes[1]
    assert events(lake) == ["held", "published_anyway" if was_published else "dropped"]
    assert published(lake) == ({HOUR: 2} if was_published else {})


def test_clicks_that_nobody_has_judged_do_not_slip_through_a_run_beside(lake: TemporaryLake) -> None:
    """The later run counts a log hour's clicks before the earlier run has judged that log hour."""
    land(lake, HOUR, 4)
    land(lake, NEXT, 3, late=HOUR)
    lake.run("ingest", HOUR)
    for job in ("ingest", "aggregate", "validate"):
        lake.run(job, NEXT)
    left = f"{HOUR} is left to the run of web {HOUR}, which has yet to validate it"
    assert left in "\n".join(lake.run("publish", NEXT))
    assert published(lake) == {NEXT: 3}
    # The earlier run judges it fine, and publishes what the later one counted.
    lake.run("validate", HOUR)
    lake.run("publish", HOUR)
    assert published(lake) == {HOUR: 5, NEXT: 3}

    land(lake, HOUR, 2, noise=9)
    land(lake, THIRD, 3, late=HOUR)
    lake.run("ingest", HOUR)
    for job in ("ingest", "aggregate", "validate"):
        lake.run(job, THIRD)
    # Judged before, and ingested since: the later run judges it again with its own.
    assert f"{HOUR} is held" in "\n".join(lake.run("publish", THIRD))
    assert published(lake) == {HOUR: 5, NEXT: 3, THIRD: 3}
    # The earlier run judges it bad as well, and has nothing new to say.
    validate_red(lake, HOUR)
    lake.run("publish", HOUR)
    assert published(lake) == {HOUR: 5, NEXT: 3, THIRD: 3}
    assert events(lake) == ["published", "held"]


def test_a_log_hour_that_another_run_ingested_again_is_judged_by_that_run(lake: TemporaryLake) -> None:
    """An earlier log hour comes later, and has the first arrival of a click that the other one has counted."""
    same = click("same", f"{NEXT}:00:00Z", "http://shop.test/same")
    lake.land(NEXT, {"a.json": same + click("other", f"{NEXT}:30:00Z")})
    lake.run_all(NEXT)
    assert published(lake) == {NEXT: 2}
    lake.land(HOUR, {"a.json": same + click("first", f"{HOUR}:30:00Z")})
    lake.run_all(HOUR)
    assert lake.accounting()[NEXT]["accepted"] == 1
    assert published(lake) == {HOUR: 1, NEXT: 2}
    assert events(lake, NEXT) == ["published", "published"]


def test_killed_between_the_word_and_the_deed_a_decision_is_finished_by_running_it_again(
    held_lake: TemporaryLake,
) -> None:
    with pytest.raises(Killed), killed_after(1):
        decide(held_lake, "publish")
    assert (events(held_lake), published(held_lake)) == (["held", "published_anyway"], {})
    assert "as Ada had decided" in decide(held_lake, "publish")[0]
    assert (events(held_lake), published(held_lake)) == (["held", "published_anyway"], {HOUR: 2})


def test_killed_between_the_word_and_the_deed_a_publishing_is_finished_by_running_it_again(lake: TemporaryLake) -> None:
    land(lake, HOUR, 3)
    count(lake, HOUR)
    lake.run("validate", HOUR)
    with pytest.raises(Killed), killed_after(1):
        lake.run("publish", HOUR)
    assert (events(lake), published(lake)) == (["published"], {})
    lake.run("publish", HOUR)
    assert published(lake) == {HOUR: 3}
