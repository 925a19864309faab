"""Metadata, DescribeCluster and DescribeTopicPartitions, answered from the metadata cache.

Codes were compared with Kafka 4.3.1's answers to the same requests.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
from support.cluster import Cluster
from support.served import CLUSTER_ID, Client, ServedBroker

import odradek.broker.handlers.describe_cluster
import odradek.broker.handlers.describe_topic_partitions
import odradek.broker.handlers.metadata  # noqa: F401  # registers itself
from odradek.common.errors import ErrorCode
from odradek.common.sentinels import ZERO_UUID
from odradek.controller.topics.planning import TopicCreation
from odradek.metadata.metadata_cache import MetadataSnapshot
from odradek.metadata.metadata_waiting import wait_for_metadata
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import DescribeTopicPartitionsRequest, MetadataRequest

Topic = MetadataRequest.MetadataRequestTopic
NOT_ASKED = -(2**31)
ALL_TOPIC_OPERATIONS = 3576
ALL_CLUSTER_OPERATIONS = 8096
"""As Kafka without an authorizer answers them."""


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


@pytest.fixture
async def client(cluster: Cluster, nursery: trio.Nursery) -> AsyncIterator[Client]:
    async with cluster.running() as controller:
        await controller.create_topics(
            [TopicCreation("orders", 3, 1), TopicCreation("clicks", 1, 1)]
        )
        yield Client(ServedBroker(cluster, controller, nursery))


def topic_id(client: Client, name: str) -> bytes:
    found = client.broker.metadata_cache.topic_id(name)
    assert found is not None
    return found


async def metadata(client: Client, version: int, *names: str, **fields: Any) -> Any:
    return await client.call(
        ApiKey.METADATA, version, topics=[Topic(name=name) for name in names], **fields
    )


def codes(response: Any) -> dict[str | None, int]:
    return {topic.name: topic.error_code for topic in response.topics}


@pytest.mark.parametrize("version", range(14))
async def test_a_topic_is_described_in_every_version(client: Client, version: int) -> None:
    response = await metadata(client, version, "orders")
    (node,) = response.brokers
    assert (node.node_id, node.host, node.port) == (1, "127.0.0.1", 9091)
    if version >= 1:
        assert response.controller_id == 1
    if version >= 2:
        assert response.cluster_id == CLUSTER_ID
    (topic,) = response.topics
    assert (topic.error_code, topic.name) == (ErrorCode.NONE, "orders")
    assert topic.topic_id == (topic_id(client, "orders") if version >= 10 else ZERO_UUID)
    assert [partition.partition_index for partition in topic.partitions] == [0, 1, 2]
    for partition in topic.partitions:
        assert (partition.error_code, partition.leader_id) == (ErrorCode.NONE, 1)
        assert partition.leader_epoch == (0 if version >= 7 else -1)
        assert (partition.replica_nodes, partition.isr_nodes) == ([1], [1])
        assert partition.offline_replicas == []
    assert topic.topic_authorized_operations == NOT_ASKED
    assert response.cluster_authorized_operations == NOT_ASKED


async def test_addresses_are_those_of_the_clients_listener(client: Client) -> None:
    internal = Client(client.broker, "INTERNAL")
    (node,) = (await metadata(internal, 12)).brokers
    assert (node.host, node.port) == ("10.0.0.1", 19091)


async def test_all_topics_are_asked_for_with_null_and_in_version_0_with_none(
    client: Client,
) -> None:
    everything = {"orders": 0, "clicks": 0}
    assert codes(await client.call(ApiKey.METADATA, 12, topics=None)) == everything
    assert codes(await metadata(client, 0)) == everything
    assert codes(await metadata(client, 1)) == {}


async def test_topics_are_asked_for_by_id(client: Client) -> None:
    unknown = b"x" * 16
    response = await client.call(
        ApiKey.METADATA,
        12,
        topics=[
            Topic(name=None, topic_id=topic_id(client, "clicks")),
            Topic(name=None, topic_id=unknown),
            Topic(name="orders"),
        ],
    )
    # As with Kafka, one id makes it a request by ids: the name is passed over.
    assert codes(response) == {"clicks": ErrorCode.NONE, None: ErrorCode.UNKNOWN_TOPIC_ID}
    assert [topic.topic_id for topic in response.topics] == [topic_id(client, "clicks"), unknown]


@pytest.mark.parametrize(
    ("version", "topic"),
    [
        (10, Topic(name=None, topic_id=b"x" * 16)),
        (11, Topic(name="orders", topic_id=b"x" * 16)),
        (12, Topic(name=None)),
    ],
)
async def test_topics_that_are_not_named_clearly_refuse_the_request(
    client: Client, version: int, topic: Any
) -> None:
    response = await client.call(ApiKey.METADATA, version, topics=[topic])
    assert [found.error_code for found in response.topics] == [ErrorCode.INVALID_REQUEST]
    assert response.brokers == []


async def test_a_topic_named_twice_is_answered_once(client: Client) -> None:
    response = await metadata(client, 12, "orders", "clicks", "orders")
    assert [topic.name for topic in response.topics] == ["orders", "clicks"]


@pytest.mark.parametrize("version", [4, 12])
async def test_unknown_topics_are_not_made_if_the_client_does_not_allow_it(
    client: Client, version: int
) -> None:
    response = await metadata(client, version, "absent", "a b", "", allow_auto_topic_creation=False)
    assert codes(response) == {
        "absent": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "a b": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    assert client.broker.metadata_cache.get_all_topics() == {"orders", "clicks"}


@pytest.mark.parametrize("version", [0, 3, 4, 13])
async def test_unknown_topics_are_made_and_answered_complete(client: Client, version: int) -> None:
    response = await metadata(client, version, "orders", "fresh", "a b")
    assert codes(response) == {
        "orders": ErrorCode.NONE,
        "fresh": ErrorCode.NONE,
        "a b": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    assert [partition.leader_id for partition in response.topics[1].partitions] == [1]
    assert client.broker.metadata_cache.contains("fresh")


async def test_known_topics_are_answered_without_waiting(client: Client) -> None:
    client.send(ApiKey.METADATA, 12, topics=[Topic(name="orders")])
    assert client.has_answer


async def test_a_topic_that_cannot_be_made_is_answered_with_the_reason(client: Client) -> None:
    await metadata(client, 12, "with.dots")
    response = await metadata(client, 12, "with_dots")
    assert codes(response) == {"with_dots": ErrorCode.INVALID_TOPIC_EXCEPTION}


async def test_one_request_does_not_make_topics_without_end(
    cluster: Cluster, nursery: trio.Nursery
) -> None:
    cluster.configure(num_partitions="5001")
    async with cluster.running() as controller:
        client = Client(ServedBroker(cluster, controller, nursery))
        response = await metadata(client, 12, "one", "two")
        assert codes(response) == dict.fromkeys(("one", "two"), ErrorCode.POLICY_VIOLATION)
        assert cluster.channel.cache.get_all_topics() == set()


async def test_no_topic_is_made_where_the_broker_forbids_it(
    cluster: Cluster, nursery: trio.Nursery
) -> None:
    cluster.configure(auto_create_topics_enable="false")
    async with cluster.running() as controller:
        client = Client(ServedBroker(cluster, controller, nursery))
        response = await metadata(client, 12, "absent")
        assert codes(response) == {"absent": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert not cluster.channel.cache.contains("absent")


async def test_kafkas_own_topics_are_internal(client: Client) -> None:
    response = await metadata(client, 12, "__consumer_offsets", "orders")
    assert [topic.is_internal for topic in response.topics] == [True, False]
    assert len(response.topics[0].partitions) == 50


def nobody_leads_one(snapshot: MetadataSnapshot) -> bool:
    return (
        snapshot.alive_brokers.keys() == {1} and snapshot.partition_states["only"][0].leader == -1
    )


async def test_partitions_without_a_living_leader_say_so(cluster: Cluster) -> None:
    async with (
        cluster.store() as others,
        cluster.store() as store,
        trio.open_nursery() as nursery,
    ):
        await cluster.register(others, 2)
        controller = cluster.controller(store)
        await controller.start()
        nursery.start_soon(controller.run)
        await controller.create_topics(
            [
                TopicCreation("only", assignments=[(0, [2])]),
                TopicCreation("both", assignments=[(0, [1, 2])]),
            ]
        )
        client = Client(ServedBroker(cluster, controller, nursery))
        await others.close()
        assert await wait_for_metadata(cluster.channel.cache, nobody_leads_one, 5_000)
        for version, first_code, second_code, second_replicas in [
            (0, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.REPLICA_NOT_AVAILABLE, [1]),
            (5, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NONE, [1, 2]),
            (12, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NONE, [1, 2]),
        ]:
            topics = (await metadata(client, version, "only", "both")).topics
            first, second = topics[0].partitions[0], topics[1].partitions[0]
            assert (first.error_code, first.leader_id) == (first_code, -1)
            assert (second.error_code, second.leader_id) == (second_code, 1)
            assert second.replica_nodes == second_replicas
            assert second.offline_replicas == ([2] if version >= 5 else [])
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("version", "code"), [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)]
)
async def test_a_leader_without_the_clients_listener_is_told_apart_from_version_6_on(
    client: Client, version: int, code: ErrorCode
) -> None:
    other = Client(client.broker, "EXTERNAL")
    response = await metadata(other, version, "clicks")
    assert response.brokers == []
    (partition,) = response.topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (code, -1)


async def test_an_update_of_the_metadata_is_seen_by_the_next_request(client: Client) -> None:
    await metadata(client, 12, "orders")
    orders = topic_id(client, "orders")
    await client.broker.controller.delete_topics([orders])
    response = await metadata(client, 12, "orders", allow_auto_topic_creation=False)
    assert codes(response) == {"orders": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


async def test_permitted_operations_are_told_when_asked_for(client: Client) -> None:
    response = await metadata(
        client,
        10,
        "orders",
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )
    assert response.cluster_authorized_operations == ALL_CLUSTER_OPERATIONS
    assert response.topics[0].topic_authorized_operations == ALL_TOPIC_OPERATIONS
    client.broker.denied.add(("WRITE", "TOPIC", "orders"))
    response = await metadata(client, 12, "orders", include_topic_authorized_operations=True)
    assert response.topics[0].topic_authorized_operations == ALL_TOPIC_OPERATIONS - (1 << 4)


async def test_what_a_client_may_not_see_is_not_disclosed(client: Client) -> None:
    client.broker.denied.add(("DESCRIBE", "TOPIC", "orders"))
    response = await metadata(client, 12, "orders", "clicks")
    assert codes(response) == {"orders": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "clicks": 0}
    assert response.topics[0].topic_id == ZERO_UUID
    assert codes(await client.call(ApiKey.METADATA, 12, topics=None)) == {"clicks": 0}
    by_id = [Topic(name=None, topic_id=topic_id(client, "orders"))]
    response = await client.call(ApiKey.METADATA, 12, topics=by_id)
    assert codes(response) == {None: ErrorCode.TOPIC_AUTHORIZATION_FAILED}


async def test_a_client_that_may_not_create_makes_no_topic(client: Client) -> None:
    client.broker.denied |= {("CREATE", "CLUSTER", None), ("CREATE", "TOPIC", "absent")}
    response = await metadata(client, 12, "absent", "allowed")
    assert codes(response) == {"absent": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "allowed": 0}


# -- DescribeCluster --------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(3))
async def test_the_cluster_is_described(client: Client, version: int) -> None:
    response = await client.call(ApiKey.DESCRIBE_CLUSTER, version)
    assert (response.error_code, response.cluster_id, response.controller_id) == (0, CLUSTER_ID, 1)
    (broker,) = response.brokers
    assert (broker.broker_id, broker.host, broker.port) == (1, "127.0.0.1", 9091)
    assert response.cluster_authorized_operations == NOT_ASKED
    response = await client.call(
        ApiKey.DESCRIBE_CLUSTER, version, include_cluster_authorized_operations=True
    )
    assert response.cluster_authorized_operations == ALL_CLUSTER_OPERATIONS


@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (7, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
async def test_other_endpoints_than_brokers_are_refused(
    client: Client, endpoint_type: int, code: ErrorCode
) -> None:
    response = await client.call(ApiKey.DESCRIBE_CLUSTER, 1, endpoint_type=endpoint_type)
    assert (response.error_code, response.brokers) == (code, [])


# -- DescribeTopicPartitions --------------------------------------------------------------------


async def pages(client: Client, limit: int, *names: str, cursor: Any = None) -> Any:
    request = DescribeTopicPartitionsRequest
    return await client.call(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        0,
        topics=[request.TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=cursor and request.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


def reported(response: Any) -> list[tuple[str, list[int]]]:
    return [
        (topic.name, [partition.partition_index for partition in topic.partitions])
        for topic in response.topics
    ]


async def test_topics_come_by_name_with_all_their_partitions(client: Client) -> None:
    response = await pages(client, 2_000, "orders", "clicks", "absent", "a b", "orders")
    assert reported(response) == [
        ("a b", []),
        ("absent", []),
        ("clicks", [0]),
        ("orders", [0, 1, 2]),
    ]
    assert [topic.error_code for topic in response.topics] == [
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
        ErrorCode.NONE,
    ]
    assert response.next_cursor is None
    orders = response.topics[-1]
    assert orders.topic_id == topic_id(client, "orders")
    assert orders.topic_authorized_operations == ALL_TOPIC_OPERATIONS
    partition = orders.partitions[0]
    assert (partition.leader_id, partition.leader_epoch) == (1, 0)
    assert (partition.replica_nodes, partition.isr_nodes) == ([1], [1])
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])


async def test_pages_follow_each_other_by_their_cursors(client: Client) -> None:
    seen: list[tuple[str, int]] = []
    cursor = None
    for _ in range(10):
        response = await pages(client, 1, cursor=cursor)
        seen += [(name, index) for name, indexes in reported(response) for index in indexes]
        if response.next_cursor is None:
            break
        cursor = (response.next_cursor.topic_name, response.next_cursor.partition_index)
    assert seen == [("clicks", 0), ("orders", 0), ("orders", 1), ("orders", 2)]


@pytest.mark.parametrize(
    ("limit", "last", "cursor"),
    [
        (1, ("clicks", [0]), ("orders", 0)),
        (2, ("orders", [0]), ("orders", 1)),
        (3, ("orders", [0, 1]), ("orders", 2)),
        (4, ("orders", [0, 1, 2]), None),
        (0, ("clicks", [0]), ("orders", 0)),
        (-5, ("clicks", [0]), ("orders", 0)),
    ],
)
async def test_the_limit_is_kept_and_the_cursor_names_what_is_next(
    client: Client, limit: int, last: tuple[str, list[int]], cursor: tuple[str, int] | None
) -> None:
    response = await pages(client, limit)
    assert reported(response)[-1] == last
    following = response.next_cursor
    assert (following and (following.topic_name, following.partition_index)) == cursor


async def test_the_brokers_own_limit_bounds_the_clients(
    cluster: Cluster, nursery: trio.Nursery
) -> None:
    cluster.configure(max_request_partition_size_limit="2")
    async with cluster.running() as controller:
        await controller.create_topics([TopicCreation("orders", 3, 1)])
        client = Client(ServedBroker(cluster, controller, nursery))
        assert reported(await pages(client, 2_000)) == [("orders", [0, 1])]


async def test_a_cursor_of_another_request_is_refused(client: Client) -> None:
    for cursor in [("orders", 0), ("clicks", -1)]:
        response = await pages(client, 5, "clicks", cursor=cursor)
        assert [topic.error_code for topic in response.topics] == [ErrorCode.INVALID_REQUEST]


async def test_topics_that_may_not_be_described_are_told_only_to_who_names_them(
    client: Client,
) -> None:
    client.broker.denied.add(("DESCRIBE", "TOPIC", "clicks"))
    assert reported(await pages(client, 5)) == [("orders", [0, 1, 2])]
    response = await pages(client, 5, "clicks", "orders")
    assert codes(response) == {"orders": 0, "clicks": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
