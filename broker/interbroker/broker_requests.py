"""What every request that only a broker or the controller may send has to get past."""

from __future__ import annotations

import logging

from ...common.errors import ErrorCode, KafkaError
from ...controller.registration import read_controller_epoch
from ...metadata_store.errors import MetadataStoreError
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.requests import Request

logger = logging.getLogger(__name__)


async def require_broker(context: HandlerContext, request: Request[object]) -> None:
    """Refuse a request that does not come from a broker, by the listener that brokers use.

    With an authorizer its principal must be allowed CLUSTER_ACTION; without one, it must be a
    registered broker's. The store is read only where an address is not known as a broker's.

    Raises:
        KafkaError: CLUSTER_AUTHORIZATION_FAILED.
    """
    connection = request.connection
    if connection.listener_name == context.config.inter_broker_listener_name:
        if context.authorize(request, "CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME):
            return
        try:
            await context.registered_brokers.look_up(connection)
        except MetadataStoreError as error:
            logger.warning("cannot find out whether %s is a broker: %s", connection.peer, error)
        if context.authorize(request, "CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME):
            return
    logger.debug("%r is refused: it does not come from a broker", request)
    raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def require_current_broker_epoch(context: HandlerContext, broker_epoch: int) -> None:
    """Refuse what was meant for this broker's former life (KIP-380).

    Raises:
        KafkaError: STALE_BROKER_EPOCH.
    """
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
