"""Puts a broker's transaction coordinator together."""

from __future__ import annotations

from collections.abc import Callable

from ....replication.internal_topics import TRANSACTION_STATE
from ....replication.replica_manager import ReplicaManager
from ....runtime.clock import Clock
from ....runtime.timers import Timers
from ....storage.topic_partition import TopicPartition
from ...metadata_cache import MetadataCache
from ..replicated_log import ReplicatedLog
from .context import TransactionContext
from .coordinator import TransactionCoordinator
from .marker_sender import MarkerSender
from .settings import ConfigurationValues, TransactionSettings


def create_transaction_coordinator(
    config: ConfigurationValues,
    replica_manager: ReplicaManager,
    metadata_cache: MetadataCache,
    clock: Clock,
    timers: Timers,
    *,
    markers: MarkerSender,
    take_producer_id: Callable[[], int | None],
    transaction_version: Callable[[], int],
) -> TransactionCoordinator:
    """The transaction coordinator of one broker, listening to which partitions it leads.

    It is to be made before the first partition comes to be led here, and `start`ed once.

    Args:
        markers: writes the ends of transactions into their partitions.
        take_producer_id: a producer id that nobody had; None if none is at hand just now.
        transaction_version: what the cluster has finalized of `transaction.version`.
    """
    settings = TransactionSettings.from_config(config)
    log = ReplicatedLog(TRANSACTION_STATE, replica_manager, clock, settings.append_timeout_ms)
    context = TransactionContext(
        settings, clock, timers, log, markers, take_producer_id, transaction_version
    )

    def topic_partitions() -> int:
        return metadata_cache.partition_count(TRANSACTION_STATE) or settings.topic_partitions

    coordinator = TransactionCoordinator(context, topic_partitions)

    def leadership_changed(
        topic_partition: TopicPartition, is_leader: bool, leader_epoch: int
    ) -> None:
        if topic_partition.topic == TRANSACTION_STATE:
            coordinator.note_leadership(
                topic_partition.partition, leader_epoch, is_leader=is_leader
            )

    replica_manager.leadership_listeners.append(leadership_changed)
    return coordinator
