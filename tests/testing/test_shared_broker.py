"""What tests that share a broker may do to it, and what a failing one's report shows of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fault_peer import FaultPeer
from support.pytest_runs import PytestRun

from odradek.protocol import messages
from odradek.testing import Broker, faults
from odradek.testing.control.client import ControlError
from odradek.testing.control.framing import from_wire, to_wire
from odradek.testing.fixtures.shared_broker import (
    KnownBroker,
    SharedBroker,
    SharedBrokerError,
    known_broker,
)
from odradek.testing.inspection.request_log import CAPACITY
from odradek.testing.inspection.requests import remember


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def shared(broker: Broker) -> SharedBroker:
    return SharedBroker(known_broker(broker))


def test_another_process_makes_the_same_broker_of_its_facts(shared: SharedBroker) -> None:
    noted = json.loads(json.dumps(to_wire(shared.known)))
    same = SharedBroker(from_wire(noted, KnownBroker))
    assert same.known == shared.known
    assert same.control().call("control.ping")["pid"] == shared.pid


def test_all_tests_of_a_process_share_one_connection_of_the_control_channel(
    shared: SharedBroker,
) -> None:
    # A run has more tests than the channel takes connections, and remembers all of them.
    tests = [shared.for_test(f"test {number}") for number in range(3)]
    assert len({test.control() for test in tests}) == 1


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("reset", {}),
        ("snapshot", {}),
        ("advance_time", {"days": 8}),
        ("set_clock_wrong", {"seconds": 1}),
        ("fill_disk", {}),
        ("full_disk", {}),
        ("fail_log_dir", {}),
        ("freeze", {}),
        ("kill", {}),
        ("restart", {"clean": False}),
    ],
)
def test_what_would_meet_other_tests_is_refused(
    shared: SharedBroker, method: str, arguments: dict[str, float]
) -> None:
    with pytest.raises(SharedBrokerError, match="use the fixture kafka_broker"):
        getattr(shared, method)(**arguments)


def test_a_fault_that_would_meet_other_tests_is_refused(shared: SharedBroker) -> None:
    with pytest.raises(ValueError, match="other tests use this broker"):
        shared.faults.add(faults.drop("Produce"))


def test_a_test_lifts_its_own_faults_and_no_others(broker: Broker, shared: SharedBroker) -> None:
    mine, other = shared.for_test("mine"), shared.for_test("other")
    of_mine = mine.faults.add(faults.drop("Produce", topic="mine"))
    of_other = other.faults.add(faults.drop("Produce", topic="other"))
    mine.leave_as_found()
    assert (of_mine.is_lifted, of_other.is_lifted) == (True, False)
    other.leave_as_found()
    assert broker.faults.list() == []


def test_a_kafka_that_ran_before_the_tests_cannot_be_broken() -> None:
    with pytest.raises(ControlError, match="ran before the tests"):
        SharedBroker(KnownBroker("127.0.0.1:9092")).faults.add(faults.drop("Produce", topic="t"))


def test_fixtures_use_a_kafka_that_ran_before_and_leave_it_running_with_nothing_of_unix(
    tmp_path: Path, broker: Broker
) -> None:
    run = PytestRun(
        tmp_path,
        """
import select, signal, sys, types
import trio._core._io_epoll

# trio has a loop of its own for each platform; this one keeps what it needs of Unix.
trio._core._io_epoll.select = types.SimpleNamespace(**vars(select))
sys.modules["fcntl"] = None
del os.getuid, os.pidfd_open, select.poll, select.epoll, signal.SIGKILL, signal.SIGSTOP

def test_it(kafka, kafka_topic, kafka_group):
    talk(kafka.bootstrap_servers, kafka_topic, kafka_group)
""",
        ("--kafka-bootstrap-servers", broker.bootstrap_servers),
    )
    assert "1 passed" in run.finish()
    assert list(run.temporary.iterdir()) == []
    assert len(broker.topics()) == 1


def test_the_reports_of_failures_show_requests_faults_and_logs(tmp_path: Path) -> None:
    run = PytestRun(
        tmp_path,
        """
from odradek.testing import faults

def test_earlier(kafka):
    kafka.create_topic("of-an-earlier-test")

def test_of_one_broker(kafka, kafka_topic):
    kafka.faults.add(faults.delay("Produce", seconds=0.1, topic=kafka_topic))
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
    producer.send(kafka_topic, b"hello").get(60)
    raise AssertionError("I am wrong")

def test_faults_of_another_test_are_lifted(kafka):
    assert kafka.control().call("faults.known") == []

@pytest.mark.kafka(brokers=2, partitions=4)
def test_of_a_cluster(kafka_cluster, kafka_topic):
    state = kafka_cluster.topic(kafka_topic)
    assert [len(partition.replicas) for partition in state.partitions] == [2] * 4
    kafka_cluster.brokers[1].kill()
    raise AssertionError("I am wrong, too")

@pytest.mark.kafka(tls=1)
def test_of_a_bad_marker(kafka):
    pass
""",
        ("--maxfail=10",),
    )
    printed = run.finish()
    assert re.search(r"2 failed, 2 passed.*1 error", printed), printed
    one, _, cluster = printed.partition("_ test_of_a_cluster _")
    requests, _, log = one.partition("log of the Kafka broker")
    assert re.search(r"Produce v\d+ from kafka-python.* on topic-\w+-0", requests)
    assert "of-an-earlier-test" not in one
    assert "hold Produce for topic" in log
    assert "log of Kafka broker 1" in cluster
    assert re.search(r"\(Kafka broker 2: not known: .*not running", cluster)
    assert printed.count("I am wrong, too") >= 2
    assert "tls is True or False" in printed
    assert run.left_over() == []


def test_a_test_sees_the_requests_since_it_began_though_earlier_ones_are_forgotten(
    broker: Broker, shared: SharedBroker
) -> None:
    other = shared.for_test("one beside it")
    remember.on(broker.control())(100)
    try:
        with FaultPeer(broker.port, "earlier") as peer:
            for _ in range(101):
                peer.ask(messages.ApiVersionsRequest(), 0)
        with pytest.raises(ControlError, match="are forgotten"):
            other.requests.of("ApiVersions").count()
        mine = shared.for_test("this one")
        with FaultPeer(broker.port, "mine") as peer:
            peer.ask(messages.ApiVersionsRequest(), 0)
        assert mine.requests.of("ApiVersions").count() == 1
        mine.requests.clear()
        assert mine.requests.of("ApiVersions").count() == 0
        assert other.requests.of(client_id="mine").list()
    finally:
        remember.on(broker.control())(CAPACITY)
