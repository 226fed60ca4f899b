"""From the page to the repair, in a real Airflow and a real browser, without a shell.

After a bad release hours are held, one is missing, and a backfill was interrupted: six clicks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import httpx
import pytest
from deltalake import DeltaTable
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from include.hours import Hour, HourRange
from include.journal import CLICK_HOUR, read_events
from include.settings import Settings
from include.tables import PUBLISHED_CLICKS_BY_URL_HOURLY
from ops.airflow_api import CLICKS_HOURLY, HELD_HOURS, AirflowApi, readable_log
from ops.backfill import run_hours
from ops.services.running import Services
from samples.sample_logs import make_sample
from samples.sample_spec import SampleSpec
from samples.truth import Truth
from spark_jobs.backfill.record import begin
from spark_jobs.lake.lake import Lake
from tests.end_to_end.browser import Browser, browse, find_chromium
from tests.end_to_end.silent_display import Silent
from tests.support.published_clicks import true_clicks
from tests.support.questions import question, text_of_question

FIRST = Hour.parse("2026-02-03T08")
BROKEN, MISSING, WHOLE = [FIRST, FIRST.plus(1)], FIRST.plus(2), FIRST.plus(3)
INTERRUPTED = HourRange(WHOLE, WHOLE.plus(2))
SPEC = SampleSpec(start=FIRST, hours=5, clicks_per_hour=300, seed=8, is_clean=True, broken=dict.fromkeys(BROKEN, 0.7))
DAYS = f"first={FIRST.day}&last={FIRST.day}"


@pytest.fixture(scope="module")
def api(services: Services) -> AirflowApi:
    api = AirflowApi(services)
    for dag_id in (CLICKS_HOURLY, HELD_HOURS, "backfill_clicks"):
        api.wait_for_dag(dag_id)
    api.unpause(CLICKS_HOURLY)
    return api


@pytest.fixture(scope="module")
def truth(api: AirflowApi, services: Services) -> Truth:
    """Of five hours: two are held and asked about, one has not been run, a backfill of two has done nothing yet."""
    truth = make_sample(SPEC, services.home / "landing")
    outcome = run_hours(api, CLICKS_HOURLY, [*BROKEN, WHOLE], "web", again=True, at_once=2, display=Silent())
    assert outcome.held == [f"web {hour}" for hour in BROKEN]
    for hour in BROKEN:
        text_of_question(api, f"/api/v2/dags/{HELD_HOURS}/dagRuns/{question(api, hour)}")
    lake = Lake(None, replace(Settings.from_environment({}), home=services.home))
    begin(lake, "web", INTERRUPTED, chunk_hours=1, is_staged=False, actor=None, because="killed")
    return truth


@pytest.fixture(scope="module")
def browser(services: Services) -> Iterator[Browser]:
    with browse(find_chromium(), services) as browser:
        browser.log_in()
        yield browser


def form(browser: Browser, label: str) -> WebElement:
    """The form of that name, in the plugin's frame."""
    return browser.find(f"form.act[aria-label='{label}']")


def send(form: WebElement, reason: str, choice: str) -> None:
    form.find_element(By.NAME, "reason").send_keys(reason)
    form.find_element(By.CSS_SELECTOR, f"button[value='{choice}']").click()


def outputs(form: WebElement) -> list[str]:
    """What the form says of each run, and in the end whether all of it was done, once it says that."""
    status = form.find_element(By.CSS_SELECTOR, "[role=status]").text
    if status in ("", "Asking Airflow…"):
        return []
    return [*(output.text for output in form.find_elements(By.TAG_NAME, "output")), status.partition(" ")[0]]


def published(services: Services, hours: list[Hour]) -> Counter[tuple[str, str]]:
    """Published clicks of these click hours, by hour and URL."""
    table = DeltaTable(str(services.home / "lake" / PUBLISHED_CLICKS_BY_URL_HOURLY.name)).to_pyarrow_table()
    counts: Counter[tuple[str, str]] = Counter()
    for row in table.to_pylist():
        hour = Hour.of(row["click_date"], row["click_hour"])
        if hour in hours:
            counts[str(hour), row["url"]] += row["click_count"]
    return counts


def true(truth: Truth, hours: list[Hour]) -> Counter[tuple[str, str]]:
    """The same, as the sample was made."""
    names = set(map(str, hours))
    by_url = true_clicks(truth, PUBLISHED_CLICKS_BY_URL_HOURLY)
    return Counter({key: count for key, count in by_url.items() if key[0] in names})


def test_what_a_bad_release_has_left_is_repaired_by_six_clicks(
    browser: Browser, services: Services, truth: Truth
) -> None:
    group = f"Decide on {BROKEN[0]} to {BROKEN[1]}"
    # Another person has the page open before.
    browser.open(f"/data-quality/?{DAYS}")
    late = browser.driver.current_window_handle
    browser.driver.switch_to.new_window("tab")
    browser.open(f"/plugin/data-quality/data-quality/?{DAYS}")
    browser.enter_frame("Data quality")
    assert published(services, BROKEN) == Counter()

    send(form(browser, group), "the shop says that is all", "Publish anyway")
    *texts, is_done = browser.wait(lambda _: outputs(form(browser, group)))
    assert is_done == "Done."
    assert texts == [f"{hour}: published anyway by {services.airflow_user}" for hour in reversed(BROKEN)]
    assert published(services, BROKEN) == true(truth, BROKEN)

    browser.find(f"a.hour[href*='/plan?source=all&from={MISSING}&']").click()
    browser.enter_frame("Plan of a backfill")
    assert "web: can be started" in [heading.text for heading in browser.all("h2")]
    assert "never ingested" in browser.find("#plan-web + table").text
    send(form(browser, "Start"), "it had not run", "Start 1 backfill")
    text, is_done = browser.wait(lambda _: outputs(form(browser, "Start")))
    assert is_done == "Done."
    assert "run_chunk: success" in text
    assert published(services, [MISSING]) == true(truth, [MISSING])

    browser.find("nav.path a[href$='/backfills']").click()
    browser.enter_frame("Backfills")
    browser.find(f"a[href*='/plan?source=web&from={INTERRUPTED.start}&']").click()
    browser.enter_frame("Plan of a backfill")
    assert "goes on with" in browser.find("#plan-web + table").text
    send(form(browser, "Start"), "goes on", "Start 1 backfill")
    text, is_done = browser.wait(lambda _: outputs(form(browser, "Start")))
    assert is_done == "Done."
    assert "run_chunk: 2 success" in text
    assert published(services, list(INTERRUPTED)) == true(truth, list(INTERRUPTED))
    assert browser.messages() == []

    # The other person, too late, sees what became of it, and changes nothing.
    browser.driver.close()
    browser.driver.switch_to.window(late)
    send(form(browser, group), "no", "Drop")
    assert browser.wait(lambda _: outputs(form(browser, group))) == [*texts, "Not"]
    events = read_events(services.home / "lake", [("kind", "=", CLICK_HOUR), ("subject", "=", str(BROKEN[0]))])
    assert [(row["event"], row["actor"], row["because"]) for row in events if row["actor"]] == [
        ("published_anyway", services.airflow_user, "the shop says that is all")
    ]
    browser.open(f"/data-quality/hours/{BROKEN[0]}")
    assert "the shop says that is all" in browser.find(".verdict").text
    assert browser.all("form.act[data-act=answer]") == []


def test_of_two_hours_that_are_held_for_one_cause_somebody_is_notified_once(api: AirflowApi, truth: Truth) -> None:
    runs = api.call("GET", f"/api/v2/dags/{HELD_HOURS}/dagRuns", order_by="-id", limit=50)["dag_runs"]
    asked = [run["dag_run_id"] for run in runs if run["conf"].get("hour") in map(str, BROKEN)]
    asks = [task for run_id in asked for task in api.tasks(HELD_HOURS, run_id) if task.task_id == "ask"]
    logs = [" ".join(readable_log(api.log(HELD_HOURS, replace(ask, try_number=1)))) for ask in asks]
    assert len(logs) == len(BROKEN)
    assert ["nobody is notified" in text for text in logs].count(True) == len(BROKEN) - 1


def test_two_starts_of_the_same_plan_are_one_run(browser: Browser, api: AirflowApi, truth: Truth) -> None:
    plan = f"/data-quality/plan?source=web&from={WHOLE}&to={WHOLE.plus(1)}"
    windows = []
    for _ in range(2):
        browser.driver.switch_to.new_window("tab")
        browser.open(plan)
        windows.append(browser.driver.current_window_handle)
    texts = []
    for window in windows:
        browser.driver.switch_to.window(window)
        send(form(browser, "Start"), "twice", "Start 1 backfill")
    for window in windows:
        browser.driver.switch_to.window(window)
        texts.append(browser.wait(lambda _: outputs(form(browser, "Start"))))
    assert texts[0][0] == texts[1][0], "the one run"
    assert [of_window[-1] for of_window in texts] == ["Done.", "Not"]
    runs = api.call("GET", "/api/v2/dags/backfill_clicks/dagRuns", order_by="-id", limit=5)["dag_runs"]
    assert [run["conf"]["reason"] for run in runs].count("twice") == 1


@contextmanager
def other_site() -> Iterator[str]:
    """A page on this machine that is not Airflow's."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "index.html").write_text("<h1>Win a prize</h1>")
        server = ThreadingHTTPServer(("localhost", 0), partial(SimpleHTTPRequestHandler, directory=folder))
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_forged_request_of_another_site_starts_nothing(
    browser: Browser, services: Services, api: AirflowApi, truth: Truth
) -> None:
    """What a form of another page can send: the cookie at most, a simple method, no JSON."""
    api.call("GET", "/api/v2/version")
    cookie = {"Cookie": f"_token={api._token}"}
    path = f"{services.airflow_url}/api/v2/dags/backfill_clicks/dagRuns"
    body = b'{"dag_run_id": "forged", "logical_date": null, "conf": {"source": "web"}}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        answer = httpx.post(path, content=body, headers=cookie | {"Content-Type": kind}, timeout=60)
        assert answer.status_code == 422, kind
    for route in ("", "plan", "backfills", f"hours/{BROKEN[0]}"):
        answer = httpx.post(f"{services.airflow_url}/data-quality/{route}", content=body, headers=cookie, timeout=60)
        assert answer.status_code == 404, route
    # A page of another port, to whose requests the browser adds the cookie, asks for it as our pages do.
    with other_site() as address:
        browser.driver.get(address)
        for headers in ("{}", "{'Content-Type': 'text/plain'}", "{'Content-Type': 'application/json'}"):
            request = f"{{method: 'POST', credentials: 'include', headers: {headers}, body: {body.decode()!r}}}"
            outcome = browser.driver.execute_async_script(
                f"fetch({path!r}, {request}).then(a => a.status, e => String(e)).then(arguments[0])"
            )
            assert outcome == "TypeError: Failed to fetch", headers
    assert httpx.get(f"{path}/forged", headers=cookie, timeout=60).status_code == 404
