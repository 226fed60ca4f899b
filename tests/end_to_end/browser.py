"""Debian's Chromium, headless, driven through its own chromium-driver: what a person sees of Airflow's UI."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support import expected_conditions as expected
from selenium.webdriver.support.ui import WebDriverWait

from ops.services.running import Services

PATIENCE_SECONDS = 120
WIDE, PHONE = (1280, 900), (390, 844)


@dataclass(frozen=True)
class Chromium:
    """Where the browser and its driver are."""

    binary: str
    driver: str


def find_chromium() -> Chromium:
    """Skips the test where they are not installed, and fails in CI."""
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary and driver:
        return Chromium(binary, driver)
    reason = "no chromium or no chromedriver; on Debian: apt-get install chromium chromium-driver"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


class Browser:
    """A browser that is logged in to Airflow as the admin."""

    def __init__(self, driver: webdriver.Chrome, services: Services) -> None:
        self.driver = driver
        self.services = services

    def log_in(self) -> None:
        """Fill in Airflow's form, as a person does."""
        self.driver.get(f"{self.services.airflow_url}/auth/login")
        self.wait(expected.presence_of_element_located((By.NAME, "username"))).send_keys(self.services.airflow_user)
        self.find("[name=password]").send_keys(self.services.airflow_password)
        self.find("button[type=submit]").click()
        self.wait(lambda driver: "/login" not in driver.current_url)

    def open(self, path: str) -> None:
        """A page of Airflow's UI, outside of any frame."""
        self.driver.switch_to.default_content()
        self.driver.get(self.services.airflow_url + path)

    def enter_frame(self, heading: str) -> None:
        """Go into the plugin's frame, and wait for the page with this heading."""

        def inside(driver: webdriver.Chrome) -> bool:
            driver.switch_to.default_content()
            frames = driver.find_elements(By.TAG_NAME, "iframe")
            if not frames:
                return False
            driver.switch_to.frame(frames[0])
            return any(element.text == heading for element in driver.find_elements(By.TAG_NAME, "h1"))

        self.wait(inside)

    def find(self, selector: str) -> WebElement:
        """The first element; raises if there is none."""
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        """All such elements."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def wait(self, condition: Any) -> Any:
        """Wait until the condition holds; returns what it gives."""
        return WebDriverWait(self.driver, PATIENCE_SECONDS, ignored_exceptions=[WebDriverException]).until(condition)

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        return self.driver.execute_script(f"return {expression}")

    def resize(self, size: tuple[int, int]) -> None:
        """Look at it in a window of this size, in CSS pixels."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size[0] < 500},
        )

    def messages(self) -> list[str]:
        """What the browser has complained about since last asked, our own pages only."""
        return [
            entry["message"]
            for entry in self.driver.get_log("browser")  # type: ignore[no-untyped-call]
            if "/data-quality" in entry["message"] and "can escape its sandboxing" not in entry["message"]
        ]


@contextmanager
def browse(chromium: Chromium, services: Services) -> Iterator[Browser]:
    """A browser of its own, with a profile of its own, ended at the end."""
    options = webdriver.ChromeOptions()
    options.binary_location = chromium.binary
    for argument in ("--headless=new", "--disable-gpu", "--no-first-run", "--hide-scrollbars"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium's own does not work for root
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(chromium.driver))
    try:
        browser = Browser(driver, services)
        browser.resize(WIDE)
        yield browser
    finally:
        driver.quit()
