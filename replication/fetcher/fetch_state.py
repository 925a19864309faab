"""One partition as its follower's fetcher sees it: from where it fetches, and in which state.

Kafka's PartitionFetchState, InitialFetchState and ReplicaState (article 004). Kafka has two
states and a thread that waits while it lists the leader's offsets; here nothing waits, so that
this is a state of its own.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from ...common.named_tuple import NamedTuple
from ...common.sentinels import ZERO_UUID
from ...common.state_table import StateTable
from ...common.topic_partition import TopicPartition
from ..partition.partition import Partition
from .truncation import Truncation

UNKNOWN_FETCH_OFFSET = -1
"""Where to begin is for the leader's offsets to say."""


class ReplicaState(Enum):
    """What a partition is at."""

    TRUNCATING = "truncating"
    """Its log may hold what the leader's does not; nothing is fetched before that is cut."""
    FETCHING = "fetching"
    """Its log is a prefix of the leader's, or the next answer will say where they part."""
    RESETTING = "resetting"
    """Its fetch offset is not in the leader's log, whose start and end are being listed."""


class FetchEvent(Enum):
    """What moves a partition from state to state."""

    TRUNCATED = "truncated"
    TRUNCATED_IN_PART = "truncated in part"
    APPENDED = "appended"
    OUT_OF_RANGE = "out of range"
    RESET = "reset"


_S = ReplicaState
_E = FetchEvent

TRANSITIONS: StateTable[ReplicaState] = StateTable(
    "a fetched partition",
    {
        _S.TRUNCATING: (
            (_E.TRUNCATED, _S.FETCHING, "the epochs agree up to the end of the log"),
            (
                _E.TRUNCATED_IN_PART,
                _S.TRUNCATING,
                "the leader named an epoch that this log has not: the one before is requested",
            ),
        ),
        _S.FETCHING: (
            (_E.APPENDED, _S.FETCHING, "the next batches follow"),
            (_E.TRUNCATED, _S.FETCHING, "a response said where the logs diverge"),
            (
                _E.TRUNCATED_IN_PART,
                _S.FETCHING,
                "the next fetch names an earlier epoch, and is answered anew",
            ),
            (
                _E.OUT_OF_RANGE,
                _S.RESETTING,
                "the leader lost its end in an unclean election, or has deleted this far",
            ),
        ),
        _S.RESETTING: (
            (_E.RESET, _S.FETCHING, "the log was truncated or begun anew within the leader's"),
        ),
    },
    label=lambda state: state.value,
)


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
    """Offsets behind the leader's high watermark; None until the first response."""
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
        """Whether its records may be fetched, and a response with them counts."""
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


class FetchStates(dict[TopicPartition, PartitionFetchState]):
    """The states of a fetcher's partitions, the one that is fetched first at the front.

    Attributes:
        pending: partitions to look at before the next request: whose state was added, removed,
            replaced or moved. The fetcher takes those out that need no other look.
    """

    __slots__ = ("pending",)

    def __init__(self) -> None:
        super().__init__()
        self.pending: dict[TopicPartition, None] = {}

    def __setitem__(self, topic_partition: TopicPartition, state: PartitionFetchState) -> None:
        self.pending[topic_partition] = None
        super().__setitem__(topic_partition, state)

    def __delitem__(self, topic_partition: TopicPartition) -> None:
        self.pending[topic_partition] = None
        super().__delitem__(topic_partition)

    def pop(self, topic_partition: TopicPartition, *default: Any) -> Any:
        """As a dict's."""
        self.pending[topic_partition] = None
        return super().pop(topic_partition, *default)


def initial_fetch_offset(partition: Partition, truncation: Truncation = Truncation.FETCH) -> int:
    """Where a new follower begins (Kafka's ReplicaManager.initialFetchOffset).

    The log's end, where a response says if that is the leader's too; else the high watermark,
    to which the log is truncated if nothing better is known.
    """
    if truncation is Truncation.FETCH and partition.latest_epoch() is not None:
        return partition.log_end_offset
    return partition.high_watermark


def begin_state(
    initial: InitialFetchState, partition: Partition | None, truncation: Truncation
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
