"""What happens to replicas on purpose: a follower is held back, another broker leads."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from ...common.topic_partition import TopicPartition
from ...runtime.steps import run_at_once
from ..control.framing import VerbError
from ..control.verbs import verb
from ..inspection.broker_state import hosted_partition

if TYPE_CHECKING:
    from ...common.partition_state import LeaderAndIsr
    from ...replication.fetcher.fetch_state import InitialFetchState
    from ...replication.partition.partition import Partition
    from ...replication.peers import Peers
    from ..control.target import ControlTarget

logger = logging.getLogger(__name__)

ISR_SETTLE_SECONDS_MAX = 40.0


class HeldReplicas:
    """The peers of a broker, but for the partitions that are held: those it does not fetch.

    Args:
        peers: what it stands in front of.

    Attributes:
        held: with how fetching begins once it may; None: the partition is not followed.
    """

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self.held: dict[TopicPartition, InitialFetchState | None] = {}

    def is_alive(self, broker_id: int) -> bool:
        """Whether a broker is alive, as far as is known here."""
        return self._peers.is_alive(broker_id)

    def submit_isr_change(self, partition: Partition, change: LeaderAndIsr) -> None:
        """Have a change of the ISR written."""
        self._peers.submit_isr_change(partition, change)

    def add_fetchers(self, partitions: Mapping[TopicPartition, InitialFetchState]) -> None:
        """Follow partitions, once they may be."""
        free = {}
        for topic_partition, begin in partitions.items():
            if topic_partition in self.held:
                self.held[topic_partition] = begin
            else:
                free[topic_partition] = begin
        if free:
            self._peers.add_fetchers(free)

    def remove_fetchers(self, partitions: Collection[TopicPartition]) -> None:
        """Follow partitions no more."""
        for topic_partition in partitions:
            if topic_partition in self.held:
                self.held[topic_partition] = None
        self._peers.remove_fetchers(partitions)

    def hold(self, topic_partition: TopicPartition, begin: InitialFetchState) -> None:
        """Stop following a partition.

        Args:
            begin: how fetching begins once it may.
        """
        self._peers.remove_fetchers((topic_partition,))
        self.held[topic_partition] = begin

    def release(self, topic_partition: TopicPartition) -> None:
        """Let a partition be followed again."""
        begin = self.held.pop(topic_partition, None)
        if begin is not None:
            self._peers.add_fetchers({topic_partition: begin})


@verb
def hold(target: ControlTarget, topic: str, partition: int) -> None:
    """Have this broker's replica of a partition follow its leader no more."""
    from ...replication.fetcher.fetch_state import InitialFetchState

    found = hosted_partition(target, topic, partition)
    if found.is_leader:
        raise VerbError(f"{topic}-{partition} is led by this broker, which follows nobody")
    logger.warning("outage: %s-%d is not fetched by this broker any more", topic, partition)
    begin = InitialFetchState(
        topic_id=found.topic_id,
        leader_id=found.leader,
        leader_epoch=found.leader_epoch,
        fetch_offset=found.log_end_offset,
    )
    _held(target).hold(found.topic_partition, begin)


@verb
def release(target: ControlTarget, topic: str, partition: int) -> None:
    """Have this broker's replica follow its leader again."""
    logger.warning("outage: %s-%d is fetched by this broker again", topic, partition)
    _held(target).release(TopicPartition(topic, partition))


@verb
async def drop_from_isr(
    target: ControlTarget, topic: str, partition: int, broker: int
) -> list[int]:
    """Take a follower that does not fetch out of the ISR now; returns the ISR then."""
    from ...replication.partition.replica import LONG_AGO_MS, UNKNOWN_OFFSET

    found = hosted_partition(target, topic, partition)
    follower = found.remote_replicas.get(broker)
    if not found.is_leader or follower is None:
        raise VerbError(f"this broker does not lead {topic}-{partition} with broker {broker}")
    logger.warning("outage: broker %d leaves the ISR of %s-%d", broker, topic, partition)

    def is_out() -> bool:
        if broker not in found.isr and found.pending_isr_change is None:
            return True
        follower.log_end_offset = UNKNOWN_OFFSET
        follower.last_caught_up_ms = LONG_AGO_MS
        run_at_once(target.broker.replica_manager.shrink_isrs())
        target.broker.server.finish_outside_work()
        return False

    if not await target.wait_until(is_out, ISR_SETTLE_SECONDS_MAX):
        raise TimeoutError(f"the ISR of {topic}-{partition} is still {list(found.isr)}")
    return list(found.isr)


@verb
async def elect(target: ControlTarget, topic: str, partition: int, to: int) -> int:
    """Have another broker lead a partition; this one must be the controller.

    As an operator does it: the replicas are put in an order that begins with `to`, which then is
    the preferred leader, and that one is elected.

    Returns:
        The leader epoch since which it leads.
    """
    from ...common.errors import ErrorCode, KafkaError
    from ...controller.partitions.leader_elections import ElectionType

    controller = target.broker.controller
    topic_partition = TopicPartition(topic, partition)
    state = target.broker.metadata_cache.get_partition_info(topic, partition)
    if state is None:
        raise VerbError(f"there is no partition {topic}-{partition}")
    if to not in state.replicas:
        raise VerbError(f"broker {to} has no replica of {topic}-{partition}: {state.replicas} have")
    if to not in state.isr:
        raise VerbError(f"broker {to} is not in the ISR {state.isr} of {topic}-{partition}")
    if state.leader == to:
        return state.leader_epoch
    logger.warning("outage: broker %d is to lead %s-%d", to, topic, partition)
    order = [to, *(each for each in state.replicas if each != to)]
    try:
        outcomes = await controller.reassign({topic_partition: order})
        refusal = outcomes[topic_partition]
        if refusal is None:
            elected = await controller.elect_leaders(ElectionType.PREFERRED, [topic_partition])
            refusal = elected[topic_partition]
    except KafkaError as error:
        refusal = error
    if refusal is not None and refusal.code is not ErrorCode.ELECTION_NOT_NEEDED:
        why = refusal.message or refusal.code.name
        if refusal.code is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE:
            why = "it is not there, or not in the ISR"
        raise VerbError(f"broker {to} cannot lead {topic}-{partition}: {why}")
    return state.leader_epoch + 1


def _held(target: ControlTarget) -> HeldReplicas:
    """Stands between this broker's partitions and its fetchers, from the first use on."""
    replica_manager = target.broker.replica_manager
    if not isinstance(replica_manager.peers, HeldReplicas):
        replica_manager.peers = HeldReplicas(replica_manager.peers)
    return replica_manager.peers
