"""Leaving a cluster in good order: Kafka's controlled shutdown, from the broker's side."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ...client.errors import ClientError
from ...common.errors import ErrorCode, KafkaError
from ...metadata.metadata_waiting import wait_for_metadata
from ...protocol import messages
from ...protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from ...metadata.metadata_cache import MetadataSnapshot
    from ..broker import Broker

logger = logging.getLogger(__name__)

VERSION = 3
RETRY_BACKOFF_MS = 500
"""Kafka waits 5 s (controlled.shutdown.retry.backoff.ms), which whoever stops a broker of a
test would not."""

TOLD_MS_MAX = 1_000
"""How long to wait until everybody may have heard who leads in this broker's place."""


async def leave_cluster(broker: Broker) -> None:
    """Ask the controller until this broker leads nothing that others could lead.

    It goes without, after `controlled.shutdown.max.retries` attempts; one that failed because
    the controller was leaving, too, does not count. Where a whole cluster stops, there is
    nobody left to lead anything in the end, and that is no trouble.
    """
    cache, broker_id = broker.metadata_cache, broker.broker_id
    attempts = max(broker.config["controlled.shutdown.max.retries"], 1)
    while _others(cache.snapshot, broker_id):
        controller_id = cache.controller_id
        trouble = await _try_to_leave(broker)
        if trouble is None and cache.controller_id == controller_id:
            logger.info("broker %d leads nothing any more", broker_id)
            return
        if trouble is None:
            continue  # the next controller does not know that this broker is leaving

        def changed(snapshot: MetadataSnapshot, former: int | None = controller_id) -> bool:
            return snapshot.controller_id != former or not _others(snapshot, broker_id)

        if not await wait_for_metadata(cache, changed, RETRY_BACKOFF_MS):
            attempts -= 1
        if attempts == 0:
            logger.warning("broker %d leaves what it leads: %s", broker_id, trouble)
            return
        logger.info("broker %d asks again: %s", broker_id, trouble)
    logger.info("broker %d is the last one of its cluster", broker_id)


def _others(snapshot: MetadataSnapshot, broker_id: int) -> bool:
    """Whether there is anybody to give partitions to."""
    return bool(snapshot.alive_brokers.keys() - {broker_id})


async def _try_to_leave(broker: Broker) -> str | None:
    """Ask once; says what went wrong, None if this broker leads nothing any more."""
    try:
        remaining = await _ask(broker)
    except (ClientError, KafkaError) as error:
        return f"the controller could not relieve it: {error}"
    if remaining:
        return f"{remaining} partitions have nobody else to lead them"

    def is_told(snapshot: MetadataSnapshot) -> bool:
        return not any(
            state.leader == broker.broker_id
            for states in snapshot.partition_states.values()
            for state in states.values()
        )

    # The others hear of it at the same time: their fetchers look elsewhere before this ends.
    await wait_for_metadata(broker.metadata_cache, is_told, TOLD_MS_MAX)
    return None


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
