"""ListConfigResources: which resources have settings; observed from Kafka 4.3.1."""

from __future__ import annotations

import pytest

from odradek.common.errors import ErrorCode
from odradek.protocol import messages

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


async def list_resources(bench, *types, version=1):
    request = messages.ListConfigResourcesRequest
    answer = await bench.client.call(
        request(resource_types=list(types)) if version else request(), version
    )
    found = sorted((one.resource_type, one.resource_name) for one in answer.config_resources)
    return answer.error_code, found


@pytest.fixture
async def filled(bench):
    await bench.create_topic("orders")
    manager = bench.broker.config_manager
    await manager.alter("groups", "g/1", lambda present: {"consumer.session.timeout.ms": "50000"})
    await manager.alter("client-metrics", "all", lambda present: {"interval.ms": "500"})
    await manager.alter("brokers", "<default>", lambda present: {"log.retention.ms": "5"})
    return bench


async def test_no_types_are_all(filled):
    own = str(filled.broker.broker_id)
    assert await list_resources(filled) == (
        ErrorCode.NONE,
        [
            (TOPIC, "orders"),
            (BROKER, own),
            (BROKER_LOGGER, own),
            (CLIENT_METRICS, "all"),
            (GROUP, "g/1"),
        ],
    )


async def test_types_pick_resources(filled):
    own = str(filled.broker.broker_id)
    assert await list_resources(filled, TOPIC) == (ErrorCode.NONE, [(TOPIC, "orders")])
    assert await list_resources(filled, TOPIC, TOPIC) == (ErrorCode.NONE, [(TOPIC, "orders")])
    assert await list_resources(filled, GROUP, BROKER) == (
        ErrorCode.NONE,
        [(BROKER, own), (GROUP, "g/1")],
    )


async def test_first_version_knows_client_metrics_only(filled):
    assert await list_resources(filled, version=0) == (ErrorCode.NONE, [(CLIENT_METRICS, "all")])


@pytest.mark.parametrize("types", [[0], [1], [3], [99], [-1], [TOPIC, 99]])
async def test_type_that_there_is_not_is_an_unsupported_version(filled, types):
    assert await list_resources(filled, *types) == (ErrorCode.UNSUPPORTED_VERSION, [])


async def test_group_that_lost_its_settings_is_listed_no_more(filled):
    await filled.broker.config_manager.alter("groups", "g/1", lambda present: {})
    assert await list_resources(filled, GROUP) == (ErrorCode.NONE, [])


async def test_nobody_learns_resources_without_permission(filled, monkeypatch):
    requested = []
    filled.authorize_by(lambda _, *what: requested.append(what))
    assert await list_resources(filled) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
    assert requested == [("DESCRIBE_CONFIGS", "CLUSTER", "kafka-cluster")]
