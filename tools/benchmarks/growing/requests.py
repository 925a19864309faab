"""Requests as bytes, in versions whose answers have their error code at a fixed place."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ....bench.loads.wire import frame_of
from ....protocol import messages
from ....protocol.records import build_batch
from ..coordinator.group_rebalance import MemberConnection, check
from .loading import EncodedRequests

PRODUCE_VERSION = 3
FETCH_VERSION = 4
SESSION_FETCH_VERSION = 7
OFFSET_COMMIT_VERSION = 5
HEARTBEAT_VERSION = 3
CONSUMER_HEARTBEAT_VERSION = 1
METADATA_VERSION = 7
CREATED_AT_ONCE_MAX = 1000
"""Partitions in one CreateTopics: so many are made before the broker answers."""

CORRELATION = 4
THROTTLE = 4
COUNT = 4
TEXT = 2
TAGS = 1

SESSION_ERROR_AT = CORRELATION + THROTTLE
HEARTBEAT_ERROR_AT = CORRELATION + THROTTLE
CONSUMER_HEARTBEAT_ERROR_AT = CORRELATION + TAGS + THROTTLE


def records(count: int, value_bytes: int = 100, timestamp_ms: int | None = None) -> bytearray:
    """A batch of equal records."""
    now_ms = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
    return build_batch([(None, b"v" * value_bytes, now_ms, [])] * count)


def produce(topic: str, partitions: Sequence[int], batch: bytearray) -> bytes:
    """Produce with acks=1: a batch for each of the partitions named."""
    data = messages.ProduceRequest.PartitionProduceData
    request = messages.ProduceRequest(
        acks=1,
        timeout_ms=30_000,
        topic_data=[
            messages.ProduceRequest.TopicProduceData(
                name=topic,
                partition_data=[data(index=each, records=bytes(batch)) for each in partitions],
            )
        ],
    )
    return frame_of(request, PRODUCE_VERSION)


def produces(topic: str, partitions: Sequence[int] = (0,), count: int = 1) -> EncodedRequests:
    """One request for each of the partitions, of so many records of 100 bytes."""
    batch = records(count)
    error_at = CORRELATION + COUNT + TEXT + len(topic) + COUNT + 4
    return EncodedRequests([produce(topic, [each], batch) for each in partitions], error_at)


def fetches(topic: str, offsets: Sequence[int], bytes_max: int) -> EncodedRequests:
    """A Fetch of partition 0 from each of the offsets, that waits for nothing."""
    partition = messages.FetchRequest.FetchPartition
    frames = [
        frame_of(
            messages.FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=bytes_max,
                topics=[
                    messages.FetchRequest.FetchTopic(
                        topic=topic,
                        partitions=[
                            partition(partition=0, fetch_offset=each, partition_max_bytes=bytes_max)
                        ],
                    )
                ],
            ),
            FETCH_VERSION,
        )
        for each in offsets
    ]
    return EncodedRequests(frames, CORRELATION + THROTTLE + COUNT + TEXT + len(topic) + COUNT + 4)


def session_fetch(topic: str, partitions: Sequence[int], session_id: int, epoch: int) -> bytes:
    """A Fetch of a session that waits for nothing, and names these partitions."""
    partition = messages.FetchRequest.FetchPartition
    requested = [
        partition(partition=each, fetch_offset=0, partition_max_bytes=1 << 20)
        for each in partitions
    ]
    topics = (
        [messages.FetchRequest.FetchTopic(topic=topic, partitions=requested)] if requested else []
    )
    request = messages.FetchRequest(
        max_wait_ms=0, min_bytes=0, session_id=session_id, session_epoch=epoch, topics=topics
    )
    return frame_of(request, SESSION_FETCH_VERSION)


def metadata(topic: str) -> EncodedRequests:
    """Metadata of one topic; the error looked at is that of its first broker's place."""
    request = messages.MetadataRequest(
        topics=[messages.MetadataRequest.MetadataRequestTopic(name=topic)],
        allow_auto_topic_creation=False,
    )
    # Correlation id, throttle time and the high half of the number of brokers, which is zero.
    return EncodedRequests([frame_of(request, METADATA_VERSION)], CORRELATION + THROTTLE)


def commits(groups: Sequence[str], topic: str) -> EncodedRequests:
    """An offset for partition 0 by each group, from outside its membership."""
    of_topic = messages.OffsetCommitRequest.OffsetCommitRequestTopic
    partition = messages.OffsetCommitRequest.OffsetCommitRequestPartition
    frames = [
        frame_of(
            messages.OffsetCommitRequest(
                group_id=group,
                generation_id_or_member_epoch=-1,
                member_id="",
                topics=[
                    of_topic(
                        name=topic,
                        partitions=[
                            partition(
                                partition_index=0, committed_offset=7, committed_metadata=None
                            )
                        ],
                    )
                ],
            ),
            OFFSET_COMMIT_VERSION,
        )
        for group in groups
    ]
    return EncodedRequests(frames, CORRELATION + THROTTLE + COUNT + TEXT + len(topic) + COUNT + 4)


def create_topics(
    member: MemberConnection,
    names: Sequence[str],
    partitions: int,
    settings: dict[str, str] | None = None,
) -> None:
    """Make topics with one replica, some at a time."""
    config = messages.CreateTopicsRequest.CreatableTopicConfig
    configs = [config(name=name, value=value) for name, value in (settings or {}).items()]
    step = max(1, CREATED_AT_ONCE_MAX // partitions)
    for start in range(0, len(names), step):
        topics = [
            messages.CreateTopicsRequest.CreatableTopic(
                name=name, num_partitions=partitions, replication_factor=1, configs=configs
            )
            for name in names[start : start + step]
        ]
        member.send(messages.CreateTopicsRequest(topics=topics, timeout_ms=60_000))
        answer = member.receive()
        check(not any(each.error_code for each in answer.topics), answer)


def find_coordinator(member: MemberConnection, group: str) -> None:
    """Have the topic of offsets made, and wait until its coordinator is there."""
    deadline = time.monotonic() + 60
    while True:
        member.send(messages.FindCoordinatorRequest(key_type=0, coordinator_keys=[group]))
        answer = member.receive()
        if not answer.coordinators[0].error_code:
            return
        check(time.monotonic() < deadline, answer)
        time.sleep(0.05)
