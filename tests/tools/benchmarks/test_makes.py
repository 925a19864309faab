"""Peers as they are started: one broker, and three that know of each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from odradek.testing.waiting import wait_until
from odradek.tools.benchmarks.compared.loads.small_produce import idle_connections
from odradek.tools.benchmarks.compared.makes import ApacheKafka, Odradek
from odradek.tools.benchmarks.compared.peers import Failed
from odradek.tools.benchmarks.compared.plot import plot
from odradek.tools.benchmarks.compared.ports import brokers_known, free_ports


@pytest.fixture
def brokers() -> int:
    return 1


@pytest.fixture
def odradek(brokers: int) -> Iterator[Odradek]:
    peer = Odradek(brokers)
    try:
        peer.start()
        yield peer
    finally:
        peer.stop()


@pytest.mark.parametrize("brokers", [1, 3])
def test_each_broker_knows_all_and_a_topic_has_a_replica_on_each(odradek: Odradek) -> None:
    count = len(odradek.ports)
    assert [brokers_known(port) for port in odradek.ports] == [count] * count
    assert odradek.ready_seconds > 0
    assert odradek.cpu_seconds() > 0
    assert odradek.resident_mb() > 10 * count
    topic = odradek.topic(partitions=2)
    admin = AdminClient({"bootstrap.servers": odradek.address})

    def replicas() -> list[int]:
        found = admin.list_topics(topic, timeout=60).topics[topic].partitions
        return [len(each.replicas) for each in found.values()]

    # Any broker may be asked, and one hears of a topic later than another.
    wait_until(lambda: replicas() == [count] * 2, 60.0, lambda: f"replicas: {replicas()}")
    odradek.delete(topic)
    assert odradek.topic() != topic


def test_connections_that_are_idle_were_served_before(odradek: Odradek) -> None:
    with idle_connections(odradek, 40):
        assert odradek.runs()
    odradek.end()
    assert not odradek.runs()
    with pytest.raises(ConnectionRefusedError), idle_connections(odradek, 1):
        pass
    with pytest.raises(Failed, match="does not run"):
        _ = odradek.pid


def test_only_the_first_of_three_kafka_brokers_is_the_controller() -> None:
    peer = ApacheKafka(Path("jars"), 3)
    try:
        files = [Path(command[-1]).read_text().splitlines() for command in peer.commands()]
    finally:
        peer.stop()
    roles = [line for file in files for line in file if line.startswith("process.roles")]
    assert roles == [
        "process.roles=broker,controller",
        "process.roles=broker",
        "process.roles=broker",
    ]
    voters = {line for file in files for line in file if line.startswith("controller.quorum")}
    assert len(voters) == 1
    assert all("offsets.topic.replication.factor=3" in file for file in files)
    folders = {line for file in files for line in file if line.startswith("log.dirs")}
    assert len(folders) == 3


def test_where_nothing_listens_no_broker_is_known() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert brokers_known(ports[0]) == 0


@pytest.mark.parametrize(
    "table",
    [
        {},
        {"start": {"odradek": {"ready_s": 0.2}}},
        {
            "a": {"odradek": {"rate": 5.0, "cpu_us": 0.0}, "kfake": {"rate": 9.0}},
            "b": {"kfake": {"p50_ms": 1.0, "p99_ms": 2.0}},
        },
    ],
    ids=["nothing", "no rates", "gaps"],
)
def test_whatever_was_measured_is_drawn(
    table: dict[str, dict[str, dict[str, float]]], tmp_path: Path
) -> None:
    file = tmp_path / "bench.png"
    plot(file, table, ["odradek", "Apache Kafka", "kfake"], "a machine")
    assert file.read_bytes().startswith(b"\x89PNG")
