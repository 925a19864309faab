"""Asking for offsets: a partition's ends, or where a moment in time is (ListOffsets)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ...protocol import messages
from ..client import KafkaClient
from ..error_kinds import RETRIABLE_ERRORS, error_name, error_of
from ..errors import DisconnectedError, PeerProtocolError
from ..metadata.cluster import Node
from ..network.attempts import Attempts

TopicPartition = tuple[str, int]


class OffsetAndTimestamp(NamedTuple):
    """An offset, and the timestamp of its record.

    Attributes:
        offset: -1 where no record is that young.
        timestamp: -1 for a partition's ends.
        leader_epoch: of the record; -1 where it is not known.
    """

    offset: int
    timestamp: int
    leader_epoch: int


async def list_offsets(
    client: KafkaClient,
    timestamps: Mapping[TopicPartition, int],
    *,
    isolation_level: int = 0,
    timeout_ms: int | None = None,
) -> dict[TopicPartition, OffsetAndTimestamp]:
    """The first offset at or after a timestamp, of each partition.

    Args:
        client: is open.
        timestamps: milliseconds since the epoch, `EARLIEST_TIMESTAMP` or `LATEST_TIMESTAMP`,
            by topic and partition.
        isolation_level: 0: up to the high watermark; 1: up to the last stable offset.
        timeout_ms: for all of it; `max.block.ms` if left out.

    Raises:
        KafkaError: a broker refused, or still did at the end of the time.
        DisconnectedError: a leader could not be reached in time.
        ClientError: as `KafkaClient.wait_for_topic`.
    """
    if timeout_ms is None:
        timeout_ms = client.settings.max_block_ms
    attempts = client.attempts(timeout_ms)
    found: dict[TopicPartition, OffsetAndTimestamp] = {}
    topics = {topic for topic, _ in timestamps}
    for topic in topics:
        client.add_topic(topic)  # All before the first is waited for: one request is enough.
    for topic in topics:
        await client.wait_for_topic(topic, timeout_ms=attempts.remaining_ms)
    while len(found) < len(timestamps):
        requested = {key: at for key, at in timestamps.items() if key not in found}
        failure: Exception | None = None
        for leader, partitions in await _by_leader(client, requested, attempts):
            request = _request(partitions, isolation_level)
            try:
                response = await client.network.send(leader, request)
            except DisconnectedError as error:
                failure = error
            else:
                failure = _take(client, partitions, response, found) or failure
        if failure is not None:
            await attempts.pause(failure)
    return found


async def _by_leader(
    client: KafkaClient, requested: Mapping[TopicPartition, int], attempts: Attempts
) -> list[tuple[Node, dict[TopicPartition, int]]]:
    grouped: dict[Node, dict[TopicPartition, int]] = {}
    for (topic, partition), timestamp in requested.items():
        leader = await client.wait_for_leader(topic, partition, attempts.remaining_ms)
        grouped.setdefault(leader, {})[topic, partition] = timestamp
    return list(grouped.items())


def _request(
    partitions: Mapping[TopicPartition, int], isolation_level: int
) -> messages.ListOffsetsRequest:
    topics: dict[str, messages.ListOffsetsRequest.ListOffsetsTopic] = {}
    for (name, partition), timestamp in partitions.items():
        topic = topics.setdefault(name, messages.ListOffsetsRequest.ListOffsetsTopic(name=name))
        topic.partitions.append(
            messages.ListOffsetsRequest.ListOffsetsPartition(
                partition_index=partition, timestamp=timestamp
            )
        )
    return messages.ListOffsetsRequest(
        replica_id=-1, isolation_level=isolation_level, topics=list(topics.values())
    )


def _take(
    client: KafkaClient,
    requested: Mapping[TopicPartition, int],
    response: messages.ListOffsetsResponse,
    found: dict[TopicPartition, OffsetAndTimestamp],
) -> Exception | None:
    """Note what was answered; returns an error that may go away.

    Raises:
        KafkaError: one that will not.
    """
    retriable: Exception | None = None
    missing = set(requested)
    for topic in response.topics:
        for answer in topic.partitions:
            key = topic.name, answer.partition_index
            if key not in missing:
                continue  # It was not requested.
            missing.remove(key)
            if answer.error_code == ErrorCode.NONE:
                found[key] = OffsetAndTimestamp(
                    answer.offset, answer.timestamp, answer.leader_epoch
                )
                continue
            client.partition_error(*key, answer.error_code)
            error = KafkaError(
                error_of(answer.error_code),
                f"partition {key[1]} of topic {key[0]!r}: {error_name(answer.error_code)}",
            )
            if error.code not in RETRIABLE_ERRORS:
                raise error
            retriable = error
    if missing:
        return PeerProtocolError(f"ListOffsets was not answered for {sorted(missing)}")
    return retriable
