"""The partitions that a broker has replicas of, and the controller's orders on them (article 001).

Kafka's `allPartitions` and the LeaderAndIsr and StopReplica halves of its ReplicaManager.
Orders of an older controller or of an older leader epoch are refused.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ...common.partition_state import LeaderAndIsr, PartitionState
from ...common.sentinels import NO_LEADER, ZERO_UUID
from ...common.topic_partition import TopicPartition
from ...runtime.clock import Clock
from ...storage.errors import StorageError
from ...storage.log.log_config import LogConfig
from ...storage.log_manager.log_manager import LogManager
from ..alter_log_dirs.future_replicas import FutureReplicas
from ..fetcher.fetch_state import InitialFetchState, initial_fetch_offset
from ..peers import NoPeers, Peers
from ..quota.replication_quota import ReplicationQuotas
from ..topic_stats import TopicStatsTable
from .partition import Partition
from .partition_table import PartitionTable

logger = logging.getLogger(__name__)

SETTINGS_KEPT_MAX = 1000
"""Of so many different sets of overrides, what was made of them is remembered."""

LeadershipListener = Callable[[TopicPartition, bool, int], None]
"""Told a partition, whether it is now led here, and in which leader epoch."""


class StoppedReplica(NamedTuple):
    """A partition to give up.

    Attributes:
        leader_epoch: the one the controller knows; negative where it does not matter.
        delete: whether the log goes too.
    """

    topic_partition: TopicPartition
    leader_epoch: int = -1
    delete: bool = False


class ReplicaSettings(NamedTuple):
    """What replication needs to know of the broker's configuration."""

    broker_id: int
    log_config: Callable[[Mapping[str, str]], LogConfig]
    min_insync_replicas: Callable[[Mapping[str, str]], int]
    lag_ms_max: int = 30_000
    """`replica.lag.time.max.ms`."""
    quota_windows_max: int = 11
    """`replication.quota.window.num`."""
    quota_window_ms: int = 1000
    """`replication.quota.window.size.seconds`."""


class HostedPartitions:
    """Every partition of which this broker has a replica; to each of them it is the host.

    Args:
        settings: broker id, and how a topic's overrides become a log's configuration.
        log_manager: where the logs are.
        clock: the time.
        on_progress: called with a partition whose waiting operations may now complete.

    Attributes:
        online: the partitions themselves; it knows of those offline too.
        peers: the other brokers; none until there are some.
        quotas: bounds on the bytes that replication takes.
        future_replicas: those that are moving to another log directory.
        topic_stats: what goes in and out of each topic.
        leadership_listeners: told when a partition comes to be led here, or no longer.
    """

    def __init__(
        self,
        settings: ReplicaSettings,
        log_manager: LogManager,
        clock: Clock,
        on_progress: Callable[[TopicPartition], None],
    ) -> None:
        self.online = PartitionTable()
        self.peers: Peers = NoPeers()
        self.topic_stats = TopicStatsTable()
        self.quotas = ReplicationQuotas(
            settings.broker_id,
            clock.monotonic_ms,
            settings.quota_windows_max,
            settings.quota_window_ms,
        )
        self.online.leader_quota = self.quotas.leader
        self.future_replicas = FutureReplicas(settings.broker_id, log_manager, self.online)
        self.leadership_listeners: list[LeadershipListener] = []
        self._settings = settings
        self._log_manager = log_manager
        self._clock = clock
        self.progressed = on_progress
        self.lag_ms_max = settings.lag_ms_max
        self.monotonic_ms = clock.monotonic_ms
        self._controller_epoch = -1
        self._overrides: dict[str, Mapping[str, str]] = {}
        self._made: dict[frozenset[tuple[str, str]], tuple[LogConfig, int]] = {}

    # -- as the host of each of them ----------------------------------------------------

    def may_join_isr(self, broker_id: int) -> bool:
        """Whether a broker is alive, as far as is known here."""
        return self.peers.is_alive(broker_id)

    def isr_change_proposed(self, partition: Partition, change: LeaderAndIsr) -> None:
        """Have a change of the ISR written."""
        self.peers.submit_isr_change(partition, change)

    # -- finding one --------------------------------------------------------------------

    def leader_or_error(self, topic_partition: TopicPartition) -> Partition:
        """The partition, led here.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR or
                NOT_LEADER_OR_FOLLOWER.
        """
        partition = self.online.get(topic_partition)
        if partition is None:
            raise KafkaError(self.online.error_of_missing(topic_partition))
        if not partition.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return partition

    # -- the controller's orders --------------------------------------------------------

    def become_leader_or_follower(
        self, controller_id: int, controller_epoch: int, states: Sequence[PartitionState]
    ) -> dict[TopicPartition, ErrorCode]:
        """Take over what the controller decided (article 001); returns each partition's error.

        An order of an older controller is refused, and one that names no newer leader epoch
        than the one that is known.
        """
        if not self.admit_controller(controller_epoch):
            return {state.topic_partition: ErrorCode.STALE_CONTROLLER_EPOCH for state in states}
        errors: dict[TopicPartition, ErrorCode] = {}
        followed: dict[TopicPartition, InitialFetchState] = {}
        for state in states:
            errors[state.topic_partition] = self._apply_state(state, followed)
        if followed:
            self.peers.add_fetchers(followed)
        return errors

    def admit_controller(self, controller_epoch: int) -> bool:
        """Whether a controller is not older than the latest that was heard of."""
        if controller_epoch < self._controller_epoch:
            return False
        self._controller_epoch = controller_epoch
        return True

    def _apply_state(
        self, state: PartitionState, followed: dict[TopicPartition, InitialFetchState]
    ) -> ErrorCode:
        topic_partition = state.topic_partition
        if topic_partition in self.online.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        partition = self.online.get(topic_partition)
        if partition is None:
            try:
                partition = self._create_partition(state)
            except StorageError as failure:
                logger.error("%s cannot be hosted here: %s", topic_partition, failure.message)
                if self._log_manager.directories.has_trouble:
                    self.online.offline.add(topic_partition)
                return failure.code
            except KafkaError as failure:
                return failure.code
        elif state.topic_id not in (partition.topic_id, ZERO_UUID):
            return ErrorCode.INCONSISTENT_TOPIC_ID
        elif state.leader_epoch <= partition.leader_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        was_leader = partition.is_leader
        if not was_leader and partition.leader != NO_LEADER:
            self.peers.remove_fetchers((topic_partition,))
        try:
            if state.leader == self._settings.broker_id:
                partition.make_leader(state)
            elif partition.make_follower(state) and state.leader != NO_LEADER:
                followed[topic_partition] = InitialFetchState(
                    partition.topic_id,
                    partition.leader,
                    partition.leader_epoch,
                    initial_fetch_offset(partition),
                )
        except StorageError as failure:
            logger.error("%s cannot be led or followed: %s", topic_partition, failure.message)
            self.progressed(topic_partition)
            return failure.code
        if was_leader != partition.is_leader:
            for listener in self.leadership_listeners:
                listener(topic_partition, partition.is_leader, partition.leader_epoch)
        self.progressed(topic_partition)
        return ErrorCode.NONE

    def _create_partition(self, state: PartitionState) -> Partition:
        topic_partition = state.topic_partition
        self._overrides[state.topic] = state.config
        self.quotas.configure_topic(state.topic, state.config)
        config, min_insync_replicas = self._settings_of(state.config)
        log = self._log_manager.get_or_create_log(
            topic_partition, state.topic_id, config, is_new=state.is_new
        )
        if log.config is not config:
            log.configure(config)  # one loaded at the start has the defaults
        partition = Partition(
            topic_partition,
            state.topic_id,
            self._settings.broker_id,
            log,
            high_watermark=self._log_manager.high_watermarks.get(topic_partition, 0),
            min_insync_replicas=min_insync_replicas,
            host=self,
            topic_stats=self.topic_stats.join(state.topic),
        )
        self.online[topic_partition] = partition
        self.future_replicas.resume(partition)
        return partition

    def stop_replicas(
        self, controller_epoch: int, partitions: Sequence[StoppedReplica]
    ) -> dict[TopicPartition, ErrorCode]:
        """Give up partitions, and delete from disk those that say so.

        An order of an older controller, or one that names an older leader epoch, is refused.
        """
        if not self.admit_controller(controller_epoch):
            stale = ErrorCode.STALE_CONTROLLER_EPOCH
            return {stopped.topic_partition: stale for stopped in partitions}
        errors: dict[TopicPartition, ErrorCode] = {}
        for topic_partition, leader_epoch, delete in partitions:
            errors[topic_partition] = ErrorCode.NONE
            partition = self.online.get(topic_partition)
            if partition is not None:
                if 0 <= leader_epoch < partition.leader_epoch:
                    errors[topic_partition] = ErrorCode.FENCED_LEADER_EPOCH
                    continue
                del self.online[topic_partition]
                self._give_up(partition)
            if topic_partition in self.online.offline:
                errors[topic_partition] = ErrorCode.KAFKA_STORAGE_ERROR
            elif delete:  # also where a crash left nothing but the log
                try:
                    self._log_manager.delete_log(topic_partition)
                except StorageError:
                    errors[topic_partition] = ErrorCode.KAFKA_STORAGE_ERROR
        return errors

    def keep_only(self, controller_epoch: int, named: Collection[TopicPartition]) -> None:
        """Give up every partition but these: the controller knows of no others here.

        What is given up was deleted or moved while this broker was away; its files stay.
        """
        if not self.admit_controller(controller_epoch):
            return
        for topic_partition in [each for each in self.online if each not in named]:
            logger.warning("%s-%d is this broker's no more: its files stay", *topic_partition)
            self._give_up(self.online.pop(topic_partition))

    def take_offline(self, partitions: Iterable[TopicPartition]) -> None:
        """Give up partitions whose log directory has failed; they stay away until a restart."""
        for topic_partition in partitions:
            self.online.offline.add(topic_partition)
            partition = self.online.pop(topic_partition, None)
            if partition is not None:
                self._give_up(partition)
        self.future_replicas.drop_unwanted()

    def _give_up(self, partition: Partition) -> None:
        self.topic_stats.leave(partition.topic_partition.topic)
        was_leader, partition.is_leader = partition.is_leader, False
        partition.pending_isr_change = None
        self.peers.remove_fetchers((partition.topic_partition,))
        self.future_replicas.give_up(partition.topic_partition)
        if was_leader:
            for listener in self.leadership_listeners:
                listener(partition.topic_partition, False, partition.leader_epoch)
        self.progressed(partition.topic_partition)

    def update_topic_config(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Put a topic's changed settings in force on every partition hosted here."""
        self._overrides[topic] = overrides
        self.quotas.configure_topic(topic, overrides)
        self._configure(
            partition
            for partition in self.online.values()
            if partition.topic_partition.topic == topic
        )

    def reconfigure_logs(self) -> None:
        """The broker's defaults changed: look at every partition's settings anew."""
        self._made.clear()
        topics = {topic_partition.topic for topic_partition in self.online}
        self._overrides = {topic: self._overrides.get(topic, {}) for topic in topics}
        self._configure(self.online.values())

    def _configure(self, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            overrides = self._overrides.get(partition.topic_partition.topic, {})
            log_config, partition.min_insync_replicas = self._settings_of(overrides)
            partition.log.configure(log_config)
            self.future_replicas.configure(partition.topic_partition, log_config)

    def _settings_of(self, overrides: Mapping[str, str]) -> tuple[LogConfig, int]:
        """What a topic's partitions work with; topics with the same overrides share it."""
        key = frozenset(overrides.items())  # most topics have none
        made = self._made.get(key)
        if made is None:
            if len(self._made) >= SETTINGS_KEPT_MAX:
                self._made.clear()
            made = self._made[key] = (
                self._settings.log_config(overrides),
                self._settings.min_insync_replicas(overrides),
            )
        return made
