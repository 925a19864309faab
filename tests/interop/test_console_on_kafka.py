"""The console shows Apache Kafka 4.3.1 as it shows ours: every page, what it can change, and that
nobody answers; the last in a real browser."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer
from support.browser import Browser, npm_packages
from support.console import Answer, Console, require_harmless
from support.kafka_process import KafkaProcess

from odradek.console.app import PAGE_SECONDS_MAX
from odradek.testing.waiting import wait_until

pytestmark = pytest.mark.interop

GROUP = "billing"
TOPIC = "orders"
ADVICE = "goes on trying. If nothing runs there, start it"
SECOND_DISK = "second"
SLACK_SECONDS = 4
"""Of a machine that has other things to do, too."""
PAGES = [
    ("/", "Every partition has a leader"),
    ("/topics?internal=1", "__consumer_offsets"),
    (f"/topics/{TOPIC}", "Offsets in it 31"),
    (f"/topics/{TOPIC}/settings", "retention.ms"),
    (f"/topics/{TOPIC}/records", "COMMIT marker"),
    (f"/topics/{TOPIC}/records?where=number%3E28&partition=0", '"number": 29'),
    (f"/topics/{TOPIC}/records/0/7", "part of one"),
    (f"/topics/{TOPIC}/producers?partition=0", "Last sequence"),
    (f"/topics/{TOPIC}/follow", "Waiting for the next record"),
    ("/groups", GROUP),
    (f"/groups/view?id={GROUP}", "Committed"),
    ("/brokers", "controller"),
    ("/transactions", "CompleteCommit"),
    ("/transactions/view?id=sink", "The last transaction was committed"),
    ("/access", "The brokers have no ACLs"),
    ("/storage", "online"),
]


@pytest.fixture(scope="module")
def kafka(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaProcess]:
    folder = tmp_path_factory.mktemp("kafka")
    settings = {
        "log.dirs": f"{folder / 'data'},{folder / SECOND_DISK}",
        "log.flush.offset.checkpoint.interval.ms": "200",  # which notices a disk that is gone
    }
    with KafkaProcess(kafka_libs, folder / "data", settings=settings) as process:
        yield process


@pytest.fixture(scope="module")
def console(kafka: KafkaProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    log = tmp_path_factory.mktemp("console") / "log"
    with Console(kafka.bootstrap, log, ["--console-write"]) as started:
        yield started
    assert "Traceback" not in log.read_text()


@pytest.fixture(scope="module")
def filled(kafka: KafkaProcess, console: Console) -> Console:
    """A topic, made by the console, with records, one of them of a transaction, and a group."""
    created = console.post("/topics", {"name": TOPIC, "partitions": 2, "replication": 1})
    assert created.status == 303
    with KafkaProducer(bootstrap_servers=kafka.bootstrap, transactional_id="sink") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        for number in range(30):
            producer.send(TOPIC, json.dumps({"number": number}).encode(), key=b"k", partition=0)
        producer.commit_transaction()
    with KafkaConsumer(
        TOPIC,
        bootstrap_servers=kafka.bootstrap,
        group_id=GROUP,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    ) as consumer:
        for _ in range(30):
            next(consumer)
        consumer.commit()
    return console


@pytest.fixture(scope="module")
def browser(console: Console) -> Iterator[Browser]:
    started = Browser(console, (npm_packages() / "axe-core" / "axe.min.js").read_text())
    yield started
    started.driver.quit()


@pytest.mark.parametrize(("path", "shown"), PAGES)
def test_page_shows_it(filled: Console, path: str, shown: str) -> None:
    answer = filled.get(path)
    assert answer.status == 200, answer.page.text
    require_harmless(answer.html)
    assert shown in answer.page.text


def test_settings_of_a_broker_have_their_sources(filled: Console) -> None:
    link = next(each for each in filled.page("/brokers").links() if each.startswith("/brokers/"))
    assert "broker, static" in filled.page(link).text


def test_offsets_are_moved_and_records_produced(filled: Console) -> None:
    path = f"/groups/view?id={GROUP}"
    wait_until(lambda: "State Empty" in filled.page(path).text)
    fields = {"id": GROUP, "target": "shift", "shift": "-10", "topic": TOPIC}
    assert "10 read again" in filled.post("/groups/reset", fields).page.text
    assert filled.post("/groups/reset", {**fields, "commit": 1}).status == 303
    written = filled.post(f"/topics/{TOPIC}/produce", {"value": "by the console", "partition": 1})
    assert "by the console" in filled.page(written.location).text
    filled.post(f"/topics/{TOPIC}/settings", {"name": "retention.ms", "value": "4711000"})
    wait_until(lambda: "retention.ms 4711000" in filled.page(f"/topics/{TOPIC}").text)
    assert filled.post("/topics", {"name": "gone"}).status == 303
    assert filled.post("/topics/gone/delete", {"name": "gone"}).status == 303
    wait_until(lambda: "/topics/gone" not in filled.page("/topics").links())


def other_troubles(troubles: list[str]) -> list[str]:
    """What the browser reports besides answers with the status of what may pass by itself."""
    return [each for each in troubles if not re.search(r"\b(status of|Code) 503\b", each)]


def look_at_all(console: Console) -> dict[str, Answer]:
    """The answers for all pages, asked for at once; none takes longer than a page may."""

    def look(path: str) -> tuple[float, Answer]:
        began = time.monotonic()
        answer = console.get(path)
        return time.monotonic() - began, answer

    paths = [path for path, _ in PAGES] + ["/transactions/hanging"]
    with ThreadPoolExecutor(len(paths)) as pool:
        found = dict(zip(paths, pool.map(look, paths), strict=True))
    seconds = {path: round(took, 1) for path, (took, _) in found.items()}
    assert max(seconds.values()) < PAGE_SECONDS_MAX + SLACK_SECONDS, seconds
    return {path: answer for path, (_, answer) in found.items()}


def test_pages_explain_a_frozen_kafka_and_go_on_once_it_answers(
    filled: Console, kafka: KafkaProcess, browser: Browser
) -> None:
    browser.open("/")
    browser.wait(".chart-now", "records/s")
    os.kill(kafka.pid, signal.SIGSTOP)
    try:
        for path, answer in look_at_all(filled).items():
            assert answer.status in (200, 503), path  # what was read a moment ago may be shown
        browser.wait("#failure", ADVICE)
        for path, answer in look_at_all(filled).items():
            assert ADVICE in answer.page.text, path
        assert browser.text(".live") == "no answer; trying again"
    finally:
        os.kill(kafka.pid, signal.SIGCONT)
    browser.wait(".live", "live")
    browser.wait(".chart-now", "records/s")
    assert browser.text("#failure") == ""
    assert other_troubles(browser.troubles()) == []


@pytest.fixture
def lost_disk(kafka: KafkaProcess) -> Iterator[None]:
    """One of its two disks is gone; it is there again, and Kafka started anew, after the test."""
    assert kafka.data_dir is not None
    disk = kafka.data_dir.with_name(SECOND_DISK)
    disk.rename(disk.with_suffix(".gone"))
    yield
    kafka.kill()
    shutil.rmtree(disk, ignore_errors=True)
    disk.with_suffix(".gone").rename(disk)
    kafka.start()


@pytest.mark.usefixtures("lost_disk")
def test_pages_name_a_partition_without_a_leader_and_show_the_others(
    filled: Console, browser: Browser
) -> None:
    browser.open("/")
    browser.wait("#live", "no leader")
    for path, answer in look_at_all(filled).items():
        assert answer.status == 200, f"{path}: {answer.page.text}"
    browser.open(f"/topics/{TOPIC}/records")
    browser.wait(".note.bad", "Partition 1 has no leader for now: nothing there can be read")
    browser.wait("tbody", '"number": 29')
    assert browser.complaints() == []
    assert browser.troubles() == []
    alone = filled.page(f"/topics/{TOPIC}/records?partition=1").text
    assert "partition 1 is none of the topic's, or has no leader for now" in alone
    for answer in (
        filled.get(f"/topics/{TOPIC}/records/1/0"),
        filled.post(f"/topics/{TOPIC}/produce", {"value": "lost", "partition": 1}),
    ):
        assert (answer.status, "has no leader" in answer.page.text) == (503, True)


def test_pages_explain_a_killed_kafka_and_go_on_once_it_was_started_again(
    filled: Console, kafka: KafkaProcess, browser: Browser
) -> None:
    browser.open(f"/topics/{TOPIC}/follow")
    written = f"/topics/{TOPIC}/produce"
    wait_until(
        lambda: (
            filled.post(written, {"value": "before"}).status == 303
            and "before" in browser.text(".follow-rows")
        )
    )
    kafka.kill()
    browser.wait(".follow-rows", "Following goes on by itself")
    browser.wait(".follow-rows", ADVICE)
    troubles = browser.troubles()
    browser.open(f"/topics/{TOPIC}/records")
    browser.wait("h1", "No broker answers")
    assert ADVICE in browser.text()
    assert browser.complaints() == []
    kafka.start()
    browser.wait("tbody", "before")
    assert other_troubles([*troubles, *browser.troubles()]) == []
