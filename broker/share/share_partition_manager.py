"""SharePartitionManager: the share partitions of the partitions that this broker leads.

A share partition is loaded from its coordinator when it is first fetched, and given up when another
broker leads the topic partition, when a share coordinator fences this one, or when its group's last
session here is over. Source: KIP-932; Kafka's SharePartitionManager and SharePartition.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, NO_OFFSET
from ...common.topic_partition import TopicPartition
from ...config.definition import duration_ms
from ...config.group_configs import GroupConfigs
from ...coordinator.share.operations import (
    UNINITIALIZED_OFFSET,
    Persister,
    ReadState,
    SharePartitionKey,
    StateAnswer,
    WriteState,
)
from ...replication.partition.partition import FetchIsolation, Partition
from ...replication.read.fetch import FetchParams, FetchPartition
from ...replication.read.list_offsets import find_offset
from ...replication.read.reading import read_from_log
from ...replication.replica_manager import ReplicaManager
from ...runtime.clock import Clock
from ...runtime.timers import Timer, Timers
from ...storage.errors import StorageError
from ...storage.io.file_slice import FileSlice
from .delayed_share_fetch import DelayedShareFetch
from .fetched_batches import locate_batches, part_of
from .record_states import AcquireMode
from .share_partition import (
    Acknowledgement,
    AcquiredRecords,
    ShareLimits,
    SharePartition,
    StateWrite,
)
from .share_sessions import SessionKey, ShareSession, ShareSessionCache

logger = logging.getLogger(__name__)

TO_CLIENT = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""What a share coordinator's error means to who fetches or acknowledges; else it is unknown."""

AcknowledgedCallback = Callable[[KafkaError | None], None]


class RequestedPartition(NamedTuple):
    """A partition that is fetched or acknowledged."""

    topic_id: bytes
    topic_partition: TopicPartition

    @property
    def id(self) -> tuple[bytes, int]:
        """What a request calls it."""
        return self.topic_id, self.topic_partition.partition


class ShareFetchParams(NamedTuple):
    """What holds for all partitions of a share fetch."""

    group_id: str
    member_id: str
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    records_max: int
    batch_size: int
    mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED


class SharePartitionData(NamedTuple):
    """What one partition answers a share fetch; an error goes without words, as Kafka's does."""

    error: ErrorCode = ErrorCode.NONE
    records: FileSlice | bytes = b""
    acquired: Sequence[AcquiredRecords] = ()


ShareFetchResults = list[tuple[RequestedPartition, SharePartitionData]]
ShareFetchCallback = Callable[[ShareFetchResults], None]


class LedSharePartition:
    """One share partition at its leader.

    Attributes:
        leader_epoch: of the topic partition when it was loaded. Its share coordinator goes by it:
            it refuses those of leaders before.
        led_since_epoch: of the topic partition. It is held for as long as this broker leads, though
            the epoch goes on; as Kafka's SharePartitionListener, which hears of other leaders.
        state_epoch: which the share coordinator has given it.
        records: those in flight; None: they are being loaded.
        loading: who waits for that.
        storing: how many changes are on their way to the share coordinator.
        timer: looks for expired locks.
        lock_timeouts: how many records had their locks expire.
    """

    __slots__ = (
        "key",
        "leader_epoch",
        "led_since_epoch",
        "loading",
        "lock_timeouts",
        "records",
        "requested",
        "state_epoch",
        "storing",
        "timer",
    )

    def __init__(
        self, key: SharePartitionKey, requested: RequestedPartition, partition: Partition
    ) -> None:
        self.key = key
        self.requested = requested
        self.leader_epoch = partition.leader_epoch
        self.led_since_epoch = partition.led_since_epoch
        self.state_epoch = 0
        self.records: SharePartition | None = None
        self.loading: list[Callable[[KafkaError | None], None]] = []
        self.storing = 0
        self.timer: Timer | None = None
        self.lock_timeouts = 0


class SharePartitionManager:
    """All share partitions that are led here, and the sessions of who reads them.

    Args:
        group_configs: the settings of groups.
        replica_manager: the partitions.
        persister: where states are kept.
        clock, timers: for locks.
        sessions_max: how many sessions there may be.

    Attributes:
        sessions: of the members that fetch here.
        acknowledged: how many records were acknowledged here, by `AcknowledgeType`.
    """

    def __init__(
        self,
        group_configs: GroupConfigs,
        replica_manager: ReplicaManager,
        persister: Persister,
        clock: Clock,
        timers: Timers,
        sessions_max: int,
    ) -> None:
        self.sessions = ShareSessionCache(sessions_max)
        self.acknowledged: Counter[int] = Counter()
        self._configs = group_configs
        self._replica_manager = replica_manager
        self._persister = persister
        self._clock = clock
        self._timers = timers
        self._led: dict[SharePartitionKey, LedSharePartition] = {}

    @property
    def led(self) -> Iterable[LedSharePartition]:
        """Those that are loaded or being loaded."""
        return self._led.values()

    def limits(self, group_id: str) -> ShareLimits:
        """What holds for a group now."""
        value = self._configs.value
        return ShareLimits(
            value(group_id, "share.delivery.count.limit"),
            value(group_id, "share.partition.max.record.locks"),
            value(group_id, "share.record.lock.duration.ms"),
            value(group_id, "share.renew.acknowledge.enable"),
        )

    # -- fetching -------------------------------------------------------------------------

    def fetch(
        self,
        params: ShareFetchParams,
        requested: Sequence[RequestedPartition],
        on_complete: ShareFetchCallback,
    ) -> None:
        """Hand records out, when there are some or the time is over."""
        errors: ShareFetchResults = []
        found: list[LedSharePartition] = []
        waiting = len(requested)
        if not waiting:
            on_complete([])
            return

        def loaded(each: RequestedPartition, refusal: KafkaError | None) -> None:
            nonlocal waiting
            waiting -= 1
            led = self._led.get(_key(params.group_id, each))
            if refusal is not None or led is None:
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER if refusal is None else refusal.code
                errors.append((each, SharePartitionData(code)))
            else:
                found.append(led)
            if not waiting:
                begin()

        key = SessionKey(params.group_id, params.member_id)
        session = self.sessions.find(key)

        def is_over() -> bool:
            """Its session may end while it waits: records that nobody hears of would be locked."""
            return self.sessions.find(key) is not session

        def may_answer() -> bool:
            return is_over() or self.has_records(params, found)

        def answer() -> None:
            on_complete(errors if is_over() else errors + self.hand_out(params, found))

        def begin() -> None:
            operation = DelayedShareFetch(may_answer, answer)
            if any(data.error is not ErrorCode.OFFSET_NOT_AVAILABLE for _, data in errors):
                operation.force_complete()
                return
            self._replica_manager.delayed_fetch.try_complete_else_watch(
                operation,
                [each.requested.topic_partition for each in found],
                params.max_wait_ms,
            )

        for each in requested:
            self._load(params.group_id, each, partial(loaded, each))

    def has_records(
        self, params: ShareFetchParams, partitions: Iterable[LedSharePartition]
    ) -> bool:
        """Whether a fetch that waits may be answered now."""
        limits = self.limits(params.group_id)
        isolation = self.isolation(params.group_id)
        total = 0
        for led in partitions:
            try:
                partition = self._check_led(led)
                records = self._records_of(led, partition)
                offset = records.next_fetch_offset
                if not records.may_acquire(limits) or offset >= partition.readable_end(isolation):
                    continue
                if params.min_bytes <= 1:
                    return True
                read = partition.read_records(
                    offset, params.max_bytes, isolation, minimum_one_batch=True
                )
                total += len(read.records)
            except KafkaError:
                return True
            if total >= params.min_bytes:
                return True
        return False

    def hand_out(
        self, params: ShareFetchParams, partitions: Sequence[LedSharePartition]
    ) -> ShareFetchResults:
        """Read what may be handed out, and give it to the member."""
        limits = self.limits(params.group_id)
        results: ShareFetchResults = []
        records_left, bytes_left = params.records_max, params.max_bytes
        for led in partitions:
            if records_left <= 0 or bytes_left <= 0:
                break
            try:
                data = self._hand_out_of(led, params, limits, records_left, bytes_left)
            except KafkaError as refusal:
                data = SharePartitionData(refusal.code)
            except StorageError:
                data = SharePartitionData(ErrorCode.KAFKA_STORAGE_ERROR)
            results.append((led.requested, data))
            records_left -= sum(each.last_offset - each.first_offset + 1 for each in data.acquired)
            bytes_left -= len(data.records)
            stats = self._replica_manager.topic_stats.find(led.requested.topic_partition.topic)
            if stats is not None:
                stats.count_fetch(data.error, len(data.records), follower=False, moving=False)
        return results

    def _hand_out_of(
        self,
        led: LedSharePartition,
        params: ShareFetchParams,
        limits: ShareLimits,
        records_max: int,
        bytes_max: int,
    ) -> SharePartitionData:
        partition = self._check_led(led)
        records = self._records_of(led, partition)
        isolation = self.isolation(params.group_id)
        offset = records.next_fetch_offset
        if not records.may_acquire(limits) or offset >= partition.readable_end(isolation):
            return SharePartitionData()
        fetch_params = FetchParams(0, 1, bytes_max, isolation)
        requested = FetchPartition(
            led.requested.topic_partition, led.requested.topic_id, offset, bytes_max
        )
        ((_, data),) = read_from_log(self._replica_manager.partitions, fetch_params, [requested])
        if data.error is ErrorCode.OFFSET_OUT_OF_RANGE:
            return SharePartitionData()  # its start moved just now: the next look finds it
        if data.error:
            raise KafkaError(data.error)
        located = locate_batches(
            data.records, data.aborted_transactions or (), records_max + records.in_flight
        )
        acquired = records.acquire(
            params.member_id,
            offset,
            [each.batch for each in located],
            limits,
            self._clock.monotonic_ms(),
            records_max=records_max,
            batch_size=params.batch_size,
            mode=params.mode,
        )
        self._arm(led)
        if not acquired:
            return SharePartitionData()
        part = part_of(data.records, located, acquired[0].first_offset, acquired[-1].last_offset)
        return SharePartitionData(records=part, acquired=acquired)

    def isolation(self, group_id: str) -> FetchIsolation:
        """How far the members of a group may read (share.isolation.level)."""
        if self._configs.value(group_id, "share.isolation.level") == "read_committed":
            return FetchIsolation.TRANSACTION_COMMITTED
        return FetchIsolation.HIGH_WATERMARK

    # -- acknowledging --------------------------------------------------------------------

    def acknowledge(
        self,
        group_id: str,
        member_id: str,
        requested: RequestedPartition,
        acknowledgements: Sequence[Acknowledgement],
        respond: AcknowledgedCallback,
    ) -> None:
        """Take what a member says of its records; answered when that is stored."""
        led = self._led.get(_key(group_id, requested))
        try:
            if led is None or led.records is None:
                # What was handed out by another leader, or before a restart, is nobody's now.
                self._leader_or_error(requested)
                raise KafkaError(
                    ErrorCode.INVALID_RECORD_STATE,
                    "The records were not acquired from this leader.",
                )
            partition = self._check_led(led)
            records = self._records_of(led, partition)
            now_ms = self._clock.monotonic_ms()
            write = records.acknowledge(member_id, acknowledgements, self.limits(group_id), now_ms)
            for first, last, types in acknowledgements:
                if len(types) == 1:
                    self.acknowledged[types[0]] += last - first + 1
                else:
                    self.acknowledged.update(types)
        except KafkaError as refusal:
            respond(refusal)
            return
        self._arm(led)
        self._store(led, write, respond)

    def close_session(self, session: ShareSession, respond: Callable[[], None]) -> None:
        """Forget a session, and release what its member has; respond when that is stored."""
        group_id, member_id = session.key
        if self.sessions.close(session.key) is None:
            respond()
            return
        waiting = 1

        def released(_refusal: KafkaError | None) -> None:
            nonlocal waiting
            waiting -= 1
            if not waiting:
                respond()

        of_group = [led for led in self._led.values() if led.key.group_id == group_id]
        for led in of_group:
            if led.records is not None:
                waiting += 1
                write = led.records.release(member_id, self.limits(group_id))
                self._store(led, write, released)
        for led in of_group:
            self._give_up_unless_used(led)
        released(None)

    def connection_closed(self, connection: object) -> None:
        """Whoever came by a connection is gone: soon, for the network is in the midst of it."""

        def close_sessions() -> None:
            for session in self.sessions.of_connection(connection):
                self.close_session(session, _nothing)
            self._replica_manager.flush()

        self._timers.schedule(self._clock.monotonic_ms(), close_sessions)

    def _store(
        self, led: LedSharePartition, write: StateWrite | None, respond: AcknowledgedCallback
    ) -> None:
        """Have a change stored; `respond` hears what became of it."""
        if write is None:
            self._settled(led)
            respond(None)
            return

        def stored(answer: StateAnswer) -> None:
            led.storing -= 1
            if led.records is not None:
                led.records.write_completed(write.number, is_stored=not answer.error)
                self._settled(led)
                self._arm(led)
            if answer.error:
                logger.info("could not store the state of %s: %s", led.key, answer.error.name)
                if answer.error in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH):
                    self._give_up(led)
                respond(_refusal(answer))
            else:
                respond(None)
            self._give_up_unless_used(led)

        led.storing += 1
        self._persister.submit(
            WriteState(
                led.key,
                led.state_epoch,
                led.leader_epoch,
                write.start_offset,
                write.delivery_complete_count,
                write.batches,
            ),
            stored,
        )

    def _settled(self, led: LedSharePartition) -> None:
        """There may be more to hand out: who waits for it looks again at the next flush."""
        self._replica_manager.progressed(led.requested.topic_partition)

    # -- locks ----------------------------------------------------------------------------

    def _arm(self, led: LedSharePartition) -> None:
        """Look again when the first lock expires."""
        if led.records is None or self._led.get(led.key) is not led:
            return
        deadline_ms = led.records.next_deadline_ms
        if led.timer is not None:
            if deadline_ms is not None and led.timer.at_ms <= deadline_ms:
                return
            led.timer.cancel()
            led.timer = None
        if deadline_ms is not None:
            led.timer = self._timers.schedule(deadline_ms, partial(self._expire, led))

    def _expire(self, led: LedSharePartition) -> None:
        led.timer = None
        if led.records is None or self._led.get(led.key) is not led:
            return
        limits = self.limits(led.key.group_id)
        self._expired(led, led.records.expire(limits, self._clock.monotonic_ms()))

    def expire_locks(self, led: LedSharePartition, first: int, last: int) -> int:
        """Have the locks of records expire now: for tests. Returns how many there were."""
        if led.records is None:
            return 0
        before = led.lock_timeouts
        limits = self.limits(led.key.group_id)
        self._expired(led, led.records.expire_early(first, last, limits))
        return led.lock_timeouts - before

    def _expired(self, led: LedSharePartition, write: StateWrite | None) -> None:
        if write is not None:
            logger.info("acquisition locks of %s expired: %s", led.key, write.batches)
            led.lock_timeouts += sum(last - first + 1 for first, last, *_ in write.batches)
            self._store(led, write, _ignore)
        self._arm(led)
        self._settled(led)
        self._replica_manager.flush()

    # -- loading --------------------------------------------------------------------------

    def _load(
        self,
        group_id: str,
        requested: RequestedPartition,
        respond: Callable[[KafkaError | None], None],
    ) -> None:
        """Have a share partition loaded; `respond` is called once, with the error if any."""
        key = _key(group_id, requested)
        led = self._led.get(key)
        try:
            partition = self._leader_or_error(requested)
            if led is not None and led.led_since_epoch != partition.led_since_epoch:
                self._give_up(led)
                led = None
        except KafkaError as refusal:
            respond(refusal)
            return
        if led is None:
            led = self._led[key] = LedSharePartition(key, requested, partition)
            led.loading.append(respond)
            self._persister.submit(ReadState(key, led.leader_epoch), partial(self._loaded, led))
        elif led.records is None:
            led.loading.append(respond)
        else:
            respond(None)

    def _loaded(self, led: LedSharePartition, answer: StateAnswer) -> None:
        refusal: KafkaError | None = None
        try:
            if answer.error:
                raise _refusal(answer)
            partition = self._check_led(led)
            start = answer.start_offset
            if start == UNINITIALIZED_OFFSET:
                start = self._first_offset(led.key.group_id, partition)
            led.records = SharePartition(start, answer.batches)
            led.records.log_start_moved(partition.log_start_offset)
            led.state_epoch = answer.state_epoch
        except KafkaError as error:
            refusal = error
        except ValueError as error:
            logger.error("the stored state of %s cannot be used: %s", led.key, error)
            refusal = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        waiting, led.loading = led.loading, []
        if refusal is not None and self._led.get(led.key) is led:
            del self._led[led.key]
        for respond in waiting:
            respond(refusal)

    def _first_offset(self, group_id: str, partition: Partition) -> int:
        """Where a group begins that has not read the partition (share.auto.offset.reset).

        Raises:
            KafkaError: OFFSET_NOT_AVAILABLE, there are only older records: the group begins with
                the first newer one, so its members try again.
        """
        reset: str = self._configs.value(group_id, "share.auto.offset.reset")
        isolation = FetchIsolation.HIGH_WATERMARK
        if reset == "earliest":
            return find_offset(partition, EARLIEST_TIMESTAMP, isolation).offset
        if reset == "latest":
            return find_offset(partition, LATEST_TIMESTAMP, isolation).offset
        since_ms = self._clock.now_ms() - duration_ms(reset.partition(":")[2])
        offset = find_offset(partition, max(since_ms, 0), isolation).offset
        if offset == NO_OFFSET:
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE)
        return offset

    # -- leadership -----------------------------------------------------------------------

    def leadership_changed(
        self, topic_partition: TopicPartition, is_leader: bool, leader_epoch: int
    ) -> None:
        """Another broker leads a partition now, or this one again."""
        for led in list(self._led.values()):
            if led.requested.topic_partition == topic_partition:
                self._give_up(led)

    def _give_up_unless_used(self, led: LedSharePartition) -> None:
        """Its group's sessions here may be over; but what is loaded again must have all changes."""
        if not led.storing and not self.sessions.has_group(led.key.group_id):
            self._give_up(led)

    def _give_up(self, led: LedSharePartition) -> None:
        if self._led.get(led.key) is led:
            del self._led[led.key]
            if led.timer is not None:
                led.timer.cancel()
                led.timer = None
            self._settled(led)

    def _leader_or_error(self, requested: RequestedPartition) -> Partition:
        partition = self._replica_manager.partition_or_error(requested.topic_partition)
        if partition.topic_id != requested.topic_id:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        return partition

    def _check_led(self, led: LedSharePartition) -> Partition:
        """The topic partition, if nobody else has led it since the share partition is held.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER or UNKNOWN_TOPIC_OR_PARTITION.
        """
        partition = self._leader_or_error(led.requested)
        if partition.led_since_epoch != led.led_since_epoch or self._led.get(led.key) is not led:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return partition

    def _records_of(self, led: LedSharePartition, partition: Partition) -> SharePartition:
        """Its records in flight, none of which the log has lost."""
        records = led.records
        assert records is not None, "nobody is answered before it is loaded"
        records.log_start_moved(partition.log_start_offset)
        return records


def _key(group_id: str, requested: RequestedPartition) -> SharePartitionKey:
    return SharePartitionKey(group_id, *requested.id)


def _refusal(answer: StateAnswer) -> KafkaError:
    code = TO_CLIENT.get(answer.error, ErrorCode.UNKNOWN_SERVER_ERROR)
    return KafkaError(code, answer.message)


def _ignore(_refusal: KafkaError | None) -> None:
    """Nobody waits for it."""


def _nothing() -> None:
    """Nobody waits for it."""
