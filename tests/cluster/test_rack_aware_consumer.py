"""Our own consumer reads where its leader would have it read."""

from __future__ import annotations

from pathlib import Path

import trio
from support.broker_cluster import BrokerCluster
from support.load_history import History
from support.load_senders import DELIVERY_SECONDS_MAX, send_once

from odradek.client import Admin, Consumer, ConsumerSettings, KafkaClient
from odradek.client.admin.admin import NewTopic

TOPIC = "near"
LEADER, FOLLOWER = 1, 2
READ_SECONDS_MAX = 120


def test_a_consumer_reads_from_the_replica_of_its_rack_and_comes_back(tmp_path: Path) -> None:
    """KIP-392; each broker of the cluster is a rack of its own."""
    settings = {
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    }
    with BrokerCluster(tmp_path, settings=settings) as cluster:

        async def read_near(count: int) -> list[int]:
            offsets: list[int] = []
            async with KafkaClient(cluster.bootstrap) as client:
                await Admin(client).create_topics(
                    [NewTopic(TOPIC, assignments={0: [LEADER, FOLLOWER]})]
                )
                consumer_settings = ConsumerSettings(
                    auto_offset_reset="earliest", client_rack=f"rack-{FOLLOWER}"
                )
                async with Consumer(client, settings=consumer_settings) as consumer:
                    consumer.assign([(TOPIC, 0)])

                    async def read_to(end: int) -> None:
                        history = History()
                        port = cluster.ports[LEADER]
                        await trio.to_thread.run_sync(
                            send_once, port, TOPIC, "all", count, history, DELIVERY_SECONDS_MAX
                        )
                        with trio.fail_after(READ_SECONDS_MAX):
                            while len(offsets) < end:
                                offsets.extend(each.offset for each in await consumer.poll())

                    await read_to(count)
                    assert consumer.preferred_read_replica((TOPIC, 0)) == FOLLOWER
                    cluster.brokers[FOLLOWER].kill()
                    await read_to(2 * count)
                    assert consumer.preferred_read_replica((TOPIC, 0)) is None
            return offsets

        assert trio.run(read_near, 20) == list(range(40))
