"""One fetcher: follows the partitions that one broker leads, or its share of them.

After Kafka's AbstractFetcherThread and ReplicaFetcherThread (article 004), as a state machine
that does no I/O: `next_request` returns the next request's plan, and the response is handed to
the method of its kind. Partitions may be added and removed while a request is in flight, so a
response counts for a partition only if its fetch offset and leader epoch are still those of the
request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, NO_EPOCH
from ...common.topic_partition import TopicPartition
from ...storage.errors import is_disk_failure
from ..partition.partition import Partition
from ..quota.replication_quota import UNBOUNDED_QUOTA, ReplicationQuota
from .fetch_session_handler import FetchSessionHandler
from .fetch_state import (
    TRANSITIONS,
    FetchEvent,
    FetchStates,
    InitialFetchState,
    PartitionFetchState,
    ReplicaState,
    begin_state,
)
from .plans import (
    EpochEnd,
    EpochsPlan,
    FetchAnswer,
    FetchedPartition,
    FetchPlan,
    ListedOffset,
    OffsetsPlan,
    PlannedPartition,
    RequestedEpoch,
    RequestPlan,
    WaitPlan,
)
from .settings import FIRST_BACKOFF_MS, NEW_PARTITION_WAIT_MS, FetcherSettings
from .truncation import Truncation, offset_truncation

logger = logging.getLogger(__name__)

ROUND_MS = 500
LOOKS_OF_ROUND = 250
"""Every half second so many partitions that rest are looked at before a request, half a millisecond
of work, and so all in turn: retention may have moved a log's start here, of which the leader may
hear so much later."""

FEW_COME_ALONE_MS = 1000
"""So long after partitions were added, more are expected: the leader is not to hold fetches longer
than those may wait, since abandoning one costs the session, and the next names all partitions."""

SESSION_ERRORS = frozenset(
    {ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH}
)
"""The leader has forgotten the session: a full fetch request helps at once."""

DAMAGED_RECORDS = frozenset({ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD})
"""Of fetched records: the next fetch may bring them intact."""

PASSING_ERRORS = frozenset(
    {
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
"""Answers of a broker that the controller's request, which made it the leader, has not reached."""

LOG_LEVELS: Mapping[ErrorCode, int] = {
    ErrorCode.UNKNOWN_LEADER_EPOCH: logging.DEBUG,  # it has not heard of its new epoch yet
    ErrorCode.NOT_LEADER_OR_FOLLOWER: logging.DEBUG,  # the partition is moving
    # These come and go while a partition is being created or deleted.
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: logging.DEBUG,
    ErrorCode.UNKNOWN_TOPIC_ID: logging.DEBUG,
    ErrorCode.INCONSISTENT_TOPIC_ID: logging.WARNING,
}
"""How loud an error of a partition is reported; others are errors. All are tried again."""

ATTEMPTS_UNUSUAL = 10
"""An error that should pass by itself is a warning when it has come so often."""

PartitionOf = Callable[[TopicPartition], Partition | None]
"""The hosted partition, or None where it is gone or its disk is offline."""

OnAppended = Callable[[Sequence[TopicPartition]], None]
"""Called once a response with the partitions that got records or a new high watermark."""


class ReplicaFetcher:
    """The partitions that one fetcher follows, in the order in which they are fetched.

    Args:
        leader_id: the source broker.
        fetcher_id: which of the fetchers from that broker.
        settings: waits, limits, and how logs are truncated.
        partition_of: finds the local replica.
        failed: shared by all fetchers: partitions that left one until the next leader epoch.
        quota: for throttled partitions.
        on_appended: see `OnAppended`.

    Attributes:
        requests_count: Fetch requests sent.
        bytes_count: bytes of records appended.
    """

    def __init__(
        self,
        leader_id: int,
        fetcher_id: int,
        settings: FetcherSettings,
        partition_of: PartitionOf,
        *,
        failed: set[TopicPartition] | None = None,
        quota: ReplicationQuota = UNBOUNDED_QUOTA,
        on_appended: OnAppended = lambda topic_partitions: None,
    ) -> None:
        self.leader_id = leader_id
        self.fetcher_id = fetcher_id
        self.settings = settings
        self.failed = set() if failed is None else failed
        self.requests_count = 0
        self.bytes_count = 0
        self._partition_of = partition_of
        self._quota = quota
        self._on_appended = on_appended
        self._session = FetchSessionHandler(leader_id)
        self._failures = 0
        """Requests without a response, one after the other."""
        self._states = FetchStates()
        """The first to be fetched comes first."""
        self._round: Iterator[TopicPartition] = iter(())
        """Those that the round of all partitions has not come to yet."""
        self._round_ms = 0
        """When the round goes on."""
        self._has_new = False
        """Partitions were added since the last fetch."""
        self._expects_more_until_ms = 0

    # -- which partitions -----------------------------------------------------------------

    def add_partitions(self, initial: Mapping[TopicPartition, InitialFetchState]) -> None:
        """Follow partitions, or follow them in a new leader epoch.

        One that is here already in the same leader epoch goes on where it is. One that had
        failed is tried again.
        """
        self._has_new = True
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

        A response in flight is not used for them.
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

    def lags(self) -> dict[TopicPartition, int]:
        """Offsets behind the leader, of each partition whose leader has answered once."""
        return {tp: state.lag for tp, state in self._states.items() if state.lag is not None}

    @property
    def max_lag(self) -> int:
        """The largest of them, 0 if there is none."""
        return max(self.lags().values(), default=0)

    # -- requests -------------------------------------------------------------------------

    def next_request(self, now_ms: int) -> RequestPlan | WaitPlan:
        """What to send; the next call comes after its response, or `request_failed`.

        Truncation comes first, then the fetch (Kafka's maybeTruncate and maybeFetch). Logs
        without leader epochs are truncated to the high watermark in here.

        Args:
            now_ms: monotonic.
        """
        if now_ms >= self._round_ms:
            self._go_round()
            self._round_ms = now_ms + ROUND_MS
        epochs: dict[TopicPartition, RequestedEpoch] = {}
        earliest: dict[TopicPartition, int] = {}
        latest: dict[TopicPartition, int] = {}
        unsettled = [
            (tp, state)
            for tp, state in self._pending_states()
            if state.state is not ReplicaState.FETCHING and not state.is_delayed(now_ms)
        ]
        for tp, state in unsettled:
            if state.state is ReplicaState.TRUNCATING:
                self._begin_truncation(tp, state, epochs, now_ms)
            elif state.leader_end_offset is None:
                latest[tp] = state.current_leader_epoch
            else:
                earliest[tp] = state.current_leader_epoch
        if epochs:
            return EpochsPlan(epochs)
        if earliest:
            return OffsetsPlan(EARLIEST_TIMESTAMP, earliest)
        if latest:
            return OffsetsPlan(LATEST_TIMESTAMP, latest)
        return self._build_fetch(now_ms)

    def _begin_truncation(
        self,
        tp: TopicPartition,
        state: PartitionFetchState,
        epochs: dict[TopicPartition, RequestedEpoch],
        now_ms: int,
    ) -> None:
        """Request the end of the log's last epoch; without epochs, truncate to the high
        watermark: the log is kept as far as it is known to be replicated."""
        partition = self._partition_of(tp)
        if partition is None:
            self._back_off(tp, now_ms)
            return
        epoch = partition.latest_epoch()
        if epoch is None or self.settings.truncation is Truncation.HIGH_WATERMARK:
            self._truncate(tp, partition, state.fetch_offset)
        else:
            epochs[tp] = RequestedEpoch(state.current_leader_epoch, epoch)

    def _go_round(self) -> None:
        """Look at some of the partitions of which nothing is known to have changed."""
        some = list(islice(self._round, LOOKS_OF_ROUND))
        if len(some) < LOOKS_OF_ROUND:
            self._round = iter(list(self._states))
        self._states.pending.update(dict.fromkeys(some))

    def _pending_states(self) -> Iterator[tuple[TopicPartition, PartitionFetchState]]:
        for tp in self._states.pending:
            state = self._states.get(tp)
            if state is not None:
                yield tp, state

    def _build_fetch(self, now_ms: int) -> FetchPlan | WaitPlan:
        """A fetch of all partitions that are ready for it, if any is (Kafka's buildFetch).

        Only those are looked at that are pending: each other is requested as before.
        """
        changes: dict[TopicPartition, PlannedPartition | None] = {}
        has_quota = self._quota is not UNBOUNDED_QUOTA
        held_back = False
        looked_at, self._states.pending = self._states.pending, {}
        for tp in looked_at:
            changes[tp] = None
            state = self._states.get(tp)
            if state is None:
                continue
            if not state.is_ready_for_fetch(now_ms):
                self._states.pending[tp] = None
                continue
            if has_quota and not state.is_in_sync:
                self._states.pending[tp] = None
                if self._should_throttle(tp):
                    held_back = True
                    continue
            partition = self._partition_of(tp)
            if partition is None:
                # The disk went offline, or it is being deleted: whoever did that removes it here.
                self._delay((tp,), now_ms + self.settings.fetch_backoff_ms)
            else:
                changes[tp] = self._planned(state, partition)
        if self._has_new:
            self._has_new, self._expects_more_until_ms = False, now_ms + FEW_COME_ALONE_MS
        max_wait_ms = self.settings.fetch_wait_ms_max
        if now_ms < self._expects_more_until_ms:
            max_wait_ms = min(max_wait_ms, NEW_PARTITION_WAIT_MS)
        plan = self._session.build(changes, max_wait_ms)
        if not plan.requested and not plan.to_forget:
            return self._wait(now_ms, held_back)
        self.requests_count += 1
        return plan

    def _planned(self, state: PartitionFetchState, partition: Partition) -> PlannedPartition:
        names_epochs = self.settings.truncation is Truncation.FETCH
        epoch = state.last_fetched_epoch if names_epochs else None
        return PlannedPartition(
            state.topic_id,
            state.fetch_offset,
            partition.log_start_offset,
            self.settings.fetch_max_bytes,
            state.current_leader_epoch,
            NO_EPOCH if epoch is None else epoch,
        )

    def _should_throttle(self, tp: TopicPartition) -> bool:
        """Of one that is not in sync: others are fetched anyway, or the ISR would flap."""
        return self._quota.is_throttled(tp) and self._quota.is_quota_exceeded()

    def _wait(self, now_ms: int, held_back: bool) -> WaitPlan:
        moments = [
            state.delayed_until_ms
            for _, state in self._pending_states()
            if state.delayed_until_ms is not None and state.delayed_until_ms > now_ms
        ]
        if held_back:
            moments.append(now_ms + max(self.settings.fetch_backoff_ms, FIRST_BACKOFF_MS))
        return WaitPlan(min(moments, default=None))

    def request_abandoned(self) -> None:
        """The response is not waited for, and another connection is used from now on."""
        self._session.handle_error()

    def request_failed(self, now_ms: int) -> None:
        """The connection broke, so the request's outcome is unknown: back off.

        Args:
            now_ms: monotonic.
        """
        self._session.handle_error()
        backoff_ms = max(self.settings.backoff_after(self._failures), FIRST_BACKOFF_MS)
        self._failures += 1
        ready = [tp for tp, state in self._states.items() if not state.is_delayed(now_ms)]
        self._delay(ready, now_ms + backoff_ms)

    # -- OffsetForLeaderEpoch ---------------------------------------------------------------

    def epochs_answered(
        self, plan: EpochsPlan, ends: Mapping[TopicPartition, EpochEnd], now_ms: int
    ) -> None:
        """Truncate logs where the leader's epochs end (truncateToEpochEndOffsets).

        Args:
            plan: the request.
            ends: the response. What is missing in it is requested again after a pause.
            now_ms: monotonic.
        """
        self._failures = 0
        for tp, requested in plan.partitions.items():
            state = self._states.get(tp)
            if (
                state is None
                or state.state is not ReplicaState.TRUNCATING
                or state.current_leader_epoch != requested.current_leader_epoch
            ):
                continue
            end = ends.get(tp)
            if end is None:
                self._back_off(tp, now_ms)
            elif end.error is ErrorCode.NONE:
                self._truncate_to_epoch_end(tp, state, end, now_ms)
            elif end.error is ErrorCode.FENCED_LEADER_EPOCH:
                self._fenced(tp, state)
            else:
                logger.info(
                    "OffsetForLeaderEpoch to the leader failed for %s: %s", tp, end.error.name
                )
                self._back_off(tp, now_ms, end.error)

    def _truncate_to_epoch_end(
        self, tp: TopicPartition, state: PartitionFetchState, end: EpochEnd, now_ms: int
    ) -> None:
        partition = self._partition_of(tp)
        if partition is None:
            self._back_off(tp, now_ms)
            return
        before = (partition.log_end_offset, partition.latest_epoch())
        offset, is_complete = offset_truncation(tp, partition, state.fetch_offset, end)
        event = FetchEvent.TRUNCATED if is_complete else FetchEvent.TRUNCATED_IN_PART
        if not self._truncate(tp, partition, offset, event):
            return
        is_stuck = before == (partition.log_end_offset, partition.latest_epoch())
        if is_stuck and (state.state is ReplicaState.FETCHING or not is_complete):
            # The next response would be the same.
            self._back_off(tp, now_ms)

    # -- Fetch ------------------------------------------------------------------------------

    def fetch_answered(self, plan: FetchPlan, answer: FetchAnswer, now_ms: int) -> None:
        """Append what came, and see to each partition's error (processFetchRequest).

        Args:
            plan: the request.
            answer: the response.
            now_ms: monotonic.
        """
        for _ in self.take_fetched(plan, answer, now_ms):
            pass

    def take_fetched(
        self, plan: FetchPlan, answer: FetchAnswer, now_ms: int
    ) -> Generator[int, None, None]:
        """As `fetch_answered`, in steps: the bytes of each partition once it is done.

        Partitions may be added and removed between the steps.
        """
        self._failures = 0
        if not self._session.handle_answer(answer):
            if plan.opens_session or answer.error not in SESSION_ERRORS:
                self._delay(self.topic_partitions, now_ms + self.settings.fetch_backoff_ms)
            return
        changed: list[TopicPartition] = []
        try:
            for tp, fetched in answer.partitions.items():
                state = self._states.get(tp)
                requested = plan.requested.get(tp)
                if state is None or requested is None or _is_stale(state, requested, now_ms):
                    continue
                self._states.pending[tp] = None  # if only since its log may start elsewhere
                if self._take_partition(tp, state, fetched, now_ms):
                    changed.append(tp)
                yield len(fetched.records)
        finally:
            if changed:
                self._on_appended(changed)

    def _take_partition(
        self, tp: TopicPartition, state: PartitionFetchState, fetched: FetchedPartition, now_ms: int
    ) -> bool:
        """Whether records were appended or the high watermark moved."""
        error = fetched.error
        if error is ErrorCode.NONE:
            if fetched.diverging_epoch is None or self.settings.truncation is not Truncation.FETCH:
                return self._take_records(tp, state, fetched, now_ms)
            # High watermark and log start come with the next response, once the log is truncated.
            end = EpochEnd(ErrorCode.NONE, *fetched.diverging_epoch)
            self._truncate_to_epoch_end(tp, state, end, now_ms)
        elif error is ErrorCode.OFFSET_OUT_OF_RANGE:
            logger.info("Offset %d of %s is not in its leader's log", state.fetch_offset, tp)
            self._begin_reset(tp, state)
        elif error is ErrorCode.FENCED_LEADER_EPOCH:
            self._fenced(tp, state)
        else:
            level = LOG_LEVELS.get(error, logging.ERROR)
            if state.attempts == ATTEMPTS_UNUSUAL:
                level = max(level, logging.WARNING)
            logger.log(
                level, "The leader refused %s at offset %d: %s", tp, state.fetch_offset, error.name
            )
            self._back_off(tp, now_ms, error)
        return False

    def _take_records(
        self, tp: TopicPartition, state: PartitionFetchState, fetched: FetchedPartition, now_ms: int
    ) -> bool:
        """Append, take over high watermark and log start; whether records or the mark moved.

        What is damaged or does not fit on the disk is fetched again; any other failure stops
        this partition alone (processPartitionData and its callers).
        """
        partition = self._partition_of(tp)
        if partition is None:
            self._back_off(tp, now_ms)
            return False
        try:
            had_high_watermark = partition.high_watermark
            size = self._append(tp, partition, state, fetched)
            high_watermark = partition.update_follower_high_watermark(fetched.high_watermark)
            partition.advance_follower_log_start(fetched.log_start_offset)
        except KafkaError as error:
            if error.code in DAMAGED_RECORDS or _is_disk_full(error):
                partition.host.write_refused(partition, error)
                self._back_off(tp, now_ms)
            else:
                logger.error(
                    "Could not append to %s at offset %d: %s", tp, state.fetch_offset, error
                )
                self._mark_failed(tp)
            return False
        except Exception:
            # Whatever else is wrong with one partition, the others must be fetched.
            logger.exception("Could not append to %s at offset %d", tp, state.fetch_offset)
            self._mark_failed(tp)
            return False
        self._note_progress(tp, state, partition, fetched, size)
        if len(fetched.records) and not size:
            logger.warning("fetched records of %s could not be appended: no complete batch", tp)
            self._back_off(tp, now_ms)
        return size > 0 or high_watermark != had_high_watermark

    def _append(
        self,
        tp: TopicPartition,
        partition: Partition,
        state: PartitionFetchState,
        fetched: FetchedPartition,
    ) -> int:
        """Append what came; returns the bytes of it that were whole batches.

        Raises:
            KafkaError: it is damaged or does not follow the log.
            StorageError: the disk fails.
        """
        if state.fetch_offset != partition.log_end_offset:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"it was fetched from {state.fetch_offset} on, and the log ends at "
                f"{partition.log_end_offset}",
            )
        size = 0
        if len(fetched.records):
            if _begins_within_batch(fetched, partition):
                partition.truncate_fully_and_start_at(fetched.log_start_offset)
            info = partition.append_records_to_follower(
                memoryview(fetched.records), state.fetch_offset, state.current_leader_epoch
            )
            size = 0 if info is None else info.size
        if self._quota.is_throttled(tp):
            self._quota.record(len(fetched.records))
        return size

    def _note_progress(
        self,
        tp: TopicPartition,
        state: PartitionFetchState,
        partition: Partition,
        fetched: FetchedPartition,
        size: int,
    ) -> None:
        """Where to go on. A partition that got records is fetched last next time, so that none
        starves (KIP-74)."""
        next_offset = partition.log_end_offset if size else state.fetch_offset
        lag = max(0, fetched.high_watermark - next_offset)
        if size == 0 and state.lag is not None:
            if lag != state.lag or state.attempts:
                self._states[tp] = state._replace(lag=lag, attempts=0)
            return
        self.bytes_count += size
        self._update(
            tp,
            state._replace(
                fetch_offset=next_offset,
                lag=lag,
                state=TRANSITIONS.next_state(state.state, FetchEvent.APPENDED),
                last_fetched_epoch=partition.latest_epoch() if size else state.last_fetched_epoch,
                delayed_until_ms=None,
                attempts=0,
            ),
        )

    # -- ListOffsets: the fetch offset is not in the leader's log ---------------------------

    def _begin_reset(self, tp: TopicPartition, state: PartitionFetchState) -> None:
        """Have the leader's log end listed, and then its start (handleOutOfRangeError).

        A leader that ends before the follower was elected uncleanly: what it does not have is
        truncated. If it ends behind, it may have deleted what the follower needs next, which its
        start tells. If it has not, it has grown since it refused the fetch, and the next one
        says where the logs diverge.
        """
        new_state = TRANSITIONS.next_state(state.state, FetchEvent.OUT_OF_RANGE)
        self._update(tp, state._replace(state=new_state, leader_end_offset=None))

    def offsets_answered(
        self, plan: OffsetsPlan, listed: Mapping[TopicPartition, ListedOffset], now_ms: int
    ) -> None:
        """Go on from an offset that the leader has (fetchOffsetAndTruncate).

        Args:
            plan: the request, for one end of the leader's logs.
            listed: the response. What is missing in it is requested again after a pause.
            now_ms: monotonic.
        """
        self._failures = 0
        is_of_end = plan.timestamp == LATEST_TIMESTAMP
        for tp, leader_epoch in plan.partitions.items():
            state = self._states.get(tp)
            if (
                state is None
                or state.state is not ReplicaState.RESETTING
                or state.current_leader_epoch != leader_epoch
                or (state.leader_end_offset is None) != is_of_end
            ):
                continue
            found = listed.get(tp)
            if found is not None and found.error is ErrorCode.FENCED_LEADER_EPOCH:
                self._fenced(tp, state)
                continue
            partition = self._partition_of(tp)
            if partition is None or found is None or found.error or found.offset < 0:
                error = ErrorCode.NONE if found is None else found.error
                logger.info("ListOffsets to the leader failed for %s: %s", tp, error.name)
                self._back_off(tp, now_ms, error)
            elif is_of_end:
                self._take_leader_end(tp, partition, state, found.offset)
            else:
                self._take_leader_start(tp, partition, state, found.offset)

    def _take_leader_end(
        self,
        tp: TopicPartition,
        partition: Partition,
        state: PartitionFetchState,
        leader_end_offset: int,
    ) -> None:
        had_end_offset = partition.log_end_offset
        if leader_end_offset >= had_end_offset:
            self._states[tp] = state._replace(leader_end_offset=leader_end_offset)
            return
        logger.warning(
            "%s goes back from %d to its leader's end offset %d",
            tp,
            had_end_offset,
            leader_end_offset,
        )
        if self._truncate(tp, partition, leader_end_offset, FetchEvent.RESET):
            self._note_reset(tp, leader_end_offset)

    def _take_leader_start(
        self,
        tp: TopicPartition,
        partition: Partition,
        state: PartitionFetchState,
        leader_start_offset: int,
    ) -> None:
        had_end_offset, leader_end_offset = partition.log_end_offset, state.leader_end_offset
        assert leader_end_offset is not None, "the end is listed first"
        if leader_start_offset <= had_end_offset:
            self._go_on_from_log_end(tp, FetchEvent.RESET)
        else:
            logger.warning(
                "%s ends at %d and begins anew at its leader's start offset %d",
                tp,
                had_end_offset,
                leader_start_offset,
            )
            if not self._cut(
                tp,
                lambda: partition.truncate_fully_and_start_at(leader_start_offset),
                leader_start_offset,
                FetchEvent.RESET,
            ):
                return
        self._note_reset(tp, leader_end_offset)

    def _note_reset(self, tp: TopicPartition, leader_end_offset: int) -> None:
        """The lag is known from the leader's end, and others come first."""
        state = self._states[tp]
        self._update(tp, state._replace(lag=max(0, leader_end_offset - state.fetch_offset)))

    # -- what can become of a partition -----------------------------------------------------

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
        """It leaves the fetcher, and comes back with the next leader epoch.

        The caller logs why: an epoch that is fenced is part of every change of leaders.
        """
        logger.info("%s is not fetched any more until it has another leader epoch", tp)
        self._states.pop(tp, None)
        self.failed.add(tp)

    def _fenced(self, tp: TopicPartition, state: PartitionFetchState) -> None:
        """The leader has a newer epoch than the partition here, of which the controller will
        send word (Kafka's onPartitionFenced)."""
        logger.info(
            "%s has epoch %d, older than its leader's; waiting for the controller's new one",
            tp,
            state.current_leader_epoch,
        )
        self._mark_failed(tp)

    def _truncate(
        self,
        tp: TopicPartition,
        partition: Partition,
        offset: int,
        event: FetchEvent = FetchEvent.TRUNCATED,
    ) -> bool:
        """Truncate a log to `offset`; see `_cut`."""
        logger.info("Truncating %s to offset %d", tp, offset)
        high_watermark = partition.high_watermark
        is_cut = self._cut(tp, lambda: partition.truncate_to(offset), offset, event)
        if is_cut and offset < high_watermark:
            logger.warning(
                "%s was truncated to offset %d, below its high watermark %d",
                tp,
                offset,
                high_watermark,
            )
        return is_cut

    def _cut(
        self, tp: TopicPartition, cut: Callable[[], object], offset: int, event: FetchEvent
    ) -> bool:
        """Truncate a log and go on from its end; returns whether that succeeded, else the
        partition fails.

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

    def _go_on_from_log_end(self, tp: TopicPartition, event: FetchEvent) -> None:
        """After a truncation. Batches stay whole, so the log may end before the offset given."""
        state, partition = self._states[tp], self._partition_of(tp)
        assert partition is not None, f"{tp} has just been truncated"
        self._states[tp] = state._replace(
            fetch_offset=partition.log_end_offset,
            state=TRANSITIONS.next_state(state.state, event),
            last_fetched_epoch=partition.latest_epoch(),
            leader_end_offset=None,
        )


def _is_same_following(state: PartitionFetchState, begin: InitialFetchState) -> bool:
    """Whether leader epoch and topic are those that are followed already."""
    return state.current_leader_epoch == begin.leader_epoch and (
        state.topic_id == begin.topic_id or not any(state.topic_id) or not any(begin.topic_id)
    )


def _is_stale(state: PartitionFetchState, requested: PlannedPartition, now_ms: int) -> bool:
    """Whether a response is for another state than the one that a partition is in now.

    It may have been removed and added, or truncated, while the request was in flight.
    """
    return not (
        state.fetch_offset == requested.fetch_offset
        and state.current_leader_epoch == requested.current_leader_epoch
        and state.topic_id == requested.topic_id
        and state.is_ready_for_fetch(now_ms)
    )


def _is_disk_full(error: KafkaError) -> bool:
    """Whether a disk is full, say, rather than broken: nothing was appended, and it may be yet."""
    return isinstance(error.__cause__, OSError) and not is_disk_failure(error.__cause__)


def _begins_within_batch(fetched: FetchedPartition, partition: Partition) -> bool:
    """Whether the leader's log begins where ours ends, and its first batch before.

    Ours was another one, then. Nothing in it is the leader's any more, who has deleted the
    records of those offsets, and with them the epochs that could tell where the logs diverge.
    """
    end_offset = partition.log_end_offset
    return (
        fetched.log_start_offset == end_offset > partition.log_start_offset
        and int.from_bytes(fetched.records[:8], "big") < end_offset
    )
