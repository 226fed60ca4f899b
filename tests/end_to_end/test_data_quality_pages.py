"""The pages on data quality inside a real Airflow, as a person sees them in a real browser, and as others do not."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from pyspark.sql import SparkSession

from include.hours import Hour
from include.settings import Settings
from ops.airflow_api import CLICKS_HOURLY, AirflowApi
from ops.services.running import Services
from spark_jobs.hours.quality_results import append_results
from spark_jobs.lake.journal import append_events
from spark_jobs.lake.lake import Lake
from tests.end_to_end.browser import PHONE, WIDE, Browser, Chromium, browse, find_chromium
from tests.support.quality_rows import Row, event, validated_hours

#: Far from the hours of the other tests that share this Airflow.
FIRST = Hour.parse("2025-02-03T00")
HELD, OTHER = str(FIRST.plus(5)), str(FIRST.plus(6))
RUN_ID = "data-quality-pages"
EVIL = "<img src=x onerror=alert(1)>\"'<script>alert(2)</script>"


@pytest.fixture(scope="module")
def hours(services: Services, spark: SparkSession) -> None:
    """Two days of hours in quality_results and journal, one of them held, written as jobs write."""
    lake = Lake(spark, replace(Settings.from_environment({}), home=services.home))
    made = [row for run in validated_hours(FIRST, 48, seed=4) for row in run]
    rows = [row for row in made if isinstance(row, Row) and row.hour != HELD]
    events = [row for row in made if not isinstance(row, Row) and row["subject"] != HELD]
    failure = {"outcome": "fail", "observed": EVIL, "observed_value": 7.0, "examples": [EVIL]}
    at = datetime(2025, 2, 3, 7, tzinfo=UTC)
    for source in ("web", "shop"):
        failed = failure if source == "web" else {}
        rows.append(Row("held", at, partition=f"{source} {HELD}", source=source, hour=HELD, **failed))  # type: ignore[arg-type]
    append_results(lake, [asdict(row) for row in rows])
    append_events(lake, [*events, event(HELD, "held", f"ids are there twice {EVIL}", run_id="held", at=at)])


@pytest.fixture(scope="module")
def api(services: Services) -> AirflowApi:
    api = AirflowApi(services)
    api.wait_for_dag(CLICKS_HOURLY)
    return api


@pytest.fixture(scope="module")
def dag_run(api: AirflowApi) -> Iterator[str]:
    """A run of the held hour's partition, which need not run."""
    path = f"/api/v2/dags/{CLICKS_HOURLY}/dagRuns"
    api.call("POST", path, {"dag_run_id": RUN_ID, "logical_date": None, "partition_key": HELD})
    yield RUN_ID
    request = urllib.request.Request(f"{api._services.airflow_url}{path}/{RUN_ID}", method="DELETE")
    request.add_header("Authorization", f"Bearer {api._token}")
    urllib.request.urlopen(request, timeout=60).close()


@pytest.fixture(scope="module")
def chromium() -> Chromium:
    return find_chromium()


@pytest.fixture(scope="module")
def browser(chromium: Chromium, services: Services, hours: None) -> Iterator[Browser]:
    with browse(chromium, services) as browser:
        browser.log_in()
        yield browser


@pytest.fixture(autouse=True)
def as_before(request: pytest.FixtureRequest) -> None:
    """Whatever the test before left: a wide window, a light Airflow."""
    if "browser" in request.fixturenames:
        browser: Browser = request.getfixturevalue("browser")
        browser.resize(WIDE)
        browser.open("/")
        browser.ask("localStorage.setItem('theme', 'light')")
        browser.messages()


def status(services: Services, path: str, cookie: str = "") -> int:
    request = urllib.request.Request(services.airflow_url + path, headers={"Cookie": cookie} if cookie else {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


# --- from outside ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/",
        f"/hours/{HELD}",
        "/metric?suite=clicks&check=a",
        "/run?dag_id=clicks_hourly&run_id=a",
        "/docs/a.html",
        "/no",
    ],
)
def test_nobody_sees_a_page_without_logging_in(services: Services, api: AirflowApi, hours: None, path: str) -> None:
    api.call("GET", "/api/v2/version")
    assert status(services, f"/data-quality{path}") in (401, 403)
    assert status(services, f"/data-quality{path}", "_token=made.up.token") in (401, 403)
    # With a token the same address answers, so that it was the login that was missing.
    assert status(services, f"/data-quality{path}", f"_token={api._token}") in (200, 404)


def test_airflow_has_loaded_the_plugin(api: AirflowApi) -> None:
    assert api.call("GET", "/api/v2/plugins/importErrors")["total_entries"] == 0
    plugins = {plugin["name"]: plugin for plugin in api.call("GET", "/api/v2/plugins")["plugins"]}
    assert [view["destination"] for view in plugins["data_quality"]["external_views"]] == ["nav", "dag_run"]


# --- as a person sees it --------------------------------------------------------------------------


def test_the_navigation_leads_to_what_needs_attention(browser: Browser) -> None:
    browser.open("/")
    browser.wait(lambda _: browser.all("a[href*='plugin/data-quality']"))
    browser.find("a[href*='plugin/data-quality']").click()
    browser.enter_frame("Data quality")
    first = browser.find(".concern.held a")
    hour = first.text
    first.click()
    browser.enter_frame(hour)
    assert browser.find(".verdict h2").text == "Held: not published"
    assert browser.messages() == []


def test_the_tab_of_a_run_opens_on_its_hour_and_leads_back_to_the_run(browser: Browser, dag_run: str) -> None:
    browser.open(f"/dags/{CLICKS_HOURLY}/runs/{dag_run}")
    browser.wait(lambda _: browser.all("a[href*='data-quality-of-run']"))
    browser.find("a[href*='data-quality-of-run']").click()
    browser.enter_frame(HELD)
    browser.find(f"a[href$='/runs/{dag_run}']").click()
    browser.driver.switch_to.default_content()
    browser.wait(lambda driver: driver.current_url.endswith(f"/runs/{dag_run}"))
    # Airflow itself, not a second one in its frame.
    browser.wait(lambda _: browser.all("a[href*='data-quality-of-run']"))
    assert browser.all("iframe") == []
    assert browser.messages() == []


def test_a_held_hour_leads_to_airflow_s_required_actions(browser: Browser) -> None:
    browser.open(f"/plugin/data-quality/data-quality/hours/{HELD}")
    browser.enter_frame(HELD)
    browser.find(".verdict a[href*='required_actions']").click()
    browser.driver.switch_to.default_content()
    browser.wait(lambda driver: "/required_actions?response_received=false" in driver.current_url)


def test_filters_are_a_form_that_works_in_the_frame(browser: Browser) -> None:
    browser.open(f"/plugin/data-quality/data-quality/?first={FIRST.day}&last={FIRST.day}")
    browser.enter_frame("Data quality")
    assert browser.all(".grid td.fail")
    browser.find("[name=source] option:nth-child(2)").click()  # shop, by name before web
    browser.find("form.filters button").click()
    browser.wait(lambda _: "source=shop" in browser.ask("location.search"))
    assert browser.all(".grid td.held")
    held = browser.find(f".grid tr:has(a[aria-label='{HELD}'])")
    assert "fail" not in [cell.get_attribute("class") for cell in held.find_elements("css selector", "td")]
    assert browser.messages() == []


def test_text_from_logs_stays_text_in_the_browser(browser: Browser) -> None:
    browser.open(f"/data-quality/hours/{HELD}")
    assert EVIL in browser.find(".check dd").text
    assert EVIL in browser.find(".samples .code").text
    assert browser.all("img") == []
    assert browser.messages() == []  # nothing was tried that the policy had to stop


def test_a_script_in_data_docs_does_not_run(browser: Browser, services: Services) -> None:
    docs = services.home / "reports" / "data_docs" / "planted"
    docs.mkdir(parents=True, exist_ok=True)
    (docs / "page.html").write_text(
        "<h1>Great</h1><script>document.title = 'ran'</script><img src=x onerror=\"document.title = 'ran'\">",
        encoding="utf-8",
    )
    browser.open("/data-quality/docs/planted/page.html")
    assert browser.find("h1").text == "Great"
    assert browser.driver.title != "ran"
    assert any("Blocked script execution" in message for message in browser.messages())


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pages_are_dark_when_airflow_is(browser: Browser, theme: str) -> None:
    browser.ask(f"localStorage.setItem('theme', '{theme}')")
    browser.open("/plugin/data-quality")
    browser.enter_frame("Data quality")
    red, green, blue = browser.ask("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (max(red, green, blue) < 64) == (theme == "dark")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        f"/?first={FIRST.day}&last={FIRST.plus(30 * 24).day}",
        f"/hours/{HELD}",
        "/incidents",
        "/metric?suite=clicks&check=quarantined_share&series=web",
        f"/plan?source=web&from={FIRST}&to={OTHER}",
    ],
)
def test_a_page_fits_a_phone(browser: Browser, path: str) -> None:
    browser.resize(PHONE)
    browser.open(f"/data-quality{path}")
    assert browser.ask("document.documentElement.scrollWidth") <= PHONE[0]
    small = browser.ask(
        "[...document.querySelectorAll('.grid a, .grid span:not(.unseen), button, select')]"
        ".filter(e => e.getBoundingClientRect().height < 20 && e.closest('td, th[scope=row], form')).length"
    )
    assert small == 0


def test_hours_stand_beside_each_other_where_there_is_room_and_below_on_a_phone(browser: Browser) -> None:
    def places() -> list[list[float]]:
        corners: Any = browser.ask(
            "[...document.querySelectorAll('.grid tbody th')].slice(0, 2)"
            ".map(e => e.getBoundingClientRect()).map(r => [r.x, r.y])"
        )
        return list(corners)

    browser.open(f"/data-quality/?first={FIRST.day}&last={FIRST.day}")
    (x0, y0), (x1, y1) = places()
    assert x0 < x1
    assert y0 == y1
    browser.resize(PHONE)
    (x0, y0), (x1, y1) = places()
    assert x0 == x1
    assert y0 < y1


def test_the_grid_is_a_table_to_a_screen_reader_and_can_be_walked_by_keyboard(browser: Browser) -> None:
    browser.open(f"/data-quality/?first={FIRST.day}&last={FIRST.day}")
    tree = browser.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    roles = [node["role"]["value"] for node in tree if not node.get("ignored")]
    assert roles.count("table") == 1
    assert roles.count("rowheader") == 24
    assert roles.count("columnheader") >= 6
    names = [node.get("name", {}).get("value", "") for node in tree]
    assert f"{HELD}, Clicks: 1 failed, 1 passed" in names
    headings = [int(heading.tag_name[1]) for heading in browser.all("h1, h2, h3")]
    assert headings[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(headings))
    # The first stop of the keyboard is visible, and has an outline.
    browser.find("body").send_keys("\ue004")
    outlined = browser.ask("getComputedStyle(document.activeElement).outlineStyle")
    assert browser.ask("document.activeElement.textContent") == "Skip to what needs attention"
    assert outlined == "solid"
