"""AlterPartition (56), versions 0-3: a leader asks the controller for another ISR (KIP-497).

Behaviour: written by compare-and-set against the epochs that the leader knows, and told to all
brokers; one that is written already is answered as such. NOT_CONTROLLER elsewhere, and for epochs
ahead of the store's; FENCED_LEADER_EPOCH and INVALID_UPDATE_VERSION for older ones;
INELIGIBLE_REPLICA for a replica whose broker is not there (KIP-841).
Version notes: 1 has the leader's recovery state, 2 names topics by their ids, 3 has the brokers'
epochs (KIP-966), which are passed over, as by a Kafka 3.9 controller with ZooKeeper. Before 2 a
replica that may not join is OPERATION_NOT_ATTEMPTED.
Departures from Kafka: advertised where the cluster is kept by ZooKeeper, since only there Kafka's
brokers can be beside this one; its own brokers write their ISRs themselves. INVALID_REQUEST for an
ISR without its leader, from a broker that does not lead, or of brokers without a replica, as KRaft
has it: Kafka 3.9 writes them.
"""

from __future__ import annotations

from ...common.errors import ErrorCode
from ...common.partition_state import LeaderAndIsr
from ...common.topic_partition import TopicPartition
from ...controller.partitions.isr_proposals import IsrOutcome
from ...protocol import messages
from ...runtime.long_work import Pace
from ..interbroker.broker_requests import require_broker
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.requests import Request

TOPIC_IDS_SINCE = 2
BROKER_EPOCHS_SINCE = 3
RECOVERED = 0
"""LeaderRecoveryState: every leader is, once elected, as far as the store knows (KIP-704)."""


@in_task
async def handle_alter_partition(
    context: HandlerContext, request: Request[messages.AlterPartitionRequest]
) -> messages.AlterPartitionResponse:
    """Have the controller write the ISRs."""
    body = request.body
    await require_broker(context, request)
    known = context.controller.active.context
    names = []
    proposals: dict[TopicPartition, LeaderAndIsr] = {}
    pace = Pace()
    for named in body.topics:
        name = named.topic_name
        if request.api_version >= TOPIC_IDS_SINCE:
            topic = known.topic_by_id(named.topic_id)
            name = "" if topic is None else topic.name
        names.append(name)
        for part in named.partitions:
            await pace.keep()
            if name and part.leader_recovery_state == RECOVERED:
                proposals[TopicPartition(name, part.partition_index)] = LeaderAndIsr(
                    known.epoch,
                    body.broker_id,
                    part.leader_epoch,
                    _isr(request.api_version, part),
                    part.partition_epoch,
                )
    written = await context.controller.propose_isrs(body.broker_id, body.broker_epoch, proposals)

    def outcome(name: str, part: messages.AlterPartitionRequest.PartitionData) -> IsrOutcome:
        if not name:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if part.leader_recovery_state != RECOVERED:
            return ErrorCode.INVALID_REQUEST
        return written[TopicPartition(name, part.partition_index)]

    return messages.AlterPartitionResponse(
        topics=[
            messages.AlterPartitionResponse.TopicData(
                topic_name=named.topic_name,
                topic_id=named.topic_id,
                partitions=[
                    _answer(request.api_version, part.partition_index, outcome(name, part))
                    for part in named.partitions
                ],
            )
            for name, named in zip(names, body.topics, strict=True)
        ]
    )


def _isr(version: int, part: messages.AlterPartitionRequest.PartitionData) -> tuple[int, ...]:
    if version >= BROKER_EPOCHS_SINCE:
        return tuple(each.broker_id for each in part.new_isr_with_epochs)
    return tuple(part.new_isr)


def _answer(
    version: int, index: int, outcome: IsrOutcome
) -> messages.AlterPartitionResponse.PartitionData:
    make = messages.AlterPartitionResponse.PartitionData
    if isinstance(outcome, LeaderAndIsr):
        return make(
            partition_index=index,
            leader_id=outcome.leader,
            leader_epoch=outcome.leader_epoch,
            isr=list(outcome.isr),
            partition_epoch=outcome.partition_epoch,
        )
    if outcome == ErrorCode.INELIGIBLE_REPLICA and version < TOPIC_IDS_SINCE:
        outcome = ErrorCode.OPERATION_NOT_ATTEMPTED
    return make(partition_index=index, error_code=outcome)
