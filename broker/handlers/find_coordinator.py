"""FindCoordinator (10), versions 0-6: which broker coordinates a group or a transactional id.

Behaviour: the leader of the partition of `__consumer_offsets` that keeps the group, or of
`__transaction_state` that keeps the transactional id. The topic is created when the first
client asks, and the answer waits for that.
Version notes: 1 has key types; 4 asks for several keys (KIP-699); 6 knows share groups.
Departures from Kafka: Kafka answers COORDINATOR_NOT_AVAILABLE while the topic is being
created, and clients come again. Share groups (key type 2) are INVALID_REQUEST as in a Kafka
without that feature.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ...common.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from ...common.topic_partition import TopicPartition
from ...protocol import messages
from ..interbroker.forwarding import ensure_topics
from ..request.context import HandlerContext
from ..request.outcomes import Answer, Task
from ..request.requests import Request

GROUP = 0
TRANSACTION = 1
SHARE = 2
FIRST_VERSION_WITH_SEVERAL_KEYS = 4
TOPIC_OF = {GROUP: CONSUMER_OFFSETS, TRANSACTION: TRANSACTION_STATE}
"""The topic whose partitions' leaders are the coordinators, by key type."""

NO_ERROR_TEXT = "NONE"
"""What versions 1 to 3 say where nothing went wrong."""


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
) -> Answer[messages.FindCoordinatorResponse] | Task[messages.FindCoordinatorResponse]:
    """Answer at once, or after the topic of the coordinators was created."""
    found = _find_all(context, request)
    topic = TOPIC_OF.get(request.body.key_type)
    # Nothing is made for one who may not ask.
    if any(entry.error is ErrorCode.COORDINATOR_NOT_AVAILABLE for entry in found) and (
        topic is not None and not context.metadata_cache.contains(topic)
    ):
        return Task(_find_after_creation(context, request, topic))
    return Answer(_response(found, request.api_version))


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
    found = _find_all(context, request)
    if message:
        found = [
            entry._replace(message=message)
            if entry.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
            else entry
            for entry in found
        ]
    return _response(found, request.api_version)


def _find_all(
    context: HandlerContext, request: Request[messages.FindCoordinatorRequest]
) -> list[FoundCoordinator]:
    body = request.body
    if request.api_version < FIRST_VERSION_WITH_SEVERAL_KEYS:
        keys: Sequence[str] = [body.key]
    else:
        keys = body.coordinator_keys
    return [_find(context, request, key) for key in keys]


def _find(
    context: HandlerContext, request: Request[messages.FindCoordinatorRequest], key: str
) -> FoundCoordinator:
    key_type = request.body.key_type
    if key_type == TRANSACTION:
        if not context.authorize(request, "DESCRIBE", "TRANSACTIONAL_ID", key):
            return FoundCoordinator(key, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        partition = context.coordinators.transaction.partition_for(key)
    elif key_type == GROUP:
        if not context.authorize(request, "DESCRIBE", "GROUP", key):
            return FoundCoordinator(key, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        partition = context.coordinators.group.partition_for(key)
    else:
        what = "share groups" if key_type == SHARE else f"coordinators of type {key_type}"
        return FoundCoordinator(
            key, ErrorCode.INVALID_REQUEST, f"this broker does not serve {what}"
        )
    return _leader(context, request, key, TopicPartition(TOPIC_OF[key_type], partition))


def _leader(
    context: HandlerContext,
    request: Request[messages.FindCoordinatorRequest],
    key: str,
    keeper: TopicPartition,
) -> FoundCoordinator:
    """The broker that leads the partition which keeps the key."""
    cache = context.metadata_cache
    if not cache.contains(keeper.topic):
        return FoundCoordinator(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    state = cache.get_partition_info(*keeper)
    nodes = cache.get_partition_replica_endpoints(keeper, request.connection.listener_name)
    node = nodes.get(state.leader) if state is not None else None
    if node is None:
        return FoundCoordinator(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return FoundCoordinator(key, node_id=node.broker_id, host=node.host, port=node.port)


def _response(found: Sequence[FoundCoordinator], version: int) -> messages.FindCoordinatorResponse:
    response = messages.FindCoordinatorResponse
    if version < FIRST_VERSION_WITH_SEVERAL_KEYS:
        only = found[0]
        return response(
            error_code=only.error,
            error_message=only.message or (only.error.name if only.error else NO_ERROR_TEXT),
            node_id=only.node_id,
            host=only.host,
            port=only.port,
        )
    return response(
        coordinators=[
            response.Coordinator(
                key=entry.key,
                node_id=entry.node_id,
                host=entry.host,
                port=entry.port,
                error_code=entry.error,
                error_message=entry.message or "",
            )
            for entry in found
        ]
    )
