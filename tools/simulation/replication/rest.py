"""How a replication run comes to rest: everybody is back, and all replicas become the same."""

from __future__ import annotations

from collections.abc import Callable

from ....common.topic_partition import TopicPartition
from .cluster import ReplicatedCluster
from .invariants import InvariantBroken

QUIET_STEPS_MAX = 5_000
"""So many steps without a fault, and all replicas must be the same."""
CALM_STEPS = 8
"""After so many it is looked whether they are."""


def come_to_rest(
    cluster: ReplicatedCluster,
    heal: Callable[[], None],
    produce_to: Callable[[TopicPartition], None],
) -> None:
    """Let everybody catch up; each partition acknowledges one more batch on the way.

    Args:
        cluster: that ran with faults.
        heal: ends all faults.
        produce_to: lets a client produce a batch that must be acknowledged.

    Raises:
        InvariantBroken: they do not, or are not the same then.
    """
    cluster.trace("no faults for a while")
    heal()
    still_unproven = list(cluster.partitions)
    for step in range(QUIET_STEPS_MAX):
        cluster.quiet_step()
        if step % CALM_STEPS or not _is_calm(cluster):
            continue
        if still_unproven:
            produce_to(still_unproven.pop())
        elif _all_know_it(cluster):
            replicas = {broker.broker_id: broker.partitions for broker in cluster.brokers}
            cluster.invariants.check_rest(replicas, sorted(replicas))
            return
    raise InvariantBroken(f"the replicas do not become the same: {_describe(cluster)}")


def _is_calm(cluster: ReplicatedCluster) -> bool:
    """All are in sync, and at the same end, and nobody waits for acknowledgements.

    A follower may not know yet that all of it is committed: a session's leader tells its high
    watermark once, even if that answer came to an epoch that was over.
    """
    if cluster.is_anything_changing or cluster.invariants.unanswered:
        return False
    for partition, state in cluster.store.states.items():
        if state.leader < 0 or len(state.isr) < len(cluster.brokers):
            return False
        replicas = [broker.partitions.get(partition) for broker in cluster.brokers]
        leader = replicas[state.leader - 1]
        if leader is None:
            return False
        end = (leader.high_watermark, state.leader_epoch)
        if any(
            each is None or (each.log_end_offset, each.leader_epoch) != end for each in replicas
        ):
            return False
    return True


def _all_know_it(cluster: ReplicatedCluster) -> bool:
    """Whether every replica's high watermark is at its end."""
    return all(
        hosted.high_watermark == hosted.log_end_offset
        for broker in cluster.brokers
        for hosted in broker.partitions.values()
    )


def _describe(cluster: ReplicatedCluster) -> str:
    return "; ".join(
        f"broker {broker.broker_id}: {each} {hosted.log_start_offset}.."
        f"{hosted.high_watermark}..{hosted.log_end_offset} in {hosted.leader_epoch}, "
        f"failed {sorted(broker.fetchers.failed_partitions)}"
        for broker in cluster.brokers
        if broker.alive
        for each, hosted in broker.partitions.items()
    )
