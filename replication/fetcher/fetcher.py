"""One fetcher: follows the partitions that one broker leads, or its share of them.

After Kafka's AbstractFetcherThread and ReplicaFetcherThread (article 004), as a machine that
waits for nothing: `next_request` says what to ask, the answer is handed to the method of its
kind, and so on. Partitions may come and go while a request is under way, so an answer counts
for a partition only if its fetch offset and leader epoch are still those of the request.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Mapping

from ...common.errors import ErrorCode, KafkaError
from ...common.topic_partition import TopicPartition
from ...storage.errors import is_disk_failure
from .fetcher_partition import (
    FetchEvent,
    FollowedPartition,
    PartitionFetchState,
    ReplicaState,
    Truncation,
    next_state,
)
from .fetcher_requests import (
    EpochEnd,
    EpochsAsk,
    FetchAnswer,
    FetchAsk,
    FetchedPartition,
    WantedPartition,
)
from .fetcher_resetting import ResettingFetcher
from .fetcher_truncation import offset_truncation

logger = logging.getLogger(__name__)

SESSION_ERRORS = frozenset(
    {ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH}
)
"""The leader has forgotten the session: naming everything again helps at once."""

DAMAGED_RECORDS = frozenset({ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD})
"""Of records that came: the next fetch may bring them whole."""

LOG_LEVELS: Mapping[ErrorCode, int] = {
    ErrorCode.UNKNOWN_LEADER_EPOCH: logging.DEBUG,  # it has not heard of its new epoch yet
    ErrorCode.NOT_LEADER_OR_FOLLOWER: logging.DEBUG,  # the partition is moving
    # These come and go while a partition is being created or deleted.
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: logging.WARNING,
    ErrorCode.UNKNOWN_TOPIC_ID: logging.WARNING,
    ErrorCode.INCONSISTENT_TOPIC_ID: logging.WARNING,
}
"""How loud an error of a partition is reported; others are errors. All are tried again."""


class ReplicaFetcher(ResettingFetcher):
    """A fetcher. See `FetcherPartitions` for its arguments."""

    # -- epochs -----------------------------------------------------------------------------

    def epochs_answered(
        self, ask: EpochsAsk, ends: Mapping[TopicPartition, EpochEnd], now_ms: int
    ) -> None:
        """Cut the logs where the leader's epochs end (truncateToEpochEndOffsets).

        Args:
            ask: the request.
            ends: the answer. What is missing in it is asked again after a pause.
            now_ms: monotonic.
        """
        self._failures = 0
        for tp, asked in ask.partitions.items():
            state = self._states.get(tp)
            if (
                state is None
                or state.state is not ReplicaState.TRUNCATING
                or state.current_leader_epoch != asked.current_leader_epoch
            ):
                continue
            end = ends.get(tp)
            if end is None:
                self._back_off(tp, now_ms)
            elif end.error is ErrorCode.NONE:
                self._truncate_to_epoch_end(tp, state, end, now_ms)
            elif end.error is ErrorCode.FENCED_LEADER_EPOCH:
                self._fenced(tp, asked.current_leader_epoch, now_ms)
            else:
                logger.info("The leader did not tell epochs of %s: %s", tp, end.error.name)
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
            # Asked again, the leader would say the same.
            self._back_off(tp, now_ms)

    # -- fetches ----------------------------------------------------------------------------

    def fetch_answered(self, ask: FetchAsk, answer: FetchAnswer, now_ms: int) -> None:
        """Append what came, and see to each partition's error (processFetchRequest).

        Args:
            ask: the request.
            answer: the answer.
            now_ms: monotonic.
        """
        for _ in self.take_fetched(ask, answer, now_ms):
            pass

    def take_fetched(
        self, ask: FetchAsk, answer: FetchAnswer, now_ms: int
    ) -> Generator[int, None, None]:
        """As `fetch_answered`, in steps: the bytes of each partition once it is done.

        Partitions may come and go between the steps.
        """
        self._failures = 0
        if not self._session.handle_answer(answer):
            if ask.session_epoch == 0 or answer.error not in SESSION_ERRORS:
                self._delay(self.topic_partitions, now_ms + self.settings.fetch_backoff_ms)
            return
        changed: list[TopicPartition] = []
        if answer.partitions:
            self._states.has_changed = True  # if only in where their logs start
        try:
            for tp, fetched in answer.partitions.items():
                state = self._states.get(tp)
                asked = ask.wanted.get(tp)
                if state is None or asked is None or _is_stale(state, asked, now_ms):
                    continue
                if self._take_partition(tp, state, fetched, now_ms):
                    changed.append(tp)
                yield len(fetched.records)
        finally:
            if changed:
                self._on_appended(changed)

    def _take_partition(
        self, tp: TopicPartition, state: PartitionFetchState, fetched: FetchedPartition, now_ms: int
    ) -> bool:
        """Whether anything that others may wait for has changed."""
        error = fetched.error
        if error is ErrorCode.NONE:
            if fetched.diverging_epoch is None or self.settings.truncation is not Truncation.FETCH:
                return self._take_records(tp, state, fetched, now_ms)
            # High watermark and log start come with the next answer, when the log is cut.
            end = EpochEnd(ErrorCode.NONE, *fetched.diverging_epoch)
            self._truncate_to_epoch_end(tp, state, end, now_ms)
        elif error is ErrorCode.OFFSET_OUT_OF_RANGE:
            logger.info("Offset %d of %s is not in its leader's log", state.fetch_offset, tp)
            self._begin_reset(tp, state)
        elif error is ErrorCode.FENCED_LEADER_EPOCH:
            self._fenced(tp, state.current_leader_epoch, now_ms)
        else:
            level = LOG_LEVELS.get(error, logging.ERROR)
            logger.log(
                level, "The leader refused %s at offset %d: %s", tp, state.fetch_offset, error.name
            )
            self._back_off(tp, now_ms, error)
        return False

    def _take_records(
        self, tp: TopicPartition, state: PartitionFetchState, fetched: FetchedPartition, now_ms: int
    ) -> bool:
        """Append, carry over high watermark and log start; whether records or the mark moved.

        What is damaged or finds no room is fetched again; any other failure is the partition's
        end here, and not that of the others (processPartitionData and its callers).
        """
        try:
            partition = self._partition_of(tp)
            if partition is None:
                self._back_off(tp, now_ms)
                return False
            had_high_watermark = partition.high_watermark
            size = self._append(tp, partition, state, fetched)
            high_watermark = partition.update_follower_high_watermark(fetched.high_watermark)
            partition.advance_follower_log_start(fetched.log_start_offset)
        except KafkaError as error:
            logger.error("Could not append to %s at offset %d: %s", tp, state.fetch_offset, error)
            if error.code in DAMAGED_RECORDS or _is_short_of_room(error):
                self._back_off(tp, now_ms)
            else:
                self._mark_failed(tp)
            return False
        except Exception:
            # Whatever else is wrong with one partition, the others must be fetched.
            logger.exception("Could not append to %s at offset %d", tp, state.fetch_offset)
            self._mark_failed(tp)
            return False
        self._note_progress(tp, state, partition, fetched, size)
        if len(fetched.records) and not size:
            logger.warning("Nothing of what came for %s can be appended", tp)
            self._back_off(tp, now_ms)
        return size > 0 or high_watermark != had_high_watermark

    def _append(
        self,
        tp: TopicPartition,
        partition: FollowedPartition,
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
        partition: FollowedPartition,
        fetched: FetchedPartition,
        size: int,
    ) -> None:
        """Where to go on; who got records comes last next time, so that none starves."""
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
                state=next_state(state.state, FetchEvent.APPENDED),
                last_fetched_epoch=partition.latest_epoch() if size else state.last_fetched_epoch,
                delayed_until_ms=None,
                attempts=0,
            ),
        )


def _is_short_of_room(error: KafkaError) -> bool:
    """Whether a disk is full, say, rather than broken: nothing was appended, and it may be yet."""
    return isinstance(error.__cause__, OSError) and not is_disk_failure(error.__cause__)


def _begins_within_batch(fetched: FetchedPartition, partition: FollowedPartition) -> bool:
    """Whether the leader's log begins where ours ends, and its first batch before.

    Ours was another one, then. Nothing in it is the leader's any more, who has deleted the
    records of those offsets, and with them the epochs that could tell where the logs part.
    """
    end_offset = partition.log_end_offset
    return (
        fetched.log_start_offset == end_offset > partition.log_start_offset
        and int.from_bytes(fetched.records[:8], "big") < end_offset
    )


def _is_stale(state: PartitionFetchState, asked: WantedPartition, now_ms: int) -> bool:
    """Whether an answer is for another state than the one that a partition is in now.

    It may have been removed and added, or truncated, while the request was under way.
    """
    return not (
        state.fetch_offset == asked.fetch_offset
        and state.current_leader_epoch == asked.current_leader_epoch
        and state.topic_id == asked.topic_id
        and state.is_ready_for_fetch(now_ms)
    )
