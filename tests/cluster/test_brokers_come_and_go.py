"""Brokers are killed, return, and leave in good order; everybody hears of it alike."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import confluent_kafka.admin
import pytest
import trio
from kafka import KafkaAdminClient
from support.broker_cluster import BROKER_IDS, BrokerCluster, leaders
from support.cluster_clients import require_that_clients_see
from support.cluster_topics import create

from odradek.client import BatchProducer, KafkaClient
from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.protocol.records import build_batch
from odradek.testing.process.broker_process import READY_PREFIX
from odradek.testing.waiting import wait_until
from odradek.tools.zookeeper_process import ZooKeeperProcess

PRODUCE_VERSION = 9


def now_ms() -> int:
    """What is older than a week may be deleted at any moment."""
    return int(time.time() * 1000)


def test_a_topic_is_made_through_every_broker_and_seen_by_every_client(
    cluster: BrokerCluster,
) -> None:
    for broker_id in BROKER_IDS:
        assert create(cluster, broker_id, f"made-by-{broker_id}") == ErrorCode.NONE
        assert create(cluster, broker_id, "one") == (
            ErrorCode.NONE if broker_id == 1 else ErrorCode.TOPIC_ALREADY_EXISTS
        )
    view = cluster.settled()
    assert set(view.topics) == {"made-by-1", "made-by-2", "made-by-3", "one"}
    assert view.brokers == {1, 2, 3}
    for name in view.topics:
        assert leaders(view, name) == {1, 2, 3}, "racks and brokers take turns"
    require_that_clients_see(cluster, view)


@pytest.mark.short
def test_killed_brokers_lose_their_partitions_and_return_to_the_same_port(
    cluster: BrokerCluster,
) -> None:
    assert create(cluster, 1, "t", (1, 2, 3), (2, 3, 1), (3, 1, 2)) == ErrorCode.NONE
    assert create(cluster, 1, "alone", (1,), (2,), (3,)) == ErrorCode.NONE
    before = cluster.agreed()
    victim = next(each for each in BROKER_IDS if each != before.controller)
    port = cluster.brokers[victim].port
    cluster.brokers[victim].kill()
    without = cluster.settled(lambda view: view.topics["alone"][victim - 1].leader == -1)
    assert victim not in leaders(without, "t")
    for index, partition in without.topics["t"].items():
        former = before.topics["t"][index]
        assert partition.isr == former.isr - {victim}
        assert partition.leader_epoch > former.leader_epoch
    require_that_clients_see(cluster, without)
    cluster.brokers[victim].start()
    assert cluster.brokers[victim].port == port
    after = cluster.settled(lambda view: view.topics["alone"][victim - 1].leader == victim)
    alone = without.topics["alone"][victim - 1]
    assert after.topics["alone"][victim - 1].leader_epoch > alone.leader_epoch
    require_that_clients_see(cluster, after)


def test_a_stopped_broker_hands_its_partitions_over_before_it_ends(
    cluster: BrokerCluster,
) -> None:
    assert create(cluster, 1, "t", (1, 2, 3), (2, 3, 1), (3, 1, 2)) == ErrorCode.NONE
    before = cluster.agreed()
    for leaving in (before.controller, *(set(BROKER_IDS) - {before.controller})):
        if len(cluster.running) == 1:
            break
        assert cluster.brokers[leaving].stop() == 0
        assert f"controlled shutdown of broker {leaving} succeeded" in cluster.brokers[leaving].log
        after = cluster.agreed()
        assert leaving not in leaders(after, "t")
        assert -1 not in leaders(after, "t")


def test_a_broker_that_lost_its_session_registers_again_with_a_larger_epoch(
    start_cluster: Callable[..., BrokerCluster], zookeeper: ZooKeeperProcess
) -> None:
    cluster = start_cluster(zookeeper)
    assert create(cluster, 1, "t", (1, 2), (2, 3), (3, 1)) == ErrorCode.NONE
    before = cluster.agreed()
    for paused in (
        next(each for each in BROKER_IDS if each != before.controller),
        before.controller,
    ):
        others = next(each for each in BROKER_IDS if each != paused)
        former = cluster.agreed()
        cluster.pause(paused)
        wait_until(lambda gone=paused, ask=others: gone not in cluster.view(ask).brokers)
        cluster.resume(paused)
        after = cluster.agreed()
        for index, partition in former.topics["t"].items():
            if partition.leader == paused:
                assert after.topics["t"][index].leader_epoch > partition.leader_epoch


def produced(topic: str, value: bytes) -> messages.ProduceRequest:
    """A request that appends one record to partition 0."""
    make = messages.ProduceRequest
    records = memoryview(build_batch([(None, value, now_ms(), ())]))
    data = [make.PartitionProduceData(index=0, records=records)]
    return make(
        acks=1,
        timeout_ms=20_000,
        topic_data=[make.TopicProduceData(name=topic, partition_data=data)],
    )


def refused_by(cluster: BrokerCluster, broker_id: int) -> int:
    """The error that one record for "t" is answered with."""
    answer = cluster.ask(broker_id, produced("t", b"refused"), PRODUCE_VERSION)
    (partition,) = answer.responses[0].partition_responses
    return int(partition.error_code)


def test_a_broker_that_slept_through_a_new_leader_answers_an_error_and_clients_find_it(
    start_cluster: Callable[..., BrokerCluster], zookeeper: ZooKeeperProcess
) -> None:
    cluster = start_cluster(zookeeper)
    former = next(each for each in BROKER_IDS if each != cluster.agreed().controller)
    heir = next(each for each in BROKER_IDS if each not in (former, cluster.agreed().controller))
    assert create(cluster, former, "t", (former, heir)) == ErrorCode.NONE
    cluster.agreed()

    async def produce_across_the_pause() -> None:

        async with KafkaClient(cluster.bootstrap) as client:
            producer = BatchProducer(client, acks=1)  # nobody copies what is produced
            await producer.send("t", 0, [(None, b"before", now_ms(), ())])
            cluster.pause(former)
            try:
                wait_until(lambda: cluster.view(heir).topics["t"][0].leader == heir)
            finally:
                cluster.resume(former)
            wait_until(lambda: cluster.view(former).topics["t"][0].leader == heir)
            # A controller tells a broker who leads before it tells it to follow (Kafka's
            # onBrokerStartup): in between it still takes what asks for no other replica.
            wait_until(lambda: refused_by(cluster, former) == ErrorCode.NOT_LEADER_OR_FOLLOWER)
            known = client.cluster.partition("t", 0)
            assert known is not None
            assert known.leader_id == former, "the client still thinks so"
            await producer.send("t", 0, [(None, b"after", 1_700_000_000_001, ())])
            refreshed = client.cluster.partition("t", 0)
            assert refreshed is not None
            assert refreshed.leader_id == heir

    trio.run(produce_across_the_pause)
    cluster.agreed(lambda view: leaders(view, "t") == {heir})


@pytest.mark.short
def test_three_brokers_of_one_process_are_a_cluster(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "odradek", "serve", "--brokers", "3"]
    command += ["--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "data")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith(READY_PREFIX), line
            addresses = re.findall(r"127\.0\.0\.1:\d+", line.decode())
            assert len(addresses) == 3
            admin = KafkaAdminClient(bootstrap_servers=addresses)
            assert len(admin.describe_cluster()["brokers"]) == 3
            admin.close()
            clients = [
                confluent_kafka.admin.AdminClient({"bootstrap.servers": address})
                for address in addresses
            ]
            for number, client in enumerate(clients):
                topic = confluent_kafka.admin.NewTopic(f"made-{number}", 3, 3)
                client.create_topics([topic])[topic.topic].result(60)
            views: list[dict[tuple[str, int], tuple[int, list[int]]]] = []

            def all_see_the_same() -> bool:
                """Whoever was not asked for a topic hears of it a little later."""
                views[:] = [
                    {
                        (name, index): (each.leader, each.replicas)
                        for name, topic in client.list_topics(timeout=60).topics.items()
                        for index, each in topic.partitions.items()
                    }
                    for client in clients
                ]
                return views[0] == views[1] == views[2] and len(views[0]) == 9

            wait_until(all_see_the_same, otherwise=lambda: " ".join(map(str, views)))
            assert {leader for leader, _ in views[0].values()} == {1, 2, 3}
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()
