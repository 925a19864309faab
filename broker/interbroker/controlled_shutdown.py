"""Kafka's controlled shutdown, from the side of the broker that stops."""

from __future__ import annotations

import logging
from contextlib import suppress

from ...client.errors import ClientError
from ...common.errors import ErrorCode, KafkaError
from ...config.broker_config import BrokerConfig
from ...controller.controller import Controller
from ...metadata.metadata_cache import MetadataCache, MetadataSnapshot
from ...metadata.metadata_waiting import wait_for_metadata
from ...metadata_store.errors import MetadataStoreError
from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ...runtime import waiting
from .broker_links import BrokerLinks

logger = logging.getLogger(__name__)

CONTROLLED_SHUTDOWN_VERSION = 3
SHUTDOWN_RETRY_BACKOFF_MS = 500
"""Kafka waits 5 s (controlled.shutdown.retry.backoff.ms), which whoever stops a broker of a
test would not."""

METADATA_VERSION = 12
FORGOTTEN_POLL_MS = 10

PROPAGATION_MS_MAX = 1_000
"""How long to wait until the other brokers may know who leads in this broker's place."""


class ControlledShutdown:
    """Has the controller move the leadership of this broker's partitions before it stops.

    Args:
        cache: the metadata; says which brokers are alive, and which is the controller.
        controller: this broker's own.
        links: opens the connection to another broker's controller.
        config: the broker's settings.
    """

    def __init__(
        self, cache: MetadataCache, controller: Controller, links: BrokerLinks, config: BrokerConfig
    ) -> None:
        self._broker_id = cache.broker_id
        self._cache = cache
        self._controller = controller
        self._links = links
        self._config = config

    async def run(self) -> None:
        """Request it until this broker leads nothing that others could lead.

        It stops without, after `controlled.shutdown.max.retries` attempts; one that failed
        because the controller was stopping, too, does not count. Where a whole cluster stops,
        nobody is left to lead anything in the end, and that is no failure.
        """
        cache, broker_id = self._cache, self._broker_id
        attempts = max(self._config["controlled.shutdown.max.retries"], 1)
        while self._has_others(cache.snapshot):
            controller_id = cache.controller_id
            failure = await self._try()
            if failure is None and cache.controller_id == controller_id:
                await self._deregister()
                logger.info("controlled shutdown of broker %d succeeded", broker_id)
                return
            if failure is None:
                continue  # the next controller does not know that this broker is stopping

            def changed(snapshot: MetadataSnapshot, former: int | None = controller_id) -> bool:
                return snapshot.controller_id != former or not self._has_others(snapshot)

            if not await wait_for_metadata(cache, changed, SHUTDOWN_RETRY_BACKOFF_MS):
                attempts -= 1
            if attempts == 0:
                logger.warning("controlled shutdown failed, continuing unclean: %s", failure)
                return
            logger.info("retrying controlled shutdown after: %s", failure)
        logger.info("broker %d is the last one of its cluster", broker_id)

    async def _deregister(self) -> None:
        """Leave the cluster while this broker still answers.

        Returns when the others name it to clients no more, neither as a broker nor as a leader, or
        after `PROPAGATION_MS_MAX`. Until then a client that comes here is told who leads now.
        """
        others = self._cache.snapshot.alive_brokers.keys() - {self._broker_id}
        try:
            await self._controller.deregister()
        except (MetadataStoreError, KafkaError) as error:
            logger.warning("broker %d could not deregister: %s", self._broker_id, error)
            return
        with waiting.move_on_after(PROPAGATION_MS_MAX / 1000):
            async with waiting.open_nursery() as nursery:
                for other in others:
                    nursery.start_soon(self._wait_until_forgotten, other)

    async def _wait_until_forgotten(self, other: int) -> None:
        """Wait until a broker names this one no more, or there is no controller to tell it."""
        request = messages.MetadataRequest(topics=[])
        versions: dict[int, int] = {ApiKey.METADATA: METADATA_VERSION}
        with suppress(ClientError):  # it is gone, too
            async with self._links.to_broker(other, versions) as connection:
                while True:
                    answer = await connection.request(request, version=METADATA_VERSION)
                    alive = {broker.node_id for broker in answer.brokers}
                    if self._broker_id not in alive or answer.controller_id not in alive:
                        return
                    await waiting.sleep(FORGOTTEN_POLL_MS / 1000)

    def _has_others(self, snapshot: MetadataSnapshot) -> bool:
        """Whether there is anybody to give partitions to."""
        return bool(snapshot.alive_brokers.keys() - {self._broker_id})

    async def _try(self) -> str | None:
        """Request it once; returns what failed, None if this broker leads nothing any more."""
        try:
            remaining = await self._request()
        except (ClientError, KafkaError, MetadataStoreError) as error:
            return f"the controller could not be reached or refused: {error}"
        if remaining:
            return f"{remaining} partitions have no other replica that can lead them"

        def is_propagated(snapshot: MetadataSnapshot) -> bool:
            return not any(
                state.leader == self._broker_id
                for states in snapshot.partition_states.values()
                for state in states.values()
            )

        # The others learn of it at the same time: their fetchers switch before this ends.
        await wait_for_metadata(self._cache, is_propagated, PROPAGATION_MS_MAX)
        return None

    async def _request(self) -> int:
        """How many partitions this broker still leads after the controller did what it could."""
        controller, broker_id = self._controller, self._broker_id
        if controller.is_active:
            return len(await controller.shut_down_broker(broker_id, controller.broker_epoch))
        controller_id = self._cache.controller_id
        if controller_id is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "There is no controller.")
        versions: dict[int, int] = {ApiKey.CONTROLLED_SHUTDOWN: CONTROLLED_SHUTDOWN_VERSION}
        async with self._links.to_broker(controller_id, versions) as connection:
            answer = await connection.request(
                messages.ControlledShutdownRequest(
                    broker_id=broker_id, broker_epoch=controller.broker_epoch
                ),
                version=CONTROLLED_SHUTDOWN_VERSION,
                timeout_ms=self._config["controller.socket.timeout.ms"],
            )
        if answer.error_code:
            raise KafkaError(ErrorCode(answer.error_code))
        return len(answer.remaining_partitions)
