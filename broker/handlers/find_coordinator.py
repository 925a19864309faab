"""FindCoordinator (10), versions 0-6: which broker coordinates a group or a transactional id.

Behaviour: the leader of the partition of `__consumer_offsets` that keeps the group, or of
`__transaction_state` that keeps the transactional id. The topic is created when the first
client comes, which is told COORDINATOR_NOT_AVAILABLE and comes again.
Version notes: 1 has key types; 4 asks for several keys (KIP-699); 6 knows share partitions, whose
coordinator brokers look for (KIP-932).
Departures from Kafka: with `odradek.await.topic.creation` the answer waits for the topic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...common.error_texts import DEFAULT_TEXTS
from ...common.errors import ErrorCode, KafkaError
from ...common.internal_topics import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from ...common.topic_partition import TopicPartition
from ...coordinator.shards import partition_for
from ...metadata.features import SHARE_VERSION
from ...protocol import messages
from ...runtime.long_work import run_in_steps
from ...runtime.steps import Steps, map_in_steps
from ..interbroker.forwarding import create_topics_beside, ensure_topics
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import Stepwise, Task
from ..request.requests import Request

GROUP = 0
TRANSACTION = 1
SHARE = 2
FIRST_VERSION_WITH_SEVERAL_KEYS = 4
FIRST_VERSION_WITH_SHARE_PARTITIONS = 6
TOPIC_OF = {
    GROUP: CONSUMER_OFFSETS,
    TRANSACTION: TRANSACTION_STATE,
    SHARE: SHARE_GROUP_STATE,
}
"""The topic whose partitions' leaders are the coordinators, by key type."""
PARTITIONS_OF = {
    CONSUMER_OFFSETS: "offsets.topic.num.partitions",
    TRANSACTION_STATE: "transaction.state.log.num.partitions",
    SHARE_GROUP_STATE: "share.coordinator.state.topic.num.partitions",
}
"""How many a topic will have that is not there yet."""


class FoundCoordinator(NamedTuple):
    """The coordinator of one key, or why there is none."""

    key: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    node_id: int = -1
    host: str = ""
    port: int = -1


def handle_find_coordinator(
    context: HandlerContext, request: Request[messages.FindCoordinatorRequest]
) -> Stepwise[messages.FindCoordinatorResponse] | Task[messages.FindCoordinatorResponse]:
    """Answer key by key, unless the topic of the coordinators is to be waited for."""
    body = request.body
    topic = TOPIC_OF.get(body.key_type)
    # Nothing is made for one who may not ask.
    if (
        topic is not None
        and not context.metadata_cache.contains(topic)
        and any(_refusal(context, request, key) is None for key in _keys(request))
    ):
        if context.config["odradek.await.topic.creation"]:
            return Task(_find_after_creation(context, request, topic))
        create_topics_beside(context, [topic])
    return Stepwise(_find_all(context, request))


async def _find_after_creation(
    context: HandlerContext, request: Request[messages.FindCoordinatorRequest], topic: str
) -> messages.FindCoordinatorResponse:
    message = None
    try:
        refusals = await ensure_topics(context, [topic])
        if topic in refusals:
            message = refusals[topic].message
    except KafkaError as refusal:
        message = refusal.message
    return await run_in_steps(_find_all(context, request, message))


def _find_all(
    context: HandlerContext,
    request: Request[messages.FindCoordinatorRequest],
    not_available: str | None = None,
) -> Steps[messages.FindCoordinatorResponse]:
    """The answer for all keys.

    Args:
        context, request: what the handler got.
        not_available: why there is no coordinator where there is none.
    """

    def find(key: str) -> FoundCoordinator:
        found = _refusal(context, request, key) or _find(context, request, key)
        if found.error is ErrorCode.COORDINATOR_NOT_AVAILABLE and not_available:
            found = found._replace(message=not_available)
        return found

    found = yield from map_in_steps(find, _keys(request))
    if request.api_version < FIRST_VERSION_WITH_SEVERAL_KEYS:
        return _response_for_one(found[0])
    coordinators = yield from map_in_steps(_coordinator, found)
    return messages.FindCoordinatorResponse(coordinators=coordinators)


def _keys(request: Request[messages.FindCoordinatorRequest]) -> Sequence[str]:
    if request.api_version < FIRST_VERSION_WITH_SEVERAL_KEYS:
        return [request.body.key]
    return request.body.coordinator_keys


def _refusal(
    context: HandlerContext, request: Request[messages.FindCoordinatorRequest], key: str
) -> FoundCoordinator | None:
    """Why a key's coordinator is not looked for, if it is not."""
    key_type = request.body.key_type
    if key_type == TRANSACTION:
        if not context.authorize(request, "DESCRIBE", "TRANSACTIONAL_ID", key):
            return FoundCoordinator(key, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    elif key_type == GROUP:
        if not context.authorize(request, "DESCRIBE", "GROUP", key):
            return FoundCoordinator(key, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    elif key_type == SHARE:
        if (
            request.api_version < FIRST_VERSION_WITH_SHARE_PARTITIONS
            or context.features.finalized(SHARE_VERSION) == 0
            or not _names_share_partition(key)
        ):
            # Of a kind that it knows, Kafka says nothing of what is wrong.
            return FoundCoordinator(key, ErrorCode.INVALID_REQUEST)
        if not context.authorize(request, "CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME):
            return FoundCoordinator(key, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    else:
        text = DEFAULT_TEXTS[ErrorCode.INVALID_REQUEST]
        return FoundCoordinator(key, ErrorCode.INVALID_REQUEST, text)
    return None


def _names_share_partition(key: str) -> bool:
    """Whether a key is a group, a topic id and a partition, with colons between them."""
    group_id, _, rest = key.partition(":")
    topic_id, _, partition = rest.rpartition(":")
    return bool(group_id and topic_id) and partition.isascii() and partition.isdigit()


def _find(
    context: HandlerContext, request: Request[messages.FindCoordinatorRequest], key: str
) -> FoundCoordinator:
    """The broker that leads the partition which keeps the key."""
    topic = TOPIC_OF[request.body.key_type]
    cache = context.metadata_cache
    partitions = cache.partition_count(topic) or context.config[PARTITIONS_OF[topic]]
    keeper = TopicPartition(topic, partition_for(key, partitions))
    if not cache.contains(keeper.topic):
        return FoundCoordinator(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    state = cache.get_partition_info(*keeper)
    nodes = cache.get_partition_replica_endpoints(keeper, request.connection.listener_name)
    node = nodes.get(state.leader) if state is not None else None
    if node is None:
        return FoundCoordinator(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return FoundCoordinator(key, node_id=node.broker_id, host=node.host, port=node.port)


def _response_for_one(found: FoundCoordinator) -> messages.FindCoordinatorResponse:
    return messages.FindCoordinatorResponse(
        error_code=found.error,
        error_message=found.message or DEFAULT_TEXTS[found.error],
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _coordinator(found: FoundCoordinator) -> messages.FindCoordinatorResponse.Coordinator:
    return messages.FindCoordinatorResponse.Coordinator(
        key=found.key,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
        error_code=found.error,
        error_message=found.message or "",
    )
