"""LeaderAndIsr (4), versions 0-7: the controller says which partitions to lead and to follow.

Behaviour: a request of an older controller is STALE_CONTROLLER_EPOCH, one meant for this
broker before its restart STALE_BROKER_EPOCH, as a whole; an older leader epoch is that of
one partition (STALE_CONTROLLER_EPOCH, as Kafka answers it). A partition whose log directory
failed is KAFKA_STORAGE_ERROR. One that names all replicas has the others given up; their
files stay. Topic settings do not travel in it: they are read from the metadata store.
Version notes: 2 groups partitions by topic and brings the broker's epoch; 5 topic ids, and
answers by them.
Departures from Kafka: served, not advertised: Kafka 4 has no such API any more.
"""

from __future__ import annotations

import trio

from ...common.errors import ErrorCode, KafkaError
from ...common.topic_partition import TopicPartition
from ...controller.channel.codec import FULL, decode_leader_and_isr, named_topics
from ...protocol import messages
from ...runtime.long_work import run_in_steps
from ..dynamic_config.topic_overrides import read_topic_overrides
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.requests import Request

PARTITIONS_PER_STEP = 10
"""Making a log takes up to some milliseconds: between steps, others may run."""

VERSION_OF_TOPIC_IDS = 5


@in_task
async def handle_leader_and_isr(
    context: HandlerContext, request: Request[messages.LeaderAndIsrRequest]
) -> messages.LeaderAndIsrResponse:
    """Lead and follow, some partitions at a time."""
    body = request.body
    require_current_broker_epoch(context, request, body.broker_epoch)
    if not context.replica_manager.admit_controller(body.controller_epoch):
        raise KafkaError(ErrorCode.STALE_CONTROLLER_EPOCH)
    configs = await read_topic_overrides(context.metadata_store, named_topics(body))
    states = await run_in_steps(decode_leader_and_isr(body, lambda topic: configs.get(topic, {})))
    errors: dict[TopicPartition, ErrorCode] = {}
    for start in range(0, len(states), PARTITIONS_PER_STEP):
        if start:
            await trio.lowlevel.checkpoint()
        errors |= context.replica_manager.become_leader_or_follower(
            body.controller_id, body.controller_epoch, states[start : start + PARTITIONS_PER_STEP]
        )
    if body.type == FULL:
        named = {state.topic_partition for state in states}
        context.replica_manager.keep_only(body.controller_epoch, named)
    return _answer(request.api_version, errors, {s.topic: s.topic_id for s in states})


def require_current_broker_epoch(
    context: HandlerContext, request: Request[object], broker_epoch: int
) -> None:
    """Refuse what was meant for this broker's former life, or comes from no broker.

    Raises:
        KafkaError: STALE_BROKER_EPOCH or CLUSTER_AUTHORIZATION_FAILED.
    """
    if not context.authorize(request, "CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    # A larger one is ours, too: the controller may know of a registration before we do.
    if 0 <= broker_epoch < context.controller.broker_epoch:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)


def _answer(
    version: int, errors: dict[TopicPartition, ErrorCode], topic_ids: dict[str, bytes]
) -> messages.LeaderAndIsrResponse:
    response = messages.LeaderAndIsrResponse
    if version < VERSION_OF_TOPIC_IDS:
        return response(
            partition_errors=[
                response.LeaderAndIsrPartitionError(
                    topic_name=topic, partition_index=partition, error_code=code
                )
                for (topic, partition), code in errors.items()
            ]
        )
    by_topic: dict[str, list[messages.LeaderAndIsrResponse.LeaderAndIsrPartitionError]] = {}
    for (topic, partition), code in errors.items():
        by_topic.setdefault(topic, []).append(
            response.LeaderAndIsrPartitionError(partition_index=partition, error_code=code)
        )
    return response(
        topics=[
            response.LeaderAndIsrTopicError(
                topic_id=topic_ids[topic], partition_errors=partition_errors
            )
            for topic, partition_errors in by_topic.items()
        ]
    )
