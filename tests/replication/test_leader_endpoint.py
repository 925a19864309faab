"""What a fetcher asks on the wire, and what it reads from answers."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.common.errors import ErrorCode
from odradek.common.sentinels import EARLIEST_TIMESTAMP
from odradek.protocol import messages
from odradek.replication.fetcher.leader_endpoint import (
    LeaderEndpoint,
    decode_epochs,
    decode_fetch,
    decode_offsets,
)
from odradek.replication.fetcher.plans import (
    EpochEnd,
    EpochsPlan,
    FetchedPartition,
    FetchPlan,
    ForgottenPartition,
    ListedOffset,
    OffsetsPlan,
    PlannedPartition,
    RequestedEpoch,
)
from odradek.replication.fetcher.settings import FetcherSettings
from odradek.storage import TopicPartition

T, U, OLD = b"t" * 16, b"u" * 16, b"o" * 16
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
SETTINGS = FetcherSettings(7, fetch_wait_ms_max=11, fetch_min_bytes=12, fetch_response_max_bytes=13)
WANTED = {
    T0: PlannedPartition(T, 100, 10, 1000, 5, 4),
    U0: PlannedPartition(U, 200, 20, 1000, 6, -1),
    T1: PlannedPartition(T, 300, 30, 1000, 5, 4),
}
FETCH = FetchPlan(
    33,
    2,
    WANTED,
    (ForgottenPartition(TopicPartition("u", 9), U),),
    (ForgottenPartition(T0, OLD),),
    WANTED,
    {T: "t", U: "u"},
    max_wait_ms=11,
)


def over_the_wire(message: Any, version: int) -> Any:
    """The message as the other side decodes it."""
    data = b"".join(bytes(part) for part in type(message).encoder(version)(message))
    decoded, end = type(message).decoder(version)(memoryview(data), 0)
    assert end == len(data)
    return decoded


def test_a_fetch_is_that_of_a_follower() -> None:
    """Article 004, buildFetch: replica id, wait, least and most bytes; what changed."""
    endpoint = LeaderEndpoint(SETTINGS, lambda: 99)
    message, version = endpoint.encode(FETCH)
    sent = over_the_wire(message, version)
    assert version == 17
    assert (sent.replica_state.replica_id, sent.replica_state.replica_epoch) == (7, 99)
    assert (sent.max_wait_ms, sent.min_bytes, sent.max_bytes) == (11, 12, 13)
    assert (sent.session_id, sent.session_epoch) == (33, 2)
    assert [
        (topic.topic_id, [partition.partition for partition in topic.partitions])
        for topic in sent.topics
    ] == [(T, [0, 1]), (U, [0])]
    requested = sent.topics[0].partitions[0]
    assert (requested.fetch_offset, requested.log_start_offset, requested.partition_max_bytes) == (
        100,
        10,
        1000,
    )
    assert (requested.current_leader_epoch, requested.last_fetched_epoch) == (5, 4)
    forgotten = [(topic.topic_id, topic.partitions) for topic in sent.forgotten_topics_data]
    assert forgotten == [(U, [9]), (OLD, [0])]


def test_before_topic_ids_topics_go_by_name() -> None:
    message, version = LeaderEndpoint(SETTINGS, fetch_version=12).encode(FETCH)
    sent = over_the_wire(message, version)
    assert version == 12
    assert sent.replica_id == 7
    assert [(topic.topic, len(topic.partitions)) for topic in sent.topics] == [("t", 2), ("u", 1)]
    # A topic that was made anew has the name of the one before, which must stay.
    forgotten = [(topic.topic, topic.partitions) for topic in sent.forgotten_topics_data]
    assert forgotten == [("u", [9])]


def test_epochs_and_offsets_are_requested_as_a_replica() -> None:
    endpoint = LeaderEndpoint(SETTINGS)
    message, version = endpoint.encode(
        EpochsPlan({T0: RequestedEpoch(5, 4), T1: RequestedEpoch(5, 3)})
    )
    sent = over_the_wire(message, version)
    assert sent.replica_id == 7
    assert [
        (each.partition, each.current_leader_epoch, each.leader_epoch)
        for each in sent.topics[0].partitions
    ] == [(0, 5, 4), (1, 5, 3)]
    message, version = endpoint.encode(OffsetsPlan(EARLIEST_TIMESTAMP, {U0: 6}))
    sent = over_the_wire(message, version)
    assert sent.replica_id == 7
    (requested,) = sent.topics[0].partitions
    assert (sent.topics[0].name, requested.partition_index) == ("u", 0)
    assert (requested.current_leader_epoch, requested.timestamp) == (6, -2)


@pytest.mark.parametrize("version", [12, 17])
def test_an_answers_records_are_views_of_its_frame(version: int) -> None:
    make = messages.FetchResponse
    good = make.PartitionData(
        partition_index=1, high_watermark=8, log_start_offset=2, records=b"records"
    )
    parted = make.PartitionData(partition_index=0, high_watermark=8, records=None)
    parted.diverging_epoch = make.EpochEndOffset(epoch=3, end_offset=77)
    response = make(
        session_id=33,
        throttle_time_ms=4,
        responses=[
            make.FetchableTopicResponse(topic="t", topic_id=T, partitions=[good, parted]),
            make.FetchableTopicResponse(
                topic="u",
                topic_id=U,
                partitions=[make.PartitionData(partition_index=0, error_code=9999)],
            ),
        ],
    )
    answer = decode_fetch(FETCH, over_the_wire(response, version))
    assert (answer.error, answer.session_id, answer.throttle_time_ms) == (ErrorCode.NONE, 33, 4)
    assert answer.unknown_topic_ids == frozenset()
    assert set(answer.partitions) == {T0, T1, U0}
    records = answer.partitions[T1].records
    assert isinstance(records, memoryview)
    assert records.obj is not None
    assert len(memoryview(records.obj)) > len(records)
    assert answer.partitions[T1] == FetchedPartition(ErrorCode.NONE, 8, 2, b"records", None)
    assert answer.partitions[T0].diverging_epoch == (3, 77)
    assert answer.partitions[T0].records == b""
    assert answer.partitions[U0].error is ErrorCode.UNKNOWN_SERVER_ERROR


def test_topic_ids_that_were_not_requested_are_reported() -> None:
    make = messages.FetchResponse
    topic = make.FetchableTopicResponse(topic_id=OLD, partitions=[])
    answer = decode_fetch(FETCH, over_the_wire(make(responses=[topic]), 17))
    assert answer.unknown_topic_ids == {OLD}


def test_epochs_and_offsets_are_read() -> None:
    epochs = messages.OffsetForLeaderEpochResponse
    end = epochs.EpochEndOffset(error_code=0, partition=1, leader_epoch=4, end_offset=50)
    topic = epochs.OffsetForLeaderTopicResult(topic="t", partitions=[end])
    assert decode_epochs(over_the_wire(epochs(topics=[topic]), 4)) == {
        T1: EpochEnd(ErrorCode.NONE, 4, 50)
    }
    offsets = messages.ListOffsetsResponse
    found = offsets.ListOffsetsPartitionResponse(partition_index=0, error_code=74, offset=-1)
    listed = offsets.ListOffsetsTopicResponse(name="u", partitions=[found])
    assert decode_offsets(over_the_wire(offsets(topics=[listed]), 9)) == {
        U0: ListedOffset(ErrorCode.FENCED_LEADER_EPOCH, -1)
    }
