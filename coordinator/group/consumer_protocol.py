"""What consumers on the classic protocol tell each other within JoinGroup and SyncGroup.

A consumer's subscription and its assignment are bytes of clients' own, with a version of their own
before them. The broker reads the topics of a subscription, and reads and writes all of it where
such consumers are members of a consumer group. Source: Kafka's `ConsumerProtocol`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

from ...protocol import internal as schemas  # a schema is imported at its first use
from ...protocol.errors import ProtocolError
from ...protocol.internal import find_message
from ...protocol.internal.versioned import decode_versioned, encode_versioned

CONSUMER_PROTOCOL_TYPE = "consumer"


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The union of the topics in some members' subscriptions; None if one is unreadable."""
    topics: set[str] = set()
    for subscription in subscriptions:
        names = _topics_of(subscription)
        if names is None:
            return None
        topics.update(names)
    return frozenset(topics)


def _topics_of(subscription: bytes) -> list[str] | None:
    try:
        version, count = struct.unpack_from(">hi", subscription)
        position = 6
        # Each name takes two bytes at least, so a count beyond that is a lie.
        if version < 0 or not 0 <= count <= (len(subscription) - position) // 2:
            return None
        names: list[str] = []
        for _ in range(count):
            (size,) = struct.unpack_from(">h", subscription, position)
            end = position + 2 + size
            if size < 0 or end > len(subscription):
                return None
            names.append(subscription[position + 2 : end].decode())
            position = end
    except (struct.error, UnicodeDecodeError):
        return None
    return names


TopicPartitions = Mapping[str, Set[int]]
"""Partitions by topic."""


class CustomAssignorError(Exception):
    """An assignment has user data, which only the assignor that wrote it understands."""


class Subscription(NamedTuple):
    """What a consumer says of itself.

    Attributes:
        version: that it was written in; its assignment is to be written in the same.
        owned: what it has not given up; empty where it gives everything up before it joins.
    """

    version: int
    topics: frozenset[str]
    owned: TopicPartitions
    rack_id: str | None


def read_subscription(metadata: bytes) -> Subscription:
    """A consumer's metadata for one of its assignors; all of them have the same subscription.

    Raises:
        ProtocolError: it is no such thing.
    """
    message, version = decode_versioned(
        find_message("ConsumerProtocolSubscription"), metadata, newer_as_newest=True
    )
    owned = {entry.topic: frozenset(entry.partitions) for entry in message.owned_partitions or ()}
    return Subscription(version, frozenset(message.topics), owned, message.rack_id or None)


def read_assignment(assignment: bytes) -> TopicPartitions:
    """What a consumer was assigned by the leader of its group; no bytes are nothing.

    Raises:
        ProtocolError: it is no such thing.
        CustomAssignorError: it has user data.
    """
    if not assignment:
        return {}
    message, _ = decode_versioned(
        find_message("ConsumerProtocolAssignment"), assignment, newer_as_newest=True
    )
    if message.user_data:
        raise CustomAssignorError
    return {entry.topic: frozenset(entry.partitions) for entry in message.assigned_partitions}


def write_assignment(partitions: TopicPartitions, metadata: bytes) -> bytes:
    """An assignment for the consumer that wrote this metadata.

    Raises:
        ProtocolError: the metadata has no version before it.
    """
    value = schemas.ConsumerProtocolAssignment(
        assigned_partitions=[
            schemas.ConsumerProtocolAssignment.TopicPartition(
                topic=topic, partitions=sorted(numbers)
            )
            for topic, numbers in sorted(partitions.items())
        ]
    )
    if len(metadata) < 2:
        raise ProtocolError("a subscription without a version")
    version = int.from_bytes(metadata[:2], "big", signed=True)
    return encode_versioned(value, min(max(version, 0), 3))
