"""A headless Chromium for tests, and what they ask of a page."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1400,1000",
)


class Tab:
    """One browser window."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, page: Path, scheme: str = "light", part: str = "") -> Tab:
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        self.driver.get("about:blank")
        self.driver.get(f"{page.as_uri()}{part}")
        self.until("document.documentElement.dataset.ready")
        return self

    def until(self, condition: str) -> Any:
        return WebDriverWait(self.driver, 20).until(lambda d: d.execute_script(f"return {condition}"))

    def run(self, script: str) -> Any:
        return self.driver.execute_script(script)

    def one(self, selector: str) -> WebElement:
        """The first that is visible."""
        return next(e for e in self.all(selector) if e.is_displayed())

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements("css selector", selector)

    def count(self, selector: str) -> int:
        return int(self.run(f"return document.querySelectorAll({json.dumps(selector)}).length"))

    @property
    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]


@contextmanager
def browser(profile: Path) -> Iterator[Tab]:
    """A browser of its own, whose profile lies in an empty folder; one that is not installed is a failure."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.fail("chromium and chromedriver are needed: sh tests/tools.sh")
    options = Options()
    options.binary_location = program
    for argument in (*ARGUMENTS, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    remote = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield Tab(remote)
    finally:
        remote.quit()
