"""ReplicaManager: all partitions of this broker, and the two verbs on them (articles 001, 003).

`append_records` stages; `flush` writes every touched log once, publishes, and only then
completes what waited: appends, long polls, and what those set off in turn. Nothing is
completed inside an append (Kafka's action queue).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from ..common.errors import ErrorCode, KafkaError
from ..common.internal_topics import INTERNAL_TOPICS
from ..common.partition_state import PartitionState
from ..common.sentinels import NO_OFFSET
from ..common.topic_partition import TopicPartition
from ..runtime.clock import Clock
from ..runtime.timers import Timers
from ..storage.errors import RecordValidationError, StorageError
from ..storage.log.append_origin import AppendOrigin
from ..storage.log_manager.log_manager import FailedDirectory, LogManager
from ..storage.producer_state.verification_guard import VerificationGuard
from .append import (
    AppendCallback,
    DelayedProduce,
    PartitionResponse,
    PendingAppend,
    PendingPartition,
    RecordError,
    StagedAppend,
)
from .partition.hosted_partitions import HostedPartitions, ReplicaSettings, StoppedReplica
from .partition.partition import Partition
from .purgatory.delayed_delete_records import DelayedDeleteRecords, DeleteRecordsCallback
from .purgatory.delayed_fetch import DelayedFetch
from .purgatory.delayed_operation import Purgatory
from .purgatory.fetch_memory import FetchMemory
from .purgatory.fetch_purgatory import FetchPurgatory
from .read.fetch import FetchCallback, FetchParams, FetchPartition
from .read.reading import read_from_log
from .read.replica_selector import NO_REPLICA

logger = logging.getLogger(__name__)

VALID_REQUIRED_ACKS = (-1, 0, 1)
NO_GUARDS: Mapping[TopicPartition, VerificationGuard] = {}
REFUSED_BEFORE_THE_LOG = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.RECORD_LIST_TOO_LARGE,
    }
)
"""Errors that Kafka answers without saying where the log starts."""


class ReplicaManager:
    """Every partition hosted by one broker.

    Args:
        settings: broker id, and how a topic's overrides become a log's configuration.
        log_manager: where the logs are.
        clock: wall time for records, monotonic time for time-outs.
        timers: where waiting operations wait.
    """

    def __init__(
        self,
        settings: ReplicaSettings,
        log_manager: LogManager,
        clock: Clock,
        timers: Timers,
    ) -> None:
        self.settings = settings
        self.log_manager = log_manager
        self.hosted = HostedPartitions(settings, log_manager, clock, self._progressed)
        self.leadership_listeners = self.hosted.leadership_listeners
        self.delayed_produce: Purgatory[TopicPartition] = Purgatory(timers, clock)
        self.delayed_fetch = FetchPurgatory(timers, clock)
        self.delayed_delete_records: Purgatory[TopicPartition] = Purgatory(timers, clock)
        self.on_directories_failed: Callable[[Sequence[FailedDirectory]], None] | None = None
        """Told of log directories that have just gone offline."""
        self.flushed_ms = 0
        """When the last flush was done, wall time."""
        self._clock = clock
        self._partitions = self.hosted.online
        self._directories = log_manager.directories
        self._staged: list[StagedAppend] = []
        self._touched: dict[Partition, None] = {}
        self._actions: deque[Callable[[], object]] = deque()

    # -- partitions ---------------------------------------------------------------

    def get_partition(self, topic_partition: TopicPartition) -> Partition | None:
        """The partition, if this broker holds a replica of it."""
        return self._partitions.get(topic_partition)

    def partition_or_error(self, topic_partition: TopicPartition) -> Partition:
        """The partition, led here.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR or
                NOT_LEADER_OR_FOLLOWER.
        """
        return self.hosted.leader_or_error(topic_partition)

    # -- appending ----------------------------------------------------------------

    def append_records(
        self,
        *,
        timeout_ms: int,
        required_acks: int,
        internal_topics_allowed: bool,
        origin: AppendOrigin,
        entries: Mapping[TopicPartition, memoryview],
        on_complete: AppendCallback,
        guards: Mapping[TopicPartition, VerificationGuard] = NO_GUARDS,
        transaction_version: int = 0,
    ) -> PendingAppend:
        """Append records to partitions led here, and answer once `required_acks` holds.

        The buffers are patched in place and must stay as they are until the next `flush`,
        in or after which `on_complete` is called, once, with every partition's outcome.

        Args:
            timeout_ms: how long acks=all may wait for replicas.
            required_acks: 0, 1 or -1; anything else is INVALID_REQUIRED_ACKS for every
                partition, and no log is touched.
            internal_topics_allowed: whether internal topics may be written to.
            origin: who appends; decides what is validated.
            entries: partition to record batches.
            guards: of partitions in which the records begin a transaction (KIP-890).
            transaction_version: of the coordinator, if these are markers.

        Returns:
            what is pending: where a response in it is an error, that partition was refused.
        """
        wait = self.wait_for_replicas if required_acks == -1 else None
        pending = PendingAppend(timeout_ms, on_complete, wait)
        outcome = pending.partitions
        if required_acks not in VALID_REQUIRED_ACKS:
            refused = PartitionResponse(ErrorCode.INVALID_REQUIRED_ACKS)
            for topic_partition in entries:
                outcome[topic_partition] = PendingPartition(None, 0, refused)
        else:
            now_ms = self._clock.now_ms()
            for topic_partition, records in entries.items():
                if topic_partition.topic in INTERNAL_TOPICS and not internal_topics_allowed:
                    outcome[topic_partition] = PendingPartition(
                        None, 0, _cannot_append_to_internal_topic(topic_partition.topic)
                    )
                else:
                    outcome[topic_partition] = self._stage(
                        topic_partition,
                        records,
                        origin,
                        required_acks,
                        now_ms,
                        guards.get(topic_partition),
                        transaction_version,
                    )
        self._staged.append(pending)
        return pending

    def _stage(
        self,
        topic_partition: TopicPartition,
        records: memoryview,
        origin: AppendOrigin,
        required_acks: int,
        now_ms: int,
        guard: VerificationGuard | None,
        transaction_version: int,
    ) -> PendingPartition:
        partition = self._partitions.get(topic_partition)
        if partition is None:
            missing = self._partitions.error_of_missing(topic_partition)
            return PendingPartition(None, 0, PartitionResponse(missing))
        try:
            info = partition.append_records_to_leader(
                records, origin, required_acks, now_ms, guard, transaction_version
            )
        except KafkaError as refusal:
            partition.topic_stats.count_refused_append(refusal.code, len(records))
            record_errors = [
                RecordError(index, text) for index, text in getattr(refusal, "record_errors", ())
            ]
            return PendingPartition(
                None,
                0,
                PartitionResponse(
                    refusal.code,
                    log_start_offset=(
                        NO_OFFSET
                        if refusal.code in REFUSED_BEFORE_THE_LOG
                        and not isinstance(refusal, RecordValidationError)
                        else partition.log_start_offset
                    ),
                    record_errors=record_errors,
                    error_message=refusal.message,
                ),
            )
        self._touched[partition] = None
        return PendingPartition(
            partition,
            info.last_offset + 1,
            PartitionResponse(
                ErrorCode.NONE,
                info.first_offset,
                info.log_append_time_ms,
                partition.log.log_start_offset,
            ),
        )

    def note_staged(self, partition: Partition, append: StagedAppend) -> None:
        """Have an append that was staged on the partition itself flushed and completed.

        For a caller that knows its partition already and wants no more made of it.
        """
        self._touched[partition] = None
        self._staged.append(append)

    @property
    def has_actions(self) -> bool:
        """Whether something waits for a `flush` to be completed."""
        return bool(self._actions)

    def flush(self) -> None:
        """Write and publish all that is staged, then complete what that allows, to the end."""
        actions = self._actions
        while self._staged or actions or self._directories.has_failures:
            if self._staged:
                self._flush_staged()
            if self._directories.has_failures:
                self._take_directories_offline()
            while actions:
                self._complete(actions.popleft())

    def _flush_staged(self) -> None:
        staged, self._staged = self._staged, []
        touched, self._touched = self._touched, {}
        for partition in touched:
            try:
                partition.log.flush_appends()
            except StorageError as failure:
                for pending in staged:
                    pending.fail_partition(partition, ErrorCode.KAFKA_STORAGE_ERROR, str(failure))
                continue
            moved = partition.maybe_increment_high_watermark()
            if not moved and self.delayed_fetch.note_change(partition.topic_partition):
                self._later(self.delayed_fetch.check_and_complete, partition.topic_partition)
        self.flushed_ms = self._clock.now_ms()
        for pending in staged:
            try:
                pending.complete()
            except Exception:  # it must not keep the others from their answers
                logger.exception("an append could not be answered")

    def _take_directories_offline(self) -> None:
        """What lies in log directories that have failed is hosted no more (Kafka's
        handleLogDirFailure)."""
        failed = self.log_manager.take_failed_directories()
        for directory in failed:
            self.hosted.take_offline(directory.partitions)
        if failed and self.on_directories_failed is not None:
            self.on_directories_failed(failed)

    def _complete(self, completion: Callable[[], object]) -> None:
        """Complete one operation; a bug in it must not keep the others from their answers."""
        try:
            completion()
        except Exception:
            logger.exception("a completed operation could not be answered")

    def wait_for_replicas(self, pending: PendingAppend) -> None:
        """Answer, unless a partition that succeeded so far must still wait."""
        waiting = [tp for tp, entry in pending.partitions.items() if entry.partition is not None]
        if not waiting or pending.settle():
            pending.answer()
        else:
            self.delayed_produce.try_complete_else_watch(
                DelayedProduce(pending), waiting, pending.timeout_ms
            )

    def _later(
        self, check: Callable[[TopicPartition], object], topic_partition: TopicPartition
    ) -> None:
        self._actions.append(lambda: check(topic_partition))

    def _progressed(self, topic_partition: TopicPartition) -> None:
        if self.delayed_produce.has_watchers(topic_partition):
            self._later(self.delayed_produce.check_and_complete, topic_partition)
        if self.delayed_fetch.note_change(topic_partition):
            self._later(self.delayed_fetch.check_and_complete, topic_partition)
        if self.delayed_delete_records.has_watchers(topic_partition):
            self._later(self.delayed_delete_records.check_and_complete, topic_partition)

    # -- fetching -----------------------------------------------------------------

    def fetch_messages(
        self,
        params: FetchParams,
        partitions: Sequence[FetchPartition],
        on_complete: FetchCallback,
        memory: FetchMemory | None = None,
    ) -> None:
        """Read from partitions led here; wait for more where that is asked and allowed.

        It answers at once when no waiting is wished, nothing is asked, enough bytes are
        there, or any partition has an error; else when one of these comes true.

        Args:
            params: of the whole fetch.
            partitions: to be looked at.
            on_complete: gets what they answer, and those that were idle and have changed.
            memory: knows of idle partitions that the reader asks for besides.
        """
        results = read_from_log(self._partitions, params, partitions, note_follower=True)
        asks_for_idle = memory is not None and memory.asks_for_idle()
        if params.max_wait_ms <= 0 or not (partitions or asks_for_idle):
            on_complete(results)
            return
        total = 0
        for _, data in results:
            if data.error or data.diverging_epoch or data.preferred_read_replica != NO_REPLICA:
                on_complete(results)
                return
            total += len(data.records)
        if total >= params.min_bytes:
            on_complete(results)
            return
        operation = DelayedFetch(self._partitions, params, partitions, on_complete, memory)
        if memory is not None:
            memory.wait(operation)
        keys = [asked.topic_partition for asked in partitions]
        if total:  # bounds on the whole answer may have held some of it back
            self.delayed_fetch.try_complete_else_watch(operation, keys, params.max_wait_ms)
        else:
            self.delayed_fetch.watch(operation, keys, params.max_wait_ms)

    # -- the controller's orders ---------------------------------------------------

    def become_leader_or_follower(
        self, controller_id: int, controller_epoch: int, states: Sequence[PartitionState]
    ) -> dict[TopicPartition, ErrorCode]:
        """Take over what the controller decided; see `HostedPartitions`."""
        return self.hosted.become_leader_or_follower(controller_id, controller_epoch, states)

    def stop_replicas(
        self, controller_epoch: int, partitions: Sequence[StoppedReplica]
    ) -> dict[TopicPartition, ErrorCode]:
        """Give up partitions; those marked for it are deleted from disk as well."""
        return self.hosted.stop_replicas(controller_epoch, partitions)

    def keep_only(self, controller_epoch: int, named: Collection[TopicPartition]) -> None:
        """Give up every partition but these."""
        self.hosted.keep_only(controller_epoch, named)

    def update_topic_config(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Put a topic's changed settings in force on every partition hosted here."""
        self.hosted.update_topic_config(topic, overrides)

    def reconfigure_logs(self) -> None:
        """The broker's defaults changed: look at every partition's settings anew."""
        self.hosted.reconfigure_logs()

    # -- housekeeping --------------------------------------------------------------

    def delete_records(
        self,
        offsets: Mapping[TopicPartition, int],
        timeout_ms: int,
        on_complete: DeleteRecordsCallback,
    ) -> None:
        """Advance log starts (-1: to the high watermark), here and at every living replica.

        `on_complete` gets each partition's error and low watermark, once all replicas have
        done so or `timeout_ms` is over (KIP-107).
        """
        deletion = DelayedDeleteRecords(on_complete)
        for topic_partition, offset in offsets.items():
            try:
                if topic_partition.topic in INTERNAL_TOPICS:
                    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
                partition = self.partition_or_error(topic_partition)
                deletion.wait_for(partition, partition.delete_records_before(offset))
            except KafkaError as refusal:
                deletion.fail(topic_partition, refusal.code)
            except StorageError:
                deletion.fail(topic_partition, ErrorCode.KAFKA_STORAGE_ERROR)
        self.delayed_delete_records.try_complete_else_watch(deletion, offsets, timeout_ms)

    def shrink_isrs(self) -> None:
        """Take followers that do not keep up from the ISRs (Kafka's isr-expiration task)."""
        now_ms = self._clock.monotonic_ms()
        for partition in list(self._partitions.values()):
            if partition.remote_replicas:
                partition.shrink_isr(now_ms)

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """Every partition's high watermark, as they go into the checkpoint files."""
        return {tp: partition.high_watermark for tp, partition in self._partitions.items()}

    def delete_old_segments_in_steps(self, logs_per_step: int) -> Iterator[int]:
        """Apply retention to every log, some at a time; gives how many segments went each time."""

        def high_watermark_of(topic_partition: TopicPartition) -> int:
            partition = self._partitions.get(topic_partition)
            return 0 if partition is None else partition.high_watermark

        return self.log_manager.delete_old_segments(high_watermark_of, logs_per_step)


def _cannot_append_to_internal_topic(topic: str) -> PartitionResponse:
    return PartitionResponse(
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        error_message=f"{topic} is an internal topic: clients cannot write to it",
    )
