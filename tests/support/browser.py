"""A real browser with a page of a console: Chromium, steered by Selenium, with axe-core.

It needs Debian's `chromium` and `chromium-driver`, and npm for what is in
`tests/console/npm/package.json`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from .console import Console

NPM = Path(__file__).parents[1] / "console" / "npm"
SECONDS_MAX = 60

WATCH = """
window.refused = [];
document.addEventListener("securitypolicyviolation", (event) =>
    window.refused.push(`${event.violatedDirective} ${event.blockedURI}`));
window.alert = () => window.refused.push("a script of a record ran");
"""
TEXTS_OF = "return [...document.querySelectorAll(arguments[0])].map((each) => each.innerText)"


def need(program: str) -> str:
    """The path of a program; without it the test fails, because nobody would notice a skip."""
    path = shutil.which(program)
    if path is None:
        pytest.fail(f"`{program}` is not installed: .ci/need {program}", pytrace=False)
    return path


def npm_packages() -> Path:
    """The folder of what npm installs."""
    npm = need("npm")
    if not (NPM / "node_modules" / "axe-core").is_dir():
        install = [npm, "ci", "--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=5"]
        subprocess.run(install, cwd=NPM, check=True, timeout=300)
    return NPM / "node_modules"


class Browser:
    """Chromium with one page of a console.

    Args:
        console: whose pages.
        axe: the source of axe-core.
    """

    def __init__(self, console: Console, axe: str) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = need("chromium")
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver: Any = webdriver.Chrome(options=options, service=Service(need("chromedriver")))
        self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
        self._console = console
        self._axe = axe

    def open(self, path: str) -> None:
        """Go to a page; what the last one did is forgotten."""
        self.driver.get_log("browser")
        self.driver.get(self._console.url + path)

    def prefer(self, scheme: str) -> None:
        """Have the viewer's system be light or dark."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def resize(self, size: tuple[int, int]) -> None:
        """Have a screen of another size."""
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def text(self, selector: str = "main") -> str:
        """The text of an element."""
        return str(self.driver.find_element(By.CSS_SELECTOR, selector).text)

    def find(self, selector: str) -> Any:
        """An element."""
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def click(self, selector: str) -> None:
        """Click an element; where the page replaces it meanwhile, its successor."""
        WebDriverWait(
            self.driver, SECONDS_MAX, ignored_exceptions=[StaleElementReferenceException]
        ).until(lambda _: self.find(selector).click() is None)

    def press(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def wait(self, selector: str, text: str) -> None:
        """Wait until an element has a text."""
        WebDriverWait(self.driver, SECONDS_MAX).until(
            lambda driver: any(text in each for each in driver.execute_script(TEXTS_OF, selector)),
            f"{selector} has no {text!r}",
        )

    def wait_for_address(self, ending: str) -> None:
        """Wait until the page's address ends so."""
        WebDriverWait(self.driver, SECONDS_MAX).until(
            lambda driver: driver.current_url.endswith(ending),
            f"the address does not end with {ending!r}",
        )

    def cut_off(self, selector: str) -> list[str]:
        """The texts of those elements that are wider than what is seen of them."""
        found: list[str] = self.driver.execute_script(
            "return [...document.querySelectorAll(arguments[0])]"
            ".filter(each => each.scrollWidth > each.clientWidth).map(each => each.innerText)",
            selector,
        )
        return found

    def complaints(self) -> list[str]:
        """What axe-core finds wrong with the page."""
        self.driver.execute_script(self._axe)
        found = self.driver.execute_async_script(
            "axe.run(document, {resultTypes: ['violations']}).then(arguments[0])"
        )
        return [
            f"{each['id']}: {node['html'][:150]} {node['failureSummary']}"
            for each in found["violations"]
            for node in each["nodes"]
        ]

    def troubles(self) -> list[str]:
        """What the policy refused, and errors of the browser's console."""
        refused = self.driver.execute_script("return window.refused")
        errors = [each for each in self.driver.get_log("browser") if each["level"] == "SEVERE"]
        return [*refused, *(each["message"] for each in errors)]

    def fetched(self) -> set[str]:
        """The addresses that were asked for since this was looked at last."""
        messages = (json.loads(each["message"]) for each in self.driver.get_log("performance"))
        return {
            message["message"]["params"]["request"]["url"]
            for message in messages
            if message["message"]["method"] == "Network.requestWillBeSent"
        }
