"""The partitions that a broker has replicas of, and the controller's orders on them (article 001).

Kafka's `allPartitions` and the LeaderAndIsr and StopReplica halves of its ReplicaManager.
Orders of an older controller or of an older leader epoch are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ..protocol.errors import ErrorCode, KafkaError
from ..runtime.clock import Clock
from ..storage.errors import StorageError
from ..storage.log_config import LogConfig
from ..storage.log_manager import LogManager
from ..storage.topic_partition import TopicPartition
from .partition import Partition
from .partition_state import PartitionState

LeadershipListener = Callable[[TopicPartition, bool, int], None]
"""Told a partition, whether it is now led here, and in which leader epoch."""


class ReplicaSettings(NamedTuple):
    """What replication needs to know of the broker's configuration."""

    broker_id: int
    log_config: Callable[[Mapping[str, str]], LogConfig]
    min_insync_replicas: Callable[[Mapping[str, str]], int]


class HostedPartitions:
    """Every partition of which this broker has a replica.

    Args:
        settings: broker id, and how a topic's overrides become a log's configuration.
        log_manager: where the logs are.
        clock: the time.
        on_progress: called with a partition whose waiting operations may now complete.

    Attributes:
        online: the partitions themselves.
        leadership_listeners: told when a partition comes to be led here, or no longer.
    """

    def __init__(
        self,
        settings: ReplicaSettings,
        log_manager: LogManager,
        clock: Clock,
        on_progress: Callable[[TopicPartition], None],
    ) -> None:
        self.online: dict[TopicPartition, Partition] = {}
        self.leadership_listeners: list[LeadershipListener] = []
        self._settings = settings
        self._log_manager = log_manager
        self._clock = clock
        self._on_progress = on_progress
        self._controller_epoch = -1

    def leader_or_error(self, topic_partition: TopicPartition) -> Partition:
        """The partition, led here.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION or NOT_LEADER_OR_FOLLOWER.
        """
        partition = self.online.get(topic_partition)
        if partition is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if not partition.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return partition

    def become_leader_or_follower(
        self, controller_id: int, controller_epoch: int, states: Sequence[PartitionState]
    ) -> dict[TopicPartition, ErrorCode]:
        """Take over what the controller decided (article 001); returns each partition's error.

        An order of an older controller, or one that names an older leader epoch, is refused.
        """
        if controller_epoch < self._controller_epoch:
            return {state.topic_partition: ErrorCode.STALE_CONTROLLER_EPOCH for state in states}
        self._controller_epoch = controller_epoch
        errors: dict[TopicPartition, ErrorCode] = {}
        for state in states:
            errors[state.topic_partition] = self._apply_state(state)
        return errors

    def _apply_state(self, state: PartitionState) -> ErrorCode:
        topic_partition = state.topic_partition
        partition = self.online.get(topic_partition)
        if partition is None:
            try:
                partition = self._create_partition(state)
            except KafkaError as failure:
                return failure.code
        elif partition.topic_id != state.topic_id:
            return ErrorCode.INCONSISTENT_TOPIC_ID
        elif state.leader_epoch < partition.leader_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        was_leader = partition.is_leader
        if state.leader == self._settings.broker_id:
            became = partition.make_leader(state, self._clock.now_ms())
        else:
            partition.make_follower(state)
            became = False
        if became or was_leader != partition.is_leader:
            for listener in self.leadership_listeners:
                listener(topic_partition, partition.is_leader, partition.leader_epoch)
            self._on_progress(topic_partition)
        return ErrorCode.NONE

    def _create_partition(self, state: PartitionState) -> Partition:
        topic_partition = state.topic_partition
        config = self._settings.log_config(state.config)
        log = self._log_manager.get_or_create_log(topic_partition, state.topic_id, config)
        log.configure(config)  # one loaded at the start has the defaults
        partition = Partition(
            topic_partition,
            state.topic_id,
            self._settings.broker_id,
            log,
            high_watermark=self._log_manager.high_watermarks.get(topic_partition, 0),
            min_insync_replicas=self._settings.min_insync_replicas(state.config),
        )
        partition.on_high_watermark = self._on_progress
        self.online[topic_partition] = partition
        return partition

    def stop_replicas(
        self, partitions: Sequence[tuple[TopicPartition, bool]]
    ) -> dict[TopicPartition, ErrorCode]:
        """Give up partitions; those marked True are deleted from disk as well."""
        errors: dict[TopicPartition, ErrorCode] = {}
        for topic_partition, delete in partitions:
            errors[topic_partition] = ErrorCode.NONE
            partition = self.online.pop(topic_partition, None)
            if partition is not None:
                self._give_up(partition)
            if delete:  # also where a crash left nothing but the log
                try:
                    self._log_manager.delete_log(topic_partition)
                except StorageError:
                    errors[topic_partition] = ErrorCode.KAFKA_STORAGE_ERROR
        return errors

    def _give_up(self, partition: Partition) -> None:
        was_leader, partition.is_leader = partition.is_leader, False
        if was_leader:
            for listener in self.leadership_listeners:
                listener(partition.topic_partition, False, partition.leader_epoch)
        self._on_progress(partition.topic_partition)

    def update_topic_config(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Put a topic's changed settings in force on every partition hosted here."""
        log_config = self._settings.log_config(overrides)
        min_insync_replicas = self._settings.min_insync_replicas(overrides)
        for partition in self.online.values():
            if partition.topic_partition.topic == topic:
                partition.log.configure(log_config)
                partition.min_insync_replicas = min_insync_replicas
