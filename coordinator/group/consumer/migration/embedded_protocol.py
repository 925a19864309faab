"""What consumers on the classic protocol tell each other, and a consumer group tells them.

Within JoinGroup and SyncGroup a consumer's subscription and its assignment are bytes of
clients' own, with a version of their own before them. A broker reads and writes them where such
consumers are members of a consumer group. Source: Kafka's `ConsumerProtocol`.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple

from .....protocol import internal as schemas  # a schema is imported at its first use
from .....protocol.errors import ProtocolError
from .....protocol.internal import find_message
from .....protocol.internal.versioned import decode_versioned, encode_versioned

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
