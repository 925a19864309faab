"""One broker: the rooms put together, and all that a handler may reach for."""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import trio

from ..replication.hosted_partitions import ReplicaSettings
from ..replication.replica_manager import ReplicaManager
from ..runtime.clock import Clock
from ..runtime.offload import run_in_thread
from ..runtime.timers import Timers
from ..storage.log_config import LogConfig
from ..storage.log_manager import LogManager
from .config.broker_config import BrokerConfig
from .config.listeners import Listener, advertise
from .config.topic_configs import log_config, topic_values
from .controller.channel import LocalChannel
from .controller.controller import Controller
from .controller.live_broker import EndPoint, LiveBroker
from .coordinator.group.factory import create_group_coordinator
from .dispatch import Dispatcher
from .fetch_sessions import FetchSessionCache
from .handlers.registry import load_handlers
from .metadata_cache import MetadataCache
from .metadata_store.store import MetadataStore
from .requests import Request
from .server import Server, ServerSettings

logger = logging.getLogger(__name__)

PRODUCER_EXPIRATION_CHECK_MS = 600_000
"""Kafka's producer.id.expiration.check.interval.ms."""


class Broker:
    """A broker between its start and its end.

    Args:
        broker_id: its number in the cluster.
        cluster_id: the cluster's id, as text.
        config: its settings.
        log_manager: its logs, loaded.
        metadata_store: an open session on the cluster's metadata.
        clock: the time.
        chance: the source of everything random.
    """

    def __init__(
        self,
        *,
        broker_id: int,
        cluster_id: str,
        config: BrokerConfig,
        log_manager: LogManager,
        metadata_store: MetadataStore,
        clock: Clock,
        chance: random.Random,
    ) -> None:
        self.broker_id = broker_id
        self.cluster_id = cluster_id
        self.config = config
        self.clock = clock
        self.random = chance
        self.timers = Timers()
        self.log_manager = log_manager
        self.metadata_store = metadata_store
        self.metadata_cache = MetadataCache(broker_id)
        self.replica_manager = ReplicaManager(
            ReplicaSettings(broker_id, self._log_config, self._min_insync_replicas),
            log_manager,
            clock,
            self.timers,
        )
        self.group_coordinator = create_group_coordinator(
            config, self.replica_manager, self.metadata_cache, clock, self.timers, chance
        )
        self.fetch_sessions = FetchSessionCache(
            config["max.incremental.fetch.session.cache.slots"], chance
        )
        self.dispatcher = Dispatcher(self, load_handlers())
        self.server = Server(
            ServerSettings(
                config.listeners,
                config["socket.request.max.bytes"],
                config["connections.max.idle.ms"],
            ),
            self.dispatcher,
            clock,
            self.timers,
            self.replica_manager.flush,
        )
        self.controller: Controller
        self._nursery: trio.Nursery | None = None

    # -- for handlers ------------------------------------------------------------------

    def authorize(
        self, request: Request, operation: str, resource_type: str, resource_name: str
    ) -> bool:
        """Whether the request's principal may do this; everyone may everything for now.

        Args:
            operation: Kafka's name of it, such as "WRITE".
            resource_type: "TOPIC", "GROUP", "CLUSTER" or "TRANSACTIONAL_ID".
            resource_name: which one.
        """
        return True

    def start_task(self, function: Callable[..., Awaitable[None]], *arguments: Any) -> None:
        """Run an async function beside the requests; what it staged and answered goes out."""
        assert self._nursery is not None, "tasks are started while the broker runs"
        self._nursery.start_soon(self._run_task, function, arguments)

    async def _run_task(
        self, function: Callable[..., Awaitable[None]], arguments: tuple[Any, ...]
    ) -> None:
        try:
            await function(*arguments)
        except Exception:
            logger.exception("a task of the broker failed")
        self.server.finish_outside_work()

    # -- start and stop ----------------------------------------------------------------

    async def run(self, on_ready: Callable[[tuple[Listener, ...]], None]) -> None:
        """Serve until cancelled, then stop in good order.

        Args:
            on_ready: called with the advertised listeners once requests are answered.

        Raises:
            ConfigError: an address cannot be bound.
            BrokerIdTaken: another broker of the cluster has this one's id.
        """
        try:
            self.server.bind()
            advertised = self._advertised_listeners()
            self.controller = self._make_controller(advertised)
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self.metadata_store.run)
                await self.controller.start()
                self.replica_manager.flush()
                self.group_coordinator.start()
                self._schedule_housekeeping()
                nursery.start_soon(self.server.serve)
                on_ready(advertised)
        finally:
            with trio.CancelScope(shield=True):
                await self._stop()

    async def _stop(self) -> None:
        """Let what is under way end, then close everything, logs last."""
        self.server.stop_accepting()
        if hasattr(self, "controller"):
            await self.controller.stop()
        self.group_coordinator.close()
        self.server.finish_outside_work()  # the last answers go out
        self.server.close()
        self.log_manager.checkpoint_high_watermarks(self.replica_manager.high_watermarks())
        self.log_manager.close()
        await self.metadata_store.close()

    def _advertised_listeners(self) -> tuple[Listener, ...]:
        ports = {bound.listener.name: bound.port for bound in self.server.bound}
        return advertise(
            self.config.listeners, self.config.advertised_listeners, ports, _host_name()
        )

    def _make_controller(self, advertised: tuple[Listener, ...]) -> Controller:
        endpoints = tuple(
            EndPoint(listener.name, listener.host, listener.port, listener.security_protocol)
            for listener in advertised
        )
        return Controller(
            broker=LiveBroker(self.broker_id, endpoints, self.config["broker.rack"]),
            store=self.metadata_store,
            channel=LocalChannel(
                self.broker_id,
                self.replica_manager,
                self.metadata_cache,
                self.group_coordinator.delete_partition_offsets,
            ),
            config=self.config,
            clock=self.clock,
            random=self.random,
        )

    # -- housekeeping ------------------------------------------------------------------

    def _schedule_housekeeping(self) -> None:
        config = self.config
        self._every(
            config["replica.high.watermark.checkpoint.interval.ms"],
            self._checkpoint_high_watermarks,
        )
        self._every(PRODUCER_EXPIRATION_CHECK_MS, self.log_manager.remove_expired_producers)
        self._every(
            config["log.retention.check.interval.ms"], self.replica_manager.delete_old_segments
        )
        self._every(
            config["log.flush.start.offset.checkpoint.interval.ms"],
            self._checkpoint_offsets,
        )

    def _every(self, interval_ms: int, work: Callable[[], object]) -> None:
        """Call `work` again and again, `interval_ms` after it was last done."""

        def work_and_go_on() -> None:
            try:
                work()
            except Exception:
                logger.exception("periodic work failed; it is tried again in %d ms", interval_ms)
            schedule()

        def schedule() -> None:
            self.timers.schedule(self.clock.monotonic_ms() + interval_ms, work_and_go_on)

        schedule()

    def _checkpoint_high_watermarks(self) -> None:
        high_watermarks = self.replica_manager.high_watermarks()
        self._write_in_thread(self.log_manager.prepare_high_watermarks(high_watermarks))

    def _checkpoint_offsets(self) -> None:
        self._write_in_thread(self.log_manager.prepare_offsets())

    def _write_in_thread(self, write: Callable[[], None] | None) -> None:
        """Checkpoints wait for the disk; the loop must not."""
        if write is not None:
            self.start_task(run_in_thread, write)

    # -- what replication asks of the configuration ---------------------------------------

    def _log_config(self, overrides: Mapping[str, str]) -> LogConfig:
        return log_config(self.config, overrides)

    def _min_insync_replicas(self, overrides: Mapping[str, str]) -> int:
        least: int = topic_values(self.config, overrides)["min.insync.replicas"]
        return least


def _host_name() -> str:
    """This machine's name as others may know it (Kafka asks for the canonical one)."""
    import socket

    return socket.getfqdn()
