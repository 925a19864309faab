"""ReplicaManager: all partitions of this broker, and the two verbs on them (articles 001, 003).

`append_records` stages; `flush` writes every touched log once, publishes, and only then
completes what waited: appends, long polls, and what those set off in turn. Nothing is
completed inside an append (Kafka's action queue).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ..common.errors import ErrorCode, KafkaError
from ..common.internal_topics import INTERNAL_TOPICS
from ..common.named_tuple import NamedTuple
from ..common.partition_state import LeaderAndIsr, PartitionState, StoppedReplica
from ..common.sentinels import NO_LEADER, NO_OFFSET, ZERO_UUID
from ..common.topic_partition import TopicPartition
from ..runtime.clock import Clock
from ..runtime.steps import Steps, run_at_once
from ..runtime.timers import Timers
from ..storage.errors import RecordValidationError, StorageError
from ..storage.log.append_origin import AppendOrigin
from ..storage.log.log_config import LogConfig
from ..storage.log_manager.log_manager import FailedDirectory, LogManager
from ..storage.producer_state.verification_guard import VerificationGuard
from .alter_log_dirs.future_replicas import FutureReplicas
from .append import (
    AppendCallback,
    DelayedProduce,
    PartitionResponse,
    PendingAppend,
    PendingPartition,
    RecordError,
    StagedAppend,
    appended,
)
from .fetcher.fetch_state import InitialFetchState, initial_fetch_offset
from .partition.partition import Partition
from .partition.partition_table import PartitionTable
from .peers import NoPeers, Peers
from .purgatory.delayed_delete_records import DelayedDeleteRecords, DeleteRecordsCallback
from .purgatory.delayed_fetch import DelayedFetch, FetchPurgatory, SteppedFetch
from .purgatory.delayed_operation import Purgatory
from .purgatory.idle_partition_cache import IdlePartitionCache
from .quota.replication_quota import ReplicationQuotas
from .read.fetch import (
    FetchCallback,
    FetchParams,
    FetchPartition,
    FetchPartitionData,
    FetchResults,
)
from .read.reading import Reading, read_from_log
from .read.replica_selector import NO_REPLICA
from .refused_writes import FULL_MS, RefusedWrites
from .topic_stats import TopicStatsTable

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


SETTINGS_KEPT_MAX = 1000
"""Of so many different sets of overrides, what was made of them is remembered."""

LeadershipListener = Callable[[TopicPartition, bool, int], None]
"""Called with a partition, whether it is now led here, and its leader epoch."""


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


class ReplicaManager:
    """Every partition hosted by one broker.

    Args:
        settings: broker id, and how a topic's overrides become a log's configuration.
        log_manager: where the logs are.
        clock: wall time for records, monotonic time for time-outs.
        timers: where waiting operations wait.

    Attributes:
        partitions: those online, by name; it knows of those offline, too.
        peers: the other brokers; none until there are some.
        quotas: bounds on the bytes that replication takes.
        future_replicas: replicas that are moving to another log directory.
        topic_stats: what goes in and out of each topic.
        leadership_listeners: called when a partition comes to be led here, or no longer.
        on_partitions_changed: called when another partition or replica, or the same one in another
            leader epoch, is what a request would find.
        on_directories_failed: called with log directories that have just gone offline.
        on_replicas_missing: called a while after a log could not be made though no disk has failed:
            the controller is to send what this broker hosts again.
        flushed_ms: when the last flush was done, wall time.
        lag_ms_max: `replica.lag.time.max.ms`.
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
        self.partitions = PartitionTable()
        self.peers: Peers = NoPeers()
        self.topic_stats = TopicStatsTable()
        self.quotas = ReplicationQuotas(
            settings.broker_id,
            clock.monotonic_ms,
            settings.quota_windows_max,
            settings.quota_window_ms,
        )
        self.partitions.leader_quota = self.quotas.leader
        self.future_replicas = FutureReplicas(settings.broker_id, log_manager, self.partitions)
        self.leadership_listeners: list[LeadershipListener] = []
        self.delayed_produce: Purgatory[TopicPartition] = Purgatory(timers, clock)
        self.delayed_fetch = FetchPurgatory(timers, clock)
        self.delayed_delete_records: Purgatory[TopicPartition] = Purgatory(timers, clock)
        self.on_partitions_changed: Callable[[], None] = _nothing_to_do
        self.on_directories_failed: Callable[[Sequence[FailedDirectory]], None] | None = None
        self.on_replicas_missing: Callable[[], None] = _nothing_to_do
        self.flushed_ms = 0
        self.lag_ms_max = settings.lag_ms_max
        self.monotonic_ms = clock.monotonic_ms
        self._clock = clock
        self._timers = timers
        self._retries_missing = False
        self._directories = log_manager.directories
        self._deferred: dict[TopicPartition, PartitionState] = {}
        """What the controller has decided of partitions whose logs are not recovered yet."""
        self._staged: list[StagedAppend] = []
        self._touched: dict[Partition, None] = {}
        self._actions: deque[Callable[[], object]] = deque()
        self.refused_writes = RefusedWrites(clock)
        self._controller_epoch = -1
        self._overrides: dict[str, Mapping[str, str]] = {}
        self._settings_by_overrides: dict[frozenset[tuple[str, str]], tuple[LogConfig, int]] = {}

    # -- partitions ---------------------------------------------------------------

    def get_partition(self, topic_partition: TopicPartition) -> Partition | None:
        """The partition, if this broker holds a replica of it."""
        return self.partitions.get(topic_partition)

    def partition_or_error(self, topic_partition: TopicPartition) -> Partition:
        """The partition, led here.

        Raises:
            KafkaError: UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR or
                NOT_LEADER_OR_FOLLOWER.
        """
        partition = self.partitions.get(topic_partition)
        if partition is None:
            raise KafkaError(self.partitions.error_of_missing(topic_partition))
        if not partition.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return partition

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
        partition = self.partitions.get(topic_partition)
        if partition is None:
            missing = self.partitions.error_of_missing(topic_partition)
            return PendingPartition(None, 0, PartitionResponse(missing))
        try:
            info = partition.append_records_to_leader(
                records, origin, required_acks, now_ms, guard, transaction_version
            )
        except KafkaError as refusal:
            response = self.refused_append(partition, refusal, len(records))
            return PendingPartition(None, 0, response)
        self._touched[partition] = None
        return PendingPartition(partition, info.last_offset + 1, appended(info))

    def refused_append(
        self, partition: Partition, refusal: KafkaError, size: int
    ) -> PartitionResponse:
        """Count records that a partition has refused; returns what they are answered.

        Args:
            partition: led here.
            refusal: its reason.
            size: of the records, in bytes.
        """
        partition.topic_stats.count_refused_append(refusal.code, size)
        self.write_refused(partition, refusal)
        is_before_the_log = refusal.code in REFUSED_BEFORE_THE_LOG and not isinstance(
            refusal, RecordValidationError
        )
        return PartitionResponse(
            refusal.code,
            log_start_offset=NO_OFFSET if is_before_the_log else partition.log_start_offset,
            record_errors=[
                RecordError(index, text) for index, text in getattr(refusal, "record_errors", ())
            ],
            error_message=refusal.message,
        )

    def write_refused(self, partition: Partition, refusal: KafkaError) -> None:
        """A partition hosted here took no records: it is counted, and the log says why."""
        self.refused_writes.note(refusal, partition.log.log_dir, partition.topic_partition)

    def note_staged(self, partitions: Iterable[Partition], append: StagedAppend) -> None:
        """Have an append that was staged on the partitions themselves flushed and completed.

        For a caller that knows its partitions already and wants no more made of it.
        """
        for partition in partitions:
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
                self.write_refused(partition, failure)
                for pending in staged:
                    pending.fail_partition(partition, ErrorCode.KAFKA_STORAGE_ERROR, str(failure))
                continue
            except Exception:  # a fault of ours, which must not keep the others from their answers
                logger.exception("appends to %s could not be flushed", partition.topic_partition)
                for pending in staged:
                    pending.fail_partition(partition, ErrorCode.UNKNOWN_SERVER_ERROR, "")
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
            self.take_offline(directory.partitions)
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

    # -- as the host of each partition ---------------------------------------------

    def may_join_isr(self, broker_id: int) -> bool:
        """Whether a broker is alive, as far as is known here."""
        return self.peers.is_alive(broker_id)

    def isr_change_proposed(self, partition: Partition, change: LeaderAndIsr) -> None:
        """Have a change of the ISR written."""
        self.peers.submit_isr_change(partition, change)

    def progressed(self, topic_partition: TopicPartition) -> None:
        """What waits for the partition is looked at by the next `flush`."""
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
        idle_cache: IdlePartitionCache | None = None,
    ) -> None:
        """Read from partitions led here; wait for more where the fetch allows it.

        It answers at once when the fetch may not wait, names no partition, enough bytes are
        there, or any partition has an error; else when one of these comes true.

        Args:
            params: of the whole fetch.
            partitions: to be looked at.
            on_complete: gets what they answer, and those that were idle and have changed; where
                these are many, and it has waited for them, the work that reads them.
            idle_cache: the reader's idle partitions, which it requests besides.
        """
        results = read_from_log(self.partitions, params, partitions, note_follower=True)
        if params.max_wait_ms <= 0 or not (
            partitions or (idle_cache is not None and idle_cache.idle)
        ):
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
        operation = DelayedFetch(self.partitions, params, partitions, on_complete, idle_cache)
        if idle_cache is not None:
            idle_cache.start_waiting(operation)
        keys = [requested.topic_partition for requested in partitions]
        if total:  # bounds on the whole answer may have held some of it back
            self.delayed_fetch.try_complete_else_watch(operation, keys, params.max_wait_ms)
        else:
            self.delayed_fetch.watch(operation, keys, params.max_wait_ms)

    def fetch_messages_in_steps(
        self,
        params: FetchParams,
        partitions: Sequence[FetchPartition],
        on_complete: FetchCallback,
        idle_cache: IdlePartitionCache | None = None,
    ) -> Steps[FetchResults | None]:
        """The same of many partitions, as work that yields after some.

        Args:
            params, partitions, on_complete, idle_cache: as of `fetch_messages`; what is answered
                at once is not called back.

        Returns:
            what is answered at once; None where the fetch waits.
        """
        if params.max_wait_ms <= 0 or not (
            partitions or (idle_cache is not None and idle_cache.idle)
        ):
            reading = Reading(self.partitions, params, note_follower=True)
            return (yield from reading.read_in_steps(partitions))
        operation = SteppedFetch(self.partitions, params, partitions, on_complete, idle_cache)
        return (yield from operation.read_in_steps(self.delayed_fetch))

    def count_fetches(
        self,
        params: FetchParams,
        results: Sequence[tuple[FetchPartition, FetchPartitionData]],
    ) -> None:
        """Count what one fetch is answered, by topic and against the leader's quota.

        Each partition counts once; in Kafka twice if its fetch had to wait, for it is read twice.
        """
        find = self.topic_stats.find
        is_from_follower = params.is_from_follower
        for requested, data in results:
            stats = find(requested.topic_partition.topic)
            if stats is None:
                continue
            is_moving = False
            size = len(data.records)
            if is_from_follower:
                if size and self.quotas.leader.is_throttled(requested.topic_partition):
                    self.quotas.leader.record(size)
                partition = self.partitions.get(requested.topic_partition)
                is_moving = partition is not None and params.replica_id in partition.adding_replicas
            stats.count_fetch(data.error, size, follower=is_from_follower, moving=is_moving)

    def count_idle_partitions(self, idle: Mapping[str, int]) -> None:
        """Count the partitions of a fetch that were not read, since they were idle.

        Args:
            idle: topic to how many of its partitions.
        """
        find = self.topic_stats.find
        for topic, count in idle.items():
            stats = find(topic)
            if stats is not None:
                stats.total_fetch_requests += count

    # -- the controller's orders --------------------------------------------------------

    def become_leader_or_follower(
        self, controller_id: int, controller_epoch: int, states: Sequence[PartitionState]
    ) -> dict[TopicPartition, ErrorCode]:
        """Take over what the controller decided (article 001); returns each partition's error.

        An order of an older controller is refused, and one that names no newer leader epoch
        than the one that is known. One for a log that is not recovered yet is carried out when it
        is: until then clients and followers are told to look for the leader again.
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

    @property
    def controller_epoch(self) -> int:
        """Of the latest controller that was heard of; -1: of none yet."""
        return self._controller_epoch

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
        if topic_partition in self.partitions.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if topic_partition in self.log_manager.unrecovered:
            return self._defer(state)
        partition = self.partitions.get(topic_partition)
        if partition is None:
            try:
                partition = self._create_partition(state)
            except StorageError as failure:
                self._note_missing(topic_partition, failure)
                return failure.code
            except KafkaError as failure:
                return failure.code
        elif state.topic_id not in (partition.topic_id, ZERO_UUID):
            return ErrorCode.INCONSISTENT_TOPIC_ID
        elif state.leader_epoch <= partition.leader_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        self.on_partitions_changed()
        was_leader = partition.is_leader
        if not was_leader and partition.leader != NO_LEADER:
            self.peers.remove_fetchers((topic_partition,))
        try:
            if state.leader == self.settings.broker_id:
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

    def _defer(self, state: PartitionState) -> ErrorCode:
        earlier = self._deferred.get(state.topic_partition)
        if (
            earlier is not None
            and state.topic_id == earlier.topic_id
            and state.leader_epoch <= earlier.leader_epoch
        ):
            return ErrorCode.STALE_CONTROLLER_EPOCH
        self._deferred[state.topic_partition] = state
        return ErrorCode.NONE

    @property
    def awaited_logs(self) -> Iterable[TopicPartition]:
        """Partitions whose logs are to be recovered first: those that are led here."""
        me = self.settings.broker_id
        return (each for each, state in self._deferred.items() if state.leader == me)

    def logs_recovered(self, recovered: Iterable[TopicPartition]) -> None:
        """Carry out what was decided of these partitions while their logs were not there."""
        followed: dict[TopicPartition, InitialFetchState] = {}
        for topic_partition in recovered:
            state = self._deferred.pop(topic_partition, None)
            if state is not None:
                error = self._apply_state(state, followed)
                if error:
                    logger.error("%s cannot be hosted here: %s", topic_partition, error.name)
        if followed:
            self.peers.add_fetchers(followed)

    def _note_missing(self, topic_partition: TopicPartition, failure: StorageError) -> None:
        """A log could not be made. A failed disk keeps it away until a restart; a full one may have
        space later, which the controller, who takes it for failed, does not find out."""
        logger.error("%s cannot be hosted here: %s", topic_partition, failure.message)
        if self.log_manager.directories.has_trouble:
            self.partitions.offline.add(topic_partition)
        elif not self._retries_missing:
            self._retries_missing = True
            self._timers.schedule(self._clock.monotonic_ms() + FULL_MS, self._retry_missing)

    def _retry_missing(self) -> None:
        self._retries_missing = False
        self.on_replicas_missing()

    def _create_partition(self, state: PartitionState) -> Partition:
        topic_partition = state.topic_partition
        self._overrides[state.topic] = state.config
        self.quotas.configure_topic(state.topic, state.config)
        config, min_insync_replicas = self._topic_settings(state.config)
        self._set_former_topic_aside(state)
        log = self.log_manager.get_or_create_log(
            topic_partition, state.topic_id, config, is_new=state.is_new
        )
        if log.config is not config:
            log.configure(config)  # one loaded at the start has the defaults
        partition = Partition(
            topic_partition,
            state.topic_id,
            self.settings.broker_id,
            log,
            high_watermark=self.log_manager.high_watermarks.get(topic_partition, 0),
            min_insync_replicas=min_insync_replicas,
            host=self,
            topic_stats=self.topic_stats.join(state.topic),
        )
        self.partitions[topic_partition] = partition
        self.future_replicas.resume(partition)
        return partition

    def _set_former_topic_aside(self, state: PartitionState) -> None:
        """Set a log of another topic of that name aside: that topic was deleted meanwhile.

        A controller waits until all replicas of a topic are deleted, but not for those that it
        has moved away from a broker that was not there. In such a case Kafka's brokers answer
        INCONSISTENT_TOPIC_ID, for good.
        """
        log = self.log_manager.get_log(state.topic_partition)
        if log is None or log.topic_id in (None, ZERO_UUID, state.topic_id):
            return
        if state.topic_id == ZERO_UUID:
            return
        path = self.log_manager.set_aside(state.topic_partition)
        logger.warning(
            "the log of %s is of a topic that was deleted: it is set aside as %s",
            state.topic_partition,
            path,
        )

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
            deferred = self._deferred.get(topic_partition)
            if deferred is not None:
                if 0 <= leader_epoch < deferred.leader_epoch:
                    errors[topic_partition] = ErrorCode.FENCED_LEADER_EPOCH
                    continue
                del self._deferred[topic_partition]
            partition = self.partitions.get(topic_partition)
            if partition is not None:
                if 0 <= leader_epoch < partition.leader_epoch:
                    errors[topic_partition] = ErrorCode.FENCED_LEADER_EPOCH
                    continue
                del self.partitions[topic_partition]
                self._give_up(partition)
            if topic_partition in self.partitions.offline:
                errors[topic_partition] = ErrorCode.KAFKA_STORAGE_ERROR
            elif delete:  # also where a crash left nothing but the log
                try:
                    self.log_manager.delete_log(topic_partition)
                except StorageError:
                    errors[topic_partition] = ErrorCode.KAFKA_STORAGE_ERROR
        return errors

    def keep_only(self, controller_epoch: int, named: Collection[TopicPartition]) -> None:
        """Give up every partition but these: the controller knows of no others here.

        What is given up was deleted or moved while this broker was away; its files stay.
        """
        if not self.admit_controller(controller_epoch):
            return
        for topic_partition in [each for each in self.partitions if each not in named]:
            logger.warning("%s-%d is this broker's no more: its files stay", *topic_partition)
            self._give_up(self.partitions.pop(topic_partition))
        for topic_partition in self._deferred.keys() - named:
            del self._deferred[topic_partition]

    def take_offline(self, partitions: Iterable[TopicPartition]) -> None:
        """Give up partitions whose log directory has failed; they stay away until a restart."""
        for topic_partition in partitions:
            self.partitions.offline.add(topic_partition)
            self._deferred.pop(topic_partition, None)
            partition = self.partitions.pop(topic_partition, None)
            if partition is not None:
                self._give_up(partition)
        self.future_replicas.drop_stale()

    def _give_up(self, partition: Partition) -> None:
        self.topic_stats.leave(partition.topic_partition.topic)
        self.on_partitions_changed()
        was_leader = partition.is_leader
        partition.give_up()
        self.peers.remove_fetchers((partition.topic_partition,))
        self.future_replicas.give_up(partition.topic_partition)
        if was_leader:
            for listener in self.leadership_listeners:
                listener(partition.topic_partition, False, partition.leader_epoch)
        self.progressed(partition.topic_partition)

    # -- settings ------------------------------------------------------------------

    def update_topic_config(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Put a topic's changed settings in force on every partition hosted here."""
        self._overrides[topic] = overrides
        self.quotas.configure_topic(topic, overrides)
        for topic_partition, state in self._deferred.items():
            if topic_partition.topic == topic:
                self._deferred[topic_partition] = state._replace(config=overrides)
        self._configure(
            partition
            for partition in self.partitions.values()
            if partition.topic_partition.topic == topic
        )

    def reconfigure_logs(self) -> None:
        """The broker's defaults changed: look at every partition's settings anew."""
        self._settings_by_overrides.clear()
        topics = {topic_partition.topic for topic_partition in self.partitions}
        self._overrides = {topic: self._overrides.get(topic, {}) for topic in topics}
        self._configure(self.partitions.values())

    def _configure(self, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            overrides = self._overrides.get(partition.topic_partition.topic, {})
            log_config, partition.min_insync_replicas = self._topic_settings(overrides)
            partition.log.configure(log_config)
            self.future_replicas.configure(partition.topic_partition, log_config)

    def _topic_settings(self, overrides: Mapping[str, str]) -> tuple[LogConfig, int]:
        """What a topic's partitions work with; topics with the same overrides share it."""
        key = frozenset(overrides.items())  # most topics have none
        made = self._settings_by_overrides.get(key)
        if made is None:
            if len(self._settings_by_overrides) >= SETTINGS_KEPT_MAX:
                self._settings_by_overrides.clear()
            made = self._settings_by_overrides[key] = (
                self.settings.log_config(overrides),
                self.settings.min_insync_replicas(overrides),
            )
        return made

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
        run_at_once(self.delete_records_in_steps(offsets, timeout_ms, on_complete))

    def delete_records_in_steps(
        self,
        offsets: Mapping[TopicPartition, int],
        timeout_ms: int,
        on_complete: DeleteRecordsCallback,
    ) -> Steps[None]:
        """The same, as work that yields after each partition."""
        deletion = DelayedDeleteRecords(on_complete)
        for topic_partition, offset in offsets.items():
            yield
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

    def shrink_isrs(self) -> Steps[None]:
        """Take followers that do not keep up from the ISRs (Kafka's isr-expiration task)."""
        for partition in list(self.partitions.values()):
            yield
            if partition.remote_replicas:
                partition.shrink_isr(self._clock.monotonic_ms())

    def high_watermark_of(self, topic_partition: TopicPartition) -> int | None:
        """A partition's high watermark; None where it has no replica here."""
        partition = self.partitions.get(topic_partition)
        return None if partition is None else partition.high_watermark

    def delete_old_segments(self) -> Steps[int]:
        """Apply retention to every log; returns how many segments went."""
        return self.log_manager.delete_old_segments(self.high_watermark_of)


def _nothing_to_do() -> None:
    """Nobody is to be called."""


def _cannot_append_to_internal_topic(topic: str) -> PartitionResponse:
    return PartitionResponse(
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        error_message=f"{topic} is an internal topic: clients cannot write to it",
    )
