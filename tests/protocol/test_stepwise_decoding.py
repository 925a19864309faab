"""Decoding in steps gives what decoding in one go gives, and refuses the same."""

from __future__ import annotations

from collections.abc import Generator
from random import Random
from typing import Any

import pytest
from support.random_messages import random_value

from odradek.protocol.codec.decoding_budget import CLUSTER_APIS
from odradek.protocol.errors import ProtocolError
from odradek.protocol.messages import UpdateMetadataRequest, WriteTxnMarkersRequest, request_message

VERSIONS = [
    (api_key, version)
    for api_key in sorted(CLUSTER_APIS)
    for version in request_message(api_key).versions
]


def finish(steps: Generator[None, None, tuple[Any, int]]) -> tuple[Any, int, int]:
    """Take every step; the value, the position after it, and how many pauses there were."""
    pauses = 0
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return *done.value, pauses
        pauses += 1


@pytest.mark.parametrize(("api_key", "version"), VERSIONS)
def test_steps_come_to_the_same_value(api_key: int, version: int) -> None:
    message = request_message(api_key)
    rng = Random(f"{api_key} {version}")
    for _ in range(20):
        value = random_value(message.version(version), rng)
        data = b"".join(map(bytes, message.encoder(version)(value)))
        assert finish(message.stepwise_decoder(version)(data, 0))[:2] == (value, len(data))


def test_there_is_a_pause_before_each_struct_of_an_array() -> None:
    make = UpdateMetadataRequest
    topics = [
        make.UpdateMetadataTopicState(
            topic_name=name, partition_states=[make.UpdateMetadataPartitionState() for _ in "123"]
        )
        for name in "ab"
    ]
    encoded = make.encoder(8)(make(topic_states=topics))
    data = b"".join(map(bytes, encoded))
    assert finish(make.stepwise_decoder(8)(data, 0))[2] == 2 + 2 * 3


@pytest.mark.parametrize(("count", "pauses"), [(0, 0), (256, 1), (257, 2), (1000, 4)])
def test_numbers_are_read_some_hundreds_at_a_time(count: int, pauses: int) -> None:
    make = WriteTxnMarkersRequest
    topic = make.WritableTxnMarkerTopic(name="t", partition_indexes=list(range(count)))
    value = make(markers=[make.WritableTxnMarker(topics=[topic])])
    data = b"".join(map(bytes, make.encoder(1)(value)))
    assert finish(make.stepwise_decoder(1)(data, 0)) == (value, len(data), 2 + pauses)


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_what_ends_too_early_is_refused(cut: int) -> None:
    make = UpdateMetadataRequest
    state = make.UpdateMetadataTopicState(
        topic_name="a", partition_states=[make.UpdateMetadataPartitionState(isr=[1], replicas=[1])]
    )
    data = b"".join(map(bytes, make.encoder(8)(make(topic_states=[state]))))
    with pytest.raises(ProtocolError):
        finish(make.stepwise_decoder(8)(data[:-cut], 0))


def test_a_count_beyond_the_message_is_refused_before_it_is_made_room_for() -> None:
    data = bytearray(
        b"".join(map(bytes, UpdateMetadataRequest.encoder(0)(UpdateMetadataRequest())))
    )
    data[8:12] = (2**31 - 1).to_bytes(4, "big")
    with pytest.raises(ProtocolError, match="announces"):
        finish(UpdateMetadataRequest.stepwise_decoder(0)(bytes(data), 0))
