"""Who leads a partition, answered together with the refusal of what only its leader does (KIP-951).

A client that hears of the leader in the answer itself goes there at once; without that it has to
ask for metadata first. Only refusals come here. Source: Kafka's KafkaApis (getCurrentLeader).
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from ...common.errors import ErrorCode
from ...common.topic_partition import TopicPartition
from ...metadata.metadata_cache import BrokerNode
from ...protocol import messages
from .context import HandlerContext

FIRST_PRODUCE_VERSION = 10
FIRST_FETCH_VERSION = 16
NOBODY = -1

AnswerT = TypeVar(
    "AnswerT",
    messages.ProduceResponse,
    messages.FetchResponse,
    messages.ShareFetchResponse,
    messages.ShareAcknowledgeResponse,
)


class CurrentLeader(NamedTuple):
    """The leader of a partition as far as this broker knows.

    Attributes:
        leader_id: of the broker that leads; -1 if none does, or the partition is not known.
        leader_epoch: since when; -1 if the partition is not known.
        node: where clients reach it; None if it is not alive, or has no such listener.
    """

    leader_id: int
    leader_epoch: int
    node: BrokerNode | None


def current_leader(
    context: HandlerContext, topic_partition: TopicPartition, listener_name: str
) -> CurrentLeader:
    """The leader of a partition: as its replica here has it, else as the metadata have it.

    Args:
        context: the broker's.
        topic_partition: it may exist or not.
        listener_name: the one that the client came in by, whose addresses it can use.
    """
    leader_id = leader_epoch = NOBODY
    cache = context.metadata_cache
    partition = context.replica_manager.get_partition(topic_partition)
    if partition is not None:
        leader_id, leader_epoch = partition.leader, partition.leader_epoch
    else:
        state = cache.get_partition_info(*topic_partition)
        if state is not None:
            leader_id, leader_epoch = state.leader, state.leader_epoch
    node = cache.get_alive_broker_node(leader_id, listener_name)
    return CurrentLeader(leader_id, leader_epoch, node)


def add_endpoint(answer: AnswerT, node: BrokerNode | None) -> None:
    """Put a leader's address into an answer, once; None is nowhere to be reached."""
    if node is None or any(each.node_id == node.broker_id for each in answer.node_endpoints):
        return
    endpoint = answer.NodeEndpoint(
        node_id=node.broker_id, host=node.host, port=node.port, rack=node.rack
    )
    answer.node_endpoints.append(endpoint)


def tell_producer(
    context: HandlerContext,
    version: int,
    listener_name: str,
    answer: messages.ProduceResponse,
    refused: messages.ProduceResponse.PartitionProduceResponse,
    topic_partition: TopicPartition,
) -> None:
    """Put the leader into a Produce answer, if the partition failed for want of it.

    Args:
        context: the broker's.
        version: of the request; before 10 there is no place for it.
        listener_name: the one that the client came in by.
        answer: gets the leader's address.
        refused: the partition's part of the answer; gets leader and epoch.
        topic_partition: which partition that is.
    """
    if version >= FIRST_PRODUCE_VERSION and refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        found = current_leader(context, topic_partition, listener_name)
        refused.current_leader = answer.LeaderIdAndEpoch(
            leader_id=found.leader_id, leader_epoch=found.leader_epoch
        )
        add_endpoint(answer, found.node)


def tell_fetcher(
    context: HandlerContext,
    version: int,
    listener_name: str,
    answer: messages.FetchResponse,
    refused: messages.FetchResponse.PartitionData,
    topic: str | bytes,
    *,
    is_from_follower: bool,
) -> None:
    """The same of a Fetch answer, whose partition may also be refused for an older epoch.

    Args:
        context: the broker's.
        version: of the request; before 16 there is no place for it.
        listener_name: the one that the client came in by.
        answer: gets the leader's address.
        refused: the partition's part of the answer; gets leader and epoch.
        topic: the name or id of its topic.
        is_from_follower: whether it knows the brokers' addresses, so that they are left out.
    """
    if version < FIRST_FETCH_VERSION or refused.error_code not in (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
    ):
        return
    name: str | None
    if isinstance(topic, bytes):
        name = context.metadata_cache.topic_name(topic)
        if name is None:  # a follower may hear of a topic first
            name = context.replica_manager.partitions.topic_name(topic)
    else:
        name = topic
    if name is not None:
        topic_partition = TopicPartition(name, refused.partition_index)
        found = current_leader(context, topic_partition, listener_name)
        refused.current_leader = answer.LeaderIdAndEpoch(
            leader_id=found.leader_id, leader_epoch=found.leader_epoch
        )
        if not is_from_follower:
            add_endpoint(answer, found.node)
