"""Metadata (3), versions 0-13: brokers, topics, and who leads their partitions.

Behaviour: answered from this broker's own copy of the metadata (article 000). No topics
requested: all (null; in version 0 also an empty list). By name: a topic that is not there is
UNKNOWN_TOPIC_OR_PARTITION, or INVALID_TOPIC_EXCEPTION for an impossible name; meanwhile it is
made, if the client allows it (4+) and `auto.create.topics.enable` does. By id (12+):
once one topic is requested by id, those by name are passed over, as Kafka does; an unknown id
is UNKNOWN_TOPIC_ID. Addresses are those advertised for the listener the client came in by.
Version notes: 0 says REPLICA_NOT_AVAILABLE where a replica's broker is gone; 6 tells
LISTENER_NOT_FOUND from LEADER_NOT_AVAILABLE; 8-10 permitted operations of the cluster, 8 of
topics; 10 topic ids; 12 asks by them.
Departures from Kafka: with `odradek.await.topic.creation` a topic made on the way is waited for
and answered complete, and one that cannot be made with the reason's code. A topic with neither
name nor id is INVALID_REQUEST, not UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import compress
from typing import NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ...common.internal_topics import INTERNAL_TOPICS
from ...common.partition_state import PartitionState
from ...common.sentinels import ZERO_UUID
from ...controller.topics.topic_names import topic_name_problem
from ...metadata.metadata_cache import MetadataSnapshot, nodes_of_listener
from ...metadata.partition_metadata import PartitionMetadata, partition_metadata
from ...protocol import messages
from ...runtime.long_work import run_in_steps
from ...runtime.steps import Steps, map_in_steps
from ..interbroker.forwarding import create_topics_beside, ensure_topics
from ..request.authorization import CLUSTER_NAME, NOT_REQUESTED, authorized_operations
from ..request.context import HandlerContext
from ..request.outcomes import Stepwise, Task
from ..request.requests import Request

logger = logging.getLogger(__name__)

VERSION_OF_ALL_REPLICAS = 1
VERSION_OF_LISTENER_NOT_FOUND = 6
FIRST_VERSION_BY_TOPIC_ID = 12
NAMES_AT_ONCE = 100
"""Of more topics it is not found out in one go whether any is to be made."""
CLUSTER_OPERATIONS_VERSIONS = range(8, 11)


def handle_metadata(
    context: HandlerContext, request: Request[messages.MetadataRequest]
) -> Stepwise[messages.MetadataResponse] | Task[messages.MetadataResponse]:
    """Answer topic by topic, unless one is to be waited for."""
    body = request.body
    snapshot = context.metadata_cache.snapshot
    if (
        body.topics
        and context.config["odradek.await.topic.creation"]
        and _creates_topics(context, request)
        and (
            len(body.topics) > NAMES_AT_ONCE
            or any(_is_creatable(context, request, snapshot, each.name) for each in body.topics)
        )
    ):
        return Task(_create_and_describe(context, request, snapshot))
    return Stepwise(_describe(context, request, snapshot))


def _describe(
    context: HandlerContext, request: Request[messages.MetadataRequest], snapshot: MetadataSnapshot
) -> Steps[messages.MetadataResponse]:
    """The answer, from the one snapshot that there was when the request came."""
    requested = request.body.topics
    topics: list[messages.MetadataResponse.MetadataResponseTopic] = []
    if requested is None or (not requested and request.api_version == 0):
        for name in snapshot.partition_states:
            if context.admission.is_allowed(request, "DESCRIBE", "TOPIC", name):
                known = yield from _known_topic(context, request, snapshot, name)
                topics.append(known)
            yield
        return _response(context, request, snapshot, topics)
    named = yield from _named(requested, request.api_version)
    if not named.is_clear:
        return (yield from _refused(requested))
    if named.topic_ids:
        topics = yield from _topics_by_id(context, request, snapshot, named.topic_ids)
        return _response(context, request, snapshot, topics)
    creates = _creates_topics(context, request)
    creatable = []
    for name in named.names:
        if creates and _is_creatable(context, request, snapshot, name):
            creatable.append(name)
        described = yield from _topic_by_name(context, request, snapshot, name)
        topics.append(described)
        yield
    create_topics_beside(context, creatable)
    return _response(context, request, snapshot, topics)


def _creates_topics(context: HandlerContext, request: Request[messages.MetadataRequest]) -> bool:
    """Whether a topic that is not there is made, by what the client and the settings say."""
    allowed: bool = context.config["auto.create.topics.enable"]
    return allowed and request.body.allow_auto_topic_creation


class NamedTopics(NamedTuple):
    """The topics that a request names, each once.

    Attributes:
        is_clear: whether each is named as the version can: by name, or from 12 on by id.
    """

    names: dict[str, None]
    topic_ids: dict[bytes, None]
    is_clear: bool


def _named(
    requested: Iterable[messages.MetadataRequest.MetadataRequestTopic], api_version: int
) -> Steps[NamedTopics]:
    names: dict[str, None] = {}
    topic_ids: dict[bytes, None] = {}
    is_clear = True
    for topic in requested:
        yield
        if topic.topic_id != ZERO_UUID:
            topic_ids[topic.topic_id] = None
            is_clear = is_clear and api_version >= FIRST_VERSION_BY_TOPIC_ID
        elif topic.name is None:
            is_clear = False
        if topic.name is not None:
            names[topic.name] = None
    return NamedTopics(names, topic_ids, is_clear)


def _refused(
    requested: Iterable[messages.MetadataRequest.MetadataRequestTopic],
) -> Steps[messages.MetadataResponse]:
    response = messages.MetadataResponse
    topics = yield from map_in_steps(
        lambda topic: response.MetadataResponseTopic(
            error_code=ErrorCode.INVALID_REQUEST,
            name=topic.name or "",  # null has no place in versions before 12
            topic_id=topic.topic_id,
        ),
        requested,
    )
    return response(error_code=ErrorCode.INVALID_REQUEST, topics=topics)


def _is_creatable(
    context: HandlerContext,
    request: Request[messages.MetadataRequest],
    snapshot: MetadataSnapshot,
    name: str | None,
) -> bool:
    return (
        name is not None
        and name not in snapshot.partition_states
        and topic_name_problem(name) is None
        and context.admission.is_allowed(request, "DESCRIBE", "TOPIC", name)
        and _may_create(context, request, name)
    )


def _may_create(
    context: HandlerContext, request: Request[messages.MetadataRequest], name: str
) -> bool:
    if context.admission.is_allowed(request, "CREATE", "CLUSTER", CLUSTER_NAME):
        return True
    return context.authorize(request, "CREATE", "TOPIC", name)


async def _create_and_describe(
    context: HandlerContext,
    request: Request[messages.MetadataRequest],
    snapshot: MetadataSnapshot,
) -> messages.MetadataResponse:
    """Make those topics that can be made, then answer for all of them."""
    named = await run_in_steps(_named(request.body.topics or (), request.api_version))
    if not named.is_clear or named.topic_ids:
        return await run_in_steps(_describe(context, request, snapshot))
    names = list(named.names)
    are_creatable = await run_in_steps(
        map_in_steps(lambda name: _is_creatable(context, request, snapshot, name), names)
    )
    creatable = list(compress(names, are_creatable))
    refused: dict[str, ErrorCode]
    try:
        refusals = await ensure_topics(context, creatable) if creatable else {}
        refused = {name: refusal.code for name, refusal in refusals.items()}
    except KafkaError as refusal:
        refused = dict.fromkeys(creatable, refusal.code)
    except Exception:
        logger.exception("the handler of %r failed", request)
        refused = dict.fromkeys(creatable, ErrorCode.UNKNOWN_SERVER_ERROR)
    snapshot = context.metadata_cache.snapshot  # a newer one: topics were made

    def describe() -> Steps[list[messages.MetadataResponse.MetadataResponseTopic]]:
        topics = []
        for name in names:
            if name in refused:
                topics.append(_missing_topic(context, request, name, refused[name]))
            else:
                described = yield from _topic_by_name(context, request, snapshot, name)
                topics.append(described)
            yield
        return topics

    return _response(context, request, snapshot, await run_in_steps(describe()))


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
            reported = context.admission.authorize_reported
            operations = authorized_operations(reported, request, "CLUSTER", CLUSTER_NAME)
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
    topic_ids: Iterable[bytes],
) -> Steps[list[messages.MetadataResponse.MetadataResponseTopic]]:
    topics = []
    for topic_id in topic_ids:
        yield
        name = snapshot.topic_names.get(topic_id)
        if name is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID
        elif not context.authorize(request, "DESCRIBE", "TOPIC", name):
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        else:
            known = yield from _known_topic(context, request, snapshot, name)
            topics.append(known)
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
) -> Steps[messages.MetadataResponse.MetadataResponseTopic]:
    if not context.authorize(request, "DESCRIBE", "TOPIC", name):
        # Neither whether the topic exists is disclosed, nor its id.
        return messages.MetadataResponse.MetadataResponseTopic(
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name
        )
    if name in snapshot.partition_states:
        known = yield from _known_topic(context, request, snapshot, name)
        return known
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
    reported = context.admission.authorize_reported
    return authorized_operations(reported, request, "TOPIC", name)


def _known_topic(
    context: HandlerContext,
    request: Request[messages.MetadataRequest],
    snapshot: MetadataSnapshot,
    name: str,
) -> Steps[messages.MetadataResponse.MetadataResponseTopic]:
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
        lists: dict[tuple[int, ...], list[int]] = derived.setdefault("lists of brokers", {})
        partitions = []
        for state in snapshot.partition_states[name].values():
            metadata = partition_metadata(
                snapshot,
                state,
                listener_name,
                leaves_out_unreachable=leaves_out,
                tells_missing_listeners=tells_listeners,
            )
            partitions.append(_partition(state, metadata, lists))
            yield
        context.metadata_cache.derived_from(snapshot)[key] = partitions
    return messages.MetadataResponse.MetadataResponseTopic(
        name=name,
        topic_id=snapshot.topic_ids[name],
        is_internal=name in INTERNAL_TOPICS,
        partitions=partitions,
        topic_authorized_operations=_topic_operations(context, request, name),
    )


def _partition(
    state: PartitionState,
    metadata: PartitionMetadata,
    lists: dict[tuple[int, ...], list[int]],
) -> messages.MetadataResponse.MetadataResponsePartition:
    """A partition as it is answered; of its lists of brokers there is one of each in `lists`."""

    def shared(brokers: tuple[int, ...]) -> list[int]:
        return lists.get(brokers) or lists.setdefault(brokers, list(brokers))

    return messages.MetadataResponse.MetadataResponsePartition(
        error_code=metadata.error,
        partition_index=state.partition,
        leader_id=metadata.leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=shared(metadata.replicas),
        isr_nodes=shared(metadata.isr),
        offline_replicas=shared(metadata.offline_replicas),
    )
