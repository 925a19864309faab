"""A fetcher's requests to a leader and their responses, as values without a wire form."""

from __future__ import annotations

from collections.abc import Mapping

from ...common.errors import ErrorCode
from ...common.named_tuple import NamedTuple
from ...common.sentinels import NO_EPOCH, NO_OFFSET
from ...common.topic_partition import TopicPartition


class PlannedPartition(NamedTuple):
    """One partition of a fetch request; it stays in force through a session."""

    topic_id: bytes
    fetch_offset: int
    log_start_offset: int
    """Of the follower, which the leader counts in where records are deleted."""
    max_bytes: int
    current_leader_epoch: int
    last_fetched_epoch: int
    """-1: not named, so the answer will name no diverging epoch."""


class ForgottenPartition(NamedTuple):
    """A partition that leaves a fetch session."""

    topic_partition: TopicPartition
    topic_id: bytes


INITIAL_EPOCH = 0
"""Opens a session, and closes the one named with it."""


class FetchPlan(NamedTuple):
    """One Fetch: what changed in its session, and all that the session holds."""

    session_id: int
    session_epoch: int
    to_send: Mapping[TopicPartition, PlannedPartition]
    to_forget: tuple[ForgottenPartition, ...]
    to_replace: tuple[ForgottenPartition, ...]
    """Whose topic was made anew; forgotten where partitions go by topic id."""
    requested: Mapping[TopicPartition, PlannedPartition]
    """Every partition of the session, as it is requested until the next plan is made."""
    topic_names: Mapping[bytes, str]
    max_wait_ms: int = 0
    """How long the leader may hold it while it has no news. One that opens a session is answered
    at once: until then nobody knows the number of the session, which could not be closed."""

    @property
    def opens_session(self) -> bool:
        """Whether it names all partitions, and the answer the session they are in from now on."""
        return self.session_epoch == INITIAL_EPOCH


class FetchedPartition(NamedTuple):
    """What a leader answered of one partition."""

    error: ErrorCode
    high_watermark: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    records: memoryview | bytes = b""
    """Lies in the frame that was received."""
    diverging_epoch: tuple[int, int] | None = None
    """(epoch, end offset): the largest epoch of the leader's log not above the last fetched."""


class FetchAnswer(NamedTuple):
    """What a leader answered to a Fetch."""

    error: ErrorCode
    session_id: int
    partitions: Mapping[TopicPartition, FetchedPartition]
    throttle_time_ms: int = 0
    unknown_topic_ids: frozenset[bytes] = frozenset()
    """Ids in it that the request did not name."""


class RequestedEpoch(NamedTuple):
    """An epoch whose end in the leader's log is requested."""

    current_leader_epoch: int
    leader_epoch: int


class EpochsPlan(NamedTuple):
    """One OffsetForLeaderEpoch."""

    partitions: Mapping[TopicPartition, RequestedEpoch]


class EpochEnd(NamedTuple):
    """Where an epoch ends: the largest one not above the requested epoch."""

    error: ErrorCode
    leader_epoch: int = NO_EPOCH
    end_offset: int = NO_OFFSET


class OffsetsPlan(NamedTuple):
    """One ListOffsets for one end of logs."""

    timestamp: int
    """LATEST_TIMESTAMP or EARLIEST_TIMESTAMP."""
    partitions: Mapping[TopicPartition, int]
    """The leader epochs known."""


class ListedOffset(NamedTuple):
    """One end of a leader's log."""

    error: ErrorCode
    offset: int = NO_OFFSET


class WaitPlan(NamedTuple):
    """There is nothing to send."""

    until_ms: int | None
    """Monotonic ms at which to look again; None: when partitions are added."""


RequestPlan = FetchPlan | EpochsPlan | OffsetsPlan
