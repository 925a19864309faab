"""One partition hosted here: its log, its leadership and its high watermark.

Only the leader appends for clients. The high watermark is the least log end offset over the
ISR and those about to join it, and never goes back while one broker leads (articles 001 and
003; Kafka's Partition). A follower appends what its leader sent and takes over its high
watermark.
"""

from __future__ import annotations

import logging
from enum import IntEnum

from ...common.errors import ErrorCode, KafkaError
from ...common.partition_state import LeaderAndIsr, PartitionState
from ...common.sentinels import NO_EPOCH
from ...common.topic_partition import TopicPartition
from ...storage.errors import UnexpectedAppendOffsetError
from ...storage.log.append_origin import AppendOrigin
from ...storage.log.log import Log
from ...storage.log.log_append_info import LogAppendInfo
from ...storage.log.log_read import LogRead
from ...storage.producer_state.verification_guard import VerificationGuard
from ..topic_stats import TopicStats
from .in_sync_replicas import InSyncReplicas
from .isr_change import IsrChangeOutcome
from .partition_host import PartitionHost
from .replica import Replica

__all__ = ["NO_EPOCH", "FetchIsolation", "Partition"]

logger = logging.getLogger(__name__)


class FetchIsolation(IntEnum):
    """How far a reader may see: all, what is replicated, what is also committed."""

    LOG_END = 0
    HIGH_WATERMARK = 1
    TRANSACTION_COMMITTED = 2


class Partition(InSyncReplicas):
    """A partition of which this broker holds a replica.

    Args:
        topic_partition: which one.
        topic_id: its topic's id, 16 bytes.
        broker_id: this broker.
        log: the local replica.
        high_watermark: what the checkpoint said, at most the log's end.
        min_insync_replicas: least ISR that an append with acks=all needs.
        host: asked about time and brokers, told what happens; None: it stands alone.

    Attributes:
        topic_stats: what goes in and out is counted there; its topic's partitions share it.
    """

    __slots__ = ("topic_id", "topic_stats")

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes,
        broker_id: int,
        log: Log,
        *,
        high_watermark: int = 0,
        min_insync_replicas: int = 1,
        host: PartitionHost | None = None,
        topic_stats: TopicStats | None = None,
    ) -> None:
        super().__init__(topic_partition, broker_id, log, min_insync_replicas, host)
        self.topic_id = topic_id
        self.topic_stats = topic_stats or TopicStats()
        self.high_watermark = max(min(high_watermark, log.log_end_offset), log.log_start_offset)
        self.use_log(log)

    @property
    def log_end_offset(self) -> int:
        """The offset that the next published record will have."""
        return self.log.log_end_offset

    @property
    def log_start_offset(self) -> int:
        """The first offset that may be read."""
        return self.log.log_start_offset

    @property
    def last_stable_offset(self) -> int:
        """Up to where read_committed readers see: no open transaction begins below it."""
        return min(self.log.last_stable_offset, self.high_watermark)

    # -- leadership ---------------------------------------------------------------

    def make_leader(self, state: PartitionState) -> None:
        """Lead the partition from the state's epoch on.

        The first offset of the new epoch goes into the log's epoch cache, empty as the epoch
        still is (KIP-101): a follower may have records of an epoch in between, and finds out by
        it. A state older than what is known changes nothing: who leads may know more.
        """
        if state.partition_epoch < self.partition_epoch:
            return
        # Where epochs are missing, another may have led in them, and followers were cut by it.
        is_new_leader = not self.is_leader or state.leader_epoch > self.leader_epoch + 1
        is_new_epoch = state.leader_epoch > self.leader_epoch
        self.controller_epoch = state.controller_epoch
        self.update_assignment_and_isr(state, is_leader=True)
        if is_new_epoch:
            end_offset = self.log.log_end_offset
            self.leader_epoch_start_offset = end_offset
            self.log.assign_epoch_start(state.leader_epoch, end_offset)
            now_ms = self.host.monotonic_ms()
            for replica in self.remote_replicas.values():
                replica.reset(
                    now_ms,
                    end_offset,
                    is_new_leader=is_new_leader,
                    is_in_sync=replica.broker_id in state.isr,
                )
            self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.leader = self.broker_id
        self.is_leader = True
        self.maybe_increment_high_watermark()

    def make_follower(self, state: PartitionState) -> bool:
        """Follow another leader; returns whether a new epoch begins.

        Then fetching has to begin anew, even from the same leader.
        """
        if state.partition_epoch < self.partition_epoch:
            return False
        is_new_epoch = state.leader_epoch > self.leader_epoch
        self.controller_epoch = state.controller_epoch
        self.leader = state.leader
        self.is_leader = False
        self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.update_assignment_and_isr(state, is_leader=False)
        return is_new_epoch

    def check_leader(self, current_leader_epoch: int = NO_EPOCH, *, must_lead: bool = True) -> None:
        """Refuse a request meant for a leader, where this broker is none or the epoch differs.

        Args:
            current_leader_epoch: the epoch the client knows, or -1 where it names none (KIP-320).
            must_lead: whether a follower may not be asked.

        Raises:
            KafkaError: FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH or NOT_LEADER_OR_FOLLOWER.
        """
        if current_leader_epoch not in (NO_EPOCH, self.leader_epoch):
            raise KafkaError(
                ErrorCode.FENCED_LEADER_EPOCH
                if current_leader_epoch < self.leader_epoch
                else ErrorCode.UNKNOWN_LEADER_EPOCH
            )
        if must_lead and not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    # -- appending ----------------------------------------------------------------

    def append_records_to_leader(
        self,
        records: memoryview,
        origin: AppendOrigin,
        required_acks: int,
        now_ms: int,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
    ) -> LogAppendInfo:
        """Stage one append, seen by nobody until the log's flush; see `Log.append_as_leader`.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS, or what the log refuses.
        """
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if required_acks == -1 and len(self.isr) < self.effective_min_isr:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{len(self.isr)} of at least {self.effective_min_isr} replicas are in sync",
            )
        info = self.log.append_as_leader(
            records,
            leader_epoch=self.leader_epoch,
            origin=origin,
            now_ms=now_ms,
            transaction_version=transaction_version,
            guard=guard,
        )
        stats = self.topic_stats
        stats.total_produce_requests += 1
        stats.messages_in += info.last_offset - info.first_offset + 1
        stats.bytes_in += len(records)
        return info

    def maybe_increment_high_watermark(self) -> bool:
        """Move the high watermark on as far as replicas allow; returns whether it moved.

        With fewer than `min.insync.replicas` in sync nothing more is committed.
        """
        if not self.is_leader:
            return False
        low = self.least_needed_end() if self.remote_replicas else self.log.log_end_offset
        if low <= self.high_watermark or len(self.isr) < self.effective_min_isr:
            return False
        self._move_high_watermark(low)
        return True

    def _move_high_watermark(self, offset: int) -> None:
        self.high_watermark = offset
        if self.log.producers.unreplicated:
            self.log.high_watermark_moved(offset)
        self.host.progressed(self.topic_partition)

    def has_replicated(self, required_offset: int) -> tuple[bool, ErrorCode]:
        """Whether an append that ended before `required_offset` is on enough replicas.

        Returns (done, error): an ISR that shrank below the minimum after the append is
        NOT_ENOUGH_REPLICAS_AFTER_APPEND, lost leadership NOT_LEADER_OR_FOLLOWER.
        """
        if not self.is_leader:
            return True, ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.high_watermark < required_offset:
            return False, ErrorCode.NONE
        if len(self.maximal_isr) < self.effective_min_isr:
            return True, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return True, ErrorCode.NONE

    # -- followers, as their leader sees them -------------------------------------

    def follower_or_error(
        self, broker_id: int, current_leader_epoch: int, broker_epoch: int = -1
    ) -> Replica:
        """The follower that asks.

        Args:
            broker_id: its broker's.
            current_leader_epoch: the one it follows in, -1 if it does not say.
            broker_epoch: its broker's registration, -1 if it does not say. What a broker asked
                in a former life says nothing of what it has now (KIP-903).

        Raises:
            KafkaError: UNKNOWN_LEADER_EPOCH, this broker does not know of it as a replica and
                may only not yet know; NOT_LEADER_OR_FOLLOWER where it names no epoch, or asked
                before its restart.
        """
        replica = self.remote_replicas.get(broker_id)
        if replica is None:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER
                if current_leader_epoch == NO_EPOCH
                else ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"broker {broker_id} is not known as a replica of {self.topic_partition}",
            )
        if 0 <= broker_epoch < replica.broker_epoch:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {broker_id} has registered anew since it asked for {self.topic_partition}",
            )
        if broker_epoch > replica.broker_epoch:
            self.note_registration(replica, broker_epoch)
        return replica

    def update_follower_fetch_state(
        self, replica: Replica, fetch_offset: int, log_start_offset: int, leader_end_offset: int
    ) -> None:
        """Take note of how far a follower has come (Kafka's updateFollowerFetchState)."""
        previous_end_offset = replica.log_end_offset
        previous_start_offset = replica.log_start_offset
        replica.update_fetch_state(
            fetch_offset, log_start_offset, self.host.monotonic_ms(), leader_end_offset
        )
        if replica.broker_id not in self.isr:
            self._submit(self.maybe_expand_isr(replica))
        moved = fetch_offset != previous_end_offset and self.maybe_increment_high_watermark()
        if log_start_offset > previous_start_offset and not moved:
            self.host.progressed(self.topic_partition)

    def shrink_isr(self, now_ms: int) -> None:
        """Have those out of sync taken from the ISR; to be called from time to time."""
        self._submit(self.maybe_shrink_isr(now_ms))

    def _submit(self, change: LeaderAndIsr | None) -> None:
        if change is not None:
            self.host.isr_change_proposed(self, change)

    def isr_changed(self, change: LeaderAndIsr, partition_epoch: int) -> bool:
        """A change was written as this version; returns whether it still counted.

        The ISR may be the leader alone now, and the high watermark free to move.
        """
        size_before = len(self.isr)
        if not self.settle_isr_change(change, partition_epoch):
            return False
        self.topic_stats.count_isr_change(size_before, len(self.isr))
        if not self.maybe_increment_high_watermark():
            self.host.progressed(self.topic_partition)
        return True

    def isr_change_failed(self, change: LeaderAndIsr, outcome: IsrChangeOutcome) -> None:
        """A change was not written; see `InSyncReplicas`."""
        self.topic_stats.failed_isr_updates += 1
        super().isr_change_failed(change, outcome)

    def low_watermark(self) -> int:
        """The first offset that any replica on a living broker still has (KIP-107)."""
        low = self.log.log_start_offset
        for replica in self.remote_replicas.values():
            if replica.log_start_offset < low and self.host.may_join_isr(replica.broker_id):
                low = replica.log_start_offset
        return low

    # -- following ----------------------------------------------------------------

    def latest_epoch(self) -> int | None:
        """The last leader epoch that the log has records of, or knows the beginning of.

        Raises StorageError.
        """
        epoch = self.log.latest_epoch()
        return None if epoch == NO_EPOCH else epoch

    def append_records_to_follower(
        self, records: memoryview, fetch_offset: int, leader_epoch: int
    ) -> LogAppendInfo | None:
        """Append what the leader sent, and publish it; None if no whole batch is in it.

        Batches of a later epoch than the one they were fetched in are left out, with all
        behind them: they are fetched again once this broker knows the epoch (KAFKA-18723).

        Raises:
            KafkaError: CORRUPT_MESSAGE, or NOT_LEADER_OR_FOLLOWER where this broker leads.
            UnexpectedAppendOffsetError: the log does not end where they begin.
            StorageError: the disk refuses them.
        """
        if self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        log = self.log
        if fetch_offset != log.log_end_offset:
            raise UnexpectedAppendOffsetError(
                f"{self.topic_partition} ends at {log.log_end_offset} and was given records "
                f"that were fetched at {fetch_offset}",
                fetch_offset,
                fetch_offset,
            )
        try:
            info = log.append_as_follower(records, leader_epoch=leader_epoch)
        except UnexpectedAppendOffsetError as unexpected:
            # The leader's log may start within a batch, which an empty log takes as a whole.
            end_offset = log.log_end_offset
            if not (
                end_offset == log.log_start_offset
                and unexpected.first_offset < end_offset <= unexpected.last_offset
            ):
                raise
            self.truncate_fully_and_start_at(unexpected.first_offset)
            info = log.append_as_follower(records, leader_epoch=leader_epoch)
        if info.size == 0:
            return None
        log.flush_appends()
        is_moving = self.broker_id in self.adding_replicas
        self.topic_stats.count_replication(info.size, moving=is_moving)
        return info

    def truncate_to(self, offset: int) -> None:
        """Cut the log, so that it ends at `offset` or before. Raises StorageError."""
        self.log.truncate_to(offset)
        self.keep_high_watermark_in_log()

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything and begin at `offset`. Raises StorageError."""
        self.log.truncate_fully_and_start_at(offset)
        self.keep_high_watermark_in_log()

    def update_follower_high_watermark(self, leader_high_watermark: int) -> int:
        """Take over the leader's high watermark as far as the log goes; returns the new one.

        It does not go back: what was committed once is so for every later leader.
        """
        offset = min(leader_high_watermark, self.log.log_end_offset)
        if offset > self.high_watermark:
            self._move_high_watermark(offset)
        return self.high_watermark

    def advance_follower_log_start(self, leader_log_start_offset: int) -> None:
        """What the leader has deleted goes here, too, as far as it is committed."""
        offset = min(leader_log_start_offset, self.high_watermark)
        if offset > self.log.log_start_offset:
            self.log.advance_log_start_offset(offset)

    # -- reading ------------------------------------------------------------------

    def readable_end(self, isolation: FetchIsolation) -> int:
        """The offset before which a reader of this isolation may see."""
        if isolation is FetchIsolation.LOG_END:
            return self.log.log_end_offset
        if isolation is FetchIsolation.HIGH_WATERMARK:
            return self.high_watermark
        return self.last_stable_offset

    def read_records(
        self,
        fetch_offset: int,
        max_bytes: int,
        isolation: FetchIsolation,
        *,
        minimum_one_batch: bool,
    ) -> LogRead:
        """Read whole batches from `fetch_offset` on, as far as the isolation allows.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE.
        """
        return self.log.read(
            fetch_offset,
            max_bytes,
            upper_offset=self.readable_end(isolation),
            minimum_one_batch=minimum_one_batch,
        )

    def delete_records_before(self, offset: int) -> int:
        """Advance the log start to `offset` (-1: the high watermark); returns that offset.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE beyond the high watermark, POLICY_VIOLATION where
                the topic is not cleaned by deletion.
        """
        if "delete" not in self.log.config.cleanup_policy:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"records of {self.topic_partition.topic} cannot be deleted: "
                "its cleanup.policy has no 'delete'",
            )
        target = self.high_watermark if offset == -1 else offset
        if target < 0 or target > self.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        self.log.advance_log_start_offset(target)
        return target

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the largest epoch not above the asked one (KIP-101, KIP-279)."""
        return self.log.end_offset_for_epoch(epoch)
