"""Which replica a consumer had better read from (KIP-392, Kafka's ReplicaSelector).

The leader says it: it alone knows how far the others are.
"""

from __future__ import annotations

from collections.abc import Callable

from ..partition.partition import Partition
from .fetch import FetchParams

NO_REPLICA = -1
"""Stay with the replica that got the fetch."""

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEADER_ONLY = "org.apache.kafka.common.replica.LeaderSelector"
SELECTORS = (LEADER_ONLY, RACK_AWARE)
"""What `replica.selector.class` may name: Kafka's own two, by their names there."""

SelectReplica = Callable[[Partition, FetchParams, int], int]
"""The broker that a consumer's fetch at an offset had better go to, or `NO_REPLICA`."""


def select_leader(partition: Partition, params: FetchParams, fetch_offset: int) -> int:
    """Everybody reads from the leader; Kafka's default."""
    return NO_REPLICA


class RackAwareSelector:
    """Sends consumers to a replica in their own rack, the one that is furthest.

    The leader is as good as any if it is in that rack. One that is not in the ISR, or has not
    the offset, is nobody's choice: the consumer would be sent back and forth.

    Args:
        rack_of: a broker's rack as far as it is alive and has one.
    """

    def __init__(self, rack_of: Callable[[int], str | None]) -> None:
        self._rack_of = rack_of

    def __call__(self, partition: Partition, params: FetchParams, fetch_offset: int) -> int:
        """The replica for one partition of a fetch."""
        rack = params.rack
        if not rack or params.is_from_follower or not partition.is_leader:
            return NO_REPLICA
        if self._rack_of(partition.broker_id) == rack:
            return NO_REPLICA
        found = [
            replica
            for replica in partition.remote_replicas.values()
            if replica.broker_id in partition.isr
            and replica.log_start_offset <= fetch_offset <= replica.log_end_offset
            and self._rack_of(replica.broker_id) == rack
        ]
        if not found:
            return NO_REPLICA
        best = max(found, key=lambda replica: (replica.log_end_offset, replica.last_caught_up_ms))
        return best.broker_id
