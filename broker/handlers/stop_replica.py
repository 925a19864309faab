"""StopReplica (5), versions 0-4: the controller says which replicas to give up or to delete.

Behaviour: a request of an older controller is STALE_CONTROLLER_EPOCH, one meant for this
broker before its restart STALE_BROKER_EPOCH. A partition named with an older leader epoch is
FENCED_LEADER_EPOCH and stays; the epoch -2 of a topic being deleted is never older. A log
that is not there was deleted before.
Version notes: 0-2 delete all or none; 3 says it for each partition, with its leader epoch.
Departures from Kafka: served, not advertised: Kafka 4 has no such API any more.
"""

from __future__ import annotations

from ...common.errors import ErrorCode
from ...common.topic_partition import TopicPartition
from ...controller.channel.codec import decode_stop_replica
from ...protocol import messages
from ...runtime.long_work import Pace, run_in_steps
from ...runtime.steps import map_in_steps
from ..interbroker.broker_requests import (
    require_broker,
    require_current_broker_epoch,
    require_known_controller,
)
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.requests import Request


@in_task
async def handle_stop_replica(
    context: HandlerContext, request: Request[messages.StopReplicaRequest]
) -> messages.StopReplicaResponse:
    """Stop, some partitions at a time."""
    body = request.body
    await require_broker(context, request)
    await require_current_broker_epoch(context, body.broker_epoch)
    await require_known_controller(context, body.controller_epoch)
    response = messages.StopReplicaResponse
    stopped = await run_in_steps(decode_stop_replica(body))
    errors: dict[TopicPartition, ErrorCode] = {}
    pace = Pace()
    for each in stopped:
        await pace.keep()
        errors |= context.replica_manager.stop_replicas(body.controller_epoch, [each])
    stale = ErrorCode.STALE_CONTROLLER_EPOCH
    return response(
        error_code=stale if stale in errors.values() else ErrorCode.NONE,
        partition_errors=await run_in_steps(map_in_steps(_answered, errors.items())),
    )


def _answered(
    stopped: tuple[TopicPartition, ErrorCode],
) -> messages.StopReplicaResponse.StopReplicaPartitionError:
    (topic, partition), code = stopped
    return messages.StopReplicaResponse.StopReplicaPartitionError(
        topic_name=topic, partition_index=partition, error_code=code
    )
