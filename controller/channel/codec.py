"""The controller's requests as wire messages, and wire messages as the broker's own terms.

LeaderAndIsr 7, UpdateMetadata 8 and StopReplica 4 are what Kafka 3.9 brokers exchange, and
what is sent here; older versions are understood. No schema is read before it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Final

from ...common.errors import ErrorCode
from ...common.live_broker import EndPoint, LiveBroker
from ...common.partition_state import PartitionState, StoppedReplica, shared_replicas
from ...common.sentinels import ZERO_UUID
from ...common.topic_partition import TopicPartition
from ...metadata.metadata_cache import MetadataUpdate
from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ..topics.topic_names import (
    validate_partition,
    validate_partition_index,
    validate_topic_name,
)
from .channel import (
    BecomeLeaderOrFollower,
    ControllerRequest,
    PartitionErrors,
    StopReplica,
    UpdateMetadata,
)

LEADER_AND_ISR_VERSION: Final = 7
UPDATE_METADATA_VERSION: Final = 8
STOP_REPLICA_VERSION: Final = 4

VERSIONS: Final[Mapping[int, int]] = {
    ApiKey.LEADER_AND_ISR: LEADER_AND_ISR_VERSION,
    ApiKey.UPDATE_METADATA: UPDATE_METADATA_VERSION,
    ApiKey.STOP_REPLICA: STOP_REPLICA_VERSION,
}
"""What a link to a broker is opened for."""

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""By their number on the wire (Kafka's SecurityProtocol)."""

UNMARKED: Final = 0
INCREMENTAL: Final = 1
FULL: Final = 2
"""Whether a request says everything there is (Kafka's AbstractControlRequest.Type). Kafka's
controllers in ZooKeeper mode leave their requests unmarked."""

ConfigOf = Callable[[str], Mapping[str, str]]
"""A topic's overrides, which the wire does not carry."""


Encoded = tuple[Any, int]
"""A message, and the version to send it in."""


def encode(request: ControllerRequest, listener_name: str) -> Generator[None, None, Encoded]:
    """The message for a request.

    It yields after each partition, and returns the whole: see `run_in_steps`.

    Args:
        listener_name: where brokers reach each other.
    """
    if isinstance(request, BecomeLeaderOrFollower):
        led = yield from _leader_and_isr(request, listener_name)
        return led, LEADER_AND_ISR_VERSION
    if isinstance(request, UpdateMetadata):
        update = yield from _update_metadata(request)
        return update, UPDATE_METADATA_VERSION
    stop = yield from _stop_replica(request)
    return stop, STOP_REPLICA_VERSION


def _by_topic(
    states: Iterable[PartitionState],
) -> Generator[None, None, dict[tuple[str, bytes], list[PartitionState]]]:
    topics: dict[tuple[str, bytes], list[PartitionState]] = {}
    for state in states:
        topics.setdefault((state.topic, state.topic_id), []).append(state)
        yield
    return topics


def _leader_and_isr(
    request: BecomeLeaderOrFollower, listener_name: str
) -> Generator[None, None, messages.LeaderAndIsrRequest]:
    make = messages.LeaderAndIsrRequest
    message = make(
        controller_id=request.controller_id,
        controller_epoch=request.controller_epoch,
        broker_epoch=request.broker_epoch,
        type=FULL if request.is_full else INCREMENTAL,
        live_leaders=[
            make.LeaderAndIsrLiveLeader(
                broker_id=broker.broker_id, host_name=endpoint.host, port=endpoint.port
            )
            for broker in request.live_leaders
            if (endpoint := broker.endpoint(listener_name)) is not None
        ],
    )
    by_topic = yield from _by_topic(request.partition_states)
    for (name, topic_id), states in by_topic.items():
        topic = make.LeaderAndIsrTopicState(topic_name=name, topic_id=topic_id)
        message.topic_states.append(topic)
        for state in states:
            topic.partition_states.append(
                make.LeaderAndIsrPartitionState(
                    partition_index=state.partition,
                    controller_epoch=state.controller_epoch,
                    leader=state.leader,
                    leader_epoch=state.leader_epoch,
                    isr=list(state.isr),
                    partition_epoch=state.partition_epoch,
                    replicas=list(state.replicas),
                    adding_replicas=list(state.adding_replicas),
                    removing_replicas=list(state.removing_replicas),
                    is_new=state.is_new,
                )
            )
            yield
    return message


def _update_metadata(
    request: UpdateMetadata,
) -> Generator[None, None, messages.UpdateMetadataRequest]:
    make = messages.UpdateMetadataRequest
    message = make(
        controller_id=request.controller_id,
        controller_epoch=request.controller_epoch,
        broker_epoch=request.broker_epoch,
        type=FULL if request.is_full else INCREMENTAL,
        live_brokers=[
            make.UpdateMetadataBroker(
                id=broker.broker_id,
                endpoints=[
                    make.UpdateMetadataEndpoint(
                        port=endpoint.port,
                        host=endpoint.host,
                        listener=endpoint.listener_name,
                        security_protocol=SECURITY_PROTOCOLS.index(endpoint.security_protocol),
                    )
                    for endpoint in broker.endpoints
                ],
                rack=broker.rack,
            )
            for broker in request.live_brokers
        ],
    )
    by_topic = yield from _by_topic(request.partition_states)
    for (name, topic_id), states in by_topic.items():
        topic = make.UpdateMetadataTopicState(topic_name=name, topic_id=topic_id)
        message.topic_states.append(topic)
        for state in states:
            topic.partition_states.append(
                make.UpdateMetadataPartitionState(
                    partition_index=state.partition,
                    controller_epoch=state.controller_epoch,
                    leader=state.leader,
                    leader_epoch=state.leader_epoch,
                    isr=list(state.isr),
                    zk_version=state.partition_epoch,
                    replicas=list(state.replicas),
                    offline_replicas=list(state.offline_replicas),
                )
            )
            yield
    return message


def _stop_replica(request: StopReplica) -> Generator[None, None, messages.StopReplicaRequest]:
    make = messages.StopReplicaRequest
    message = make(
        controller_id=request.controller_id,
        controller_epoch=request.controller_epoch,
        broker_epoch=request.broker_epoch,
    )
    topics: dict[str, messages.StopReplicaRequest.StopReplicaTopicState] = {}
    for (name, partition), leader_epoch, delete in request.partitions:
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = make.StopReplicaTopicState(topic_name=name)
            message.topic_states.append(topic)
        topic.partition_states.append(
            make.StopReplicaPartitionState(
                partition_index=partition, leader_epoch=leader_epoch, delete_partition=delete
            )
        )
        yield
    return message


def partitions_of(request: ControllerRequest) -> Sequence[PartitionState | StoppedReplica]:
    """What a request names."""
    if isinstance(request, StopReplica):
        return request.partitions
    return request.partition_states


# -- answers -----------------------------------------------------------------------------


def decode_errors(
    request: ControllerRequest, response: Any
) -> Generator[None, None, PartitionErrors]:
    """What a broker answered for each partition; all the same if it refused the whole.

    It yields after each partition, and returns them all: see `run_in_steps`.
    """
    whole = ErrorCode(response.error_code)
    if isinstance(request, UpdateMetadata):
        return {}
    reported: dict[TopicPartition, ErrorCode] = {}
    if isinstance(request, StopReplica):
        for each in response.partition_errors:
            where = TopicPartition(each.topic_name, each.partition_index)
            reported[where] = ErrorCode(each.error_code)
            yield
    else:
        names: dict[bytes, str] = {}
        for state in request.partition_states:
            names[state.topic_id] = state.topic
            yield
        for topic in response.topics:
            if topic.topic_id in names:
                for each in topic.partition_errors:
                    where = TopicPartition(names[topic.topic_id], each.partition_index)
                    reported[where] = ErrorCode(each.error_code)
                    yield
    if whole is ErrorCode.NONE:
        return reported
    errors: dict[TopicPartition, ErrorCode] = {}
    for named in partitions_of(request):
        where = named.topic_partition
        errors[where] = reported.get(where, whole)
        yield
    return errors


# -- what a broker receives --------------------------------------------------------------


def named_topics(
    body: messages.LeaderAndIsrRequest | messages.UpdateMetadataRequest,
) -> Generator[None, None, set[str]]:
    """The topics that a request names, when all it names are partitions that there can be.

    It yields after each partition: see `run_in_steps`.

    Raises:
        KafkaError: INVALID_TOPIC_EXCEPTION or INVALID_PARTITIONS, one of them there cannot be.
    """
    names: set[str] = set()
    for state in body.ungrouped_partition_states:
        validate_partition(state.topic_name, state.partition_index)
        names.add(state.topic_name)
        yield
    for topic in body.topic_states:
        validate_topic_name(topic.topic_name)
        names.add(topic.topic_name)
        for index in topic.partition_states:
            validate_partition_index(topic.topic_name, index.partition_index)
            yield
    return names


def decode_leader_and_isr(
    body: messages.LeaderAndIsrRequest, config_of: ConfigOf
) -> Generator[None, None, list[PartitionState]]:
    """The partitions of a LeaderAndIsr; topic ids are zero before version 5.

    It yields after each, and returns them all: see `run_in_steps`.
    """
    return _decode_states(body, config_of, _leader_and_isr_state)


def _decode_states(
    body: Any,
    config_of: ConfigOf,
    decode: Callable[[str, bytes, Any, Mapping[str, str]], PartitionState],
) -> Generator[None, None, list[PartitionState]]:
    """The partitions of a request, grouped by topic or, in older versions, not."""
    states: list[PartitionState] = []
    for state in body.ungrouped_partition_states:
        states.append(decode(state.topic_name, ZERO_UUID, state, config_of(state.topic_name)))
        yield
    for topic in body.topic_states:
        config = config_of(topic.topic_name)
        for state in topic.partition_states:
            states.append(decode(topic.topic_name, topic.topic_id, state, config))
            yield
    return states


def _leader_and_isr_state(
    topic: str,
    topic_id: bytes,
    state: messages.LeaderAndIsrRequest.LeaderAndIsrPartitionState,
    config: Mapping[str, str],
) -> PartitionState:
    return PartitionState(
        topic,
        topic_id,
        state.partition_index,
        state.controller_epoch,
        state.leader,
        state.leader_epoch,
        shared_replicas(state.isr),
        state.partition_epoch,
        shared_replicas(state.replicas),
        state.is_new,
        config,
        shared_replicas(state.adding_replicas),
        shared_replicas(state.removing_replicas),
    )


def decode_update_metadata(
    body: messages.UpdateMetadataRequest, config_of: ConfigOf
) -> Generator[None, None, MetadataUpdate]:
    """An UpdateMetadata as the cache takes it.

    It yields after each partition, and returns the whole: see `run_in_steps`.
    """
    states = yield from _decode_states(body, config_of, _update_metadata_state)
    return MetadataUpdate(
        body.controller_id,
        body.controller_epoch,
        tuple(_live_broker(broker) for broker in body.live_brokers),
        states,
        is_full=None if body.type == UNMARKED else body.type == FULL,
    )


def _update_metadata_state(
    topic: str,
    topic_id: bytes,
    state: messages.UpdateMetadataRequest.UpdateMetadataPartitionState,
    config: Mapping[str, str],
) -> PartitionState:
    return PartitionState(
        topic,
        topic_id,
        state.partition_index,
        state.controller_epoch,
        state.leader,
        state.leader_epoch,
        shared_replicas(state.isr),
        state.zk_version,
        shared_replicas(state.replicas),
        config=config,
        offline_replicas=shared_replicas(state.offline_replicas),
    )


def _live_broker(broker: messages.UpdateMetadataRequest.UpdateMetadataBroker) -> LiveBroker:
    if not broker.endpoints:  # version 0 knows one plain listener
        endpoints: Sequence[EndPoint] = (EndPoint("PLAINTEXT", broker.v0_host, broker.v0_port),)
    else:
        endpoints = tuple(
            EndPoint(
                # Before version 3 a listener is named for its protocol.
                endpoint.listener or SECURITY_PROTOCOLS[endpoint.security_protocol],
                endpoint.host,
                endpoint.port,
                SECURITY_PROTOCOLS[endpoint.security_protocol],
            )
            for endpoint in broker.endpoints
            if 0 <= endpoint.security_protocol < len(SECURITY_PROTOCOLS)
        )
    return LiveBroker(broker.id, tuple(endpoints), broker.rack)


def decode_stop_replica(
    body: messages.StopReplicaRequest,
) -> Generator[None, None, list[StoppedReplica]]:
    """The partitions of a StopReplica, whatever its version's shape.

    It yields after each partition, and returns them all: see `run_in_steps`.

    Raises:
        KafkaError: INVALID_TOPIC_EXCEPTION or INVALID_PARTITIONS, one of them there cannot be.
    """
    stopped: list[StoppedReplica] = []
    for each in body.ungrouped_partitions:
        where = TopicPartition(each.topic_name, each.partition_index)
        stopped.append(StoppedReplica(where, -1, body.delete_partitions))
        yield
    for topic in body.topics:
        for index in topic.partition_indexes:
            where = TopicPartition(topic.name, index)
            stopped.append(StoppedReplica(where, -1, body.delete_partitions))
            yield
    for state in body.topic_states:
        for named in state.partition_states:
            where = TopicPartition(state.topic_name, named.partition_index)
            stopped.append(StoppedReplica(where, named.leader_epoch, named.delete_partition))
            yield
    for each_stopped in stopped:
        validate_partition(*each_stopped.topic_partition)
        yield
    return stopped
