"""What a fetcher asks its leader next: truncation comes first, then the fetch.

Kafka's maybeTruncate and maybeFetch (article 004), and RemoteLeaderEndPoint's buildFetch.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...common.sentinels import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, NO_EPOCH
from ...common.topic_partition import TopicPartition
from .fetcher_partition import (
    UNBOUNDED_QUOTA,
    FollowedPartition,
    PartitionFetchState,
    ReplicaState,
    Truncation,
)
from .fetcher_partitions import FetcherPartitions
from .fetcher_requests import (
    Ask,
    EpochsAsk,
    EpochWanted,
    FetchAsk,
    OffsetsAsk,
    Wait,
    WantedPartition,
)
from .fetcher_settings import FIRST_BACKOFF_MS

LOOK_AGAIN_MS = 5000
"""How long a fetcher at rest takes its partitions to be as they were. Retention may have moved a
log's start here, of which the leader may hear so much later."""


class AskingFetcher(FetcherPartitions):
    """A fetcher that knows what to ask."""

    _at_rest: Mapping[TopicPartition, WantedPartition] | None = None
    """What is wanted again as long as no state changes; None if each is to be looked at."""
    _look_again_ms = 0

    def next_request(self, now_ms: int) -> Ask | Wait:
        """What to send; the next call comes after its answer, or `request_failed`.

        Where the high watermark is all there is to go by, logs are cut in here.

        Args:
            now_ms: monotonic.
        """
        at_rest = self._at_rest
        if at_rest is not None:
            if not self._states.has_changed and now_ms < self._look_again_ms:
                self.requests_count += 1
                return self._session.build(at_rest)
            self._at_rest = None
        epochs: dict[TopicPartition, EpochWanted] = {}
        earliest: dict[TopicPartition, int] = {}
        latest: dict[TopicPartition, int] = {}
        unsettled = [
            (tp, state)
            for tp, state in self._states.items()
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
            return EpochsAsk(epochs)
        if earliest:
            return OffsetsAsk(EARLIEST_TIMESTAMP, earliest)
        if latest:
            return OffsetsAsk(LATEST_TIMESTAMP, latest)
        return self._build_fetch(now_ms)

    def _begin_truncation(
        self,
        tp: TopicPartition,
        state: PartitionFetchState,
        epochs: dict[TopicPartition, EpochWanted],
        now_ms: int,
    ) -> None:
        """Ask about the last epoch, or cut at the high watermark where there is none to ask."""
        partition = self._partition_of(tp)
        if partition is None:
            self._back_off(tp, now_ms)
            return
        epoch = partition.latest_epoch()
        if epoch is None or self.settings.truncation is Truncation.HIGH_WATERMARK:
            self._truncate_to_high_watermark(tp, partition, state)
        else:
            epochs[tp] = EpochWanted(state.current_leader_epoch, epoch)

    def _truncate_to_high_watermark(
        self, tp: TopicPartition, partition: FollowedPartition, state: PartitionFetchState
    ) -> None:
        """Without epochs a log is kept as far as it is known to be replicated."""
        self._truncate(tp, partition, state.fetch_offset)

    def _build_fetch(self, now_ms: int) -> FetchAsk | Wait:
        """A fetch of all that is ready for it, if anything is.

        Where that is every partition, and none could be held back, the next one is the same
        until something happens to one of them.
        """
        self._states.has_changed = False
        all_are_in_sync = True
        wanted: dict[TopicPartition, WantedPartition] = {}
        max_bytes = self.settings.fetch_max_bytes
        names_epochs = self.settings.truncation is Truncation.FETCH
        has_quota = self._quota is not UNBOUNDED_QUOTA
        held_back = False
        gone: list[TopicPartition] = []
        for tp, state in self._states.items():
            if not state.is_ready_for_fetch(now_ms):
                continue
            if has_quota and not state.is_in_sync:
                all_are_in_sync = False
                if self._must_wait_for_quota(tp):
                    held_back = True
                    continue
            partition = self._partition_of(tp)
            if partition is None:
                gone.append(tp)
                continue
            epoch = state.last_fetched_epoch
            wanted[tp] = WantedPartition(
                state.topic_id,
                state.fetch_offset,
                partition.log_start_offset,
                max_bytes,
                state.current_leader_epoch,
                epoch if names_epochs and epoch is not None else NO_EPOCH,
            )
        # The disk went offline, or they are being deleted: whoever did that removes them here.
        self._delay(gone, now_ms + self.settings.fetch_backoff_ms)
        ask = self._session.build(wanted)
        if not ask.wanted and not ask.to_forget:
            return self._wait(now_ms, held_back)
        self.requests_count += 1
        if wanted and all_are_in_sync and len(wanted) == len(self._states):
            self._at_rest, self._look_again_ms = wanted, now_ms + LOOK_AGAIN_MS
        return ask

    def _must_wait_for_quota(self, tp: TopicPartition) -> bool:
        """Of one that is not in sync: others are fetched anyway, or the ISR would flap."""
        return self._quota.is_throttled(tp) and self._quota.is_quota_exceeded()

    def _wait(self, now_ms: int, held_back: bool) -> Wait:
        moments = [
            state.delayed_until_ms
            for state in self._states.values()
            if state.delayed_until_ms is not None and state.delayed_until_ms > now_ms
        ]
        if held_back:
            moments.append(now_ms + max(self.settings.fetch_backoff_ms, FIRST_BACKOFF_MS))
        return Wait(min(moments, default=None))

    def request_abandoned(self) -> None:
        """Nobody waits for the answer any more, and another connection is used from now on."""
        self._session.handle_error()

    def request_failed(self, now_ms: int) -> None:
        """The connection broke, so nobody knows what became of the request: pause.

        Args:
            now_ms: monotonic.
        """
        self._session.handle_error()
        backoff_ms = max(self.settings.backoff_after(self._failures), FIRST_BACKOFF_MS)
        self._failures += 1
        ready = [tp for tp, state in self._states.items() if not state.is_delayed(now_ms)]
        self._delay(ready, now_ms + backoff_ms)
