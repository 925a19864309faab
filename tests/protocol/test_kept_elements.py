"""Codecs that leave an array's elements encoded, against those that do not."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.protocol import messages
from odradek.protocol.codec.kept_elements import (
    EncodedElements,
    element_decoders,
    element_encoders,
)
from odradek.protocol.errors import ProtocolError

VERSIONS = range(4, 19)
Fetch = messages.FetchRequest
Fetched = messages.FetchResponse


def topics(version: int, count: int) -> list[Any]:
    return [
        Fetch.FetchTopic(
            **({"topic_id": bytes([each]) * 16} if version >= 13 else {"topic": f"t{each}"}),
            partitions=[
                Fetch.FetchPartition(
                    partition=index, fetch_offset=index << 33, partition_max_bytes=each
                )
                for index in range(count)
            ],
        )
        for each in (1, 2)
    ]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("count", [0, 3, 200])
def test_a_request_is_the_same_once_its_elements_are_decoded(version: int, count: int) -> None:
    request = Fetch(max_wait_ms=7, topics=topics(version, count))
    encoded = b"".join(Fetch.encoder(version)(request))
    whole, element = element_decoders(Fetch, version, Fetch.FetchPartition)
    found, end = whole(b"xy" + encoded, 2)
    assert end == 2 + len(encoded)
    for topic in found.topics:
        assert all(type(each) is bytes for each in topic.partitions)
        topic.partitions = [element(each, 0)[0] for each in topic.partitions]
    assert found == Fetch.decoder(version)(encoded, 0)[0]
    for size in range(len(encoded)):
        with pytest.raises(ProtocolError):
            whole(encoded[:size], 0)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("count", [1, 3, 200])
def test_an_answer_is_the_same_from_its_elements_bytes(version: int, count: int) -> None:
    named: dict[str, Any] = {"topic_id": b"i" * 16} if version >= 13 else {"topic": "t"}
    partitions = [
        Fetched.PartitionData(
            partition_index=index, high_watermark=index, records=b"r" * (index % 3) * 90
        )
        for index in range(count)
    ]
    topic = Fetched.FetchableTopicResponse(partitions=partitions, **named)
    answer = Fetched(responses=[topic, topic], throttle_time_ms=9)
    expected = b"".join(Fetched.encoder(version)(answer))
    encode, element = element_encoders(Fetched, version, Fetched.PartitionData)
    buffers: list[Any] = []
    for partition in partitions:
        buffers += element(partition)
    topic.partitions = EncodedElements(count, buffers)
    assert b"".join(encode(answer)) == expected


@pytest.mark.parametrize("version", [17, 18])
def test_the_last_byte_of_an_element_with_tagged_fields_is_not_zero(version: int) -> None:
    """By which those are told that are longer than the bytes that are kept of them."""
    _, encode = element_encoders(Fetch, version, Fetch.FetchPartition)
    (plain,) = encode(Fetch.FetchPartition())
    (tagged,) = encode(Fetch.FetchPartition(replica_directory_id=b"d" * 16))
    assert plain[-1] == 0
    assert tagged[len(plain) - 1] != 0
