"""How the controller tells brokers what it decided: Kafka's three requests to a broker.

The controller knows only this Protocol. Within one broker the requests are calls; between
brokers they will be LeaderAndIsr, StopReplica and UpdateMetadata on the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import trio

from ...protocol.errors import ErrorCode
from ...replication.partition_state import PartitionState
from ...storage.topic_partition import TopicPartition
from ..metadata_cache import MetadataCache, MetadataUpdate

PARTITIONS_PER_STEP = 10
"""Making or deleting a log takes up to some milliseconds: between steps, others may run."""


class LeaderAndIsr(NamedTuple):
    """Become leader or follower of these partitions."""

    controller_id: int
    controller_epoch: int
    partition_states: Sequence[PartitionState]


class StopReplica(NamedTuple):
    """Stop being a replica of these partitions; True beside one deletes its log."""

    controller_id: int
    controller_epoch: int
    partitions: Sequence[tuple[TopicPartition, bool]]


class ControllerChannel(Protocol):
    """Sends the controller's requests to one broker at a time and awaits the answers."""

    async def send_leader_and_isr(
        self, broker_id: int, request: LeaderAndIsr
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Returns the outcome for each partition."""

    async def send_stop_replica(
        self, broker_id: int, request: StopReplica
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Returns the outcome for each partition."""

    async def send_update_metadata(self, broker_id: int, request: MetadataUpdate) -> None:
        """Replaces what the broker answers to Metadata."""

    async def send_topic_config(
        self, broker_id: int, topic: str, overrides: Mapping[str, str]
    ) -> None:
        """Puts a topic's new overrides in force.

        Kafka has no such request: its brokers watch the store's /config/changes.
        """


class Replicas(Protocol):
    """The side of ReplicaManager that the controller speaks to."""

    def become_leader_or_follower(
        self, controller_id: int, controller_epoch: int, states: Sequence[PartitionState]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Lead or follow; the outcome for each partition."""

    def stop_replicas(
        self, partitions: Sequence[tuple[TopicPartition, bool]]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Stop, and delete where True; the outcome for each partition."""

    def update_topic_config(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Give the logs of a topic its new settings."""


class LocalChannel:
    """The controller and the only broker in one process: requests are calls.

    Args:
        broker_id: the only broker that can be spoken to.
        replica_manager, metadata_cache: its.
        on_deleted: told the partitions that an update of the metadata took away.
    """

    def __init__(
        self,
        broker_id: int,
        replica_manager: Replicas,
        metadata_cache: MetadataCache,
        on_deleted: Callable[[Sequence[TopicPartition]], None],
    ) -> None:
        self._broker_id = broker_id
        self._replica_manager = replica_manager
        self._metadata_cache = metadata_cache
        self._on_deleted = on_deleted

    async def send_leader_and_isr(
        self, broker_id: int, request: LeaderAndIsr
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Let the replica manager lead or follow, some partitions at a time."""
        self._require(broker_id)
        outcome: dict[TopicPartition, ErrorCode] = {}
        states = request.partition_states
        for start in range(0, len(states), PARTITIONS_PER_STEP):
            if start:
                await trio.lowlevel.checkpoint()
            outcome.update(
                self._replica_manager.become_leader_or_follower(
                    request.controller_id,
                    request.controller_epoch,
                    states[start : start + PARTITIONS_PER_STEP],
                )
            )
        return outcome

    async def send_stop_replica(
        self, broker_id: int, request: StopReplica
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Let the replica manager stop, some partitions at a time."""
        self._require(broker_id)
        outcome: dict[TopicPartition, ErrorCode] = {}
        partitions = request.partitions
        for start in range(0, len(partitions), PARTITIONS_PER_STEP):
            if start:
                await trio.lowlevel.checkpoint()
            step = partitions[start : start + PARTITIONS_PER_STEP]
            outcome.update(self._replica_manager.stop_replicas(step))
        return outcome

    async def send_update_metadata(self, broker_id: int, request: MetadataUpdate) -> None:
        """Update this broker's cache."""
        self._require(broker_id)
        deleted = self._metadata_cache.update_metadata(request)
        if deleted:
            self._on_deleted(deleted)

    async def send_topic_config(
        self, broker_id: int, topic: str, overrides: Mapping[str, str]
    ) -> None:
        """Put the overrides in force in the logs and in the cache."""
        self._require(broker_id)
        self._replica_manager.update_topic_config(topic, overrides)
        self._metadata_cache.update_topic_config(topic, overrides)

    def _require(self, broker_id: int) -> None:
        assert broker_id == self._broker_id, f"broker {broker_id} is not this one"
