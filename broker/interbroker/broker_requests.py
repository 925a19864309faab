"""What every request that only a broker or the controller may send has to get past."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from ...common.errors import ErrorCode, KafkaError
from ...common.named_tuple import NamedTuple
from ...common.partition_state import PartitionState
from ...common.topic_partition import TopicPartition
from ...controller.registration import read_controller_epoch
from ...controller.topics.topic_nodes import decode_leadership
from ...metadata_store import znodes
from ...metadata_store.errors import MetadataStoreError
from ...runtime.long_work import Pace
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.requests import ClientConnection, Request

logger = logging.getLogger(__name__)

ACTING_AS_BROKER: Final = ("CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME)
"""What a broker's principal is allowed, and without an authorizer a registered broker."""
EPOCHS_AHEAD_MAX: Final = 1_000
"""A leader or partition epoch that is more than so many ahead of the known one is looked up."""


class KnownEpochs(NamedTuple):
    """Of a partition."""

    leader_epoch: int = -1
    partition_epoch: int = -1


async def require_broker(context: HandlerContext, request: Request[object]) -> None:
    """Refuse a request that does not come from a broker, by the listener that brokers use.

    With an authorizer its principal must be allowed CLUSTER_ACTION; without one, it must be a
    registered broker's. The store is read only where an address is not known as a broker's.

    Raises:
        KafkaError: CLUSTER_AUTHORIZATION_FAILED.
    """
    connection = request.connection
    if connection.listener_name == context.config.inter_broker_listener_name:
        if context.admission.is_allowed(request, *ACTING_AS_BROKER):
            return
        await look_up_broker(context, connection)
        if context.authorize(request, *ACTING_AS_BROKER):
            return
    logger.debug("%r is refused: it does not come from a broker", request)
    raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


async def look_up_broker(context: HandlerContext, connection: ClientConnection) -> None:
    """Find out by registrations as they are now whether a connection is a broker's.

    Where they cannot be read it stays what it was taken for.
    """
    try:
        await context.registered_brokers.look_up(connection)
    except MetadataStoreError as error:
        logger.warning("cannot find out whether %s is a broker: %s", connection.peer, error)


async def require_current_broker_epoch(context: HandlerContext, broker_epoch: int) -> None:
    """Refuse what was meant for this broker's former life (KIP-380).

    A broker that starts serves before it is registered. As long as its former registration stands
    the controller goes on with that life's requests, and by them the broker would lead in an epoch
    in which it had records that a crash took. Kafka's reads no request before it is registered.

    Raises:
        KafkaError: STALE_BROKER_EPOCH.
    """
    await context.controller.wait_until_registered()
    # A larger one is ours, too: the controller may know of a registration before we do.
    if 0 <= broker_epoch < context.controller.broker_epoch:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)


async def require_known_controller(context: HandlerContext, controller_epoch: int) -> None:
    """Refuse a controller that was replaced, and one that was never elected.

    The store is read only for an epoch that this broker has not heard of before.

    Raises:
        KafkaError: STALE_CONTROLLER_EPOCH.
    """
    replica_manager = context.replica_manager
    if controller_epoch > replica_manager.controller_epoch:
        elected = await read_controller_epoch(context.metadata_store, controller_epoch)
        if controller_epoch > elected:
            logger.warning(
                "refused a request of controller epoch %d: the latest that was elected is %d",
                controller_epoch,
                elected,
            )
            raise KafkaError(ErrorCode.STALE_CONTROLLER_EPOCH)
    if not replica_manager.admit_controller(controller_epoch):
        raise KafkaError(ErrorCode.STALE_CONTROLLER_EPOCH)


async def find_unwritten(
    context: HandlerContext,
    states: Sequence[PartitionState],
    known: Callable[[TopicPartition], KnownEpochs],
) -> set[TopicPartition]:
    """The partitions of which a controller tells epochs far ahead of what it has written.

    Every later state of such a partition would be refused as an older one, until this broker is
    started again; Kafka takes it. A controller writes before it tells, so the store knows an epoch
    that is true. It is read only for epochs that are far ahead.

    Args:
        known: the epochs of a partition that this broker knows.

    Raises:
        MetadataStoreError: the store does not answer.
    """
    ahead = []
    pace = Pace()
    for state in states:
        await pace.keep()
        epochs = known(state.topic_partition)
        if (
            state.leader_epoch - epochs.leader_epoch > EPOCHS_AHEAD_MAX
            or state.partition_epoch - epochs.partition_epoch > EPOCHS_AHEAD_MAX
        ):
            ahead.append(state)
    if not ahead:
        return set()
    paths = [znodes.partition_state_path(*state.topic_partition) for state in ahead]
    nodes = await context.metadata_store.get_many(paths)
    unwritten = set()
    for state, node in zip(ahead, nodes, strict=True):
        await pace.keep()
        written = decode_leadership(state.topic, state.partition, node)
        if (
            written is None
            or state.leader_epoch > written.leader_epoch
            or state.partition_epoch > written.partition_epoch
        ):
            logger.warning(
                "refused a state of %s with leader epoch %d and partition epoch %d: no controller "
                "has written them",
                state.topic_partition,
                state.leader_epoch,
                state.partition_epoch,
            )
            unwritten.add(state.topic_partition)
    return unwritten
