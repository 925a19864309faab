"""Leaving a cluster in good order: Kafka's controlled shutdown, from the broker's side."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from ..client.errors import ClientError
from ..protocol import messages
from ..protocol.api_keys import ApiKey
from ..protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from .broker import Broker

logger = logging.getLogger(__name__)

VERSION = 3
RETRY_BACKOFF_MS = 500
"""Kafka waits 5 s (controlled.shutdown.retry.backoff.ms), which whoever stops a broker of a
test would not."""


async def leave_cluster(broker: Broker) -> None:
    """Ask the controller until this broker leads nothing that others could lead.

    It goes without, after `controlled.shutdown.max.retries` attempts.
    """
    for _ in range(max(broker.config["controlled.shutdown.max.retries"], 1)):
        try:
            remaining = await _ask(broker)
        except (ClientError, KafkaError) as error:
            logger.warning("the controller could not relieve this broker: %s", error)
        else:
            if remaining == 0:
                logger.info("broker %d leads nothing any more", broker.broker_id)
                return
            logger.warning("%d partitions have nobody else to lead them", remaining)
        await trio.sleep(RETRY_BACKOFF_MS / 1000)


async def _ask(broker: Broker) -> int:
    """How many partitions this broker still leads after the controller did what it could."""
    controller = broker.controller
    if controller.is_active:
        return len(await controller.shut_down_broker(broker.broker_id, controller.broker_epoch))
    controller_id = broker.metadata_cache.controller_id
    if controller_id is None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "There is no controller.")
    versions: dict[int, int] = {ApiKey.CONTROLLED_SHUTDOWN: VERSION}
    async with broker.links.to_broker(controller_id, versions) as connection:
        answer = await connection.request(
            messages.ControlledShutdownRequest(
                broker_id=broker.broker_id, broker_epoch=controller.broker_epoch
            ),
            version=VERSION,
            timeout_ms=broker.config["controller.socket.timeout.ms"],
        )
    if answer.error_code:
        raise KafkaError(ErrorCode(answer.error_code))
    return len(answer.remaining_partitions)
