"""Puts a broker's group coordinator together."""

from __future__ import annotations

import random

from ...common.internal_topics import CONSUMER_OFFSETS
from ...metadata.metadata_cache import MetadataCache
from ...replication.replica_manager import ReplicaManager
from ...runtime.clock import Clock
from ...runtime.timers import Timers
from ..replicated_log import ReplicatedLog
from ..runtime import ConfigurationValues
from ..share.operations import Persister
from .consumer.settings import ConsumerGroupSettings, GroupConfigValues
from .consumer.topics import MetadataTopics
from .coordinator import GroupCoordinator
from .runtime import GroupRuntime
from .settings import GroupSettings
from .share.settings import ShareGroupSettings
from .streams.settings import StreamsGroupSettings


def create_group_coordinator(
    config: ConfigurationValues,
    replica_manager: ReplicaManager,
    metadata_cache: MetadataCache,
    clock: Clock,
    timers: Timers,
    rng: random.Random,
    group_configs: GroupConfigValues,
    persister: Persister | None = None,
) -> GroupCoordinator:
    """The group coordinator of one broker.

    It is to be made before the first partition of its topic comes to be led here, notified of each
    change of their leadership, and `start`ed once.

    Args:
        persister: brings share partitions to their coordinators.
    """
    settings = GroupSettings.from_config(config)
    log = ReplicatedLog(
        CONSUMER_OFFSETS,
        replica_manager,
        clock,
        settings.offsets_commit_timeout_ms,
        settings.offsets_topic_compression,
    )
    runtime = GroupRuntime(settings, clock, timers, rng, log)

    def topic_partitions() -> int:
        return metadata_cache.partition_count(CONSUMER_OFFSETS) or settings.offsets_topic_partitions

    topics = MetadataTopics(metadata_cache, clock.now_ms)
    coordinator = GroupCoordinator(
        runtime,
        topic_partitions,
        topics.image,
        ConsumerGroupSettings.from_config(config),
        group_configs,
        ShareGroupSettings.from_config(config),
        persister,
        StreamsGroupSettings.from_config(config),
    )
    topics.listeners.append(coordinator.topics_changed)
    return coordinator
