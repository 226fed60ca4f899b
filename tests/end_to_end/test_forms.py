"""Every DAG's form in a real browser: filled in as its guide says, it can be sent, and makes that run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from ops.airflow_api import AirflowApi
from ops.services.running import Services
from tests.end_to_end.browser import Browser, browse, find_chromium

#: Of each DAG what a person fills in, and what of it the run must have; the rest stays as it is.
FORMS: dict[str, dict[str, str]] = {
    "clicks_hourly": {},
    "backfill_clicks": {"from": "2026-01-05T05:00", "to": "2026-01-05T07:00"},
    "clicks_stream": {},
    "erase_visitor": {"reason": "request 2026-117"},
    "held_hours": {"hour": "2026-01-05T05"},
    "maintain_lake": {},
    "release_counts": {},
    "replay_quarantined": {
        "from": "2026-01-05T05:00",
        "to": "2026-01-05T07:00",
        "reason": "the new app sends url, not link",
    },
    "undo_backfill": {"backfill": "20260105T050000-1a2b", "reason": "wrong files"},
}
#: As React takes what is typed.
_TYPE = """
const [field, text] = arguments;
const kind = field.tagName === 'TEXTAREA' ? HTMLTextAreaElement : HTMLInputElement;
Object.getOwnPropertyDescriptor(kind.prototype, 'value').set.call(field, text);
field.dispatchEvent(new Event('input', {bubbles: true}));
field.dispatchEvent(new Event('change', {bubbles: true}));
"""


@pytest.fixture(scope="module")
def api(services: Services) -> Iterator[AirflowApi]:
    """No DAG runs meanwhile; the runs are gone afterwards."""
    api = AirflowApi(services)
    before: dict[str, tuple[bool, set[str]]] = {}
    for dag_id in FORMS:
        api.wait_for_dag(dag_id)
        before[dag_id] = (api.call("GET", f"/api/v2/dags/{dag_id}")["is_paused"], set(runs(api, dag_id)))
        pause(api, dag_id, True)
    yield api
    for dag_id, (was_paused, run_ids) in before.items():
        for run_id in runs(api, dag_id).keys() - run_ids:
            api.call("PATCH", f"/api/v2/dags/{dag_id}/dagRuns/{run_id}", {"state": "failed"})
        pause(api, dag_id, was_paused)


@pytest.fixture(scope="module")
def browser(services: Services, api: AirflowApi) -> Iterator[Browser]:
    with browse(find_chromium(), services) as browser:
        browser.log_in()
        yield browser


def pause(api: AirflowApi, dag_id: str, is_paused: bool) -> None:
    api.call("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": is_paused})


def runs(api: AirflowApi, dag_id: str) -> dict[str, dict[str, Any]]:
    """The confs of its runs, by id."""
    dag_runs = api.call("GET", f"/api/v2/dags/{dag_id}/dagRuns", limit=100)["dag_runs"]
    return {run["dag_run_id"]: run["conf"] or {} for run in dag_runs}


def field_of(browser: Browser, name: str) -> list[WebElement]:
    """The field of a parameter, none if it is not there yet: for a moment what opens the fields of date and time."""
    moment = f"//*[@data-scope='field'][.//label[starts-with(., '{name} (')]]//*[@data-testid='datetime-input']"
    return browser.all(f"[id='element_{name}']") or browser.driver.find_elements(By.XPATH, moment)


def fill_in(browser: Browser, field: WebElement, text: str) -> None:
    if field.get_attribute("data-testid") != "datetime-input":
        browser.driver.execute_script(_TYPE, field, text)
        return
    browser.driver.execute_script("arguments[0].click()", field)
    date, _, time = text.partition("T")
    for shown, part in (("YYYY/MM/DD", date.replace("-", "/")), ("HH:mm", time)):
        browser.wait(lambda _, shown=shown: browser.find(f"[placeholder='{shown}']").is_displayed())
        browser.find(f"[placeholder='{shown}']").send_keys(Keys.CONTROL, "a", Keys.NULL, part)
    browser.driver.execute_script("arguments[0].click()", field)
    browser.wait(lambda _: not browser.all("[placeholder='HH:mm']"))


@pytest.mark.parametrize("dag_id", FORMS)
def test_a_form_filled_in_as_its_guide_says_makes_that_run(browser: Browser, api: AirflowApi, dag_id: str) -> None:
    fields, before = FORMS[dag_id], runs(api, dag_id)
    browser.open(f"/dags/{dag_id}")
    browser.wait(lambda _: browser.find("[data-testid=trigger-dag-button]")).click()
    submit = browser.wait(lambda _: browser.find("[data-testid=trigger-dag-submit]"))
    # It stays paused: nobody wants what these runs would do.
    browser.wait(lambda driver: driver.find_element(By.XPATH, "//label[contains(., 'Unpause')]")).click()
    names = api.call("GET", f"/api/v2/dags/{dag_id}/details")["params"]
    browser.wait(lambda _: all(field_of(browser, name) for name in fields))
    if fields:
        assert not submit.is_enabled(), "it needs what must be given"
    for name, text in fields.items():
        fill_in(browser, field_of(browser, name)[0], text)
    browser.wait(lambda _: browser.find("[data-testid=trigger-dag-submit]").is_enabled())
    browser.find("[data-testid=trigger-dag-submit]").click()
    browser.wait(lambda _: runs(api, dag_id).keys() - before.keys())
    (run_id,) = runs(api, dag_id).keys() - before.keys()
    conf = runs(api, dag_id)[run_id]
    assert set(conf) <= set(names)
    for name, text in fields.items():
        assert str(conf[name]).startswith(text)
