"""ZooKeeper dies and returns, or a broker loses its way there; the brokers go on and find back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from support.broker_cluster import BROKER_IDS, BrokerCluster, leaders
from support.cluster_clients import require_that_clients_see
from support.cluster_topics import create
from support.cuttable_proxy import CuttableProxy

from odradek.common.errors import ErrorCode
from odradek.testing.waiting import wait_until
from odradek.tools.zookeeper_process import ZooKeeperProcess

SECONDS_MAX = 120.0
PATIENT_MS = 20_000
"""A session of a broker that is to keep it."""
MADE = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
"""There is the topic, if not by this request then by one that was not answered in time."""


@pytest.fixture
def own_zookeeper(tmp_path: Path) -> Iterator[ZooKeeperProcess]:
    """A server that a test may kill."""
    server = ZooKeeperProcess(tmp_path / "zookeeper")
    server.start()
    yield server
    server.kill()


def produce(cluster: BrokerCluster, value: str) -> None:
    """One record to each partition of `alone`, which every broker leads one of."""
    producer = Producer({"bootstrap.servers": ",".join(cluster.bootstrap)})
    for partition in range(3):
        producer.produce("alone", value, partition=partition)
    assert producer.flush(SECONDS_MAX) == 0


def consumed(cluster: BrokerCluster, count: int) -> list[str]:
    """The values in `alone`."""
    settings = {"group.id": "unused", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": ",".join(cluster.bootstrap), **settings})
    consumer.assign([TopicPartition("alone", partition, 0) for partition in range(3)])
    values: list[str] = []
    while len(values) < count:
        messages = consumer.consume(count, SECONDS_MAX)
        assert messages, f"nothing comes after {values}"
        values += [message.value().decode() for message in messages if not message.error()]
    consumer.close()
    return sorted(values)


def test_a_killed_zookeeper_that_returns_finds_the_brokers_at_work(
    tmp_path: Path, own_zookeeper: ZooKeeperProcess
) -> None:
    with BrokerCluster(tmp_path / "killed", own_zookeeper) as cluster:
        assert create(cluster, 1, "alone", (1,), (2,), (3,)) == ErrorCode.NONE
        cluster.agreed()
        own_zookeeper.kill()
        produce(cluster, "while it was gone")
        assert consumed(cluster, 3) == ["while it was gone"] * 3
        own_zookeeper.start()
        # Of a server that takes its time to return, sessions run out and others begin.
        wait_until(
            lambda: create(cluster, 2, "after", (2, 3, 1), timeout_ms=20_000) in MADE, SECONDS_MAX
        )
        cluster.agreed(lambda view: leaders(view, "alone") == set(BROKER_IDS))
        produce(cluster, "after")
        assert consumed(cluster, 6) == ["after"] * 3 + ["while it was gone"] * 3
        require_that_clients_see(cluster, cluster.settled())


def test_brokers_whose_sessions_all_ran_out_register_again_under_larger_epochs(
    tmp_path: Path, own_zookeeper: ZooKeeperProcess
) -> None:
    with BrokerCluster(tmp_path / "expired", own_zookeeper) as cluster:
        assert create(cluster, 1, "alone", (1,), (2,), (3,)) == ErrorCode.NONE
        cluster.agreed()
        produce(cluster, "before")
        former = cluster.broker_epochs()
        own_zookeeper.kill()
        for broker_id in BROKER_IDS:
            cluster.pause(broker_id)
        own_zookeeper.start()
        wait_until(lambda: cluster.brokers_in_tree() == set(), SECONDS_MAX)
        for broker_id in BROKER_IDS:
            cluster.resume(broker_id)
        wait_until(lambda: cluster.brokers_in_tree() == set(BROKER_IDS), SECONDS_MAX)
        view = cluster.agreed(lambda view: leaders(view, "alone") == set(BROKER_IDS))
        present = cluster.broker_epochs()
        assert min(present.values()) > max(former.values())
        assert create(cluster, 3, "after", (1, 2, 3)) == ErrorCode.NONE
        produce(cluster, "after")
        assert consumed(cluster, 6) == ["after"] * 3 + ["before"] * 3
        require_that_clients_see(cluster, cluster.settled(lambda now: now != view))


def others_patient(cluster: BrokerCluster, broker_id: int) -> BrokerCluster:
    """Have all but one of the brokers keep their sessions on a busy machine, too."""
    for other in set(BROKER_IDS) - {broker_id}:
        settings = cluster.brokers[other].settings
        settings["zookeeper.session.timeout.ms"] = str(PATIENT_MS)
    return cluster


@pytest.mark.parametrize("who", ["the controller", "another broker"])
def test_a_broker_cut_off_from_zookeeper_is_replaced_and_returns_when_it_is_mended(
    tmp_path: Path, zookeeper: ZooKeeperProcess, who: str
) -> None:
    folder = tmp_path / f"cut-{who.replace(' ', '-')}"
    cut, other = (1, 2) if who == "the controller" else (2, 1)
    with (
        CuttableProxy(zookeeper.port) as link,
        others_patient(BrokerCluster(folder, zookeeper, ways={cut: link.address}), cut) as cluster,
    ):
        assert create(cluster, 3, "t", (cut, other), (other, cut)) == ErrorCode.NONE
        before = cluster.agreed()
        assert before.controller == 1, "it was there first"
        assert leaders(before, "t") == {cut, other}
        epochs = cluster.broker_epochs()
        link.cut()
        wait_until(lambda: cluster.brokers_in_tree() == set(BROKER_IDS) - {cut}, SECONDS_MAX)
        for requested in set(BROKER_IDS) - {cut}:
            wait_until(
                lambda at=requested: (
                    leaders(cluster.view(at), "t") == {other} and cluster.view(at).controller != cut
                )
            )
        meanwhile = cluster.tree()
        assert meanwhile.topics["t"][0].leader_epoch > before.topics["t"][0].leader_epoch
        assert cluster.view(cut).brokers == set(BROKER_IDS), "it lives, and knows of nothing"
        if cut == before.controller:
            assert create(cluster, cut, "lost", (3,), timeout_ms=5_000) != ErrorCode.NONE
        assert create(cluster, other, "meanwhile", (3, other)) == ErrorCode.NONE
        link.mend()
        after = cluster.settled(lambda view: "meanwhile" in view.topics)
        assert after.topics["t"][0].leader_epoch >= meanwhile.topics["t"][0].leader_epoch
        assert after.controller == meanwhile.controller
        now = cluster.broker_epochs()
        assert now[cut] > max(epochs.values())
        assert {each: now[each] for each in now if each != cut} == {
            each: epochs[each] for each in epochs if each != cut
        }
        require_that_clients_see(cluster, after)
