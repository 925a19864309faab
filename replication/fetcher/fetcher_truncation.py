"""Where a follower's log is to be cut, from what the leader says of an epoch.

Kafka's AbstractFetcherThread.getOffsetTruncationState (KIP-101, KIP-279).
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from ...common.sentinels import NO_EPOCH, NO_OFFSET
from ...common.topic_partition import TopicPartition
from .fetcher_partition import FollowedPartition
from .fetcher_requests import EpochEnd

logger = logging.getLogger(__name__)


class OffsetTruncation(NamedTuple):
    """Where to cut, and whether the logs agree then."""

    offset: int
    is_complete: bool
    """False: the leader is to be asked about what is the last epoch then."""


def offset_truncation(
    topic_partition: TopicPartition,
    partition: FollowedPartition,
    fetch_offset: int,
    leader: EpochEnd,
) -> OffsetTruncation:
    """Decide where to cut.

    Args:
        topic_partition: for messages.
        partition: the follower's log.
        fetch_offset: the partition's, which is the high watermark until it has been cut.
        leader: the largest epoch of its log not above the one asked for, and its end.
    """
    log_end_offset = partition.log_end_offset
    if leader.end_offset == NO_OFFSET:
        logger.warning(
            "The leader of %s does not know where the epoch asked for ends; it is cut at %d",
            topic_partition,
            fetch_offset,
        )
        return OffsetTruncation(fetch_offset, True)
    if leader.leader_epoch == NO_EPOCH:
        logger.warning(
            "The leader of %s names no epoch, which was so before Kafka 2.0; "
            "its end offset %d is used as it is",
            topic_partition,
            leader.end_offset,
        )
        return OffsetTruncation(min(leader.end_offset, log_end_offset), True)
    epoch, end_offset = partition.end_offset_for_epoch(leader.leader_epoch)
    if end_offset == NO_OFFSET:
        # No epochs are known here, or none so early, so the leader's offset has to do.
        logger.warning(
            "%s knows no epoch as early as %d; it is cut at its leader's offset %d",
            topic_partition,
            leader.leader_epoch,
            leader.end_offset,
        )
        return OffsetTruncation(min(leader.end_offset, log_end_offset), True)
    if epoch != leader.leader_epoch:
        # Both logs have epochs that the other has not: go back to one before, and ask again.
        return OffsetTruncation(min(end_offset, log_end_offset), False)
    return OffsetTruncation(min(end_offset, leader.end_offset, log_end_offset), True)


def truncate_log(
    topic_partition: TopicPartition, partition: FollowedPartition, offset: int
) -> None:
    """Cut the log, and warn if that takes what counted as replicated.

    Raises:
        StorageError: the disk fails.
    """
    high_watermark = partition.high_watermark
    partition.truncate_to(offset)
    if offset < high_watermark:
        logger.warning(
            "%s was truncated to offset %d, below its high watermark %d",
            topic_partition,
            offset,
            high_watermark,
        )
