"""Every API answers at every version it is served at: with little in it, and with a topic."""

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from odradek.broker.handlers.registry import REGISTRATIONS, Registration
from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from conftest import Bench

PARKS = {ApiKey.JOIN_GROUP}
"""Answers of these may have to wait for others; they have tests of their own."""


def all_errors(value: Any) -> list[int]:
    """Every error code in an answer, wherever it stands."""
    found = []
    for name in getattr(type(value), "__slots__", ()):
        field = getattr(value, name)
        if name == "error_code":
            found.append(field)
        elif isinstance(field, list):
            found += [code for item in field for code in all_errors(item)]
    return found


@pytest.mark.parametrize("registration", REGISTRATIONS.values(), ids=lambda it: it.api_key.name)
async def test_a_request_of_defaults_is_answered_at_every_version(
    bench: "Bench", registration: Registration
) -> None:
    api_key = registration.api_key
    request = messages.request_message(api_key)()
    if api_key is ApiKey.PRODUCE:
        request.acks = 1
    if api_key is ApiKey.DESCRIBE_ACLS:  # 0 is no type at all, and closes the connection
        request.resource_type_filter = request.operation = request.permission_type = 1
    if api_key in PARKS:
        request.session_timeout_ms = 1  # refused, so answered at once
    for version in registration.versions:
        answer = await bench.client.call(request, version)
        assert ErrorCode.UNKNOWN_SERVER_ERROR not in all_errors(answer), f"version {version}"
        assert not bench.client.connection.is_closing, f"version {version}"


async def test_list_offsets_finds_both_ends_at_every_version(bench: "Bench") -> None:
    await bench.create_topic("t")
    request = messages.ListOffsetsRequest
    for version, timestamp in product(range(1, 12), (-1, -2)):
        requested = request.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        topic = request.ListOffsetsTopic(name="t", partitions=[requested])
        answer = await bench.client.call(request(replica_id=-1, topics=[topic]), version)
        found = answer.topics[0].partitions[0]
        assert (found.error_code, found.offset) == (ErrorCode.NONE, 0), f"version {version}"


async def test_fetch_answers_a_topic_at_every_version(bench: "Bench") -> None:
    topic_id = await bench.create_topic("t")
    request = messages.FetchRequest
    requested = request.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    for version in range(4, 19):
        topic = request.FetchTopic(partitions=[requested])
        if version >= 13:
            topic.topic_id = topic_id
        else:
            topic.topic = "t"
        answer = await bench.client.call(
            request(max_wait_ms=0, min_bytes=1, max_bytes=1000, topics=[topic]), version
        )
        (partition,) = answer.responses[0].partitions
        found = (partition.error_code, partition.high_watermark)
        assert found == (ErrorCode.NONE, 0), f"version {version}"


async def test_list_offsets_does_not_know_other_special_timestamps(bench: "Bench") -> None:
    await bench.create_topic("t")
    request = messages.ListOffsetsRequest
    for version in range(1, 12):
        requested = request.ListOffsetsPartition(partition_index=0, timestamp=-7)
        topic = request.ListOffsetsTopic(name="t", partitions=[requested])
        answer = await bench.client.call(request(replica_id=-1, topics=[topic]), version)
        error = answer.topics[0].partitions[0].error_code
        assert error == ErrorCode.UNSUPPORTED_VERSION, f"version {version}"


@pytest.mark.parametrize("version", range(3))
async def test_sasl_is_refused_where_nobody_asks_for_it(bench: "Bench", version: int) -> None:
    request = messages.SaslAuthenticateRequest(auth_bytes=b"x")
    answer = await bench.client.call(request, version)
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    if version < 2:
        handshake = messages.SaslHandshakeRequest(mechanism="PLAIN")
        answer = await bench.client.call(handshake, version)
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
