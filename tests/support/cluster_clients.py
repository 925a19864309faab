"""A cluster as kafka-python, confluent-kafka and our own client see it."""

from __future__ import annotations

import confluent_kafka.admin
import trio
from kafka import KafkaAdminClient

from odradek.client import Admin, KafkaClient

from .broker_cluster import BrokerCluster, PartitionView, View


def seen_by_kafka_python(cluster: BrokerCluster) -> dict[str, dict[int, PartitionView]]:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    try:
        return {
            topic["name"]: {
                each["partition_index"]: PartitionView(
                    each["leader_id"],
                    each["leader_epoch"],
                    tuple(each["replica_nodes"]),
                    frozenset(each["isr_nodes"]),
                )
                for each in topic["partitions"]
            }
            for topic in admin.describe_topics()
        }
    finally:
        admin.close()


def seen_by_confluent(cluster: BrokerCluster) -> View:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": ",".join(cluster.bootstrap)})
    found = admin.list_topics(timeout=60)
    return View(
        found.controller_id,
        frozenset(found.brokers),
        {
            name: {
                index: PartitionView(each.leader, -1, tuple(each.replicas), frozenset(each.isrs))
                for index, each in topic.partitions.items()
            }
            for name, topic in found.topics.items()
        },
    )


async def seen_by_our_client(cluster: BrokerCluster) -> View:
    async with KafkaClient(cluster.bootstrap) as client:
        for name in await Admin(client).list_topics():
            client.add_topic(name)
        found = await client.refresh_metadata(60_000)
        assert found.controller_id is not None
        return View(
            found.controller_id,
            frozenset(found.nodes),
            {
                name: {
                    index: PartitionView(
                        -1 if each.leader_id is None else each.leader_id,
                        -1 if each.leader_epoch is None else each.leader_epoch,
                        each.replicas,
                        frozenset(each.isr),
                    )
                    for index, each in topic.partitions.items()
                }
                for name, topic in found.topics.items()
            },
        )


def require_that_clients_see(cluster: BrokerCluster, view: View) -> None:
    """Every client sees what `BrokerCluster.settled` has found."""
    assert seen_by_kafka_python(cluster) == view.topics
    without_epochs = {
        name: {index: each._replace(leader_epoch=-1) for index, each in partitions.items()}
        for name, partitions in view.topics.items()
    }
    assert seen_by_confluent(cluster) == view._replace(topics=without_epochs)
    assert trio.run(seen_by_our_client, cluster) == view
