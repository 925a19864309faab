"""AlterReplicaLogDirs (34), versions 1-2: move replicas to other directories (KIP-113).

Behaviour: a copy is made in the directory beside the replica, follows it, and takes its place
when it has everything; the answer does not wait for that, DescribeLogDirs shows it. A request
for the directory in which a replica is takes back a move under way; one for a third directory
restarts it. Of several requests for one partition the last counts. LOG_DIR_NOT_FOUND is a path
that is none of `log.dirs`, written as DescribeLogDirs has it; KAFKA_STORAGE_ERROR an offline
directory, or any directory offline where a copy has to be made; INVALID_TOPIC_EXCEPTION a name
too long for a copy's folder. A replica that is not here yet is REPLICA_NOT_AVAILABLE, and made
in that directory if it comes.
Version notes: 2 is flexible.
Departures from Kafka: a move that has failed is retried when it is requested again.
"""

from __future__ import annotations

from ...common.errors import ErrorCode
from ...common.topic_partition import TopicPartition
from ...protocol import messages
from ...runtime.long_work import Pace, run_in_steps
from ...runtime.steps import Steps
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.requests import Request


@in_task
async def handle_alter_replica_log_dirs(
    context: HandlerContext, request: Request[messages.AlterReplicaLogDirsRequest]
) -> messages.AlterReplicaLogDirsResponse:
    """Begin, change or take back moves."""
    body = request.body
    targets = await run_in_steps(_targets(body))
    if not context.authorize(request, "ALTER", "CLUSTER", CLUSTER_NAME):
        refused = dict.fromkeys(targets, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return await run_in_steps(_response(refused))
    futures = context.replica_manager.future_replicas
    is_known = context.metadata_cache.has_partition
    errors: dict[TopicPartition, ErrorCode] = {}
    pace = Pace()
    for topic_partition, path in targets.items():
        await pace.keep()  # each may make a folder and its files
        errors |= futures.alter({topic_partition: path}, is_known)
    return await run_in_steps(_response(errors))


def _targets(body: messages.AlterReplicaLogDirsRequest) -> Steps[dict[TopicPartition, str]]:
    """Where each partition is to go; of several directories for one the last counts."""
    targets: dict[TopicPartition, str] = {}
    for directory in body.dirs:
        for topic in directory.topics:
            for partition in topic.partitions:
                targets[TopicPartition(topic.name, partition)] = directory.path
                yield
    return targets


def _response(
    errors: dict[TopicPartition, ErrorCode],
) -> Steps[messages.AlterReplicaLogDirsResponse]:
    response = messages.AlterReplicaLogDirsResponse
    topics: dict[str, messages.AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult] = {}
    for (topic, partition), error in errors.items():
        if topic not in topics:
            topics[topic] = response.AlterReplicaLogDirTopicResult(topic_name=topic, partitions=[])
        topics[topic].partitions.append(
            response.AlterReplicaLogDirPartitionResult(partition_index=partition, error_code=error)
        )
        yield
    return response(results=list(topics.values()))
