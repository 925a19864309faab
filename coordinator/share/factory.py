"""Puts a broker's share coordinator together."""

from __future__ import annotations

import logging

from ...common.errors import KafkaError
from ...common.internal_topics import SHARE_GROUP_STATE
from ...common.topic_partition import TopicPartition
from ...metadata.metadata_cache import MetadataCache
from ...replication.replica_manager import ReplicaManager
from ...runtime.clock import Clock
from ...runtime.timers import Timers
from ...storage.errors import StorageError
from ..replicated_log import ReplicatedLog
from ..runtime import ConfigurationValues, CoordinatorRuntime
from .coordinator import ShareCoordinator
from .settings import ShareCoordinatorSettings

logger = logging.getLogger(__name__)


def create_share_coordinator(
    config: ConfigurationValues,
    replica_manager: ReplicaManager,
    metadata_cache: MetadataCache,
    clock: Clock,
    timers: Timers,
) -> ShareCoordinator:
    """The share coordinator of one broker.

    It is to be made before the first partition of its topic comes to be led here, notified of each
    change of their leadership, and `start`ed once.
    """
    settings = ShareCoordinatorSettings.from_config(config)
    log = ReplicatedLog(
        SHARE_GROUP_STATE, replica_manager, clock, settings.write_timeout_ms, settings.compression
    )

    def topic_partitions() -> int:
        return metadata_cache.partition_count(SHARE_GROUP_STATE) or settings.topic_partitions

    def partition_count(topic_id: bytes) -> int | None:
        name = metadata_cache.topic_name(topic_id)
        return None if name is None else metadata_cache.partition_count(name)

    def prune(number: int, offset: int) -> None:
        topic_partition = TopicPartition(SHARE_GROUP_STATE, number)
        try:
            partition = replica_manager.partition_or_error(topic_partition)
            partition.delete_records_before(min(offset, partition.high_watermark))
        except (KafkaError, StorageError) as failure:
            logger.warning("could not prune %s: %s", topic_partition, failure)

    return ShareCoordinator(
        CoordinatorRuntime(clock, timers, log), settings, topic_partitions, partition_count, prune
    )
