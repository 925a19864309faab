"""The pytest plugin in runs of its own: what users' tests see, and what stays behind: nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.pytest_runs import SECONDS_MAX, PytestRun

from odradek.testing.waiting import wait_until


@pytest.fixture(
    params=[(), pytest.param(("-n", "2"), marks=pytest.mark.slow)],
    ids=["one process", "two workers"],
)
def workers(request: pytest.FixtureRequest) -> tuple[str, ...]:
    given: tuple[str, ...] = request.param
    return given


def test_all_tests_of_a_run_share_one_broker(tmp_path: Path, workers: tuple[str, ...]) -> None:
    run = PytestRun(
        tmp_path,
        """
@pytest.mark.parametrize("number", range(4))
def test_it(kafka, kafka_topic, kafka_group, number):
    note(kafka)
    talk(kafka.bootstrap_servers, kafka_topic, kafka_group)
""",
        workers,
    )
    assert "4 passed" in run.finish()
    notes = run.notes()
    assert len(notes) == 4
    assert len({address for _, _, address, _ in notes}) == 1
    assert run.left_over() == []


def test_tests_of_asyncio_and_trio_use_it_alike(tmp_path: Path) -> None:
    run = PytestRun(
        tmp_path,
        """
import asyncio, aiokafka, trio
from odradek.client import KafkaClient, Producer

def test_asyncio(kafka, kafka_topic):
    async def produce():
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            return (await producer.send_and_wait(kafka_topic, b"hello")).offset
    assert asyncio.run(produce()) == 0

@pytest.mark.trio
async def test_trio(kafka, kafka_topic):
    async with KafkaClient(kafka.bootstrap_servers) as client:
        async with Producer(client) as producer:
            assert (await (await producer.send(kafka_topic, b"hello"))).offset == 0
""",
    )
    assert "2 passed" in run.finish()


def test_a_marker_the_command_line_and_the_ini_file_set_brokers_up(tmp_path: Path) -> None:
    run = PytestRun(
        tmp_path,
        """
from kafka.admin import KafkaAdminClient, ConfigResource, ConfigResourceType

def setting(broker, name):
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    pid = admin.describe_cluster()["brokers"][0]["node_id"]
    described = admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, str(pid))])
    admin.close()
    return str(described).count(name)

def test_plain(kafka):
    note(kafka)

@pytest.mark.kafka(config={"num.partitions": "5"})
def test_marked(kafka):
    note(kafka)
    talk(kafka.bootstrap_servers, "made-by-itself", "g")
    consumer = KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers)
    assert len(consumer.partitions_for_topic("made-by-itself")) == 5
    consumer.close()

def test_command_line(kafka):
    talk(kafka.bootstrap_servers, "made-by-itself", "g")
    consumer = KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers)
    assert len(consumer.partitions_for_topic("made-by-itself")) == 3
    consumer.close()
""",
        ("--kafka-setting", "num.partitions=3"),
    )
    assert "3 passed" in run.finish()
    plain, marked = run.notes()
    assert plain != marked
    assert run.left_over() == []


def test_a_cluster_is_the_tests_own_and_can_be_broken(tmp_path: Path) -> None:
    run = PytestRun(
        tmp_path,
        """
@pytest.mark.kafka(brokers=2)
def test_it(kafka_cluster):
    first, second = kafka_cluster.brokers
    first.kill()
    first.start()
    talk(kafka_cluster.bootstrap_servers, "t", "g")
""",
    )
    assert "1 passed" in run.finish()
    assert run.left_over() == []


@pytest.mark.slow
def test_a_run_within_a_test_leaves_the_brokers_of_the_run_around_it(tmp_path: Path) -> None:
    run = PytestRun(
        tmp_path,
        """
def test_around(kafka, tmp_path):
    note(kafka)
    inner = tmp_path / "test_inner.py"
    inner.write_text("def test_inner(kafka): kafka.create_topic('inner')")
    assert pytest.main(["-q", "-p", "no:cacheprovider", str(inner)]) == 0
    assert "inner" in kafka.topics()
""",
    )
    assert "1 passed" in run.finish().splitlines()[-1]
    wait_until(lambda: not run.left_over(), SECONDS_MAX, lambda: str(run.left_over()))


def test_a_failure_shows_what_the_broker_logged_during_the_test(tmp_path: Path) -> None:
    run = PytestRun(
        tmp_path,
        """
import socket

def test_it(kafka):
    note(kafka)
    host, port = kafka.bootstrap_servers.split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"no frame of Kafka's")
        assert connection.recv(1) != b""
""",
    )
    printed = run.finish()
    assert "1 failed" in printed
    _, _, shown = printed.partition("log of the Kafka broker")
    assert re.search(r"odradek\\.|odradek", shown), printed
    assert "(nothing logged)" not in shown
    assert run.left_over() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "SIGKILL"])
def test_nothing_is_left_of_a_run_that_is_broken_off(
    tmp_path: Path, number: signal.Signals, workers: tuple[str, ...]
) -> None:
    run = PytestRun(
        tmp_path,
        """
import time

@pytest.mark.kafka(brokers=2, tls=True)
def test_it(kafka, kafka_broker, kafka_cluster):
    for broker in (kafka, kafka_broker, *kafka_cluster.brokers):
        assert broker.control().call("control.ping")["pid"] == broker.pid
        note(broker)
    kafka_broker.freeze()
    note(kafka_broker)
    time.sleep(600)
""",
        workers,
    )
    wait_until(lambda: len(run.notes()) == 5, SECONDS_MAX, lambda: str(run.notes()))
    assert len(run.left_over()) >= 4 * len(["a folder", "a process", "two ports"])
    if number is signal.SIGINT:
        os.killpg(run.process.pid, number)
    else:
        run.process.send_signal(number)
    run.finish()
    wait_until(lambda: not run.left_over(), SECONDS_MAX, lambda: str(run.left_over()))


def test_a_run_of_pytest_that_uses_no_fixture_of_it_imports_only_the_plugin(tmp_path: Path) -> None:
    run = PytestRun(
        tmp_path,
        """
import sys

def test_it():
    ours = sorted(name for name in sys.modules if name.split(".")[0] == "odradek")
    plugin = "odradek.testing.fixtures.pytest_plugin"
    assert ours == ["odradek", "odradek.testing", "odradek.testing.fixtures", plugin]
    assert not {"trio", "kafka", "construct"} & set(sys.modules)
""",
        ("-p", "no:trio", "-p", "no:anyio", "-p", "no:asyncio"),
        head="",
    )
    assert "1 passed" in run.finish()


def test_a_run_without_it_loads_next_to_nothing() -> None:
    program = (
        "import pytest, sys\n"
        "before = set(sys.modules)\n"
        "import odradek.testing.fixtures.pytest_plugin\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == [
        "odradek",
        "odradek.testing",
        "odradek.testing.fixtures",
        "odradek.testing.fixtures.pytest_plugin",
    ]
