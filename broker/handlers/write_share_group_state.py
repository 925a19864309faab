"""WriteShareGroupState (85), versions 0-1: what changes in the states of share partitions.

Behaviour: brokers send it to the share coordinator, which is the leader of the partition of
`__share_group_state` that keeps the share partition; each is answered on its own, when what it
changes is on enough replicas. Who sends it must be allowed CLUSTER_ACTION on the cluster.
Departures from Kafka: none known.
"""

from __future__ import annotations

from ...protocol import messages
from ...runtime.steps import Steps
from ..request.context import HandlerContext
from ..request.outcomes import Parked, in_steps
from ..request.requests import Request
from ..share.state_requests import submit_operations


@in_steps
def handle_write_share_group_state(
    context: HandlerContext, request: Request[messages.WriteShareGroupStateRequest]
) -> Steps[messages.WriteShareGroupStateResponse | Parked]:
    """Have each operation done."""
    return (yield from submit_operations(context, request))
