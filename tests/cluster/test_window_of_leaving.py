"""From when a stopping broker's port is closed on, no process of its cluster names it any more.

Whoever asks for metadata after a connection was refused learns of nobody who would refuse it: a
client that was told who leads finds whom it was told of.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import confluent_kafka
import pytest
from support.broker_cluster import BROKER_IDS, BrokerCluster
from support.cluster_topics import create
from support.group_peer import GroupPeer

from odradek.common.errors import ErrorCode
from odradek.protocol import messages

TOPIC = "t"
METADATA_VERSION = 12
SECONDS_MAX = 60.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[BrokerCluster]:
    with BrokerCluster(tmp_path / "cluster") as running:
        assert create(running, 1, TOPIC, (1, 2, 3), (2, 3, 1), (3, 1, 2)) == ErrorCode.NONE
        running.wait_in_sync(TOPIC)
        yield running


def named_by(peer: GroupPeer) -> set[int]:
    """The brokers and leaders that a broker tells clients of."""
    answer = peer.ask(messages.MetadataRequest(topics=None), METADATA_VERSION)
    leaders = {each.leader_id for topic in answer.topics for each in topic.partitions}
    return {each.node_id for each in answer.brokers} | leaders


def ask_until_refused(port: int) -> int:
    """Come to a broker as a new client, again and again; how often it answered."""
    answered = 0
    while True:
        try:
            with closing(GroupPeer(port, "newcomer", SECONDS_MAX)) as peer:
                named_by(peer)
        except ConnectionRefusedError:
            return answered
        except OSError:  # it was accepted in the moment in which the port was closed
            continue
        answered += 1


def send(bootstrap: str, ended: threading.Event, lost: list[object]) -> None:
    """Send all the time, and note what was not acknowledged."""
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})

    def delivered(error: object, _: object) -> None:
        if error is not None:
            lost.append(error)

    number = 0
    while not ended.is_set():
        producer.produce(TOPIC, b"%d" % number, partition=number % 3, on_delivery=delivered)
        producer.poll(0.002)
        number += 1
    if producer.flush(SECONDS_MAX):
        lost.append("some were never answered")


@pytest.mark.slow
def test_nobody_names_a_broker_whose_port_is_closed(cluster: BrokerCluster) -> None:
    ended, lost = threading.Event(), []
    sender = threading.Thread(target=send, args=(",".join(cluster.bootstrap), ended, lost))
    sender.start()
    try:
        for leaving in BROKER_IDS:
            others = [each for each in BROKER_IDS if each != leaving]
            with ExitStack() as stack:
                ports = (cluster.brokers[each].port for each in others)
                peers = [
                    stack.enter_context(GroupPeer(each, "asker", SECONDS_MAX)) for each in ports
                ]
                assert all(leaving in named_by(each) for each in peers)
                stopping = threading.Thread(target=cluster.brokers[leaving].stop)
                stopping.start()
                answered = ask_until_refused(cluster.brokers[leaving].port)
                named = [named_by(each) for each in peers]
                stopping.join()
            assert answered, "it was refused before it was stopped"
            assert not [each for each in named if leaving in each], leaving
            cluster.brokers[leaving].start()
            cluster.wait_in_sync(TOPIC)
    finally:
        ended.set()
        sender.join()
    assert lost == []
