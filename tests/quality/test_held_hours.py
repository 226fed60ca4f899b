"""A held hour from the bad log hour to its lifting, in every way there is, on a real lake."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dags.tasks import launch
from include.errors import ClickmillError, NotHeldError, QualityError
from include.job_arguments import JobArguments
from include.log_hours import Hour
from include.settings import REPOSITORY, Settings
from include.tables import PUBLISHED_CLICKS_BY_COUNTRY_HOURLY, PUBLISHED_CLICKS_BY_URL_HOURLY, QUALITY_RESULTS
from spark_jobs import decide_held
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
    return decide_held.run(lake.spark, lake.settings, decide_held.Decision(Hour.parse(hour), decision, by, because))


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
    return [row["outcome"] for row in event_rows(lake, hour)]


def event_rows(lake: TemporaryLake, hour: str = HOUR) -> list[dict[str, Any]]:
    rows = [row for row in lake.rows(QUALITY_RESULTS, without=()) if row["suite"] == "publication"]
    return sorted((row for row in rows if row["partition"] == hour), key=lambda row: row["validated_at"])


@pytest.mark.path
def test_a_bad_log_hour_is_held_until_it_is_fixed_and_the_others_go_on(lake: TemporaryLake) -> None:
    land(lake, HOUR, 4)
    lake.run_all(HOUR)
    assert published(lake) == {HOUR: 4}
    # The log hour comes again, and most of it is noise.
    land(lake, HOUR, 2, noise=9)
    count(lake, HOUR)
    said = validate_red(lake, HOUR)
    assert f"web {HOUR}: expected at most 50% of the lines are in quarantine; found" in said
    assert f"{HOUR} is held" in said
    (held,) = event_rows(lake)[1:]
    assert (held["outcome"], held["severity"], held["actor"]) == ("held", "info", None)
    assert held["observed"].startswith(f"web {HOUR}: ")
    assert any("found quarantined_share" in example for example in held["examples"])
    said = "\n".join(lake.run("publish", HOUR))
    assert "0 click hours published, 1 held at their last good version" in said
    assert f"--hour {HOUR}" in said
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
    decided = event_rows(lake)[-1]
    assert (decided["outcome"], decided["actor"], decided["observed"]) == ("published_anyway", "Ada", "seen with Bob")

    # Run again without new counts, it stays published, and decided.
    validate_red(lake, HOUR)
    assert f"{HOUR} is published anyway by Ada: seen with Bob" in "\n".join(lake.run("publish", HOUR))
    assert events(lake) == ["held", "published_anyway"]
    assert f"{HOUR}: published anyway (as Ada had decided)" in decide(lake, "publish", by="Bob")[0]
    with pytest.raises(NotHeldError, match=r"published anyway at .* by Ada: seen with Bob"):
        decide(lake, "drop", by="Bob")
    assert events(lake) == ["held", "published_anyway"]

    # A late click counts it again: judged again, held again.
    land(lake, NEXT, 3, late=HOUR)
    count(lake, NEXT)
    with pytest.raises(ClickmillError, match="was counted again since it was validated"):
        decide(lake, "publish")
    for job in ("validate", "publish"):
        lake.run(job, NEXT)
    assert published(lake) == {HOUR: 2, NEXT: 3}
    assert events(lake) == ["held", "published_anyway", "held"]
    decide(lake, "drop", because="no")
    assert f"{HOUR} is not published: dropped by Ada: no" in "\n".join(lake.run("publish", NEXT))
    assert published(lake) == {HOUR: 2, NEXT: 3}
    assert events(lake) == ["held", "published_anyway", "held", "dropped"]


def question(lake: TemporaryLake, hour: str) -> dict[str, Any]:
    """The run of held_hours that the run of a log hour asks for: publish_clicks as its task runs it."""
    (asked,) = launch.publish(JobArguments.of("web", None, None, hour), lake.spark, Judged())
    return asked


class Judged:
    """A task instance whose validate_clicks came to a judgement."""

    def xcom_pull(self, task_ids: str, key: str) -> bool:
        return True


def answer(lake: TemporaryLake, asked: dict[str, Any], chosen: str = "Publish anyway") -> list[dict[str, Any]]:
    given = {"chosen_options": [chosen], "params_input": {"reason": "seen"}, "responded_by_user": {"name": "Ada"}}
    return launch.decide(asked["conf"], given, lake.spark)


@pytest.fixture
def in_task(lake: TemporaryLake, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a task knows of the home."""
    monkeypatch.setattr(Settings, "from_environment", lambda: lake.settings)


@pytest.mark.usefixtures("in_task")
def test_an_answer_is_for_the_counts_that_were_shown(lake: TemporaryLake) -> None:
    land(lake, HOUR, 4, noise=5)
    count(lake, HOUR)
    validate_red(lake, HOUR)
    first = question(lake, HOUR)
    assert "found quarantined_share = 0.55" in first["conf"]["reasons"][0]
    assert question(lake, HOUR) == first, "asked for again, it is one question"

    # The same check fails, by other numbers.
    land(lake, HOUR, 1, noise=99)
    count(lake, HOUR)
    validate_red(lake, HOUR)
    assert events(lake) == ["held", "held"]
    second = question(lake, HOUR)
    assert second["trigger_run_id"] != first["trigger_run_id"]
    assert "found quarantined_share = 0.99" in second["conf"]["reasons"][0]
    (again,) = answer(lake, first)
    assert again["trigger_run_id"] == second["trigger_run_id"], "that question is open already"
    assert published(lake) == {}

    # A late click changes the counts, and not what the check finds in the log hour.
    land(lake, NEXT, 3, late=HOUR)
    lake.run_all(NEXT)
    assert events(lake) == ["held", "held"]
    (third,) = answer(lake, second)
    assert events(lake) == ["held", "held", "held"]
    assert third["trigger_run_id"] not in (first["trigger_run_id"], second["trigger_run_id"])
    assert third["conf"]["reasons"] == second["conf"]["reasons"]
    assert third["conf"]["note"].startswith(
        "The answer of Ada, 'Publish anyway', was not carried out: the decision on "
    )
    (same,) = answer(lake, second, "Drop")
    assert same["trigger_run_id"] == third["trigger_run_id"]
    assert published(lake) == {NEXT: 3}
    assert answer(lake, third) == []
    assert published(lake) == {HOUR: 2, NEXT: 3}
    assert events(lake) == ["held", "held", "held", "published_anyway"]


@pytest.mark.usefixtures("in_task")
def test_whoever_was_shown_no_counts_is_asked_about_the_newest(lake: TemporaryLake) -> None:
    """A run of held_hours that was triggered by hand."""
    land(lake, HOUR, 2, noise=9)
    count(lake, HOUR)
    validate_red(lake, HOUR)
    asked = question(lake, HOUR)
    (again,) = answer(lake, {"conf": {"hour": HOUR, "reasons": [], "counts": "", "note": ""}}, "Drop")
    assert again["trigger_run_id"] == asked["trigger_run_id"]
    assert again["conf"]["counts"] == asked["conf"]["counts"]
    assert events(lake) == ["held"]


def test_of_two_decisions_at_once_one_is_made(lake: TemporaryLake) -> None:
    land(lake, HOUR, 2, noise=9)
    count(lake, HOUR)
    validate_red(lake, HOUR)

    def outcome(decision: str) -> str:
        try:
            return decide(lake, decision)[0]
        except NotHeldError as error:
            return str(error)

    with ThreadPoolExecutor(2) as both:
        said = sorted(both.map(outcome, ("publish", "drop")))
    assert said[0].startswith(f"{HOUR} is not held: ")
    assert said[1].startswith(f"{HOUR}: ")
    was_published = "published anyway" in said[1]
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
    lake: TemporaryLake, killed_when_recorded: Callable[..., None]
) -> None:
    land(lake, HOUR, 2, noise=9)
    count(lake, HOUR)
    validate_red(lake, HOUR)
    job = "spark_jobs.decide_held"
    killed_when_recorded(job, "--hour", HOUR, "--decision", "publish", "--by", "Ada", "--because", "seen")
    assert events(lake) == ["held", "published_anyway"]
    assert published(lake) == {}
    assert "as Ada had decided" in decide(lake, "publish")[0]
    assert published(lake) == {HOUR: 2}
    assert events(lake) == ["held", "published_anyway"]


def test_killed_between_the_word_and_the_deed_a_publishing_is_finished_by_running_it_again(
    lake: TemporaryLake, killed_when_recorded: Callable[..., None]
) -> None:
    land(lake, HOUR, 3)
    count(lake, HOUR)
    lake.run("validate", HOUR)
    killed_when_recorded("spark_jobs.publish_clicks", "--hour", HOUR)
    assert (events(lake), published(lake)) == (["published"], {})
    lake.run("publish", HOUR)
    assert published(lake) == {HOUR: 3}


@pytest.fixture
def killed_when_recorded(lake: TemporaryLake, spark_remote: str) -> Callable[..., None]:
    """Runs a job in a process of its own that is killed outright as soon as its event is in the table."""

    def run(module: str, *arguments: str) -> None:
        code = f"""
import os, signal, sys
import {module} as job
from spark_jobs.engine.command import run_from_shell

append = job.append_results

def append_and_die(*given):
    append(*given)
    os.kill(os.getpid(), signal.SIGKILL)

job.append_results = append_and_die
job.main() if hasattr(job, "main") else run_from_shell("{module}", "", job.run)
"""
        environment = os.environ | {
            "CLICKMILL_HOME": str(lake.settings.home),
            "CLICKMILL_SOURCES": str(lake.settings.sources_file),
            "CLICKMILL_PIPELINE": str(lake.settings.pipeline_file),
            "SPARK_REMOTE": spark_remote,
        }
        ran = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=REPOSITORY,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert ran.returncode == -signal.SIGKILL, ran.stderr

    return run
