"""CreateTopics, DeleteTopics, CreatePartitions and InitProducerId.

Codes were compared with Kafka 4.3.1's answers to the same requests.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trio
from support.cluster import Cluster
from support.served import Client, ServedBroker
from trio.testing import MockClock

import odradek.broker.handlers.create_partitions
import odradek.broker.handlers.create_topics
import odradek.broker.handlers.delete_topics
import odradek.broker.handlers.init_producer_id  # noqa: F401  # registers itself
from odradek.common.errors import ErrorCode
from odradek.common.sentinels import ZERO_UUID
from odradek.controller.topics.planning import TopicCreation
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


@pytest.fixture
async def client(cluster: Cluster, nursery: trio.Nursery) -> AsyncIterator[Client]:
    async with cluster.running() as controller:
        await controller.create_topics(
            [
                TopicCreation("orders", 3, 1, configs=[("retention.ms", "5000")]),
                TopicCreation("clicks", 1, 1),
            ]
        )
        yield Client(ServedBroker(cluster, controller, nursery))


def topic_id(client: Client, name: str) -> bytes:
    found = client.broker.metadata_cache.topic_id(name)
    assert found is not None
    return found


# -- CreateTopics -------------------------------------------------------------------------


def requested(
    name: str,
    partitions: int = 1,
    replication_factor: int = 1,
    *,
    assignments: Sequence[tuple[int, list[int]]] = (),
    configs: Sequence[tuple[str, str | None]] = (),
) -> Any:
    topic = CreateTopicsRequest
    return topic.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[
            topic.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in assignments
        ],
        configs=[topic.CreatableTopicConfig(name=key, value=value) for key, value in configs],
    )


async def create(client: Client, version: int, *topics: Any, **fields: Any) -> Any:
    fields.setdefault("timeout_ms", 5_000)
    return await client.call(ApiKey.CREATE_TOPICS, version, topics=list(topics), **fields)


def outcomes(response: Any) -> dict[str, int]:
    return {topic.name: topic.error_code for topic in response.topics}


@pytest.mark.parametrize("version", range(2, 8))
async def test_a_topic_is_made_in_every_version(client: Client, version: int) -> None:
    response = await create(
        client, version, requested("t", 2, 1, configs=[("segment.bytes", "2000000")])
    )
    (result,) = response.topics
    assert (result.name, result.error_code, result.error_message) == ("t", ErrorCode.NONE, None)
    assert client.broker.metadata_cache.partition_count("t") == 2
    assert client.broker.metadata_cache.topic_config("t") == {"segment.bytes": "2000000"}
    assert result.topic_id == (topic_id(client, "t") if version >= 7 else ZERO_UUID)
    if version < 5:
        return
    assert (result.num_partitions, result.replication_factor) == (2, 1)
    assert result.topic_config_error_code == ErrorCode.NONE
    settings = {config.name: (config.value, config.config_source) for config in result.configs}
    assert settings["segment.bytes"] == ("2000000", 1)
    assert settings["cleanup.policy"] == ("delete", 5)
    names = [config.name for config in result.configs]
    assert names == sorted(names)


async def test_each_topic_of_a_request_fares_on_its_own(client: Client) -> None:
    response = await create(
        client,
        7,
        requested("good"),
        requested("orders"),
        requested("a b"),
        requested("many", 0),
        requested("copies", 1, 2),
        requested("assigned", -1, -1, assignments=[(0, [7])]),
        requested("both", 1, -1, assignments=[(0, [1])]),
        requested("settings", configs=[("retention.ms", None)]),
        requested("twice"),
        requested("twice", 2),
        requested("__cluster_metadata"),
    )
    assert outcomes(response) == {
        "good": ErrorCode.NONE,
        "orders": ErrorCode.TOPIC_ALREADY_EXISTS,
        "a b": ErrorCode.INVALID_TOPIC_EXCEPTION,
        "many": ErrorCode.INVALID_PARTITIONS,
        "copies": ErrorCode.INVALID_REPLICATION_FACTOR,
        "assigned": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "both": ErrorCode.INVALID_REQUEST,
        "settings": ErrorCode.INVALID_CONFIG,
        "twice": ErrorCode.INVALID_REQUEST,
        "__cluster_metadata": ErrorCode.INVALID_REQUEST,
    }
    assert len(response.topics) == 10
    assert all(topic.error_message for topic in response.topics if topic.error_code)
    assert client.broker.metadata_cache.get_all_topics() == {"orders", "clicks", "good"}


async def test_minus_one_takes_the_brokers_defaults(
    cluster: Cluster, nursery: trio.Nursery
) -> None:
    cluster.configure(num_partitions="4")
    async with cluster.running() as controller:
        client = Client(ServedBroker(cluster, controller, nursery))
        (result,) = (await create(client, 7, requested("t", -1, -1))).topics
        assert (result.num_partitions, result.replication_factor) == (4, 1)


async def test_a_manual_assignment_is_taken(client: Client) -> None:
    response = await create(client, 7, requested("t", -1, -1, assignments=[(1, [1]), (0, [1])]))
    (result,) = response.topics
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 2, 1)


async def test_validate_only_answers_as_if_and_makes_nothing(client: Client) -> None:
    response = await create(client, 7, requested("t", 2), requested("orders"), validate_only=True)
    assert outcomes(response) == {"t": 0, "orders": ErrorCode.TOPIC_ALREADY_EXISTS}
    assert response.topics[0].num_partitions == 2
    assert not client.broker.metadata_cache.contains("t")


@pytest.mark.parametrize(
    ("fields", "partitions", "code"),
    [({"timeout_ms": 0}, 1, ErrorCode.REQUEST_TIMED_OUT), ({}, 10_001, ErrorCode.POLICY_VIOLATION)],
)
async def test_a_request_refused_as_a_whole_is_told_for_each_topic(
    client: Client, fields: dict[str, int], partitions: int, code: ErrorCode
) -> None:
    response = await create(client, 7, requested("a", partitions), requested("b"), **fields)
    assert outcomes(response) == {"a": code, "b": code}
    assert not client.broker.metadata_cache.contains("b")


async def test_creating_and_describing_need_permission(client: Client) -> None:
    client.broker.denied |= {
        ("CREATE", "CLUSTER", None),
        ("CREATE", "TOPIC", "secret"),
        ("DESCRIBE_CONFIGS", "TOPIC", "plain"),
    }
    response = await create(client, 7, requested("secret"), requested("plain"))
    assert outcomes(response) == {"plain": 0, "secret": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
    plain = response.topics[0]
    assert plain.topic_config_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (plain.num_partitions, plain.replication_factor, plain.configs) == (-1, -1, [])


async def test_a_request_for_nothing_is_answered_with_nothing(client: Client) -> None:
    assert (await create(client, 7)).topics == []


# -- DeleteTopics ---------------------------------------------------------------------------


async def delete_names(client: Client, version: int, *names: str, timeout_ms: int = 5_000) -> Any:
    return await client.call(
        ApiKey.DELETE_TOPICS, version, topic_names=list(names), timeout_ms=timeout_ms
    )


async def delete(client: Client, *topics: tuple[str | None, bytes]) -> list[tuple[Any, ...]]:
    state = DeleteTopicsRequest.DeleteTopicState
    response = await client.call(
        ApiKey.DELETE_TOPICS,
        6,
        topics=[state(name=name, topic_id=topic_id) for name, topic_id in topics],
        timeout_ms=5_000,
    )
    return [(result.name, result.topic_id, result.error_code) for result in response.responses]


@pytest.mark.parametrize("version", range(1, 6))
async def test_topics_are_deleted_by_name(client: Client, version: int) -> None:
    response = await delete_names(client, version, "orders", "absent", "", "clicks", "clicks")
    assert {result.name: result.error_code for result in response.responses} == {
        "orders": ErrorCode.NONE,
        "absent": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "clicks": ErrorCode.INVALID_REQUEST,
    }
    assert len(response.responses) == 4
    assert client.broker.metadata_cache.get_all_topics() == {"clicks"}


async def test_topics_are_deleted_by_id_and_by_name(client: Client) -> None:
    orders, clicks = topic_id(client, "orders"), topic_id(client, "clicks")
    assert await delete(client, (None, orders), ("clicks", ZERO_UUID)) == [
        ("orders", orders, ErrorCode.NONE),
        ("clicks", clicks, ErrorCode.NONE),
    ]
    assert client.broker.metadata_cache.get_all_topics() == set()


async def test_topics_not_named_clearly_are_not_deleted(client: Client) -> None:
    orders, clicks, unknown = topic_id(client, "orders"), topic_id(client, "clicks"), b"x" * 16
    refused = ErrorCode.INVALID_REQUEST
    assert await delete(client, (None, ZERO_UUID)) == [(None, ZERO_UUID, refused)]
    assert await delete(client, ("orders", orders)) == [("orders", orders, refused)]
    assert await delete(client, (None, orders), (None, orders)) == [(None, orders, refused)]
    assert await delete(client, (None, unknown)) == [(None, unknown, ErrorCode.UNKNOWN_TOPIC_ID)]
    assert await delete(client, ("orders", ZERO_UUID), (None, orders), (None, clicks)) == [
        ("orders", orders, refused),
        ("clicks", clicks, ErrorCode.NONE),
    ]
    assert client.broker.metadata_cache.get_all_topics() == {"orders"}


async def test_deletion_may_be_switched_off(cluster: Cluster, nursery: trio.Nursery) -> None:
    cluster.configure(delete_topic_enable="false")
    async with cluster.running() as controller:
        await controller.create_topics([TopicCreation("orders", 1, 1)])
        client = Client(ServedBroker(cluster, controller, nursery))
        for version, code in [
            (2, ErrorCode.INVALID_REQUEST),
            (3, ErrorCode.TOPIC_DELETION_DISABLED),
        ]:
            response = await delete_names(client, version, "orders")
            assert [result.error_code for result in response.responses] == [code]
        assert cluster.channel.cache.contains("orders")


async def test_deleting_without_waiting_deletes_nothing(client: Client) -> None:
    response = await delete_names(client, 5, "orders", timeout_ms=0)
    assert [result.error_code for result in response.responses] == [ErrorCode.REQUEST_TIMED_OUT]
    assert client.broker.metadata_cache.contains("orders")


async def test_deleting_needs_permission(client: Client) -> None:
    client.broker.denied |= {
        ("DELETE", "CLUSTER", None),
        ("DELETE", "TOPIC", "orders"),
        ("DESCRIBE", "TOPIC", "hidden"),
    }
    response = await delete_names(client, 5, "orders", "hidden", "clicks")
    assert {result.name: result.error_code for result in response.responses} == {
        "orders": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "hidden": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "clicks": ErrorCode.NONE,
    }


async def test_who_may_delete_on_the_cluster_may_delete_every_topic(client: Client) -> None:
    client.broker.denied.add(("DELETE", "TOPIC", "orders"))
    response = await delete_names(client, 5, "orders")
    assert [result.error_code for result in response.responses] == [ErrorCode.NONE]


# -- CreatePartitions -------------------------------------------------------------------------


async def add(
    client: Client, version: int, *topics: tuple[str, int, list[list[int]] | None], **fields: Any
) -> dict[str, int]:
    request = CreatePartitionsRequest
    fields.setdefault("timeout_ms", 5_000)
    response = await client.call(
        ApiKey.CREATE_PARTITIONS,
        version,
        topics=[
            request.CreatePartitionsTopic(
                name=name,
                count=count,
                assignments=None
                if assignments is None
                else [request.CreatePartitionsAssignment(broker_ids=ids) for ids in assignments],
            )
            for name, count, assignments in topics
        ],
        **fields,
    )
    return {result.name: result.error_code for result in response.results}


@pytest.mark.parametrize("version", range(4))
async def test_partitions_are_added_in_every_version(client: Client, version: int) -> None:
    assert await add(client, version, ("orders", 4, None), ("clicks", 3, [[1], [1]])) == {
        "orders": ErrorCode.NONE,
        "clicks": ErrorCode.NONE,
    }
    assert client.broker.metadata_cache.partition_count("orders") == 4
    assert client.broker.metadata_cache.partition_count("clicks") == 3


async def test_impossible_additions_are_refused_one_by_one(client: Client) -> None:
    assert await add(
        client,
        3,
        ("orders", 3, None),
        ("absent", 3, None),
        ("clicks", 2, [[1], [1]]),
        ("twice", 2, None),
        ("twice", 3, None),
    ) == {
        "orders": ErrorCode.INVALID_PARTITIONS,
        "absent": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "clicks": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "twice": ErrorCode.INVALID_REQUEST,
    }


async def test_additions_may_be_tried_out(client: Client) -> None:
    assert await add(client, 3, ("orders", 4, None), validate_only=True) == {"orders": 0}
    assert client.broker.metadata_cache.partition_count("orders") == 3


@pytest.mark.parametrize(
    ("count", "timeout_ms", "code"),
    [(4, 0, ErrorCode.REQUEST_TIMED_OUT), (10_004, 5_000, ErrorCode.POLICY_VIOLATION)],
)
async def test_additions_refused_as_a_whole_are_told_for_each_topic(
    client: Client, count: int, timeout_ms: int, code: ErrorCode
) -> None:
    assert await add(client, 3, ("orders", count, None), timeout_ms=timeout_ms) == {"orders": code}
    assert client.broker.metadata_cache.partition_count("orders") == 3


async def test_adding_needs_permission(client: Client) -> None:
    client.broker.denied.add(("ALTER", "TOPIC", "orders"))
    assert await add(client, 3, ("orders", 4, None)) == {
        "orders": ErrorCode.TOPIC_AUTHORIZATION_FAILED
    }


# -- InitProducerId -----------------------------------------------------------------------------


async def init(client: Client, version: int, **fields: Any) -> tuple[int, int, int]:
    fields = {"transactional_id": None, "transaction_timeout_ms": 1_000, **fields}
    response = await client.call(ApiKey.INIT_PRODUCER_ID, version, **fields)
    return response.error_code, response.producer_id, response.producer_epoch


async def test_each_producer_gets_an_id_of_its_own(client: Client) -> None:
    given = [await init(client, version) for version in range(6)]
    assert given == [(ErrorCode.NONE, number, 0) for number in range(6)]


async def test_a_producer_that_had_an_id_gets_a_fresh_one(client: Client) -> None:
    await init(client, 5)
    assert await init(client, 5, producer_id=0, producer_epoch=3) == (ErrorCode.NONE, 1, 0)


async def test_ids_are_answered_at_once_while_the_block_lasts(client: Client) -> None:
    await init(client, 5)
    client.send(ApiKey.INIT_PRODUCER_ID, 5, transactional_id=None, transaction_timeout_ms=0)
    assert client.has_answer


@pytest.mark.parametrize("fields", [{"producer_id": 5}, {"producer_epoch": 0}])
async def test_id_and_epoch_come_together_or_not_at_all(
    client: Client, fields: dict[str, Any]
) -> None:
    assert await init(client, 5, **fields) == (ErrorCode.INVALID_REQUEST, -1, -1)


async def test_ids_need_permission(client: Client) -> None:
    client.broker.denied |= {
        ("IDEMPOTENT_WRITE", "CLUSTER", None),
        ("WRITE", "TRANSACTIONAL_ID", "t"),
    }
    assert (await init(client, 5))[0] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    refused = await init(client, 5, transactional_id="t")
    assert refused[0] == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


async def test_a_store_out_of_reach_asks_producers_to_try_again(
    client: Client, cluster: Cluster, autojump_clock: MockClock
) -> None:
    with closing(sqlite3.connect(cluster.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert (await init(client, 5))[0] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        other.execute("ROLLBACK")
