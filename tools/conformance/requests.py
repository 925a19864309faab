"""Requests that scenarios of several families begin with."""

from __future__ import annotations

from typing import Any

from ...common.sentinels import NO_EPOCH
from ...protocol.messages import ListOffsetsRequest, MetadataRequest, ProduceRequest
from ...protocol.records.builder import RecordToBuild, build_batch

TIMESTAMP_MS = 1_700_000_000_000
"""Of the first record of a batch; each further one is a second later. Far from now, so that
nothing hangs on when a scenario is played."""

SECOND_MS = 1000
TIMEOUT_MS = 30_000
EARLIEST, LATEST = -2, -1
BY_ID_FROM = 13
"""The version from which on Produce and Fetch name topics by their ids."""


def batch(*values: bytes, first_ms: int = TIMESTAMP_MS, **settings: Any) -> bytes:
    """A batch of records with these values, and keys that number them.

    Args:
        values: one record each.
        first_ms: the timestamp of the first record.
        settings: what else `build_batch` takes.
    """
    records: list[RecordToBuild] = [
        (b"key-%d" % number, value, first_ms + number * SECOND_MS, [])
        for number, value in enumerate(values)
    ]
    return bytes(build_batch(records, **settings))


def numbered(count: int) -> list[bytes]:
    """So many values."""
    return [b"value-%d" % number for number in range(count)]


def production(
    topic: str | bytes,
    records: dict[int, bytes | None],
    *,
    acks: int = -1,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """A request to append to partitions of one topic.

    Args:
        topic: its name; or its id, for version 13 on.
        records: by partition.
        acks: how many replicas are waited for.
        transactional_id: of a transactional producer.
    """
    partition_data = [
        ProduceRequest.PartitionProduceData(index=index, records=held)
        for index, held in records.items()
    ]
    data = ProduceRequest.TopicProduceData(partition_data=partition_data)
    if isinstance(topic, str):
        data.name = topic
    else:
        data.topic_id = topic
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=TIMEOUT_MS,
        topic_data=[data],
    )


def offset_listing(
    topic: str,
    times: dict[int, int],
    *,
    isolation_level: int = 0,
    leader_epoch: int = NO_EPOCH,
    replica_id: int = -1,
) -> ListOffsetsRequest:
    """A request for the offsets of times, or of `EARLIEST` and its like, by partition."""
    return ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation_level,
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsRequest.ListOffsetsPartition(
                        partition_index=index, timestamp=at, current_leader_epoch=leader_epoch
                    )
                    for index, at in times.items()
                ],
            )
        ],
        timeout_ms=TIMEOUT_MS,
    )


def metadata_of(*names: str, create: bool = False) -> MetadataRequest:
    """A request for what is known of topics."""
    topic = MetadataRequest.MetadataRequestTopic
    return MetadataRequest(
        topics=[topic(name=name) for name in names], allow_auto_topic_creation=create
    )
