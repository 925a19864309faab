"""One partition hosted here: its log, its leadership, its ISR and its high watermark.

Only the leader appends for clients and answers their fetches. The high watermark is the
least log end offset over the ISR, and never goes back while one broker leads (articles
001 and 003; Kafka's Partition).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from ..protocol.errors import ErrorCode, KafkaError
from ..storage.append_origin import AppendOrigin
from ..storage.log import Log
from ..storage.log_append_info import LogAppendInfo
from ..storage.log_read import LogRead
from ..storage.topic_partition import TopicPartition
from .partition_state import NO_LEADER, PartitionState
from .replica import Replica

NO_EPOCH = -1


class FetchIsolation(IntEnum):
    """How far a reader may see: all, what is replicated, what is also committed."""

    LOG_END = 0
    HIGH_WATERMARK = 1
    TRANSACTION_COMMITTED = 2


class Partition:
    """A partition of which this broker holds a replica.

    Args:
        topic_partition: which one.
        topic_id: its topic's id, 16 bytes.
        broker_id: this broker.
        log: the local replica.
        high_watermark: what the checkpoint said, at most the log's end.
        min_insync_replicas: least ISR that an append with acks=all needs.
    """

    __slots__ = (
        "broker_id",
        "high_watermark",
        "is_leader",
        "isr",
        "leader",
        "leader_epoch",
        "leader_epoch_start_offset",
        "log",
        "min_insync_replicas",
        "on_high_watermark",
        "partition_epoch",
        "remote_replicas",
        "replicas",
        "topic_id",
        "topic_partition",
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
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.broker_id = broker_id
        self.log = log
        self.min_insync_replicas = min_insync_replicas
        self.high_watermark = max(min(high_watermark, log.log_end_offset), log.log_start_offset)
        log.high_watermark_moved(self.high_watermark)
        self.leader = NO_LEADER
        self.is_leader = False
        self.leader_epoch = NO_EPOCH
        self.leader_epoch_start_offset = 0
        self.partition_epoch = NO_EPOCH
        self.isr: tuple[int, ...] = ()
        self.replicas: tuple[int, ...] = ()
        self.remote_replicas: dict[int, Replica] = {}
        self.on_high_watermark: Callable[[TopicPartition], None] | None = None

    @property
    def effective_min_isr(self) -> int:
        """`min.insync.replicas`, of which a partition cannot have more than it has replicas."""
        return min(self.min_insync_replicas, len(self.replicas))

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

    def make_leader(self, state: PartitionState, now_ms: int) -> bool:
        """Lead the partition from the state's epoch on.

        Returns whether this broker did not lead it before. The first offset of the new
        epoch goes into the log's epoch cache, as KIP-101 needs it.
        """
        was_leader = self.is_leader
        is_new_epoch = state.leader_epoch > self.leader_epoch
        self._apply(state)
        self.is_leader = True
        if is_new_epoch:
            self.leader_epoch_start_offset = self.log.log_end_offset
            self.log.assign_epoch_start(state.leader_epoch, self.log.log_end_offset)
            self.remote_replicas = {
                broker_id: Replica(broker_id)
                for broker_id in state.replicas
                if broker_id != self.broker_id
            }
            for replica in self.remote_replicas.values():
                replica.reset(now_ms)
        self.maybe_increment_high_watermark()
        return not was_leader

    def make_follower(self, state: PartitionState) -> bool:
        """Follow another leader from the state's epoch on; returns whether that is news."""
        was_follower = not self.is_leader and self.leader == state.leader
        is_new_epoch = state.leader_epoch > self.leader_epoch
        self._apply(state)
        self.is_leader = False
        self.remote_replicas = {}
        return is_new_epoch or not was_follower

    def _apply(self, state: PartitionState) -> None:
        self.leader = state.leader
        self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.isr = state.isr
        self.replicas = state.replicas

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
        self, records: memoryview, origin: AppendOrigin, required_acks: int, now_ms: int
    ) -> LogAppendInfo:
        """Stage one append; it is seen by nobody until the log's flush.

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
        return self.log.append_as_leader(
            records, leader_epoch=self.leader_epoch, origin=origin, now_ms=now_ms
        )

    def maybe_increment_high_watermark(self) -> bool:
        """Move the high watermark to the least end over the ISR; returns whether it moved."""
        if not self.is_leader:
            return False
        low = self.log.log_end_offset
        for broker_id in self.isr:
            if broker_id != self.broker_id:
                replica = self.remote_replicas.get(broker_id)
                if replica is None:
                    return False
                low = min(low, replica.log_end_offset)
        if low <= self.high_watermark:
            return False
        self.high_watermark = low
        if self.log.producers.unreplicated:
            self.log.high_watermark_moved(low)
        if self.on_high_watermark is not None:
            self.on_high_watermark(self.topic_partition)
        return True

    def has_replicated(self, required_offset: int) -> tuple[bool, ErrorCode]:
        """Whether an append that ended before `required_offset` is on enough replicas.

        Returns (done, error): an ISR that shrank below the minimum after the append is
        NOT_ENOUGH_REPLICAS_AFTER_APPEND, lost leadership NOT_LEADER_OR_FOLLOWER.
        """
        if not self.is_leader:
            return True, ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.high_watermark < required_offset:
            return False, ErrorCode.NONE
        if len(self.isr) < self.effective_min_isr:
            return True, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return True, ErrorCode.NONE

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
        """Advance the log start to `offset` (-1: the high watermark); returns the new start.

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
        return self.log.log_start_offset

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the largest epoch not above the asked one (KIP-101, KIP-279)."""
        return self.log.end_offset_for_epoch(epoch)
