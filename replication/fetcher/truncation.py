"""Where a follower's log is to be truncated, from what the leader answers of an epoch.

Kafka's AbstractFetcherThread.getOffsetTruncationState (KIP-101, KIP-279).
"""

from __future__ import annotations

import logging
from enum import Enum

from ...common.named_tuple import NamedTuple
from ...common.sentinels import NO_EPOCH, NO_OFFSET
from ...common.topic_partition import TopicPartition
from ..partition.partition import Partition
from .plans import EpochEnd

logger = logging.getLogger(__name__)


class Truncation(Enum):
    """How a follower finds out which end of its log its leader does not have."""

    FETCH = "fetch"
    """By the diverging epochs in answers to Fetch 12+ (Kafka 2.7+)."""
    EPOCH_REQUEST = "epoch request"
    """By OffsetForLeaderEpoch before the first fetch (KIP-101 and KIP-279; Kafka 0.11+)."""
    HIGH_WATERMARK = "high watermark"
    """Not at all: it cuts at its own high watermark, which may lose records (before KIP-101)."""


class OffsetTruncation(NamedTuple):
    """Where to truncate, and whether the logs agree then."""

    offset: int
    is_complete: bool
    """False: the end of what is the last epoch then is to be requested."""


def offset_truncation(
    topic_partition: TopicPartition,
    partition: Partition,
    fetch_offset: int,
    leader: EpochEnd,
) -> OffsetTruncation:
    """Decide where to truncate.

    Args:
        topic_partition: for messages.
        partition: the follower's log.
        fetch_offset: the partition's, which is the high watermark until it has been truncated.
        leader: the largest epoch of its log not above the requested one, and its end.
    """
    log_end_offset = partition.log_end_offset
    if leader.end_offset == NO_OFFSET:
        logger.warning(
            "The leader of %s does not know the requested epoch's end; truncating to %d",
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
            "%s knows no epoch as early as %d; truncating to its leader's offset %d",
            topic_partition,
            leader.leader_epoch,
            leader.end_offset,
        )
        return OffsetTruncation(min(leader.end_offset, log_end_offset), True)
    if epoch != leader.leader_epoch:
        # Both logs have epochs that the other has not: go back to one before, and request that.
        return OffsetTruncation(min(end_offset, log_end_offset), False)
    return OffsetTruncation(min(end_offset, leader.end_offset, log_end_offset), True)
