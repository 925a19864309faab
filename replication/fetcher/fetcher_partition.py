"""One partition as its follower's fetcher sees it: from where it fetches, and in which state.

Kafka's PartitionFetchState, InitialFetchState and ReplicaState (article 004). Kafka has two
states and a thread that waits while it asks the leader for its offsets; here nothing waits,
so that asking is a state of its own.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Protocol

from ...common.sentinels import ZERO_UUID
from ...common.topic_partition import TopicPartition
from ...storage.log.log_append_info import LogAppendInfo

UNKNOWN_FETCH_OFFSET = -1
"""Where to begin is for the leader's offsets to say."""


class Truncation(Enum):
    """How a follower finds out which end of its log its leader does not have."""

    FETCH = "fetch"
    """By the diverging epochs in answers to Fetch 12+ (Kafka 2.7+)."""
    EPOCH_REQUEST = "epoch request"
    """By OffsetForLeaderEpoch before the first fetch (KIP-101 and KIP-279; Kafka 0.11+)."""
    HIGH_WATERMARK = "high watermark"
    """Not at all: it cuts at its own high watermark, which may lose records (before KIP-101)."""


class ReplicaState(Enum):
    """What a partition is at."""

    TRUNCATING = "truncating"
    """Its log may hold what the leader's does not; nothing is fetched before that is cut."""
    FETCHING = "fetching"
    """Its log is a prefix of the leader's, or the next answer will say where they part."""
    RESETTING = "resetting"
    """Its fetch offset is not in the leader's log, which is asked where that begins and ends."""


class FetchEvent(Enum):
    """What moves a partition from state to state."""

    TRUNCATED = "truncated"
    TRUNCATED_IN_PART = "truncated in part"
    APPENDED = "appended"
    OUT_OF_RANGE = "out of range"
    RESET = "reset"


_S = ReplicaState
_E = FetchEvent

NEXT_STATES: dict[tuple[ReplicaState, FetchEvent], tuple[ReplicaState, str]] = {
    (_S.TRUNCATING, _E.TRUNCATED): (_S.FETCHING, "the epochs agree up to the end of the log"),
    (_S.TRUNCATING, _E.TRUNCATED_IN_PART): (
        _S.TRUNCATING,
        "the leader named an epoch that this log has not: it is asked of the one before",
    ),
    (_S.FETCHING, _E.APPENDED): (_S.FETCHING, "the next batches follow"),
    (_S.FETCHING, _E.TRUNCATED): (_S.FETCHING, "an answer said where the logs part"),
    (_S.FETCHING, _E.TRUNCATED_IN_PART): (
        _S.FETCHING,
        "the next fetch names an earlier epoch, and is answered anew",
    ),
    (_S.FETCHING, _E.OUT_OF_RANGE): (
        _S.RESETTING,
        "the leader lost its end in an unclean election, or has deleted this far",
    ),
    (_S.RESETTING, _E.RESET): (_S.FETCHING, "the log was cut or begun anew within the leader's"),
}
"""By state and event: the next state, and why."""


def next_state(state: ReplicaState, event: FetchEvent) -> ReplicaState:
    """The state after an event.

    Raises:
        ValueError: that cannot happen in this state.
    """
    found = NEXT_STATES.get((state, event))
    if found is None:
        raise ValueError(f"a partition that is {state.value} cannot be {event.value}")
    return found[0]


class PartitionFetchState(NamedTuple):
    """A partition in a fetcher."""

    topic_id: bytes
    """Of its topic, 16 bytes; all zero if it is not known."""
    fetch_offset: int
    """The next offset to fetch; while truncating, the high watermark to cut at without epochs."""
    current_leader_epoch: int
    state: ReplicaState
    last_fetched_epoch: int | None = None
    """Of the last batch in the log, which Fetch 12+ names."""
    lag: int | None = None
    """Offsets behind the leader's high watermark; None until an answer told it."""
    delayed_until_ms: int | None = None
    """After an error nothing is done before this monotonic time."""
    attempts: int = 0
    """Errors that pass by themselves, since it was last answered well."""
    leader_end_offset: int | None = None
    """While resetting: where the leader's log ends, once it has said so."""

    def is_delayed(self, now_ms: int) -> bool:
        """Whether it has to wait still."""
        return self.delayed_until_ms is not None and now_ms < self.delayed_until_ms

    def is_ready_for_fetch(self, now_ms: int) -> bool:
        """Whether its records may be asked for, and an answer with them counts."""
        return self.state is ReplicaState.FETCHING and (
            self.delayed_until_ms is None or not self.is_delayed(now_ms)
        )

    @property
    def is_in_sync(self) -> bool:
        """Whether nothing was missing at the last answer; such a partition is not throttled."""
        return self.lag is not None and self.lag <= 0


class InitialFetchState(NamedTuple):
    """Where a partition that gets a leader to follow begins."""

    topic_id: bytes
    leader_id: int
    leader_epoch: int
    fetch_offset: int
    """`initial_fetch_offset`; negative: the leader's offsets say."""


class FollowedPartition(Protocol):
    """A hosted partition as its fetcher uses it; `Partition` is one."""

    @property
    def log_end_offset(self) -> int:
        """The next offset of the local log."""

    @property
    def log_start_offset(self) -> int:
        """The first offset of the local log."""

    @property
    def high_watermark(self) -> int:
        """Up to where the leader was known to have replicated."""

    def latest_epoch(self) -> int | None:
        """The leader epoch of the log's last batch; None of an empty log."""

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the largest epoch not above the asked one, or (-1, -1)."""

    def append_records_to_follower(
        self, records: memoryview, fetch_offset: int, leader_epoch: int
    ) -> LogAppendInfo | None:
        """Append and publish what the leader sent; None: there is no whole batch in it.

        Raises:
            KafkaError: it is damaged or does not follow the log.
            StorageError: the disk fails.
        """

    def truncate_to(self, offset: int) -> object:
        """Cut the log's end so that it ends at `offset` or before. Raises StorageError."""

    def truncate_fully_and_start_at(self, offset: int) -> object:
        """Drop all there is and begin at `offset`. Raises StorageError."""

    def update_follower_high_watermark(self, leader_high_watermark: int) -> int:
        """Take over the leader's high watermark as far as the log goes; returns the new one."""

    def advance_follower_log_start(self, leader_log_start_offset: int) -> object:
        """Take over where the leader's log begins."""


class ReplicaQuota(Protocol):
    """A bound on the bytes that replication may take (Kafka's ReplicaQuota)."""

    def is_throttled(self, topic_partition: TopicPartition) -> bool:
        """Whether the bound is for this partition."""

    def is_quota_exceeded(self) -> bool:
        """Whether more was taken than is allowed."""

    def record(self, size: int) -> None:
        """Bytes of throttled partitions have come."""


class UnboundedQuota:
    """No bound at all."""

    def is_throttled(self, topic_partition: TopicPartition) -> bool:
        """No partition is."""
        return False

    def is_quota_exceeded(self) -> bool:
        """Never."""
        return False

    def record(self, size: int) -> None:
        """Nobody counts."""


UNBOUNDED_QUOTA = UnboundedQuota()


def initial_fetch_offset(partition: FollowedPartition, truncation: Truncation) -> int:
    """Where a new follower begins (Kafka's ReplicaManager.initialFetchOffset).

    The log's end, where an answer tells if that is the leader's too; else the high watermark,
    to which it is cut if nothing better is known.
    """
    if truncation is Truncation.FETCH and partition.latest_epoch() is not None:
        return partition.log_end_offset
    return partition.high_watermark


def begin_state(
    initial: InitialFetchState, partition: FollowedPartition | None, truncation: Truncation
) -> PartitionFetchState:
    """The state in which a partition enters a fetcher (Kafka's partitionFetchState)."""
    last_fetched_epoch = None
    if initial.fetch_offset < 0:
        state = ReplicaState.RESETTING
    else:
        state = ReplicaState.TRUNCATING
        if truncation is Truncation.FETCH and partition is not None:
            last_fetched_epoch = partition.latest_epoch()
            if last_fetched_epoch is not None:
                state = ReplicaState.FETCHING
    return PartitionFetchState(
        initial.topic_id or ZERO_UUID,
        max(initial.fetch_offset, UNKNOWN_FETCH_OFFSET),
        initial.leader_epoch,
        state,
        last_fetched_epoch,
    )
