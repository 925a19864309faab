"""One partition hosted here: its log, its leadership and its high watermark.

Only the leader appends for clients. The high watermark is the least log end offset over the
ISR and those about to join it, and never goes back while one broker leads (articles 001 and
003; Kafka's Partition). A follower appends what its leader sent and takes over its high
watermark.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import Final, Protocol

from ...common.errors import ErrorCode, KafkaError
from ...common.partition_state import LeaderAndIsr, PartitionState
from ...common.sentinels import NO_EPOCH, NO_LEADER
from ...common.topic_partition import TopicPartition
from ...storage.errors import UnexpectedAppendOffsetError
from ...storage.log.append_origin import AppendOrigin
from ...storage.log.log import Log
from ...storage.log.log_append_info import LogAppendInfo
from ...storage.log.log_read import LogRead
from ...storage.producer_state.verification_guard import VerificationGuard
from ..topic_stats import TopicStats
from .replica import Replica

logger = logging.getLogger(__name__)


class FetchIsolation(IntEnum):
    """How far a reader may see: all, what is replicated, what is also committed."""

    LOG_END = 0
    HIGH_WATERMARK = 1
    TRANSACTION_COMMITTED = 2


class IsrChangeOutcome(Enum):
    """What became of a change that was not written."""

    REFUSED = "refused"
    """The state has another version: whoever wrote it, the controller will send it."""
    NOT_ATTEMPTED = "not attempted"
    """It cannot have been written; it may be proposed anew."""


NO_REPLICAS: Final[Mapping[int, Replica]] = MappingProxyType({})
"""Of all partitions that nobody follows here."""


class PartitionHost(Protocol):
    """Whoever hosts partitions (Kafka's Partition takes a dozen collaborators)."""

    @property
    def lag_ms_max(self) -> int:
        """`replica.lag.time.max.ms`: after so long without being caught up one is out of sync."""

    def monotonic_ms(self) -> int:
        """The time."""

    def may_join_isr(self, broker_id: int) -> bool:
        """Whether a replica's broker is alive, as far as is known here."""

    def isr_change_proposed(self, partition: Partition, change: LeaderAndIsr) -> None:
        """Have a change written; `Partition.isr_changed` or `isr_change_failed` gets the end."""

    def progressed(self, topic_partition: TopicPartition) -> None:
        """What waits for the partition may complete now."""

    def write_refused(self, partition: Partition, refusal: KafkaError) -> None:
        """Records could not be appended, for a reason that may go on for long."""


class NoHost:
    """Of a partition that stands alone: it has no followers, and nobody waits for it."""

    lag_ms_max = 30_000

    def monotonic_ms(self) -> int:
        """No time passes."""
        return 0

    def may_join_isr(self, broker_id: int) -> bool:
        """There is nobody else."""
        return False

    def isr_change_proposed(self, partition: Partition, change: LeaderAndIsr) -> None:
        """Nobody can ever ask for one, since the ISR is the leader alone."""
        raise AssertionError("a partition without a host has no followers")

    def progressed(self, topic_partition: TopicPartition) -> None:
        """Nothing waits."""

    def write_refused(self, partition: Partition, refusal: KafkaError) -> None:
        """Whoever appends knows."""


class Partition:
    """A partition of which this broker holds a replica.

    The ISR is what the metadata store says, committed, plus at most one change on its way there
    (KIP-497). An expansion counts at once where more replicas are the stricter rule, a shrink
    only when it is written; so the high watermark is right whichever way the change goes
    (article 001; Kafka's PartitionState with PendingExpandIsr and PendingShrinkIsr).

    Args:
        topic_partition: which one.
        topic_id: its topic's id, 16 bytes.
        broker_id: this broker.
        log: the local replica.
        high_watermark: what the checkpoint said, at most the log's end.
        min_insync_replicas: least ISR that an append with acks=all needs.
        host: knows the time and the brokers, and is notified of progress; None: it stands alone.
        topic_stats: counts bytes and requests; its topic's partitions share it.

    Attributes:
        isr: the committed one; empty where this broker does not lead, as it need not know.
        led_since_epoch: the one in which this broker came to lead, if it does; none else has since.
        maximal_isr: with those that a pending change adds.
        pending_isr_change: what is being written.
        remote_replicas: by broker id, the followers of a partition led here.
    """

    __slots__ = (
        "adding_replicas",
        "broker_id",
        "controller_epoch",
        "high_watermark",
        "host",
        "is_leader",
        "isr",
        "leader",
        "leader_epoch",
        "leader_epoch_start_offset",
        "led_since_epoch",
        "log",
        "maximal_isr",
        "min_insync_replicas",
        "partition_epoch",
        "pending_isr_change",
        "remote_replicas",
        "removing_replicas",
        "replicas",
        "topic_id",
        "topic_partition",
        "topic_stats",
    )

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
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.broker_id = broker_id
        self.min_insync_replicas = min_insync_replicas
        self.host: PartitionHost = host if host is not None else NoHost()
        self.topic_stats = topic_stats or TopicStats()
        self.high_watermark = max(min(high_watermark, log.log_end_offset), log.log_start_offset)
        self.leader = NO_LEADER
        self.is_leader = False
        self.controller_epoch = NO_EPOCH
        self.leader_epoch = NO_EPOCH
        self.leader_epoch_start_offset = 0
        self.led_since_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        self.isr: tuple[int, ...] = ()
        self.maximal_isr: tuple[int, ...] = ()
        self.pending_isr_change: LeaderAndIsr | None = None
        self.replicas: tuple[int, ...] = ()
        self.adding_replicas: tuple[int, ...] = ()
        self.removing_replicas: tuple[int, ...] = ()
        self.remote_replicas: Mapping[int, Replica] = NO_REPLICAS
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

    @property
    def effective_min_isr(self) -> int:
        """`min.insync.replicas`, of which a partition cannot have more than it has replicas."""
        return min(self.min_insync_replicas, len(self.replicas))

    @property
    def is_under_replicated(self) -> bool:
        """Whether a partition led here has replicas that are not in sync."""
        return self.is_leader and len(self.isr) < len(self.replicas)

    @property
    def is_under_min_isr(self) -> bool:
        """Whether a partition led here has fewer in sync than acks=all needs."""
        return self.is_leader and len(self.isr) < self.effective_min_isr

    @property
    def is_at_min_isr(self) -> bool:
        """Whether a partition led here has just as many in sync as acks=all needs."""
        return self.is_leader and len(self.isr) == self.effective_min_isr

    @property
    def is_reassigning(self) -> bool:
        """Whether replicas are being added or removed (KIP-455)."""
        return bool(self.adding_replicas or self.removing_replicas)

    # -- its log ----------------------------------------------------------------------

    def use_log(self, log: Log) -> None:
        """Have a log as this replica's from now on."""
        self.log = log
        log.high_watermark_moved(self.high_watermark)
        log.on_start_moved = self.notify_progress
        self.notify_progress()

    def give_up(self) -> None:
        """This broker has no replica of it any more; the log does not lead back to it."""
        self.is_leader = False
        self.pending_isr_change = None
        self.log.on_start_moved = None

    def notify_progress(self) -> None:
        """What waits for this partition may complete now."""
        self.host.progressed(self.topic_partition)

    def keep_high_watermark_in_log(self) -> None:
        """The log was cut: the high watermark is not outside of it."""
        log = self.log
        self.high_watermark = max(
            min(self.high_watermark, log.log_end_offset), log.log_start_offset
        )
        log.high_watermark_moved(self.high_watermark)
        self.notify_progress()

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
        if is_new_leader:
            self.led_since_epoch = state.leader_epoch
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

    def update_assignment_and_isr(self, state: PartitionState, *, is_leader: bool) -> None:
        """Take over replicas and ISR as the controller knows them.

        A change that was on its way is none any more: whatever became of it, this is newer.
        """
        self.replicas = state.replicas
        self.adding_replicas = state.adding_replicas
        self.removing_replicas = state.removing_replicas
        if is_leader:
            known = self.remote_replicas
            self.remote_replicas = {
                broker_id: known.get(broker_id) or Replica(broker_id)
                for broker_id in state.replicas
                if broker_id != self.broker_id
            } or NO_REPLICAS
        else:
            self.remote_replicas = NO_REPLICAS
        self._commit(state.isr if is_leader else ())

    def _commit(self, isr: tuple[int, ...]) -> None:
        self.isr = self.maximal_isr = isr
        self.pending_isr_change = None

    def check_leader(self, current_leader_epoch: int = NO_EPOCH, *, must_lead: bool = True) -> None:
        """Refuse a request meant for a leader, where this broker is none or the epoch differs.

        Args:
            current_leader_epoch: the epoch the client knows, or -1 where it names none (KIP-320).
            must_lead: whether followers refuse it, too.

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

    def least_needed_end(self) -> int:
        """The offset before which all replicas that count have everything.

        Besides the ISR those count that are caught up and may soon be in it: else, while the
        leader is alone, its high watermark would run away from one that comes back (Kafka's
        maybeIncrementLeaderHW).
        """
        leader_end = low = self.log.log_end_offset
        now_ms = self.host.monotonic_ms()
        for replica in self.remote_replicas.values():
            if replica.log_end_offset < low and (
                replica.broker_id in self.maximal_isr
                or (
                    replica.is_caught_up(leader_end, now_ms, self.host.lag_ms_max)
                    and self.host.may_join_isr(replica.broker_id)
                )
            ):
                low = replica.log_end_offset
        return low

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
            broker_epoch: its broker's registration, -1 if it does not say. What a broker fetched
                in a former life says nothing of what it has now (KIP-903).

        Raises:
            KafkaError: UNKNOWN_LEADER_EPOCH, this broker does not know of it as a replica and
                may only not yet know; NOT_LEADER_OR_FOLLOWER where it names no epoch, or fetched
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
                f"broker {broker_id} has registered anew since it fetched {self.topic_partition}",
            )
        if broker_epoch > replica.broker_epoch:
            replica.broker_epoch = broker_epoch  # what it fetched before counts no more
            self.notify_progress()
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
        # A fetch from further back may be an older one, which lay here while this broker was
        # frozen and is read after those of a new connection. The partition may be idle for
        # them, as the follower has told its end and does not again: they have to look at it.
        is_behind = fetch_offset < previous_end_offset
        if (log_start_offset > previous_start_offset or is_behind) and not moved:
            self.host.progressed(self.topic_partition)

    def maybe_expand_isr(self, replica: Replica) -> LeaderAndIsr | None:
        """Propose to have a follower in the ISR, if it may be there.

        It has to have reached the high watermark and the offset at which this leader began:
        what was committed before lies below one of them.
        """
        end_offset = replica.log_end_offset
        if (
            self.pending_isr_change is not None
            or replica.broker_id in self.isr
            or end_offset < self.high_watermark
            or end_offset < self.leader_epoch_start_offset
            or not self.host.may_join_isr(replica.broker_id)
        ):
            return None
        return self._propose((*self.isr, replica.broker_id))

    def maybe_shrink_isr(self, now_ms: int) -> LeaderAndIsr | None:
        """Propose an ISR without those that did not keep up, if there are any."""
        if not self.is_leader or self.pending_isr_change is not None:
            return None
        lagging = self.out_of_sync_replicas(now_ms)
        if not lagging:
            return None
        change = self._propose(tuple(each for each in self.isr if each not in lagging))
        logger.info(
            "the ISR of %s shrinks from %s to %s: its end is %d, its high watermark %d, and %s",
            self.topic_partition,
            self.isr,
            change.isr,
            self.log.log_end_offset,
            self.high_watermark,
            ", ".join(self._describe(broker_id) for broker_id in lagging),
        )
        return change

    def out_of_sync_replicas(self, now_ms: int) -> list[int]:
        """Those of the ISR that have not been caught up for `replica.lag.time.max.ms`."""
        end_offset = self.log.log_end_offset
        lag_ms_max = self.host.lag_ms_max
        return [
            broker_id
            for broker_id in self.isr
            if broker_id != self.broker_id
            and (
                broker_id not in self.remote_replicas
                or not self.remote_replicas[broker_id].is_caught_up(end_offset, now_ms, lag_ms_max)
            )
        ]

    def _describe(self, broker_id: int) -> str:
        replica = self.remote_replicas.get(broker_id)
        if replica is None:
            return f"broker {broker_id} is no replica"
        return f"broker {broker_id} is at {replica.log_end_offset}"

    def _propose(self, isr: Iterable[int]) -> LeaderAndIsr:
        change = LeaderAndIsr(
            self.controller_epoch,
            self.broker_id,
            self.leader_epoch,
            tuple(isr),
            self.partition_epoch,
        )
        self.pending_isr_change = change
        self.maximal_isr = change.isr if len(change.isr) > len(self.isr) else self.isr
        return change

    def settle_isr_change(self, change: LeaderAndIsr, partition_epoch: int) -> bool:
        """A change was written, as the version `partition_epoch`; returns whether that counts.

        It does not where the controller has been heard of in the meantime.
        """
        if self.pending_isr_change is not change or change.leader_epoch != self.leader_epoch:
            return False
        if partition_epoch < self.partition_epoch:
            return False
        self._commit(change.isr)
        self.partition_epoch = partition_epoch
        logger.info("the ISR of %s is %s", self.topic_partition, self.isr)
        return True

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
        """A change was not written.

        One that was refused stays pending: the controller will send the state that was written
        instead, and until then the stricter of both ISRs is the one to go by.
        """
        self.topic_stats.failed_isr_updates += 1
        if self.pending_isr_change is change and outcome is IsrChangeOutcome.NOT_ATTEMPTED:
            self._commit(self.isr)

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
        """(epoch, end offset) of the largest epoch up to the requested one (KIP-101, KIP-279)."""
        return self.log.end_offset_for_epoch(epoch)
