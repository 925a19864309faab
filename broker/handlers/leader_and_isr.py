"""LeaderAndIsr (4), versions 0-7: the controller says which partitions to lead and to follow.

Behaviour: a request of an older controller is STALE_CONTROLLER_EPOCH, one meant for this
broker before its restart STALE_BROKER_EPOCH, as a whole; an older leader epoch is that of
one partition (STALE_CONTROLLER_EPOCH, as Kafka answers it), and so are epochs far ahead that no
controller has written, which Kafka takes. A partition whose log directory
failed is KAFKA_STORAGE_ERROR. A partition that there cannot be has the whole refused, with
INVALID_TOPIC_EXCEPTION or INVALID_PARTITIONS. One that names all replicas has the others given up;
their files stay. A log of a former topic of the same name is set aside as `-stray`. Topic settings
do not travel in it: they are read from the metadata store.
Version notes: 2 groups partitions by topic and brings the broker's epoch; 5 topic ids, and
answers by them.
Departures from Kafka: served, not advertised: Kafka 4 has no such API any more. Kafka 3.9 answers
INCONSISTENT_TOPIC_ID where a log of a former topic is in the way, until somebody removes it.
"""

from __future__ import annotations

from collections.abc import Collection

from ...common.errors import ErrorCode
from ...common.partition_state import PartitionState
from ...common.topic_partition import TopicPartition
from ...controller.channel.codec import FULL, decode_leader_and_isr, named_topics
from ...protocol import messages
from ...runtime.long_work import Pace, run_in_steps
from ...runtime.steps import Steps, in_batches
from ..dynamic_config.topic_overrides import read_topic_overrides
from ..interbroker.broker_requests import (
    KnownEpochs,
    find_unwritten,
    require_broker,
    require_current_broker_epoch,
    require_known_controller,
)
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.requests import Request

PARTITIONS_PER_STEP = 3
"""Partitions to follow are given out together. Making a log takes up to some milliseconds: where
any are made it is one at a time."""

VERSION_OF_TOPIC_IDS = 5


@in_task
async def handle_leader_and_isr(
    context: HandlerContext, request: Request[messages.LeaderAndIsrRequest]
) -> messages.LeaderAndIsrResponse:
    """Lead and follow, some partitions at a time."""
    body = request.body
    await require_broker(context, request)
    await require_current_broker_epoch(context, body.broker_epoch)
    await require_known_controller(context, body.controller_epoch)
    topics = await run_in_steps(named_topics(body))
    # Settings that were read before a change, of a log that is made behind it, would stay.
    async with context.config_manager.applying:
        errors, topic_ids = await _become_leader_or_follower(context, body, topics)
    return await run_in_steps(_answer(request.api_version, errors, topic_ids))


async def _become_leader_or_follower(
    context: HandlerContext, body: messages.LeaderAndIsrRequest, topics: Collection[str]
) -> tuple[dict[TopicPartition, ErrorCode], dict[str, bytes]]:
    """Returns the errors of the partitions, and the ids of the topics."""
    configs = await read_topic_overrides(context.metadata_store, topics)
    states = await run_in_steps(decode_leader_and_isr(body, lambda topic: configs.get(topic, {})))
    unwritten = await find_unwritten(context, states, lambda each: _known_epochs(context, each))
    pace = Pace()
    topic_ids: dict[str, bytes] = {}
    named: set[TopicPartition] = set()
    written: list[PartitionState] = []
    new_topics: set[str] = set()
    replicas: set[int] = set()
    for state in states:
        await pace.keep()
        topic_ids[state.topic] = state.topic_id
        topic_partition = state.topic_partition
        named.add(topic_partition)
        if topic_partition in unwritten:
            continue
        written.append(state)
        if not context.log_manager.has_log(topic_partition):
            new_topics.add(state.topic)
            replicas.update(state.replicas)
    if new_topics:
        await context.store_references.before_logs(new_topics, replicas)
    errors = dict.fromkeys(unwritten, ErrorCode.STALE_CONTROLLER_EPOCH)
    for batch in in_batches(written, 1 if new_topics else PARTITIONS_PER_STEP):
        await pace.keep()
        errors |= context.replica_manager.become_leader_or_follower(
            body.controller_id, body.controller_epoch, batch
        )
    if body.type == FULL:
        context.replica_manager.keep_only(body.controller_epoch, named)
    return errors, topic_ids


def _known_epochs(context: HandlerContext, topic_partition: TopicPartition) -> KnownEpochs:
    partition = context.replica_manager.get_partition(topic_partition)
    if partition is None:
        return KnownEpochs()
    return KnownEpochs(partition.leader_epoch, partition.partition_epoch)


def _answer(
    version: int, errors: dict[TopicPartition, ErrorCode], topic_ids: dict[str, bytes]
) -> Steps[messages.LeaderAndIsrResponse]:
    response = messages.LeaderAndIsrResponse
    if version < VERSION_OF_TOPIC_IDS:
        answer = response()
        for (topic, partition), code in errors.items():
            answer.partition_errors.append(
                response.LeaderAndIsrPartitionError(
                    topic_name=topic, partition_index=partition, error_code=code
                )
            )
            yield
        return answer
    by_topic: dict[str, messages.LeaderAndIsrResponse.LeaderAndIsrTopicError] = {}
    for (topic, partition), code in errors.items():
        if topic not in by_topic:
            by_topic[topic] = response.LeaderAndIsrTopicError(topic_id=topic_ids[topic])
        by_topic[topic].partition_errors.append(
            response.LeaderAndIsrPartitionError(partition_index=partition, error_code=code)
        )
        yield
    return response(topics=list(by_topic.values()))
