"""Puts a broker's transaction coordinator together."""

from __future__ import annotations

from collections.abc import Callable

from ...common.internal_topics import TRANSACTION_STATE
from ...metadata.metadata_cache import MetadataCache
from ...replication.replica_manager import ReplicaManager
from ...runtime.clock import Clock
from ...runtime.timers import Timers
from ..replicated_log import ReplicatedLog
from ..runtime import ConfigurationValues
from .coordinator import TransactionCoordinator
from .marker_sender import MarkerSender
from .runtime import TransactionRuntime
from .settings import TransactionSettings


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
    """The transaction coordinator of one broker.

    It is to be made before the first partition of its topic comes to be led here, notified of each
    change of their leadership, and `start`ed once.

    Args:
        markers: writes the ends of transactions into their partitions.
        take_producer_id: a producer id that nobody had; None if none is at hand just now.
        transaction_version: what the cluster has finalized of `transaction.version`.
    """
    settings = TransactionSettings.from_config(config)
    log = ReplicatedLog(TRANSACTION_STATE, replica_manager, clock, settings.append_timeout_ms)
    runtime = TransactionRuntime(
        settings, clock, timers, log, markers, take_producer_id, transaction_version
    )

    def topic_partitions() -> int:
        return metadata_cache.partition_count(TRANSACTION_STATE) or settings.topic_partitions

    return TransactionCoordinator(runtime, topic_partitions)
