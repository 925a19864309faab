"""All moves of partitions between this broker's log directories (KIP-113).

Kafka's ReplicaManager.alterReplicaLogDirs and ReplicaAlterLogDirsManager. A move begins with
a client's request, or with a copy that the start has found, and ends when the copy takes the
log's place, the request is cancelled, or the replica or a disk goes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping

from ...common.errors import ErrorCode, KafkaError
from ...common.topic_partition import TopicPartition
from ...storage.errors import StorageError
from ...storage.log.log_config import LogConfig
from ...storage.log_manager.log_directory import LogDirectory
from ...storage.log_manager.log_manager import LogManager, can_move
from ..fetcher.settings import FetcherSettings
from ..partition.partition import Partition
from ..partition.partition_table import PartitionTable
from ..quota.replication_quota import UNBOUNDED_QUOTA, ReplicationQuota
from .future_replica import FutureReplica

logger = logging.getLogger(__name__)


class MoveQuota(ReplicationQuota):
    """The bound on the bytes a second of all moves: no topic names those it holds for.

    Args:
        monotonic_ms: the time.
        windows_max: `alter.log.dirs.replication.quota.window.num`.
        window_ms: `alter.log.dirs.replication.quota.window.size.seconds`.
    """

    def __init__(
        self, monotonic_ms: Callable[[], int], windows_max: int = 11, window_ms: int = 1000
    ) -> None:
        super().__init__("", -1, monotonic_ms, windows_max, window_ms)

    def is_throttled(self, topic_partition: TopicPartition) -> bool:
        """Every one is."""
        return True


class FutureReplicas:
    """The moves of a broker.

    Args:
        broker_id: this broker.
        log_manager: where the logs and their copies are.
        online: the partitions hosted here.

    Attributes:
        settings: what copying obeys.
        quota: bounds its bytes.
        on_work: called when there is something to copy; nobody copies without it.
    """

    def __init__(self, broker_id: int, log_manager: LogManager, online: PartitionTable) -> None:
        self.settings = FetcherSettings(broker_id)
        self.quota: ReplicationQuota = UNBOUNDED_QUOTA
        self.on_work: Callable[[], None] = lambda: None
        self._log_manager = log_manager
        self._online = online
        self._moves: dict[TopicPartition, FutureReplica] = {}

    def __iter__(self) -> Iterator[FutureReplica]:
        """All moves, the first that was requested first."""
        return iter(list(self._moves.values()))

    def __len__(self) -> int:
        return len(self._moves)

    def get(self, topic_partition: TopicPartition) -> FutureReplica | None:
        """The move of a partition; None if it stays where it is."""
        return self._moves.get(topic_partition)

    @property
    def failed_count(self) -> int:
        """How many moves get on no more (FailedPartitionsCount of ReplicaAlterLogDirs)."""
        return sum(move.has_failed for move in self._moves.values())

    @property
    def max_lag(self) -> int:
        """The most offsets that a copy is behind (MaxLag of ReplicaAlterLogDirs)."""
        return max((move.lag for move in self._moves.values()), default=0)

    # -- requests ----------------------------------------------------------------------

    def alter(
        self,
        targets: Mapping[TopicPartition, str],
        is_known: Callable[[TopicPartition], bool] = lambda _: False,
    ) -> dict[TopicPartition, ErrorCode]:
        """Have partitions moved to log directories, or stay in theirs; the error of each.

        What is not here yet gets the error REPLICA_NOT_AVAILABLE, or
        UNKNOWN_TOPIC_OR_PARTITION, and is made in that directory if it comes.

        Args:
            targets: partition to the path of a log directory.
            is_known: whether the cluster has a partition.
        """
        errors: dict[TopicPartition, ErrorCode] = {}
        for topic_partition, path in targets.items():
            errors[topic_partition] = ErrorCode.NONE
            try:
                self._alter(topic_partition, path, is_known)
            except KafkaError as refusal:
                logger.warning("%s cannot be moved to %s: %s", topic_partition, path, refusal)
                errors[topic_partition] = refusal.code
        return errors

    def _alter(
        self, topic_partition: TopicPartition, path: str, is_known: Callable[[TopicPartition], bool]
    ) -> None:
        if not can_move(topic_partition):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "the topic's name is too long")
        directory = self._directory(path)
        if topic_partition in self._online.offline:
            raise StorageError("its log is offline")
        if self._log_manager.future_directory_of(topic_partition) not in (None, directory):
            self.cancel(topic_partition)
        partition = self._online.get(topic_partition)
        if partition is None:
            if not self._log_manager.has_log(topic_partition):
                self._log_manager.prefer_directory(topic_partition, directory)
            raise KafkaError(
                ErrorCode.REPLICA_NOT_AVAILABLE
                if is_known(topic_partition)
                else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
        if self._log_manager.directory_of(topic_partition) is directory:
            return
        move = self._moves.get(topic_partition)
        if move is not None and self.is_current(move):
            if move.has_failed:
                move.begin()
        else:
            self._begin(partition, directory)
        self.on_work()

    def _directory(self, path: str) -> LogDirectory:
        for directory in self._log_manager.directories:
            if directory.path == path:
                if not directory.is_online:
                    raise StorageError(f"the log directory {path} is offline")
                return directory
        raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is none of this broker's log.dirs")

    def _begin(self, partition: Partition, directory: LogDirectory) -> None:
        log = self._log_manager.future_logs.get(partition.topic_partition)
        if log is None:
            current = partition.log
            log = self._log_manager.create_future_log(
                partition.topic_partition, directory, current.topic_id, current.config
            )
        logger.info("%s moves to %s", partition.topic_partition, directory.path)
        self._moves[partition.topic_partition] = FutureReplica(
            partition, log, self.settings, self.quota
        )

    def cancel(self, topic_partition: TopicPartition) -> None:
        """Cancel a move: the copy is deleted.

        Raises:
            StorageError: the disk fails.
        """
        if self._moves.pop(topic_partition, None) is not None:
            logger.info("%s moves no more", topic_partition)
        self._log_manager.delete_future_log(topic_partition)

    # -- what else becomes of the partition ---------------------------------------------

    def resume(self, partition: Partition) -> None:
        """A replica has come up: go on with its move if the start has found a copy."""
        topic_partition = partition.topic_partition
        log = self._log_manager.future_logs.get(topic_partition)
        directory = self._log_manager.future_directory_of(topic_partition)
        if log is None or directory is None:
            return
        if log.topic_id != partition.log.topic_id:
            try:
                self.cancel(topic_partition)
            except StorageError as failure:
                logger.error("the copy of %s cannot be removed: %s", topic_partition, failure)
            return
        log.configure(partition.log.config)
        self._begin(partition, directory)
        self.on_work()

    def give_up(self, topic_partition: TopicPartition) -> None:
        """The replica is here no more; its copy goes with its log, or waits for it."""
        self._moves.pop(topic_partition, None)

    def drop_stale(self) -> None:
        """A directory has failed, and copies with it: forget their moves."""
        for move in self:
            if not self.is_current(move):
                del self._moves[move.topic_partition]

    def configure(self, topic_partition: TopicPartition, config: LogConfig) -> None:
        """Changed settings of a topic hold for the copy as well."""
        move = self._moves.get(topic_partition)
        if move is not None:
            move.copy.log.configure(config)

    # -- for those who copy -------------------------------------------------------------

    def is_current(self, move: FutureReplica) -> bool:
        """Whether a move is still to be made; another may have taken its place."""
        topic_partition = move.topic_partition
        return (
            self._moves.get(topic_partition) is move
            and self._log_manager.future_logs.get(topic_partition) is move.copy.log
            and self._online.get(topic_partition) is move.partition
        )

    def take_ready(self, now_ms: int) -> FutureReplica | None:
        """The next move that somebody should be at work on; None if none needs it now."""
        for move in self._moves.values():
            if not (move.is_driven or move.has_failed or move.ready_at_ms > now_ms):
                move.is_driven = True
                return move
        return None

    def next_ready_ms(self) -> int | None:
        """When the next of those that wait is ready, monotonic; None if none waits."""
        moments = [
            move.ready_at_ms
            for move in self._moves.values()
            if not move.is_driven and not move.has_failed
        ]
        return min(moments, default=None)

    def replace_current(self, move: FutureReplica) -> None:
        """The copy has all: it is the replica's log from now on.

        Raises:
            StorageError: the disk fails, and the move gets on no more.
        """
        partition, topic_partition = move.partition, move.topic_partition
        try:
            log = self._log_manager.replace_current_with_future_log(topic_partition)
        except StorageError:
            move.fetcher.failed.add(topic_partition)
            raise
        del self._moves[topic_partition]
        partition.use_log(log)
        logger.info("%s has moved to %s", topic_partition, log.directory)
