"""One partition in a metadata answer: its leader, its replicas, and what is wrong.

The third kind of query of article 000, as Kafka's `MetadataCache.getPartitionMetadata`
answers it: from one snapshot, for the listener that the client came in by.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..common.errors import ErrorCode
from ..common.partition_state import PartitionState
from ..common.sentinels import NO_LEADER
from .metadata_cache import MetadataSnapshot


class PartitionMetadata(NamedTuple):
    """A partition as seen through one listener.

    Attributes:
        error: LEADER_NOT_AVAILABLE where the leader is not alive, LISTENER_NOT_FOUND where it
            has no such listener, REPLICA_NOT_AVAILABLE where replicas were left out.
        leader: -1 unless clients can reach it.
        offline_replicas: those that clients cannot reach, or that their broker cannot serve.
    """

    error: ErrorCode
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]


def partition_metadata(
    snapshot: MetadataSnapshot,
    state: PartitionState,
    listener_name: str,
    *,
    leaves_out_unreachable: bool = False,
    tells_missing_listeners: bool = True,
) -> PartitionMetadata:
    """What to tell of a partition.

    Args:
        snapshot: the cluster.
        state: the partition, of the same snapshot.
        listener_name: where the client came in.
        leaves_out_unreachable: whether replicas that cannot be reached are not named, and
            their absence is an error (Metadata before version 1).
        tells_missing_listeners: whether a missing listener is distinguished from a missing leader
            (Metadata from version 6 on).
    """
    alive = snapshot.alive_nodes
    code = ErrorCode.NONE
    if state.leader not in alive:
        code = ErrorCode.LEADER_NOT_AVAILABLE
    elif listener_name not in alive[state.leader]:
        code = ErrorCode.LEADER_NOT_AVAILABLE
        if tells_missing_listeners:
            code = ErrorCode.LISTENER_NOT_FOUND
    leader = NO_LEADER if code else state.leader
    replicas, isr = state.replicas, state.isr
    if leaves_out_unreachable:
        replicas = _reachable(snapshot, replicas, listener_name)
        isr = _reachable(snapshot, isr, listener_name)
        if not code and (len(replicas) < len(state.replicas) or len(isr) < len(state.isr)):
            code = ErrorCode.REPLICA_NOT_AVAILABLE
    return PartitionMetadata(
        code, leader, replicas, isr, offline_replicas(snapshot, state, listener_name)
    )


def offline_replicas(
    snapshot: MetadataSnapshot, state: PartitionState, listener_name: str
) -> tuple[int, ...]:
    """The replicas whose broker is gone or lacks the listener, or whose directory failed."""
    alive = snapshot.alive_nodes
    return tuple(
        [
            replica
            for replica in state.replicas
            if replica in state.offline_replicas or listener_name not in alive.get(replica, ())
        ]
    )


def _reachable(
    snapshot: MetadataSnapshot, replicas: Iterable[int], listener_name: str
) -> tuple[int, ...]:
    alive = snapshot.alive_nodes
    return tuple([replica for replica in replicas if listener_name in alive.get(replica, ())])
