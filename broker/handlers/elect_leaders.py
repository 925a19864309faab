"""ElectLeaders (43), versions 0-2: give partitions their preferred leader, or any at all.

Behaviour: type 0 elects the first of the assignment, if it is alive and in sync, else
PREFERRED_LEADER_NOT_AVAILABLE; type 1 gives partitions without a live leader one that may be
out of sync, else ELIGIBLE_LEADERS_NOT_AVAILABLE. A named partition that needs none is
ELECTION_NOT_NEEDED; with none named, all are looked at and only those with an outcome answered.
Answered once this broker's metadata shows the leaders, or the time-out is over. Any broker
takes it; the controller does it.
Version notes: 0 knows preferred leaders only; 1 has the type and an error of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...common.errors import ErrorCode, KafkaError
from ...common.topic_partition import TopicPartition
from ...controller.partitions.leader_elections import ElectionType
from ...protocol import messages
from ...runtime.long_work import Pace, run_in_steps
from ...runtime.steps import Steps, clear_in_steps
from ..interbroker.forwarding import on_controller
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.requests import Request

ELECTION_TYPES = frozenset(ElectionType)


@in_task
@on_controller
async def handle_elect_leaders(
    context: HandlerContext, request: Request[messages.ElectLeadersRequest]
) -> messages.ElectLeadersResponse:
    """Have the controller elect."""
    body = request.body
    if not context.authorize(request, "ALTER", "CLUSTER", CLUSTER_NAME):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if body.election_type not in ELECTION_TYPES:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {body.election_type}")
    requested = None
    if body.topic_partitions is not None:
        requested = await run_in_steps(_requested(body.topic_partitions))
    outcomes = await context.controller.elect_leaders(
        ElectionType(body.election_type), requested, timeout_ms=body.timeout_ms
    )
    response = messages.ElectLeadersResponse
    by_topic: dict[str, messages.ElectLeadersResponse.ReplicaElectionResult] = {}
    pace = Pace()
    if requested is None:  # every topic is named, most without a partition, as in Kafka
        for topic in context.metadata_cache.get_all_topics():
            await pace.keep()
            by_topic[topic] = response.ReplicaElectionResult(topic=topic)
    for topic_partition in list(outcomes):
        await pace.keep()
        outcome = outcomes.pop(topic_partition)  # tens of thousands would be freed in one go
        topic, partition = topic_partition
        if topic not in by_topic:
            by_topic[topic] = response.ReplicaElectionResult(topic=topic)
        by_topic[topic].partition_result.append(
            response.PartitionResult(
                partition_id=partition,
                error_code=outcome.code if outcome else ErrorCode.NONE,
                error_message=outcome.message if outcome else None,
            )
        )
    if requested is not None:
        await run_in_steps(clear_in_steps(requested))
    return response(replica_election_results=list(by_topic.values()))


def _requested(
    topics: Sequence[messages.ElectLeadersRequest.TopicPartitions],
) -> Steps[list[TopicPartition]]:
    requested = []
    for topic in topics:
        for partition in topic.partitions:
            requested.append(TopicPartition(topic.topic, partition))
            yield
    return requested
