"""Emptying a broker that is alone in its cluster, in one go.

Deleting topics the usual way takes each through its states, with writes and requests of its
own: several milliseconds a topic. Here the broker's own parts are told of all at once: one
transaction in the metadata store, one order to stop all replicas, one new metadata snapshot.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from ...controller.channel.channel import StopReplica
from ...controller.topics.topic_nodes import DELETIONS_PER_TRANSACTION, remove_topic_nodes
from ...metadata.metadata_cache import MetadataUpdate
from ...metadata_store import znodes
from ...metadata_store.errors import NoNode
from ...metadata_store.store import Delete, Operation
from ...replication.partition.hosted_partitions import StoppedReplica
from ..control.verbs import VerbError

if TYPE_CHECKING:
    from ...broker.broker import Broker
    from ...controller.active_controller import Term
    from ...controller.context import Topic

logger = logging.getLogger(__name__)

ORDERS_SECONDS_MAX = 30.0
"""How long what the controller has said before may take to be carried out."""


async def empty(broker: Broker, term: Term) -> None:
    """Take all topics from a broker, with all that is in them; it acts as the controller.

    Groups and transactions go with the topics that keep them. Whoever waits for something of
    theirs is answered that it is gone.

    Raises:
        VerbError: other brokers are there.
    """
    if len(term.context.live_brokers) > 1:
        raise VerbError("other brokers are there: ask the cluster, not one of its brokers")
    await _carry_out_orders(broker, term)
    topics = list(term.context.topics())
    await _remove_nodes(term, topics)
    for topic in topics:
        term.context.remove_topic(topic)
    manager = broker.replica_manager
    hosted = set(manager.hosted.online) | set(broker.log_manager.logs)
    manager.stop_replicas(
        term.context.epoch, [StoppedReplica(each, delete=True) for each in sorted(hosted)]
    )
    live = list(term.context.live_brokers.values())
    update = MetadataUpdate(broker.broker_id, term.context.epoch, live, is_full=True)
    broker.metadata_cache.update_metadata(update)
    logger.info("reset: %d topics with %d partitions are gone", len(topics), len(hosted))


async def _carry_out_orders(broker: Broker, term: Term) -> None:
    """Wait until the broker has done what the controller has told it: orders stay in order."""
    done = trio.Event()
    (live,) = term.context.live_brokers.values()
    order = StopReplica(broker.broker_id, term.context.epoch, live.epoch, ())
    broker.channels.send(broker.broker_id, order, lambda _: done.set())
    with trio.move_on_after(ORDERS_SECONDS_MAX):
        await done.wait()
        return
    raise TimeoutError("the broker does not carry out its controller's orders")


async def _remove_nodes(term: Term, topics: list[Topic]) -> None:
    """Have the metadata store forget topics."""
    operations = [operation for topic in topics for operation in _deletions(topic)]
    try:
        for start in range(0, len(operations), DELETIONS_PER_TRANSACTION):
            await term.store.multi(operations[start : start + DELETIONS_PER_TRANSACTION])
    except NoNode:  # one of them is not whole, such as one that is just being deleted
        for topic in topics:
            await remove_topic_nodes(term.store, topic.name)


def _deletions(topic: Topic) -> list[Operation]:
    operations: list[Operation] = []
    for partition in topic.assignment:
        if partition in topic.leaderships:
            operations.append(Delete(znodes.partition_state_path(topic.name, partition)))
        operations.append(Delete(znodes.partition_path(topic.name, partition)))
    operations += [
        Delete(znodes.partitions_path(topic.name)),
        Delete(znodes.topic_path(topic.name)),
        Delete(znodes.topic_config_path(topic.name)),
    ]
    if topic.is_being_deleted:
        operations.append(Delete(znodes.delete_topic_path(topic.name)))
    return operations
