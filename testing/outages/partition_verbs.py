"""What happens to a partition on purpose: a follower is held back, another broker leads."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from ...common.errors import ErrorCode, KafkaError
from ...common.topic_partition import TopicPartition
from ...controller.partitions.leader_elections import ElectionType
from ...replication.fetcher.fetcher_partition import InitialFetchState
from ...replication.partition.partition import Partition
from ...replication.partition.replica import LONG_AGO_MS, UNKNOWN_OFFSET
from ..control.verbs import VerbError
from .held_replicas import HeldReplicas

if TYPE_CHECKING:
    from ..control.verbs import Controlled

logger = logging.getLogger(__name__)

SETTLE_SECONDS_MAX = 40.0
LOOK_SECONDS = 0.002


def hold(target: Controlled, topic: str, partition: int) -> None:
    """Have this broker's replica of a partition follow its leader no more."""
    found = _hosted(target, topic, partition)
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


def release(target: Controlled, topic: str, partition: int) -> None:
    """Have this broker's replica follow its leader again."""
    logger.warning("outage: %s-%d is fetched by this broker again", topic, partition)
    _held(target).release(TopicPartition(topic, partition))


async def drop_from_isr(target: Controlled, topic: str, partition: int, broker: int) -> list[int]:
    """Take a follower that does not fetch out of the ISR now; returns the ISR then."""
    found = _hosted(target, topic, partition)
    follower = found.remote_replicas.get(broker)
    if not found.is_leader or follower is None:
        raise VerbError(f"this broker does not lead {topic}-{partition} with broker {broker}")
    logger.warning("outage: broker %d leaves the ISR of %s-%d", broker, topic, partition)
    with trio.move_on_after(SETTLE_SECONDS_MAX):
        while broker in found.isr or found.pending_isr_change is not None:
            follower.log_end_offset = UNKNOWN_OFFSET
            follower.last_caught_up_ms = LONG_AGO_MS
            target.broker.replica_manager.shrink_isrs()
            target.broker.server.finish_outside_work()
            await trio.sleep(LOOK_SECONDS)
        return list(found.isr)
    raise TimeoutError(f"the ISR of {topic}-{partition} is still {list(found.isr)}")


async def lead(target: Controlled, topic: str, partition: int, to: int) -> int:
    """Have another broker lead a partition; this one must be the controller.

    As an operator does it: the replicas are put in an order that begins with `to`, which then is
    the preferred leader, and that one is elected.

    Returns:
        The leader epoch since which it leads.
    """
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


def _hosted(target: Controlled, topic: str, partition: int) -> Partition:
    found = target.broker.replica_manager.get_partition(TopicPartition(topic, partition))
    if found is None:
        raise VerbError(f"broker {target.broker.broker_id} has no replica of {topic}-{partition}")
    return found


def _held(target: Controlled) -> HeldReplicas:
    """Stands between this broker's partitions and its fetchers, from the first use on."""
    hosted = target.broker.replica_manager.hosted
    if not isinstance(hosted.peers, HeldReplicas):
        hosted.peers = HeldReplicas(hosted.peers)
    return hosted.peers
