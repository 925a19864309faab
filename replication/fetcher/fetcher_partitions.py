"""The partitions of a fetcher, in the order in which they are fetched, and what befalls them.

The state that Kafka's AbstractFetcherThread guards with its partitionMapLock.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from ...common.errors import ErrorCode, KafkaError
from ...common.topic_partition import TopicPartition
from .fetch_session_handler import FetchSessionHandler
from .fetch_states import FetchStates
from .fetcher_partition import (
    UNBOUNDED_QUOTA,
    FetchEvent,
    FollowedPartition,
    InitialFetchState,
    PartitionFetchState,
    ReplicaQuota,
    begin_state,
    next_state,
)
from .fetcher_settings import FetcherSettings
from .fetcher_truncation import truncate_log

logger = logging.getLogger(__name__)

PASSING_ERRORS = frozenset(
    {
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
"""What a broker answers that has not yet heard that it leads: it is being told, as we were."""

PartitionOf = Callable[[TopicPartition], FollowedPartition | None]
"""The hosted partition, or None where it is gone or its disk is offline."""

OnAppended = Callable[[Sequence[TopicPartition]], None]
"""Told once an answer which partitions got records or a new high watermark."""


def _ignore(topic_partitions: Sequence[TopicPartition]) -> None:
    """Nobody wants to know."""


class FetcherPartitions:
    """The partitions of a fetcher in order, each with its state: what all its parts share.

    Args:
        leader_id: the source broker.
        fetcher_id: which of the fetchers from that broker.
        settings: what it obeys.
        partition_of: finds the local replica.
        failed: shared by all fetchers: what left one, and waits for the next leader epoch.
        quota: for throttled partitions.
        on_appended: see there.
    """

    def __init__(
        self,
        leader_id: int,
        fetcher_id: int,
        settings: FetcherSettings,
        partition_of: PartitionOf,
        *,
        failed: set[TopicPartition] | None = None,
        quota: ReplicaQuota = UNBOUNDED_QUOTA,
        on_appended: OnAppended = _ignore,
    ) -> None:
        self.leader_id = leader_id
        self.fetcher_id = fetcher_id
        self.settings = settings
        self.failed = set() if failed is None else failed
        self.requests_count = 0
        """Fetches sent."""
        self.bytes_count = 0
        """Bytes of records appended."""
        self._partition_of = partition_of
        self._quota = quota
        self._on_appended = on_appended
        self._session = FetchSessionHandler(leader_id)
        self._failures = 0
        """Requests without an answer, one after the other."""
        self._states = FetchStates()
        """The first to be fetched comes first."""

    # -- which partitions -----------------------------------------------------------------

    def add_partitions(self, initial: Mapping[TopicPartition, InitialFetchState]) -> None:
        """Follow partitions, or follow them in a new leader epoch.

        One that is here already in the same leader epoch goes on where it is. One that had
        failed gets another chance.
        """
        for tp, begin in initial.items():
            self.failed.discard(tp)
            state: PartitionFetchState | None = self._states.pop(tp, None)
            if state is None or not _is_same_following(state, begin):
                state = begin_state(begin, self._partition_of(tp), self.settings.truncation)
            elif any(begin.topic_id):
                state = state._replace(topic_id=begin.topic_id)
            self._states[tp] = state

    def remove_partitions(
        self, topic_partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, PartitionFetchState]:
        """Follow partitions no more; returns the states of those that were here.

        What comes for them still is not used.
        """
        removed = ((tp, self._states.pop(tp, None)) for tp in topic_partitions)
        return {tp: state for tp, state in removed if state is not None}

    def remove_all_partitions(self) -> dict[TopicPartition, PartitionFetchState]:
        """Follow nothing any more; returns all states."""
        return self.remove_partitions(list(self._states))

    def fetch_state(self, topic_partition: TopicPartition) -> PartitionFetchState | None:
        """A partition's state; None if it is not here."""
        return self._states.get(topic_partition)

    @property
    def topic_partitions(self) -> list[TopicPartition]:
        """All partitions, the first to be fetched first."""
        return list(self._states)

    @property
    def partition_count(self) -> int:
        """How many there are."""
        return len(self._states)

    # -- metrics ----------------------------------------------------------------------------

    def lags(self) -> dict[TopicPartition, int]:
        """Of each partition whose leader has told it, the offsets missing here."""
        return {tp: state.lag for tp, state in self._states.items() if state.lag is not None}

    @property
    def max_lag(self) -> int:
        """The largest of them, 0 if there is none."""
        return max(self.lags().values(), default=0)

    # -- what can become of a partition --------------------------------------------------------

    def _update(self, tp: TopicPartition, state: PartitionFetchState) -> None:
        """A new state, and its turn comes after all others'."""
        del self._states[tp]
        self._states[tp] = state

    def _delay(self, topic_partitions: Iterable[TopicPartition], until_ms: int) -> None:
        """After an error: others first, and not before that time."""
        for tp in topic_partitions:
            state = self._states.get(tp)
            if state is not None:
                self._update(tp, state._replace(delayed_until_ms=until_ms))

    def _back_off(self, tp: TopicPartition, now_ms: int, error: ErrorCode = ErrorCode.NONE) -> None:
        """Try a partition again after `replica.fetch.backoff.ms`, or sooner if that may help."""
        state = self._states.get(tp)
        if state is None or error not in PASSING_ERRORS:
            self._delay((tp,), now_ms + self.settings.fetch_backoff_ms)
            return
        until_ms = now_ms + self.settings.backoff_after(state.attempts)
        self._update(tp, state._replace(delayed_until_ms=until_ms, attempts=state.attempts + 1))

    def _mark_failed(self, tp: TopicPartition) -> None:
        """It leaves the fetcher, and comes back with the next leader epoch."""
        logger.warning("%s is not fetched any more until it has another leader epoch", tp)
        self._states.pop(tp, None)
        self.failed.add(tp)

    def _fenced(self, tp: TopicPartition, epoch_asked: int, now_ms: int) -> None:
        """The leader has a newer epoch than the request. If ours is that still, news is to come.

        Kafka's onPartitionFenced.
        """
        state = self._states.get(tp)
        if state is None:
            return
        if epoch_asked == state.current_leader_epoch:
            logger.info(
                "%s has epoch %d, older than its leader's; its new one will be told",
                tp,
                epoch_asked,
            )
            self._mark_failed(tp)
        else:
            self._back_off(tp, now_ms)

    def _cut(
        self, tp: TopicPartition, cut: Callable[[], object], offset: int, event: FetchEvent
    ) -> bool:
        """Cut a log and go on from its end; on a failure the partition fails. Whether it is cut.

        Its place in the order stays (updateFetchOffsetAndMaybeMarkTruncationComplete).
        """
        try:
            cut()
            self._go_on_from_log_end(tp, event)
        except Exception as error:
            # Whatever is wrong with one log, the others must be fetched.
            is_unexpected = not isinstance(error, KafkaError)
            logger.error(
                "Could not truncate %s to offset %d: %s", tp, offset, error, exc_info=is_unexpected
            )
            self._mark_failed(tp)
            return False
        return True

    def _truncate(
        self,
        tp: TopicPartition,
        partition: FollowedPartition,
        offset: int,
        event: FetchEvent = FetchEvent.TRUNCATED,
    ) -> bool:
        """Cut a log's end; see `_cut`."""
        logger.info("Truncating %s to offset %d", tp, offset)
        return self._cut(tp, lambda: truncate_log(tp, partition, offset), offset, event)

    def _go_on_from_log_end(self, tp: TopicPartition, event: FetchEvent) -> None:
        """After a cut. Batches go whole, so the log may end before the offset it was cut at."""
        state, partition = self._states[tp], self._partition_of(tp)
        assert partition is not None, f"{tp} has just been cut"
        self._states[tp] = state._replace(
            fetch_offset=partition.log_end_offset,
            state=next_state(state.state, event),
            last_fetched_epoch=partition.latest_epoch(),
            leader_end_offset=None,
        )


def _is_same_following(state: PartitionFetchState, begin: InitialFetchState) -> bool:
    """Whether a partition is asked to go on as it does: same leader epoch, same topic."""
    return state.current_leader_epoch == begin.leader_epoch and (
        state.topic_id == begin.topic_id or not any(state.topic_id) or not any(begin.topic_id)
    )
