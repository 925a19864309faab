"""Partitions whose fetch offset is not in the leader's log.

Kafka's handleOutOfRangeError and fetchOffsetAndTruncate (article 004).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ...common.errors import ErrorCode
from ...common.sentinels import LATEST_TIMESTAMP
from ...common.topic_partition import TopicPartition
from .fetcher_asking import AskingFetcher
from .fetcher_partition import (
    FetchEvent,
    FollowedPartition,
    PartitionFetchState,
    ReplicaState,
    next_state,
)
from .fetcher_requests import ListedOffset, OffsetsAsk

logger = logging.getLogger(__name__)


class ResettingFetcher(AskingFetcher):
    """A fetcher that finds its way back into the leader's log.

    A leader that ends before the follower was elected uncleanly: what it has not is cut. If it
    ends behind, it may have deleted what the follower needs next, and where it begins tells. If
    it has not, it has grown since it refused the fetch, and the next one says where the logs
    part.
    """

    def _begin_reset(self, tp: TopicPartition, state: PartitionFetchState) -> None:
        """Have the leader asked where its log ends, and then where it begins."""
        event = FetchEvent.OUT_OF_RANGE
        self._update(
            tp, state._replace(state=next_state(state.state, event), leader_end_offset=None)
        )

    def offsets_answered(
        self, ask: OffsetsAsk, listed: Mapping[TopicPartition, ListedOffset], now_ms: int
    ) -> None:
        """Go on from an offset that the leader has.

        Args:
            ask: the request, for one end of the leader's logs.
            listed: the answer. What is missing in it is asked again after a pause.
            now_ms: monotonic.
        """
        self._failures = 0
        is_of_end = ask.timestamp == LATEST_TIMESTAMP
        for tp, leader_epoch in ask.partitions.items():
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
                self._fenced(tp, leader_epoch, now_ms)
                continue
            partition = self._partition_of(tp)
            if partition is None or found is None or found.error or found.offset < 0:
                error = ErrorCode.NONE if found is None else found.error
                logger.info("The leader did not tell offsets of %s: %s", tp, error.name)
                self._back_off(tp, now_ms, error)
            elif is_of_end:
                self._take_leader_end(tp, partition, state, found.offset)
            else:
                self._take_leader_start(tp, partition, state, found.offset)

    def _take_leader_end(
        self,
        tp: TopicPartition,
        partition: FollowedPartition,
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
        partition: FollowedPartition,
        state: PartitionFetchState,
        leader_start_offset: int,
    ) -> None:
        had_end_offset, leader_end_offset = partition.log_end_offset, state.leader_end_offset
        assert leader_end_offset is not None, "the end is asked for first"
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
