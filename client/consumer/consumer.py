"""A consumer: reads topics, alone or as a member of a group, and keeps its place.

Three tasks work beside the caller: the group's member, one that fetches ahead, one that finds
positions. What the caller must agree to (partitions that go and come) happens while it polls, and
nowhere else: so a record that it has at hand is of a partition that is its own.
Source: Kafka's `KafkaConsumer` and `ConsumerCoordinator`.
"""

from __future__ import annotations

import logging
import re
from base64 import urlsafe_b64encode
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Self, TypeVar

import trio

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    NO_EPOCH,
    NO_OFFSET,
    READ_COMMITTED,
)
from ..client import KafkaClient
from ..error_kinds import RETRIABLE_ERRORS
from ..errors import ClientError, LogTruncationError
from ..network.backoff import ExponentialBackoff
from ..network.nursery import OwnedNursery
from ..network.trio_clock import trio_deadline
from .assigned_partition import AssignedPartition
from .epoch_end_offsets import EpochEndOffset
from .fetched_records import FetchedBatch, FetchedRecord
from .fetcher import Fetcher
from .group.classic_membership import ClassicMembership
from .group.committed_offsets import CommittedOffsets, OffsetAndMetadata
from .group.consumer_membership import ConsumerMembership
from .group.coordinator import GroupCoordinator
from .group.member import GroupMember
from .group.membership import GroupMetadata, Membership, Rebalance
from .offsets import OffsetAndTimestamp, TopicPartition, list_offsets
from .prefetcher import BUFFERED_ANSWERS, Prefetcher
from .rebalance_listener import RebalanceListener
from .settings import CLASSIC, ConsumerSettings, check_consumer_settings, reset_timestamp

logger = logging.getLogger(__name__)

CLOSE_TIMEOUT_MS = 10_000
"""How long leaving may take, cancelled or not."""

UUID_BYTES = 16

FENCED_BY_COMMIT = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
    }
)

TakenT = TypeVar("TakenT")


class Consumer:
    """Use it as `async with Consumer(client, group_id="g", topics=["t"]) as consumer`.

    One task polls, or iterates; the others' methods may be called from it alone.

    Args:
        client: is open, and stays so.
        group_id: whose member it is, and where offsets are committed.
        topics: to read as a member of the group.
        topic_pattern: topics whose whole names match are read, too: in RE2's syntax, and found by
            the broker, in a group of the consumer protocol, else in Python's.
        listener: is called when partitions come and go.
        settings: Kafka's, in Python's spelling.

    Raises:
        ValueError: a setting makes no sense, or topics are subscribed to without a group.
    """

    def __init__(
        self,
        client: KafkaClient,
        *,
        group_id: str | None = None,
        topics: Iterable[str] = (),
        topic_pattern: str | None = None,
        listener: RebalanceListener | None = None,
        settings: ConsumerSettings | None = None,
    ) -> None:
        self.settings = settings = check_consumer_settings(settings or ConsumerSettings())
        self._client = client
        self._listener = listener or RebalanceListener()
        self._partitions: dict[TopicPartition, AssignedPartition] = {}
        self._current: AssignedPartition | None = None
        """Whose records are iterated over."""
        self._failures: deque[Exception] = deque()
        self._needs_attention = False
        """Whether the caller must hear of something before it gets another record."""
        self._has_news = trio.Event()
        self._failure_raised = trio.Event()
        self._must_locate = trio.Event()
        self._commit_lock = trio.Lock()
        self._committed: dict[TopicPartition, int] = {}
        """What this consumer knows to be committed."""
        self._owned_nursery = OwnedNursery()
        self._backoff = ExponentialBackoff(
            client.settings.retry_backoff_ms, client.settings.retry_backoff_max_ms, client.random
        )
        self._prefetcher = Prefetcher(
            client,
            Fetcher(
                client,
                isolation_level=settings.isolation_level,
                max_wait_ms=settings.fetch_max_wait_ms,
                min_bytes=settings.fetch_min_bytes,
                max_bytes=settings.fetch_max_bytes,
                partition_max_bytes=settings.max_partition_fetch_bytes,
                sessions=True,
                rack_id=settings.client_rack,
            ),
            self._partitions,
            BUFFERED_ANSWERS * settings.max_partition_fetch_bytes,
            on_records=self._wake,
            on_out_of_range=self._out_of_range,
            on_truncated=self._truncated,
            on_failure=self._fail,
        )
        self._coordinator: GroupCoordinator | None = None
        self._offsets: CommittedOffsets | None = None
        self._member: GroupMember | None = None
        topics = frozenset(topics)
        if group_id is not None:
            self._join(group_id, topics, topic_pattern)
        elif topics or topic_pattern is not None:
            raise ValueError("topics are subscribed to as a member of a group: give a group_id")

    def _join(self, group_id: str, topics: frozenset[str], pattern: str | None) -> None:
        settings = self.settings
        self._coordinator = GroupCoordinator(self._client, group_id)
        self._offsets = CommittedOffsets(
            self._client,
            self._coordinator,
            self.group_metadata,
            require_stable=settings.isolation_level == READ_COMMITTED,
        )
        self._outside = GroupMetadata(group_id, -1, "", None)
        if not topics and pattern is None:
            return  # It only commits to the group; see `assign`.
        membership: Membership
        is_classic = settings.group_protocol == CLASSIC
        if is_classic:
            membership = ClassicMembership(
                group_id,
                settings.partition_assignment_strategy,
                instance_id=settings.group_instance_id,
                rack_id=settings.client_rack or None,
                session_timeout_ms=settings.session_timeout_ms,
                heartbeat_interval_ms=settings.heartbeat_interval_ms,
                rebalance_timeout_ms=settings.max_poll_interval_ms,
            )
        else:
            member_id = urlsafe_b64encode(self._client.random.randbytes(UUID_BYTES))
            membership = ConsumerMembership(
                group_id,
                member_id.rstrip(b"=").decode(),
                instance_id=settings.group_instance_id,
                rack_id=settings.client_rack or None,
                assignor=settings.group_remote_assignor,
                rebalance_timeout_ms=settings.max_poll_interval_ms,
                regex=pattern,
            )
        self._member = GroupMember(
            self._client,
            self._coordinator,
            membership,
            topics=topics,
            pattern=re.compile(pattern) if is_classic and pattern is not None else None,
            exclude_internal=settings.exclude_internal_topics,
            max_poll_interval_ms=settings.max_poll_interval_ms,
            on_news=self._require_attention,
        )

    # --- Opening and closing -----------------------------------------------------------------

    async def __aenter__(self) -> Self:
        nursery = await self._owned_nursery.open()
        nursery.start_soon(self._prefetcher.run)
        nursery.start_soon(self._keep_located)
        if self._member is not None:
            nursery.start_soon(self._member.run)
        if self._offsets is not None and self.settings.enable_auto_commit:
            nursery.start_soon(self._keep_committing)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        """Commit what the caller is done with, and leave the group. After an exception that is
        not what was handed out last."""
        if error is None:
            self._finish_all()
        try:
            return await self._owned_nursery.close(kind, error, traceback)
        finally:  # also when all of it is cancelled
            with trio.move_on_after(CLOSE_TIMEOUT_MS / 1000, shield=True):
                await self._give_up_all()
                if self._member is not None:
                    await self._member.leave()
            if self._coordinator is not None:
                self._coordinator.close()

    async def _give_up_all(self) -> None:
        rebalance = None if self._member is None else self._member.membership.rebalance
        if rebalance is not None and rebalance.is_lost:
            await self._rebalance(rebalance)
        own = frozenset(self._partitions)
        await self._commit_consumed(own)
        if own and self._member is not None:
            await self._listener.on_revoked(own)
        self._partitions.clear()

    # --- Reading -----------------------------------------------------------------------------

    async def poll(
        self, max_records: int = 500, timeout_ms: int | None = None
    ) -> list[FetchedRecord]:
        """The next records, as soon as there are any.

        Whoever polls again is done with the records before: they may be committed now.

        Args:
            max_records: so many at most.
            timeout_ms: return nothing when there are none within this time; None: wait.

        Raises:
            KafkaError: a broker refused something for good, or what came cannot be read.
            ClientError: the cluster cannot be reached at all.
        """

        def take(partition: AssignedPartition) -> list[FetchedRecord]:
            taken: list[FetchedRecord] = []
            while len(taken) < max_records and (
                records := partition.take_records(max_records - len(taken))
            ):
                taken += records
            return taken

        return await self._poll(take, timeout_ms) or []

    async def poll_batches(self, timeout_ms: int | None = None) -> list[FetchedBatch]:
        """The next batches, all of one partition, not decoded yet; otherwise as `poll`.

        For those who look at values alone, at a third of the cost, or who hand batches on.

        Raises:
            KafkaError, ClientError: as `poll`.
        """

        def take(partition: AssignedPartition) -> list[FetchedBatch]:
            taken: list[FetchedBatch] = []
            size = 0
            while size < self.settings.max_partition_fetch_bytes and (
                fetched := partition.take_batch()
            ):
                size += fetched.batch.size_in_bytes
                taken.append(fetched)
            return taken

        return await self._poll(take, timeout_ms) or []

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> FetchedRecord:
        """The next record; never ends. Otherwise as `poll` of one record.

        Raises:
            KafkaError, ClientError: as `poll`.
        """
        partition = self._current
        if partition is not None and not self._needs_attention and not partition.is_paused:
            partition.finish()
            record = partition.take_decoded()
            if record is not None:
                if self._member is not None:
                    self._member.has_polled = True
                return record
        while True:
            taken = await self._poll(AssignedPartition.take_record, None)
            if taken is not None:
                return taken

    async def _poll(
        self, take: Callable[[AssignedPartition], TakenT | None], timeout_ms: int | None
    ) -> TakenT | None:
        """What `take` gives for the first partition that has something; None after the time."""
        clock = self._client.clock
        deadline_ms = None if timeout_ms is None else clock.monotonic_ms() + timeout_ms
        self._finish_all()
        if self._member is not None:
            self._member.polling()
        try:
            await trio.lowlevel.checkpoint()  # The other tasks must have their turn, too.
            while True:
                self._has_news = trio.Event()
                await self._attend()
                taken = self._take(take)
                if taken:
                    return taken
                with trio.move_on_at(trio_deadline(clock, deadline_ms)) as waiting:
                    await self._has_news.wait()
                if waiting.cancelled_caught:
                    return None
        finally:
            if self._member is not None:
                self._member.polled()

    def _take(self, take: Callable[[AssignedPartition], TakenT | None]) -> TakenT | None:
        for key, partition in list(self._partitions.items()):
            if not partition.has_records:
                continue
            buffered_bytes = partition.buffered_bytes
            try:
                taken = take(partition)
            finally:
                if partition.buffered_bytes < buffered_bytes:
                    self._prefetcher.wake()
            if taken:
                self._current = partition
                return taken
            # It has nothing left: the others come first next time.
            self._partitions[key] = self._partitions.pop(key)
        return None

    def _finish_all(self) -> None:
        for partition in self._partitions.values():
            partition.finish()

    # --- What the caller must hear of --------------------------------------------------------

    def _wake(self) -> None:
        self._has_news.set()

    def _require_attention(self) -> None:
        self._needs_attention = True
        self._has_news.set()

    def _fail(self, failure: Exception) -> None:
        self._failures.append(failure)
        self._require_attention()

    async def _attend(self) -> None:
        """Rebalance, and raise what went wrong."""
        member = self._member
        if member is not None:
            while (rebalance := member.membership.rebalance) is not None:
                await self._rebalance(rebalance)
            failure = member.failure or member.membership.failure
            if failure is not None:
                raise failure
        if self._failures:
            self._failure_raised.set()
            self._failure_raised = trio.Event()
            raise self._failures.popleft()
        self._needs_attention = False

    async def _rebalance(self, rebalance: Rebalance) -> None:
        """Give partitions up and take others, as the group says."""
        assert self._member is not None
        own = self._partitions
        for key in rebalance.revoked & own.keys():
            own[key].is_going = True
        if rebalance.is_lost:
            if rebalance.revoked:
                await self._listener.on_lost(rebalance.revoked)
        elif rebalance.revoked:
            await self._commit_consumed(rebalance.revoked)
            await self._listener.on_revoked(rebalance.revoked)
        for key in rebalance.revoked:
            own.pop(key, None)
            self._committed.pop(key, None)
        for key in rebalance.assigned:
            own[key] = AssignedPartition(*key)
            self._client.add_topic(key[0])
        self._current = None
        if rebalance.assigned:
            await self._listener.on_assigned(rebalance.assigned)
        self._member.membership.rebalance_done(self._client.clock.monotonic_ms())
        self._member.wake()
        self._moved()

    # --- Partitions and positions ------------------------------------------------------------

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions, and no others, without being a member of a group.

        Raises:
            ValueError: this consumer subscribes to topics as a member of a group.
        """
        if self._member is not None:
            raise ValueError("the partitions of a group's member are assigned by the group")
        chosen = set(partitions)
        for key in self._partitions.keys() - chosen:
            del self._partitions[key]
        for key in sorted(chosen - self._partitions.keys()):
            self._partitions[key] = AssignedPartition(*key)
            self._client.add_topic(key[0])
        self._current = None
        self._moved()

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """What is read now."""
        return frozenset(self._partitions)

    def group_metadata(self) -> GroupMetadata:
        """Who this consumer is to its group, for a producer's `send_offsets_to_transaction`.

        Raises:
            ValueError: it has no group.
        """
        if self._offsets is None:
            raise ValueError("this consumer has no group_id")
        return self._outside if self._member is None else self._member.membership.metadata

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Read a partition on from an offset.

        Raises:
            ValueError: the partition is not assigned, or the offset is negative.
        """
        if offset < 0:
            raise ValueError(f"offset {offset} is negative")
        self._assigned(partition).seek(offset)
        self._moved()

    async def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Read partitions, or all, from their first record on.

        Raises:
            KafkaError, ClientError: as `list_offsets`.
        """
        for key, offset in (await self.beginning_offsets(partitions or self.assignment)).items():
            self.seek(key, offset)

    async def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Read partitions, or all, from their ends on.

        Raises:
            KafkaError, ClientError: as `list_offsets`.
        """
        for key, offset in (await self.end_offsets(partitions or self.assignment)).items():
            self.seek(key, offset)

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out no records of these, until `resume`.

        Raises:
            ValueError: a partition is not assigned.
        """
        for key in partitions:
            self._assigned(key).is_paused = True

    def resume(self, *partitions: TopicPartition) -> None:
        """Go on where `pause` stopped.

        Raises:
            ValueError: a partition is not assigned.
        """
        for key in partitions:
            self._assigned(key).is_paused = False
        self._moved()
        self._wake()

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """What is paused."""
        return frozenset(key for key, each in self._partitions.items() if each.is_paused)

    def known_position(self, partition: TopicPartition) -> int | None:
        """The offset that is handed out next; None while nobody knows.

        Raises:
            ValueError: the partition is not assigned.
        """
        return self._assigned(partition).position

    def high_watermark(self, partition: TopicPartition) -> int:
        """Of the last answer; -1 before.

        Raises:
            ValueError: the partition is not assigned.
        """
        return self._assigned(partition).high_watermark

    def preferred_read_replica(self, partition: TopicPartition) -> int | None:
        """The replica that a partition is read from in place of its leader, if there is one: the
        leader knows which are near `client_rack` (KIP-392).

        Raises:
            ValueError: the partition is not assigned.
        """
        preferred = self._assigned(partition).preferred_replica
        return None if preferred is None else preferred.node_id

    async def position(self, partition: TopicPartition) -> int:
        """The offset that is handed out next, once it is known.

        Raises:
            ValueError: the partition is not assigned.
            KafkaError, ClientError: it cannot be found out.
        """
        while (position := self._assigned(partition).position) is None:
            self._has_news = trio.Event()
            if self._failures:
                self._failure_raised.set()
                self._failure_raised = trio.Event()
                raise self._failures.popleft()
            await self._has_news.wait()
        return position

    def _assigned(self, key: TopicPartition) -> AssignedPartition:
        partition = self._partitions.get(key)
        if partition is None:
            raise ValueError(f"partition {key[1]} of topic {key[0]!r} is not assigned")
        return partition

    def _moved(self) -> None:
        """Partitions came, went or were moved."""
        self._must_locate.set()
        self._prefetcher.wake()

    def _out_of_range(self, partition: AssignedPartition, failure: KafkaError) -> None:
        if self.settings.auto_offset_reset == "none":
            partition.stop_fetching()
            self._fail(failure)
            return
        logger.info("%s: it is reset to %s", failure.message, self.settings.auto_offset_reset)
        partition.lose_position()
        self._moved()

    def _truncated(self, partition: AssignedPartition, found: EpochEndOffset) -> None:
        """A new leader has lost some of what was handed out (KIP-320)."""
        error = LogTruncationError(
            partition.topic, partition.partition, partition.position or 0, found.end_offset
        )
        if self.settings.auto_offset_reset == "none":
            partition.stop_fetching()
            self._fail(error)
            return
        logger.warning("%s", error)
        if found.end_offset == NO_OFFSET or found.leader_epoch == NO_EPOCH:
            partition.lose_position()
        else:
            partition.seek(found.end_offset, found.leader_epoch)
        self._moved()

    # --- Offsets -----------------------------------------------------------------------------

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Commit offsets to the group.

        Args:
            offsets: of the records to be read next; all that was handed out if left out.
            timeout_ms: for all attempts; `request.timeout.ms` if left out.

        Raises:
            ValueError: this consumer has no group.
            KafkaError: the coordinator refused; see `CommittedOffsets.commit`.
            ClientError: it could not be reached in time.
        """
        if offsets is None:
            to_commit = {
                key: OffsetAndMetadata(each.position, each.leader_epoch)
                for key, each in self._partitions.items()
                if each.position is not None
            }
        else:
            to_commit = {
                key: each if isinstance(each, OffsetAndMetadata) else OffsetAndMetadata(each)
                for key, each in offsets.items()
            }
        await self._commit(to_commit, timeout_ms)

    async def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the group has committed; partitions without anything are left out.

        Raises:
            ValueError: this consumer has no group.
            KafkaError, ClientError: as `CommittedOffsets.fetch`.
        """
        return await self._require_offsets().fetch(partitions, self._client.settings.max_block_ms)

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition.

        Raises:
            KafkaError, ClientError: as `list_offsets`.
        """
        return await self._list(partitions, EARLIEST_TIMESTAMP)

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset behind the last record that this consumer may read, of each partition.

        Raises:
            KafkaError, ClientError: as `list_offsets`.
        """
        return await self._list(partitions, LATEST_TIMESTAMP)

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """The first record at or after a time, in milliseconds since the epoch, of each partition;
        its offset is -1 where there is none.

        Raises:
            KafkaError, ClientError: as `list_offsets`.
        """
        return await list_offsets(
            self._client, timestamps, isolation_level=self.settings.isolation_level
        )

    async def _list(
        self, partitions: Iterable[TopicPartition], timestamp: int
    ) -> dict[TopicPartition, int]:
        found = await self.offsets_for_times(dict.fromkeys(partitions, timestamp))
        return {key: each.offset for key, each in found.items()}

    def _require_offsets(self) -> CommittedOffsets:
        if self._offsets is None:
            raise ValueError("this consumer has no group_id, and so nowhere to commit offsets")
        return self._offsets

    async def _commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout_ms: int | None
    ) -> None:
        if timeout_ms is None:
            timeout_ms = self._client.settings.request_timeout_ms
        committed_offsets = self._require_offsets()
        async with self._commit_lock:  # An older commit must not come after a newer one.
            before = self.group_metadata()
            try:
                await committed_offsets.commit(offsets, timeout_ms)
            except KafkaError as error:
                is_same = before == self.group_metadata()
                if self._member is not None and is_same and error.code in FENCED_BY_COMMIT:
                    self._member.membership.fenced()
                    self._require_attention()
                raise
        self._committed.update({key: each.offset for key, each in offsets.items()})

    async def _commit_consumed(self, partitions: Iterable[TopicPartition]) -> None:
        """Commit what the caller is done with, if that is to be done automatically; what goes
        wrong is logged, as the next commit may make up for it."""
        if self._offsets is None or not self.settings.enable_auto_commit:
            return
        offsets = {}
        for key in partitions:
            each = self._partitions.get(key)
            consumed = None if each is None else each.consumed
            if each is not None and consumed is not None and self._committed.get(key) != consumed:
                offsets[key] = OffsetAndMetadata(consumed, each.leader_epoch)
        if not offsets:
            return
        try:
            await self._commit(offsets, None)
        except (KafkaError, ClientError) as error:
            logger.warning("offsets could not be committed: %s", error)

    async def _keep_committing(self) -> None:
        while True:
            await trio.sleep(self.settings.auto_commit_interval_ms / 1000)
            await self._commit_consumed(list(self._partitions))

    # --- Finding positions -------------------------------------------------------------------

    async def _keep_located(self) -> None:
        """Find out where to read the partitions that have no position."""
        failed = 0
        while True:
            self._must_locate = trio.Event()
            partitions = [each for each in self._partitions.values() if each.must_locate]
            if not partitions:
                failed = 0
                await self._must_locate.wait()
                continue
            try:
                await self._locate(partitions)
            except (KafkaError, ClientError) as error:
                if isinstance(error, KafkaError) and error.code in RETRIABLE_ERRORS:
                    await trio.sleep(self._backoff.wait_ms(failed) / 1000)
                    failed += 1
                else:
                    raised = self._failure_raised
                    self._fail(error)
                    await raised.wait()

    async def _locate(self, partitions: list[AssignedPartition]) -> None:
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        if self._offsets is not None:
            to_continue = [each.key for each in partitions if not each.must_reset]
            if to_continue:
                offsets = await self.committed(to_continue)
        to_reset = []
        for each in partitions:
            found = offsets.get(each.key)
            if found is None:
                to_reset.append(each)
            elif each.must_locate:
                each.seek(found.offset, found.leader_epoch)
                self._committed[each.key] = found.offset
        self._prefetcher.wake()
        if to_reset:
            await self._reset(to_reset)
        self._wake()

    async def _reset(self, partitions: list[AssignedPartition]) -> None:
        timestamp = reset_timestamp(self.settings.auto_offset_reset, self._client.clock.now_ms())
        keys = [each.key for each in partitions if self._partitions.get(each.key) is each]
        if timestamp is None:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"no offset is committed for {sorted(keys)}, and auto_offset_reset is 'none'",
            )
        found = await self.offsets_for_times(dict.fromkeys(keys, timestamp))
        behind = {key: LATEST_TIMESTAMP for key, each in found.items() if each.offset < 0}
        if behind:
            found.update(await self.offsets_for_times(behind))
        for each in partitions:
            if each.key in found and each.must_locate:
                each.seek(found[each.key].offset)
        self._prefetcher.wake()
