"""Who leads a partition: the first leader, and the election of another.

Pure decisions, after Kafka's PartitionStateMachine and Election.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from ...replication.partition_state import NO_LEADER
from ..metadata_store.znodes import LeaderAndIsrNode


def first_leadership(
    replicas: Sequence[int], live: Container[int], controller_epoch: int
) -> LeaderAndIsrNode | None:
    """The leadership of a partition that never had one: its first live replica.

    Returns:
        None when none of the replicas is alive.
    """
    alive = tuple(replica for replica in replicas if replica in live)
    if not alive:
        return None
    return LeaderAndIsrNode(controller_epoch, alive[0], 0, alive)


def elect_leader(
    former: LeaderAndIsrNode,
    replicas: Sequence[int],
    live: Container[int],
    controller_epoch: int,
) -> LeaderAndIsrNode | None:
    """A new leadership for a partition whose leader is gone or has been.

    The first live replica of the assignment that is in sync leads; the leader epoch moves
    even where the same broker leads again, since its log may have lost what was not yet
    on disk, and whoever fetches must notice.

    Returns:
        None when no replica in sync is alive.
    """
    isr = tuple(replica for replica in former.isr if replica in live)
    for replica in replicas:
        if replica in isr:
            return LeaderAndIsrNode(controller_epoch, replica, former.leader_epoch + 1, isr)
    return None


def needs_election(
    state: LeaderAndIsrNode, live: Container[int], restarted: Container[int]
) -> bool:
    """Whether a partition must get a leader: it has none that was alive all the time."""
    return state.leader == NO_LEADER or state.leader not in live or state.leader in restarted
