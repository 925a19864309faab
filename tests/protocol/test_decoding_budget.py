"""What a message may cost to decode: real requests never feel it, hostile ones do."""

from __future__ import annotations

import gc
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from support.random_messages import random_value
from support.selection import slow_unless

from odradek.protocol import ApiKey, ProtocolError, encode_body, messages
from odradek.protocol.codec.decoder_source import decoder_source
from odradek.protocol.codec.decoding_budget import CLIENT, CLUSTER, limits_of
from odradek.protocol.codec.message import MessageType

PARTITIONS_OF_A_FETCH = 15_000
TOPICS = 10_000
PARTITIONS_OF_THE_CLUSTER = 100_000

FLIGHTS = "flights-of-the-year-2013"


def name(number: int) -> str:
    return f"some-topic-name-{number:05d}"


def fetch(version: int) -> Any:
    request = messages.FetchRequest
    partitions = [
        request.FetchPartition(
            partition=index, fetch_offset=10**9 + index, partition_max_bytes=1 << 20
        )
        for index in range(PARTITIONS_OF_A_FETCH)
    ]
    topic = {"topic": FLIGHTS} if version < 13 else {"topic_id": b"i" * 16}
    return request(topics=[request.FetchTopic(**topic, partitions=partitions)])


def list_offsets(version: int) -> Any:
    request = messages.ListOffsetsRequest
    partitions = [
        request.ListOffsetsPartition(partition_index=index, timestamp=-1)
        for index in range(PARTITIONS_OF_A_FETCH)
    ]
    return request(topics=[request.ListOffsetsTopic(name=FLIGHTS, partitions=partitions)])


def metadata(version: int) -> Any:
    request = messages.MetadataRequest
    return request(topics=[request.MetadataRequestTopic(name=name(n)) for n in range(TOPICS)])


def offset_fetch(version: int) -> Any:
    request = messages.OffsetFetchRequest
    indexes = list(range(TOPICS))
    if version < 8:
        topic = request.OffsetFetchRequestTopic(name=FLIGHTS, partition_indexes=indexes)
        return request(group_id="g", topics=[topic])
    topics = [request.OffsetFetchRequestTopics(name=FLIGHTS, partition_indexes=indexes)]
    return request(groups=[request.OffsetFetchRequestGroup(group_id="g", topics=topics)])


def offset_commit(version: int) -> Any:
    request = messages.OffsetCommitRequest
    partitions = [
        request.OffsetCommitRequestPartition(
            partition_index=index, committed_offset=10**9, committed_metadata=""
        )
        for index in range(TOPICS)
    ]
    topic = request.OffsetCommitRequestTopic(name=FLIGHTS, partitions=partitions)
    return request(group_id="g", topics=[topic])


def produce(version: int) -> Any:
    request = messages.ProduceRequest
    partitions = [
        request.PartitionProduceData(index=index, records=bytes(100)) for index in range(5000)
    ]
    topic = request.TopicProduceData(name=FLIGHTS, partition_data=partitions)
    return request(acks=-1, timeout_ms=30_000, topic_data=[topic])


def delete_topics(version: int) -> Any:
    request = messages.DeleteTopicsRequest
    if version < 6:
        return request(topic_names=[name(number) for number in range(TOPICS)])
    return request(topics=[request.DeleteTopicState(name=name(n)) for n in range(TOPICS)])


def create_topics(version: int) -> Any:
    request = messages.CreateTopicsRequest
    config = request.CreatableTopicConfig(name="cleanup.policy", value="compact")
    topics = [
        request.CreatableTopic(
            name=name(number), num_partitions=6, replication_factor=3, configs=[config]
        )
        for number in range(5000)
    ]
    return request(topics=topics)


def describe_configs(version: int) -> Any:
    request = messages.DescribeConfigsRequest
    resources = [
        request.DescribeConfigsResource(
            resource_type=2, resource_name=name(number), configuration_keys=None
        )
        for number in range(TOPICS)
    ]
    return request(resources=resources)


def update_metadata(version: int) -> Any:
    request = messages.UpdateMetadataRequest
    states = [
        request.UpdateMetadataPartitionState(
            partition_index=index,
            controller_epoch=700,
            leader=1001,
            leader_epoch=300,
            isr=[1001, 1002, 1003],
            zk_version=400,
            replicas=[1001, 1002, 1003],
        )
        for index in range(PARTITIONS_OF_THE_CLUSTER)
    ]
    topic = request.UpdateMetadataTopicState(topic_name=FLIGHTS, partition_states=states)
    return request(controller_id=1001, controller_epoch=700, topic_states=[topic])


def leader_and_isr(version: int) -> Any:
    request = messages.LeaderAndIsrRequest
    states = [
        request.LeaderAndIsrPartitionState(
            partition_index=index,
            controller_epoch=700,
            leader=1001,
            leader_epoch=300,
            isr=[1001, 1002, 1003],
            partition_epoch=400,
            replicas=[1001, 1002, 1003],
        )
        for index in range(PARTITIONS_OF_THE_CLUSTER)
    ]
    topic = request.LeaderAndIsrTopicState(topic_name=FLIGHTS, partition_states=states)
    return request(controller_id=1001, controller_epoch=700, topic_states=[topic])


REAL: dict[Callable[[int], Any], tuple[int, ...]] = {
    fetch: (11, 12, 17),
    list_offsets: (1, 6, 11),
    metadata: (1, 9, 13),
    offset_fetch: (1, 6, 9),
    offset_commit: (2, 8, 9),
    produce: (3, 9, 12),
    delete_topics: (1, 4, 6),
    create_topics: (2, 5, 7),
    describe_configs: (1, 4),
    update_metadata: (5, 8),
    leader_and_isr: (2, 4, 7),
}
OF_ALL_PARTITIONS = {update_metadata, leader_and_isr}
"""What takes seconds to make."""


def is_short(make: Callable[[int], Any], version: int) -> bool:
    """Whether `make test` has the case."""
    return version == REAL[make][-1] and make not in OF_ALL_PARTITIONS


@pytest.mark.parametrize(
    ("make", "version"),
    [
        pytest.param(make, version, marks=slow_unless(is_short(make, version)))
        for make, versions in REAL.items()
        for version in versions
    ],
    ids=lambda what: getattr(what, "__name__", f"v{what}"),
)
def test_large_requests_of_real_clients_and_controllers_are_taken(
    make: Callable[[int], Any], version: int
) -> None:
    request = make(version)
    decoded, _ = type(request).decoder(version)(memoryview(encode_body(request, version)), 0)
    assert decoded == request


@pytest.mark.parametrize("size", [20_000, 200_000])
def test_what_holds_too_many_elements_is_refused_by_the_name_of_the_array(size: int) -> None:
    body = (size // 2).to_bytes(4, "big") + bytes(size)  # topics without a name
    with pytest.raises(ProtocolError, match=r"MetadataRequest.topics announces \d+ elements, more"):
        messages.MetadataRequest.decoder(1)(body, 0)


def test_strings_of_long_messages_are_charged_what_they_take() -> None:
    """Four bytes for one, where it has a character beyond the basic plane."""
    decode = messages.DeleteTopicsRequest.decoder(1)
    ascii_names = [b"x" * 30_000] * 100
    wide_names = [b"x" * 29_996 + "\U0001f600".encode()] * 100

    def body(names: list[bytes]) -> bytes:
        lengths = ((30_000).to_bytes(2, "big") + each for each in names)
        return len(names).to_bytes(4, "big") + b"".join(lengths) + bytes(4)

    for names in (ascii_names, wide_names):
        assert len(decode(body(names), 0)[0].topic_names) == 100
    short = ["\U0001f600".encode()] * 100_000
    with pytest.raises(ProtocolError, match="than"):
        decode(
            len(short).to_bytes(4, "big") + b"".join(b"\0\4" + each for each in short) + bytes(4), 0
        )


def test_collections_go_on_after_a_long_message_taken_or_refused() -> None:
    decode = messages.MetadataRequest.decoder(1)
    body = encode_body(metadata(1), 1)
    assert gc.isenabled()
    decode(body, 0)
    assert gc.isenabled()
    with pytest.raises(ProtocolError):
        decode(body[:-10], 0)
    assert gc.isenabled()
    gc.disable()
    try:
        decode(body, 0)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_only_brokers_send_may_cost_more() -> None:
    of_brokers = {key for key in ApiKey if limits_of("SomeRequest", key) is CLUSTER}
    assert of_brokers == {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.ALTER_PARTITION,
        ApiKey.WRITE_TXN_MARKERS,
    }
    assert limits_of("MetadataResponse", ApiKey.METADATA) is CLUSTER
    assert limits_of("MetadataRequest", ApiKey.METADATA) is CLIENT


@pytest.mark.parametrize("find", [messages.request_message, messages.response_message])
@pytest.mark.parametrize("key", ApiKey, ids=lambda key: key.name)
def test_long_messages_are_decoded_to_the_same(
    key: ApiKey, find: Callable[[int], MessageType]
) -> None:
    """The decoder of long messages is another: on short ones both give the same."""
    message = find(key)
    rng = Random(int(key))
    for version in message.versions:
        resolved = message.version(version)
        limits = limits_of(message.name, message.api_key)
        decode_long = decoder_source(message.layout(version), limits, is_long=True).compile(
            "decode", "long"
        )
        for _ in range(3):
            body = encode_body(random_value(resolved, rng), version)
            expected, position = message.decoder(version)(body, 0)
            assert decode_long(body, 0) == (expected, position)
            for end in range(0, position, 1 + position // 20):
                with pytest.raises(ProtocolError):
                    decode_long(body[:end], 0)
