"""Take the pictures of docs/guides/review.md again: `python -m tests.end_to_end.take_screenshots`.

Shows the newest held hour of the running services, as after `make run`; runs it again, since the tab of a run shows the
hour of that run alone. Needs Chromium and pngquant.
"""

from __future__ import annotations

import subprocess
import time

from include.hours import Hour
from include.quality_index import open_index
from include.settings import REPOSITORY, Settings
from ops.airflow_api import CLICKS_HOURLY, AirflowApi
from ops.backfill import run_hours
from ops.services.running import running_services
from tests.end_to_end.browser import PHONE, Browser, browse, find_chromium
from tests.end_to_end.silent_display import Silent

IMAGES = REPOSITORY / "docs" / "images"
SETTLED_SECONDS = 3  # fonts and Airflow's own animations


def main() -> None:
    """Take them all."""
    services = running_services()
    with open_index(Settings.from_environment()) as index:
        hour = str(index.held()[0].hour)
    api = AirflowApi(services)
    run_hours(api, CLICKS_HOURLY, [Hour.parse(hour)], "web", again=True, at_once=1, display=Silent())
    runs = api.call("GET", f"/api/v2/dags/{CLICKS_HOURLY}/dagRuns", partition_key_pattern=hour, limit=1)["dag_runs"]
    IMAGES.mkdir(parents=True, exist_ok=True)
    with browse(find_chromium(), services) as browser:
        browser.log_in()
        browser.resize((1200, 1100))
        browser.open("/plugin/data-quality")
        browser.enter_frame("Data quality")
        _take(browser, "quality-overview")
        browser.resize((1200, 950))
        browser.open(f"/plugin/data-quality/data-quality/hours/{hour}")
        browser.enter_frame(hour)
        _take(browser, "quality-hour")
        browser.ask("localStorage.setItem('theme', 'dark')")
        browser.open(f"/dags/{CLICKS_HOURLY}/runs/{runs[0]['dag_run_id']}/plugin/data-quality-of-run")
        browser.enter_frame(hour)
        _take(browser, "quality-run-dark")
        browser.resize(PHONE)
        browser.open("/data-quality/#hours")
        _take(browser, "quality-phone")


def _take(browser: Browser, name: str) -> None:
    time.sleep(SETTLED_SECONDS)
    file = IMAGES / f"{name}.png"
    browser.driver.save_screenshot(str(file))
    subprocess.run(["pngquant", "--force", "--ext", ".png", "--speed", "1", "64", str(file)], check=True)
    print(f"{file}: {file.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
