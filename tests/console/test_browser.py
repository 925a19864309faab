"""A walk through the console in a real browser: Chromium, steered by Selenium, with axe-core.

What it needs, `support/browser.py` says.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from support.browser import Browser, npm_packages
from support.console import Console
from support.pytest_runs import PytestRun

from odradek.testing.waiting import wait_until

pytestmark = [pytest.mark.clients, pytest.mark.slow]

VENDORED = Path(__file__).parents[2] / "console" / "static" / "vendor"
SECONDS_MAX = 60
WIDE, NARROW = (1320, 900), (390, 800)


@pytest.fixture(scope="module")
def packages() -> Path:
    return npm_packages()


@pytest.fixture(scope="module")
def test_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A broker with a control channel, with topics, a group and hostile records."""

    process = subprocess.Popen(
        [sys.executable, "-m", "odradek", "serve", "--ephemeral", "--json", "--brokers", "2"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    ready: dict[str, Any] = json.loads(process.stdout.readline())
    bootstrap = ready["bootstrap_servers"]
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(name, 3, 2) for name in ("orders", "hostile", "empty")])
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in range(80):
            producer.send("orders", json.dumps({"n": number}).encode(), key=b"k%d" % number)
        for text in ("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "a\u202eb\x00"):
            producer.send("hostile", text.encode(), key=text.encode(), headers=[(text, b"\xff")])
    with KafkaConsumer("orders", bootstrap_servers=bootstrap, group_id="billing") as consumer:
        consumer.poll(5_000)
        consumer.commit()
    yield ready
    process.stdin.close()
    process.wait(SECONDS_MAX)
    process.stdout.close()


@pytest.fixture(scope="module")
def walked(
    test_broker: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Console]:
    """A console of it."""
    log = tmp_path_factory.mktemp("console") / "log"
    arguments = ["--console-write", "--control", test_broker["control"]]
    with Console(test_broker["bootstrap_servers"], log, arguments) as console:
        yield console
    assert "Traceback" not in log.read_text()


@pytest.fixture(scope="module")
def browser(walked: Console, packages: Path) -> Iterator[Browser]:
    started = Browser(walked, (packages / "axe-core" / "axe.min.js").read_text())
    yield started
    started.driver.quit()


PAGES = (
    "/",
    "/topics",
    "/topics?search=there-is-none",
    "/new-topic",
    "/topics/orders",
    "/topics/orders/settings",
    "/topics/orders/records",
    "/topics/orders/records?where=n+%3E+70",
    "/topics/orders/produce",
    "/topics/orders/producers",
    "/topics/orders/delete",
    "/topics/orders/follow",
    "/topics/empty/records",
    "/topics/hostile/records",
    "/topics/hostile/records/{hostile}",
    "/groups",
    "/groups/view?id=billing",
    "/brokers",
    "/brokers/1",
    "/brokers/1/setting?name=log.cleaner.threads",
    "/transactions",
    "/transactions/hanging",
    "/access",
    "/storage",
    "/test",
    "/test/requests",
    "/nowhere",
)


def path_of(console: Console, page: str) -> str:
    """The path of a page; that of the first hostile record is looked up."""
    if "{hostile}" not in page:
        return page
    links = console.page("/topics/hostile/records").links()
    return next(each for each in links if each.startswith("/topics/hostile/records/"))


@pytest.mark.parametrize("page", PAGES)
def test_page_is_accessible_in_light_and_dark_and_fetches_nothing_from_elsewhere(
    browser: Browser, walked: Console, page: str
) -> None:
    browser.fetched()
    browser.open(path_of(walked, page))
    for scheme in ("light", "dark"):
        browser.prefer(scheme)
        assert browser.complaints() == [], scheme
    expected = "/nowhere - Failed to load resource"
    assert [each for each in browser.troubles() if expected not in each] == []
    fetched = {each for each in browser.fetched() if not each.startswith("data:")}
    assert fetched
    assert {each for each in fetched if not each.startswith(walked.url)} == set()


@pytest.mark.parametrize("page", PAGES)
def test_page_fits_a_narrow_screen(browser: Browser, walked: Console, page: str) -> None:
    browser.resize(NARROW)
    try:
        browser.open(path_of(walked, page))
        wide = browser.driver.execute_script(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
    finally:
        browser.resize(WIDE)
    assert wide <= 0


def test_search_narrows_the_list_while_one_types(browser: Browser) -> None:
    browser.open("/topics")
    assert "hostile" in browser.text("#list")
    browser.press("/", "o", "r", "d")
    browser.wait("#list", "1\N{EN DASH}1 of 1 topics")
    assert "hostile" not in browser.text("#list")
    browser.wait_for_address("search=ord&order=name")  # which follows the list


def test_keys_lead_everywhere(browser: Browser) -> None:
    browser.open("/")
    browser.press("g", "t")
    browser.wait("h1", "Topics")
    browser.press("j", "j")
    browser.press(Keys.ENTER)
    browser.wait("h1", "hostile")
    browser.press("?")
    assert browser.find("#keys").get_attribute("open") is not None
    browser.press(Keys.ESCAPE)
    browser.press("g", "o")
    browser.wait("h1", "Overview")


def test_record_opens_beside_the_table(browser: Browser) -> None:
    browser.open("/topics/orders/records")
    browser.click("tbody th a")
    browser.wait("#drawer", "The batch it lies in")
    assert browser.cut_off("td.key .cut") == []
    browser.click("#drawer .ways a:last-child")
    browser.wait("#drawer", "00000000")
    browser.click("[data-close-drawer]")
    assert browser.text("#drawer") == ""
    assert browser.troubles() == []


def test_times_are_shown_in_the_zone_of_the_viewer(browser: Browser) -> None:
    zone = {"timezoneId": "Asia/Tokyo"}
    browser.driver.execute_cdp_cmd("Emulation.setTimezoneOverride", zone)
    browser.open("/topics/orders/records")
    utc = browser.find("time").get_attribute("datetime")
    assert browser.find("time").text == utc.replace("T", " ").replace("Z", "")
    browser.click("#zone")
    shown = browser.find("time").text
    assert (int(shown[11:13]) - int(utc[11:13])) % 24 == 9
    assert browser.text("#zone") == "Times in Asia/Tokyo"
    browser.open("/topics/orders/records")
    assert browser.text("#zone") == "Times in Asia/Tokyo"
    browser.click("#zone")


def test_record_that_is_produced_appears_where_it_is_followed(
    browser: Browser, walked: Console
) -> None:
    browser.open("/topics/orders/follow")
    browser.wait("#follow-empty", "Waiting for the next record")
    wait_until(lambda: any("follow/events" in each for each in browser.fetched()))

    def appears() -> bool:
        walked.post("/topics/orders/produce", {"key": "new", "value": "<b>fresh</b>"})
        return "<b>fresh</b>" in browser.text(".follow-rows")

    wait_until(appears)
    browser.click("#pause")
    assert browser.text("#pause") == "Go on"
    assert browser.troubles() == []


def test_chart_is_drawn(browser: Browser) -> None:
    browser.open("/")
    browser.wait(".chart-now", "records/s")
    assert browser.find(".plot canvas").size["height"] > 100
    assert browser.troubles() == []


def test_fault_strikes_and_is_lifted_by_click(browser: Browser, walked: Console) -> None:
    browser.open("/test")
    browser.click("select[name=fault] option[value=answer]")
    browser.click("select[name=api] option[value=ListOffsets]")
    browser.click("form[action='/test/faults'] select[name=broker] option[value='1']")
    browser.find("input[name=error]").send_keys("NOT_LEADER_OR_FOLLOWER")
    browser.find("input[name=times]").send_keys("1")
    browser.click("form[action='/test/faults'] .primary")
    browser.wait("#live", "answer ListOffsets")
    walked.page("/topics/orders")
    browser.wait("#live tbody td", "1")
    assert "kafka_cluster.broker(1).faults.add(faults.answer('ListOffsets'" in browser.text()
    browser.click("button[aria-label^='Lift fault']")
    browser.wait("#live", "None: every request is handled")


def test_requests_are_paused_and_one_is_opened_whole(browser: Browser, walked: Console) -> None:
    walked.post("/topics/orders/produce", {"key": "one", "value": "more"})
    browser.resize(WIDE)
    browser.open("/test/requests?api=Produce&topic=orders")
    browser.click("#pause")
    assert browser.text("#pause") == "Go on"
    browser.click("#list tbody a")
    browser.wait("#drawer", "orders:")
    browser.wait("#drawer", "Correlation id")
    assert browser.cut_off("#list .scroll") == []
    assert browser.complaints() == []
    browser.click("#drawer a[href*='/view']")
    browser.wait("h1", "Produce")
    assert browser.troubles() == []


def test_frozen_broker_is_shown_and_thawed(walked: Console) -> None:
    walked.post("/test/brokers", {"act": "freeze", "broker": 2})
    try:
        text = walked.page("/test").text
        assert "Broker 2 frozen" in text
        assert "Thaw" in text
    finally:
        walked.post("/test/brokers", {"act": "thaw", "broker": 2})
    wait_until(lambda: "Broker 2 running" in walked.page("/test").text)


def test_cut_link_is_on_the_map(walked: Console) -> None:
    assert "No link is cut." in walked.page("/test").text
    walked.post("/test/links", {"act": "cut", "one": 1, "other": 2})
    try:
        assert "The link between 1 and 2 is cut." in walked.page("/test").text
    finally:
        walked.post("/test/links", {"act": "heal", "one": 1, "other": 2})
    assert "No link is cut." in walked.page("/test").text


def test_full_disk_is_on_the_map_until_it_is_freed_by_click(browser: Browser) -> None:
    browser.open("/test")
    browser.click("article[aria-label='Broker 2'] button[value='fill-disk']")
    browser.wait(".outages", "A disk of broker 2 is full")
    assert len(browser.driver.find_elements(By.CSS_SELECTOR, ".map circle.full")) == 1
    assert browser.complaints() == []
    browser.click(".outages button")
    browser.wait(".calm", "None: all brokers run and reach each other.")
    assert browser.driver.find_elements(By.CSS_SELECTOR, ".map circle.full") == []


def test_leader_is_moved_and_moved_back_by_click(browser: Browser, walked: Console) -> None:
    def leader() -> str | None:
        found = re.search(r" 1 ([12]) epoch", walked.page("/topics/orders").text)
        return found and found[1]

    before = leader()
    browser.open("/test?topic=orders")
    browser.click("button[aria-label^='Move partition 1 ']")
    browser.wait(".outages", f"The leader of orders:1 was moved from {before} to ")
    assert leader() not in (None, before)
    assert len(browser.driver.find_elements(By.CSS_SELECTOR, ".map .move")) == 1
    assert browser.complaints() == []
    browser.click(".outages button")
    browser.wait(".calm", "None: all brokers run and reach each other.")
    assert leader() == before
    assert browser.troubles() == []


def test_transcript_is_a_test_that_passes(walked: Console, tmp_path: Path) -> None:
    walked.post("/test/transcript/clear", {})
    for path, fields in (
        ("faults", {"fault": "answer", "api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER"}),
        ("faults", {"fault": "delay", "api": "Fetch", "milliseconds": 5, "broker": 1, "every": 2}),
        ("faults", {"fault": "refuse_connections", "broker": 2, "times": 1}),
        ("leaders", {"topic": "orders", "partition": 2, "to": 1}),
        ("leaders", {"topic": "orders", "partition": 2, "to": 2}),
        ("brokers", {"act": "fill-disk", "broker": 1}),
        ("brokers", {"act": "free-disk", "broker": 1}),
        ("links", {"act": "cut", "one": 1, "other": 2}),
        ("links", {"act": "heal", "one": 1, "other": 2}),
        ("time", {"amount": 2, "unit": "minutes"}),
        ("faults/lift", {}),
        ("brokers", {"act": "kill", "broker": 2}),
        ("brokers", {"act": "start", "broker": 2}),
    ):
        answer = walked.post(f"/test/{path}", fields)
        assert answer.status == 303, f"{path} {fields}: {answer.page.text}"
    (recipe,) = (
        each["data-copy"] for each in walked.page("/test").all("button") if "data-copy" in each
    )
    assert recipe.count("\n    ") == 14  # one line each, and one that makes the topic
    run = PytestRun(tmp_path / "copied", recipe, head="")
    printed = run.finish()
    assert (run.process.returncode, "1 passed" in printed) == (0, True), printed


def test_vendored_files_are_those_of_their_packages(packages: Path) -> None:
    for copy, original in {
        "htmx.min.js": "htmx.org/dist/htmx.min.js",
        "htmx-LICENSE.txt": "htmx.org/LICENSE",
        "htmx-sse.min.js": "htmx-ext-sse/dist/sse.min.js",
        "htmx-sse-LICENSE.txt": "htmx-ext-sse/LICENSE",
        "uplot.min.js": "uplot/dist/uPlot.iife.min.js",
        "uplot.min.css": "uplot/dist/uPlot.min.css",
        "uplot-LICENSE.txt": "uplot/LICENSE",
    }.items():
        assert (VENDORED / copy).read_bytes() == (packages / original).read_bytes(), copy
