"""What a broker was seen to know: topics, groups, transactions, producers, at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ...common.topic_partition import TopicPartition

UNKNOWN = -1
DEAD = "Dead"
"""The state of a group that is not there."""


class InspectedPartition(NamedTuple):
    """A partition, as its leader sees it.

    Attributes:
        partition: its number.
        leader: the broker that leads it, -1 for none.
        isr: the brokers in sync, the leader among them.
        high_watermark: consumers read what lies before it.
        last_stable_offset: consumers of committed records read what lies before it.
        size: of its log, in bytes.
        is_leader: whether the broker that says all this leads it.
    """

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    log_start_offset: int = UNKNOWN
    high_watermark: int = UNKNOWN
    log_end_offset: int = UNKNOWN
    last_stable_offset: int = UNKNOWN
    size: int = UNKNOWN
    is_leader: bool = False


class InspectedTopic(NamedTuple):
    """A topic.

    Attributes:
        config: what was set for it.
        partitions: by their numbers.
    """

    name: str
    topic_id: str
    config: Mapping[str, str]
    partitions: tuple[InspectedPartition, ...]


class InspectedMember(NamedTuple):
    """A member of a group."""

    member_id: str
    client_id: str
    instance_id: str | None
    host: str
    partitions: tuple[TopicPartition, ...]


class InspectedGroup(NamedTuple):
    """A group.

    Attributes:
        kind: "classic", or "consumer" (KIP-848).
        state: as Kafka's tools print it, such as "Stable"; "Dead" where there is no such group.
        protocol: the assignor, once the group has chosen one.
        generation: of a classic group; the epoch of a consumer group.
        offsets: committed, by partition.
        ends: how far readers can go, of the partitions that have an offset.
    """

    name: str
    kind: str = "classic"
    state: str = DEAD
    protocol: str = ""
    generation: int = 0
    leader: str | None = None
    members: tuple[InspectedMember, ...] = ()
    offsets: Mapping[TopicPartition, int] = MappingProxyType({})
    ends: Mapping[TopicPartition, int] = MappingProxyType({})

    @property
    def lag(self) -> int:
        """How many offsets it is behind, over all partitions that it has committed."""
        return sum(self.lags.values())

    @property
    def lags(self) -> dict[TopicPartition, int]:
        """How many offsets it is behind, by partition."""
        return {tp: max(self.ends.get(tp, 0) - offset, 0) for tp, offset in self.offsets.items()}


class InspectedTransaction(NamedTuple):
    """A transactional id.

    Attributes:
        state: as Kafka's tools print it, such as "Ongoing".
        timeout: how long a transaction may be open, in seconds.
        started: when the open one began, in seconds since the epoch; None if none is open.
        partitions: that take part in it.
    """

    transactional_id: str
    state: str
    producer_id: int
    epoch: int
    timeout: float
    started: float | None
    partitions: tuple[TopicPartition, ...]


class InspectedProducer(NamedTuple):
    """A producer that a partition remembers, since it is idempotent.

    Attributes:
        last_timestamp: of its last batch, in milliseconds since the epoch.
        transaction_start: the first offset of its open transaction; None if none is open.
    """

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp: int
    transaction_start: int | None


class Snapshot(NamedTuple):
    """What `broker.restore` is given; the broker keeps it until it is closed.

    Attributes:
        name: the broker's for it.
    """

    name: str
