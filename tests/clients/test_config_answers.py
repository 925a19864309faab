"""Changes of settings over TCP, answered as Kafka 4.3.1 answers them, code by code.

Pointed at a real Kafka (see `conftest`), this holds the table itself to it.
"""

from __future__ import annotations

import os

import pytest
from kafka import KafkaAdminClient
from kafka.protocol.admin import (
    AlterConfigsRequest,
    AlterConfigsResponse,
)
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from support.config_cases import BROKER_LOGGER, CASES, DELETE, OWN, TOPIC_NAME
from support.config_requests import alter_configs
from support.raw_connection import RawConnection

pytestmark = pytest.mark.clients

BROKER_SETTINGS: dict[str, str] = {}
"""The defaults, which bound what a group may be set to."""

IS_KAFKA = bool(
    os.environ.get("ODRADEK_TEST_BOOTSTRAP") or os.environ.get("ODRADEK_TEST_KAFKA_LIBS")
)


@pytest.fixture
def connection(broker):
    with RawConnection(broker.port) as connection:
        yield connection


@pytest.fixture
def broker_id(connection) -> str:
    response = connection.ask(MetadataRequest(topics=[]), MetadataResponse, 1)
    return str(response.brokers[0].node_id)


def test_changes_are_answered_as_by_kafka(broker, connection, broker_id, topic) -> None:
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
        requested = {"num_partitions": 1, "replication_factor": 1}
        admin.create_topics({topic: requested}, wait_for_metadata=True)
    differing = []
    for case in CASES:
        name = case.name.replace(OWN, broker_id).replace(TOPIC_NAME, topic)
        code = alter_configs(connection, case.kind, name, case.changes)
        if code != (case.kafka if IS_KAFKA else case.odradek):
            differing.append((case, code))
        back = [(change[0], DELETE) for change in case.changes if change[1] != DELETE]
        if code == 0 and back and case.kind != BROKER_LOGGER:
            alter_configs(connection, case.kind, name, back)
    assert differing == []


def test_loggers_have_nothing_to_replace(connection, broker_id) -> None:
    resource = AlterConfigsRequest.AlterConfigsResource
    request = AlterConfigsRequest(
        resources=[
            resource(
                resource_type=BROKER_LOGGER,
                resource_name=broker_id,
                configs=[resource.AlterableConfig(name="root", value="INFO")],
            )
        ],
        validate_only=False,
    )
    (answer,) = connection.ask(request, AlterConfigsResponse, 2).responses
    assert answer.error_code == 42
