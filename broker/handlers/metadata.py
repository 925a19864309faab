"""Metadata (3), versions 0-13: brokers, topics, and who leads their partitions.

Behaviour: answered from this broker's own copy of the metadata (article 000). No topics
requested: all (null; in version 0 also an empty list). By name: a topic that is not there is
made, if the client allows it (4+) and `auto.create.topics.enable` does; else it is
UNKNOWN_TOPIC_OR_PARTITION, or INVALID_TOPIC_EXCEPTION for an impossible name. By id (12+):
once one topic is requested by id, those by name are passed over, as Kafka does; an unknown id
is UNKNOWN_TOPIC_ID. Addresses are those advertised for the listener the client came in by.
Version notes: 0 says REPLICA_NOT_AVAILABLE where a replica's broker is gone; 6 tells
LISTENER_NOT_FOUND from LEADER_NOT_AVAILABLE; 8-10 permitted operations of the cluster, 8 of
topics; 10 topic ids; 12 asks by them.
Departures from Kafka: a topic made on the way is answered complete, where Kafka answers
UNKNOWN_TOPIC_OR_PARTITION until the next request; a topic that cannot be made is answered with
the reason's code. A topic with neither name nor id is INVALID_REQUEST, not
UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

import logging

from ...common.errors import ErrorCode, KafkaError
from ...common.internal_topics import INTERNAL_TOPICS
from ...common.partition_state import PartitionState
from ...common.sentinels import ZERO_UUID
from ...controller.topics.topic_names import topic_name_problem
from ...metadata.metadata_cache import MetadataSnapshot, nodes_of_listener
from ...metadata.partition_metadata import PartitionMetadata, partition_metadata
from ...protocol import messages
from ..interbroker.forwarding import ensure_topics
from ..request.authorization import CLUSTER_NAME, NOT_REQUESTED, authorized_operations
from ..request.context import HandlerContext
from ..request.outcomes import Answer, Task
from ..request.requests import Request

logger = logging.getLogger(__name__)

VERSION_OF_ALL_REPLICAS = 1
VERSION_OF_LISTENER_NOT_FOUND = 6
FIRST_VERSION_BY_TOPIC_ID = 12
CLUSTER_OPERATIONS_VERSIONS = range(8, 11)


def handle_metadata(
    context: HandlerContext, request: Request[messages.MetadataRequest]
) -> Answer[messages.MetadataResponse] | Task[messages.MetadataResponse]:
    """Answer at once, unless a topic is to be made first."""
    body = request.body
    requested = body.topics
    snapshot = context.metadata_cache.snapshot
    if requested is None or (not requested and request.api_version == 0):
        topics = [
            _known_topic(context, request, snapshot, name)
            for name in snapshot.partition_states
            if context.authorize(request, "DESCRIBE", "TOPIC", name)
        ]
        return Answer(_response(context, request, snapshot, topics))
    if not _names_topics_clearly(requested, request.api_version):
        return Answer(_refused(requested))
    if any(topic.topic_id != ZERO_UUID for topic in requested):
        topics = _topics_by_id(context, request, snapshot, requested)
        return Answer(_response(context, request, snapshot, topics))
    names = list(dict.fromkeys(topic.name or "" for topic in requested))
    if body.allow_auto_topic_creation and context.config["auto.create.topics.enable"]:
        creatable = [name for name in names if _is_creatable(context, request, snapshot, name)]
        if creatable:
            return Task(_create_and_describe(context, request, names, creatable))
    topics = [_topic_by_name(context, request, snapshot, name) for name in names]
    return Answer(_response(context, request, snapshot, topics))


def _names_topics_clearly(
    requested: list[messages.MetadataRequest.MetadataRequestTopic], api_version: int
) -> bool:
    """Whether each topic is named as the version can: by name, or from 12 on by id."""
    if api_version >= FIRST_VERSION_BY_TOPIC_ID:
        return all(topic.name is not None or topic.topic_id != ZERO_UUID for topic in requested)
    return all(topic.name is not None and topic.topic_id == ZERO_UUID for topic in requested)


def _refused(
    requested: list[messages.MetadataRequest.MetadataRequestTopic],
) -> messages.MetadataResponse:
    response = messages.MetadataResponse
    return response(
        error_code=ErrorCode.INVALID_REQUEST,
        topics=[
            response.MetadataResponseTopic(
                error_code=ErrorCode.INVALID_REQUEST,
                name=topic.name or "",  # null has no place in versions before 12
                topic_id=topic.topic_id,
            )
            for topic in requested
        ],
    )


def _is_creatable(
    context: HandlerContext,
    request: Request[messages.MetadataRequest],
    snapshot: MetadataSnapshot,
    name: str,
) -> bool:
    return (
        name not in snapshot.partition_states
        and topic_name_problem(name) is None
        and context.authorize(request, "DESCRIBE", "TOPIC", name)
        and _may_create(context, request, name)
    )


def _may_create(
    context: HandlerContext, request: Request[messages.MetadataRequest], name: str
) -> bool:
    return context.authorize(request, "CREATE", "CLUSTER", CLUSTER_NAME) or context.authorize(
        request, "CREATE", "TOPIC", name
    )


async def _create_and_describe(
    context: HandlerContext,
    request: Request[messages.MetadataRequest],
    names: list[str],
    creatable: list[str],
) -> messages.MetadataResponse:
    """Make the topics, then answer for all of them."""
    refused: dict[str, ErrorCode]
    try:
        refusals = await ensure_topics(context, creatable)
        refused = {name: refusal.code for name, refusal in refusals.items()}
    except KafkaError as refusal:
        refused = dict.fromkeys(creatable, refusal.code)
    except Exception:
        logger.exception("the handler of %r failed", request)
        refused = dict.fromkeys(creatable, ErrorCode.UNKNOWN_SERVER_ERROR)
    snapshot = context.metadata_cache.snapshot  # a newer one: topics were made
    topics = [
        _missing_topic(context, request, name, refused[name])
        if name in refused
        else _topic_by_name(context, request, snapshot, name)
        for name in names
    ]
    return _response(context, request, snapshot, topics)


def _response(
    context: HandlerContext,
    request: Request[messages.MetadataRequest],
    snapshot: MetadataSnapshot,
    topics: list[messages.MetadataResponse.MetadataResponseTopic],
) -> messages.MetadataResponse:
    body = request.body
    response = messages.MetadataResponse
    operations = NOT_REQUESTED
    if (
        body.include_cluster_authorized_operations
        and request.api_version in CLUSTER_OPERATIONS_VERSIONS
    ):
        operations = 0
        if context.authorize(request, "DESCRIBE", "CLUSTER", CLUSTER_NAME):
            operations = authorized_operations(context.authorize, request, "CLUSTER", CLUSTER_NAME)
    controller_id = snapshot.controller_id
    return response(
        brokers=[
            response.MetadataResponseBroker(
                node_id=node.broker_id, host=node.host, port=node.port, rack=node.rack
            )
            for node in nodes_of_listener(snapshot, request.connection.listener_name)
        ],
        cluster_id=context.cluster_id,
        controller_id=-1 if controller_id is None else controller_id,
        topics=topics,
        cluster_authorized_operations=operations,
    )


def _topics_by_id(
    context: HandlerContext,
    request: Request[messages.MetadataRequest],
    snapshot: MetadataSnapshot,
    requested: list[messages.MetadataRequest.MetadataRequestTopic],
) -> list[messages.MetadataResponse.MetadataResponseTopic]:
    topics = []
    for topic_id in dict.fromkeys(topic.topic_id for topic in requested):
        if topic_id == ZERO_UUID:
            continue
        name = snapshot.topic_names.get(topic_id)
        if name is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID
        elif not context.authorize(request, "DESCRIBE", "TOPIC", name):
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        else:
            topics.append(_known_topic(context, request, snapshot, name))
            continue
        topics.append(
            messages.MetadataResponse.MetadataResponseTopic(
                error_code=code, name=None, topic_id=topic_id
            )
        )
    return topics


def _topic_by_name(
    context: HandlerContext,
    request: Request[messages.MetadataRequest],
    snapshot: MetadataSnapshot,
    name: str,
) -> messages.MetadataResponse.MetadataResponseTopic:
    if not context.authorize(request, "DESCRIBE", "TOPIC", name):
        # Neither whether the topic exists is disclosed, nor its id.
        return messages.MetadataResponse.MetadataResponseTopic(
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name
        )
    if name in snapshot.partition_states:
        return _known_topic(context, request, snapshot, name)
    if topic_name_problem(name) is not None:
        return _missing_topic(context, request, name, ErrorCode.INVALID_TOPIC_EXCEPTION)
    body = request.body
    if (
        body.allow_auto_topic_creation
        and context.config["auto.create.topics.enable"]
        and not _may_create(context, request, name)
    ):
        return _missing_topic(context, request, name, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return _missing_topic(context, request, name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _missing_topic(
    context: HandlerContext, request: Request[messages.MetadataRequest], name: str, code: ErrorCode
) -> messages.MetadataResponse.MetadataResponseTopic:
    return messages.MetadataResponse.MetadataResponseTopic(
        error_code=code,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=_topic_operations(context, request, name),
    )


def _topic_operations(
    context: HandlerContext, request: Request[messages.MetadataRequest], name: str
) -> int:
    body = request.body
    if not body.include_topic_authorized_operations:
        return NOT_REQUESTED
    return authorized_operations(context.authorize, request, "TOPIC", name)


def _known_topic(
    context: HandlerContext,
    request: Request[messages.MetadataRequest],
    snapshot: MetadataSnapshot,
    name: str,
) -> messages.MetadataResponse.MetadataResponseTopic:
    """A topic of the snapshot, with its partitions as the request's version tells them.

    The partitions are worked out once for a snapshot: clients ask for the same again and
    again, and a topic may have thousands.
    """
    listener_name = request.connection.listener_name
    leaves_out = request.api_version < VERSION_OF_ALL_REPLICAS
    tells_listeners = request.api_version >= VERSION_OF_LISTENER_NOT_FOUND
    key = ("metadata", name, listener_name, leaves_out, tells_listeners)
    derived = context.metadata_cache.derived_from(snapshot)
    partitions = derived.get(key)
    if partitions is None:
        partitions = derived[key] = [
            _partition(
                state,
                partition_metadata(
                    snapshot,
                    state,
                    listener_name,
                    leaves_out_unreachable=leaves_out,
                    tells_missing_listeners=tells_listeners,
                ),
            )
            for state in snapshot.partition_states[name].values()
        ]
    return messages.MetadataResponse.MetadataResponseTopic(
        name=name,
        topic_id=snapshot.topic_ids[name],
        is_internal=name in INTERNAL_TOPICS,
        partitions=partitions,
        topic_authorized_operations=_topic_operations(context, request, name),
    )


def _partition(
    state: PartitionState, metadata: PartitionMetadata
) -> messages.MetadataResponse.MetadataResponsePartition:
    return messages.MetadataResponse.MetadataResponsePartition(
        error_code=metadata.error,
        partition_index=state.partition,
        leader_id=metadata.leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=metadata.replicas,
        isr_nodes=metadata.isr,
        offline_replicas=metadata.offline_replicas,
    )
