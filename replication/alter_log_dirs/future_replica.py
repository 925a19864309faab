"""One partition on its way to another log directory: a copy that follows the log beside it.

Kafka's ReplicaAlterLogDirsThread, on the machine that follows leaders elsewhere. What to do
next is said here; whoever drives it reads, flushes and waits.
"""

from __future__ import annotations

from ...storage.log.log import Log
from ..fetcher.fetch_state import InitialFetchState, ReplicaState
from ..fetcher.fetcher import ReplicaFetcher
from ..fetcher.plans import RequestPlan, WaitPlan
from ..fetcher.settings import FetcherSettings
from ..fetcher.truncation import Truncation
from ..partition.partition import Partition
from ..quota.replication_quota import ReplicationQuota
from .local_leader import LocalLeader

ANY_EPOCH = 2**31 - 1
"""In the place of the leader's: batches of every epoch are taken, for the log has them."""


class FutureReplica:
    """A move that is under way.

    Args:
        partition: the current replica.
        log: its copy.
        settings: what its fetcher obeys.
        quota: bounds the bytes of all moves.

    Attributes:
        copy: the copy as a replica, which follows.
        fetcher: what it follows with.
        leader: answers the fetcher.
        is_driven: whether somebody is at work on it.
        is_flushed: whether all was on the disk once since the log was last cut.
        ready_at_ms: monotonic; nothing is to be done before.
    """

    def __init__(
        self, partition: Partition, log: Log, settings: FetcherSettings, quota: ReplicationQuota
    ) -> None:
        self.topic_partition = partition.topic_partition
        self.partition = partition
        self.copy = Partition(
            partition.topic_partition, partition.topic_id, partition.broker_id, log
        )
        self.leader = LocalLeader(partition)
        self.is_driven = False
        self.is_flushed = False
        self.ready_at_ms = 0
        self.fetcher = ReplicaFetcher(
            partition.broker_id,
            0,
            settings._replace(truncation=Truncation.EPOCH_REQUEST),
            lambda _: self.copy,
            quota=quota,
        )
        self._generation = -1
        self.begin()

    def begin(self) -> None:
        """Find out how much of the copy is the log's, and go on from there.

        At the beginning, after the log was truncated (markPartitionsForTruncation), and to try
        again after a failure.
        """
        self._generation = self.partition.log.generation
        self.is_flushed = False
        self.ready_at_ms = 0
        self.fetcher.remove_all_partitions()
        begin = InitialFetchState(
            self.partition.topic_id,
            self.partition.broker_id,
            ANY_EPOCH,
            min(self.copy.high_watermark, self.partition.log_end_offset),
        )
        self.fetcher.add_partitions({self.topic_partition: begin})

    def next_request(self, now_ms: int) -> RequestPlan | WaitPlan:
        """The next request to the log; see `ReplicaFetcher`."""
        if self._was_cut:
            self.begin()
        return self.fetcher.next_request(now_ms)

    @property
    def _was_cut(self) -> bool:
        return self.partition.log.generation != self._generation

    @property
    def has_failed(self) -> bool:
        """Whether it has stopped until `begin` is called again."""
        return self.topic_partition in self.fetcher.failed

    @property
    def lag(self) -> int:
        """How many offsets the copy is behind the log's end."""
        return self.partition.log_end_offset - self.copy.log_end_offset

    @property
    def has_closed_segments(self) -> bool:
        """Whether the copy has segments that are full and not on the disk yet."""
        log = self.copy.log
        return log.recovery_point < log.segments.active.base_offset

    @property
    def is_caught_up(self) -> bool:
        """Whether the copy is what the log is, with nothing on its way into that."""
        log, copy = self.partition.log, self.copy.log
        state = self.fetcher.fetch_state(self.topic_partition)
        return (
            copy.log_end_offset == log.log_end_offset == log.staged_end_offset
            and not self._was_cut
            and state is not None
            and state.state is ReplicaState.FETCHING
        )

    @property
    def may_replace(self) -> bool:
        """Whether a crash right after the swap would cost nothing that is safe before it."""
        return (
            self.is_caught_up
            and self.is_flushed
            and self.copy.log.recovery_point >= self.partition.log.recovery_point
        )
