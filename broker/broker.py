"""One broker: the rooms put together, and all that a handler may reach for."""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from ..common.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from ..common.live_broker import EndPoint, LiveBroker
from ..common.topic_partition import TopicPartition
from ..config.dynamic.dynamic_config import DynamicConfig
from ..config.group_configs import GroupConfigs
from ..config.listeners import Listener, advertise
from ..config.topic_configs import log_config, topic_values
from ..controller.channel import codec as wire
from ..controller.channel.channel_manager import ChannelManager
from ..controller.controller import Controller
from ..metadata.features import SUPPORTED, TRANSACTION_VERSION, Features
from ..metadata.metadata_cache import MetadataCache
from ..metadata.metadata_waiting import wait_for_metadata
from ..metadata_store.store import MetadataStore
from ..replication.partition.hosted_partitions import ReplicaSettings
from ..replication.replica_manager import ReplicaManager
from ..runtime.clock import Clock
from ..runtime.timers import Timers
from ..storage.log.log_config import LogConfig
from ..storage.log_manager.log_directory import NO_BROKER_EPOCH
from ..storage.log_manager.log_manager import FailedDirectory, LogManager
from .dynamic_config.config_listeners import follow_changes
from .dynamic_config.config_manager import ConfigManager
from .handlers.registry import REGISTRATIONS
from .interbroker.broker_links import BrokerLinks
from .interbroker.controlled_shutdown import leave_cluster
from .interbroker.feature_follower import FeatureFollower, FeaturesNotSupported
from .interbroker.peers import BrokerPeers
from .interbroker.transaction_verification import TransactionVerifier
from .maintenance.failed_directories import hold_producer_ids
from .maintenance.log_maintenance import LogMaintenance
from .network.listener_security import tls_listeners
from .network.server import Server, ServerSettings
from .request.dispatch import Dispatcher
from .request.fetch_sessions import FetchSessionCache
from .request.requests import Request

if TYPE_CHECKING:
    from ..coordinator.group.coordinator import GroupCoordinator
    from ..coordinator.transaction.coordinator import TransactionCoordinator
    from .interbroker.marker_channels import MarkerChannels

logger = logging.getLogger(__name__)

CoordinatorT = TypeVar("CoordinatorT", "GroupCoordinator", "TransactionCoordinator")

JOIN_MS_MAX = 30_000
"""How long a broker that starts waits to be told of the cluster before it serves all the same."""

LEAVE_MS_MAX = 10_000
"""How long a broker that stops may try to have its partitions led by others."""

CLEANER_DELAY_MS_MAX = 1000
"""The first look for logs to compact is not later than this after the start."""


class Broker:
    """A broker between its start and its end.

    Args:
        broker_id: its number in the cluster.
        cluster_id: the cluster's id, as text.
        config: its settings, which change while it runs.
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
        config: DynamicConfig,
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
        self.features = Features()
        self.feature_follower = FeatureFollower(
            metadata_store, self.features, self.start_task, self._features_not_supported
        )
        self.group_configs = GroupConfigs(config)
        self.client_metrics: dict[str, Mapping[str, str]] = {}
        self.config_manager = ConfigManager(metadata_store, clock, self.start_task)
        tls = tls_listeners(config)
        self.links = BrokerLinks(
            broker_id, config.inter_broker_listener_name, self.metadata_cache, tls
        )
        self.channels = ChannelManager(
            config.inter_broker_listener_name,
            lambda endpoint: self.links.to_endpoint(endpoint, wire.VERSIONS),
            config["controller.socket.timeout.ms"],
        )
        self.replica_manager = ReplicaManager(
            ReplicaSettings(
                broker_id,
                self._log_config,
                self._min_insync_replicas,
                config["replica.lag.time.max.ms"],
                config["replication.quota.window.num"],
                config["replication.quota.window.size.seconds"] * 1000,
            ),
            log_manager,
            clock,
            self.timers,
        )
        self.replica_manager.hosted.online.is_in_cluster = self.metadata_cache.has_partition
        self.replica_manager.leadership_listeners.append(self._leadership_changed)
        self._coordinators: list[GroupCoordinator | TransactionCoordinator] = []
        self._are_coordinators_started = False
        self.transaction_verifier = TransactionVerifier(self)
        self.fetch_sessions = FetchSessionCache(
            config["max.incremental.fetch.session.cache.slots"],
            chance,
            self.replica_manager.delayed_fetch,
        )
        self.dispatcher = Dispatcher(self, REGISTRATIONS)
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
            tls,
        )
        self.log_maintenance = LogMaintenance(
            config, self.replica_manager, clock, self.timers, self.start_task
        )
        self.peers = BrokerPeers(self)
        self.replica_manager.hosted.peers = self.peers
        self.replica_manager.hosted.online.select_replica = self.peers.replica_selector()
        follow_changes(self)
        self.controller: Controller
        self._nursery: trio.Nursery | None = None
        self._whole: trio.CancelScope | None = None
        self._cannot_stay: FeaturesNotSupported | None = None

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

    def _take_producer_id(self) -> int | None:
        """A producer id at once; without one at hand, some are fetched for the next time."""
        producer_id = self.controller.producer_ids.take_nowait()
        if producer_id is None:
            self.start_task(self.controller.producer_ids.refill)
        return producer_id

    # -- coordinators ------------------------------------------------------------------
    #
    # Each is made, and its modules are imported, when it is first asked for or is to load a
    # partition: a broker without groups and transactions is ready sooner and is smaller.

    @cached_property
    def group_coordinator(self) -> GroupCoordinator:
        """All groups that are coordinated here."""
        from ..coordinator.group.factory import create_group_coordinator

        return self._with_coordinator(
            create_group_coordinator(
                self.config,
                self.replica_manager,
                self.metadata_cache,
                self.clock,
                self.timers,
                self.random,
                self.group_configs,
            )
        )

    @cached_property
    def transaction_coordinator(self) -> TransactionCoordinator:
        """All transactional ids that are coordinated here."""
        from ..coordinator.transaction.factory import create_transaction_coordinator

        return self._with_coordinator(
            create_transaction_coordinator(
                self.config,
                self.replica_manager,
                self.metadata_cache,
                self.clock,
                self.timers,
                markers=self.marker_channels,
                take_producer_id=self._take_producer_id,
                transaction_version=lambda: self.features.finalized(TRANSACTION_VERSION),
            )
        )

    @cached_property
    def marker_channels(self) -> MarkerChannels:
        """Brings the ends of transactions to the leaders of their partitions."""
        from .interbroker.marker_channels import MarkerChannels

        return MarkerChannels(self)

    def _with_coordinator(self, made: CoordinatorT) -> CoordinatorT:
        self._coordinators.append(made)
        if self._are_coordinators_started:
            made.start()
        return made

    def _start_coordinators(self) -> None:
        self._are_coordinators_started = True
        for coordinator in self._coordinators:
            coordinator.start()

    def _leadership_changed(
        self, topic_partition: TopicPartition, is_leader: bool, leader_epoch: int
    ) -> None:
        coordinator: GroupCoordinator | TransactionCoordinator
        if topic_partition.topic == CONSUMER_OFFSETS:
            coordinator = self.group_coordinator
        elif topic_partition.topic == TRANSACTION_STATE:
            coordinator = self.transaction_coordinator
        else:
            return
        coordinator.note_leadership(topic_partition.partition, leader_epoch, is_leader=is_leader)

    # -- start and stop ----------------------------------------------------------------

    async def run(self, on_ready: Callable[[tuple[Listener, ...]], None]) -> None:
        """Serve until cancelled, then stop in good order.

        Args:
            on_ready: called with the advertised listeners once requests are answered.

        Raises:
            ConfigError: an address cannot be bound.
            BrokerIdTaken: another broker of the cluster has this one's id.
            LogDirectoryError: the last log directory has failed.
            FeaturesNotSupported: the cluster has finalized what this release does not have.
        """
        serving = trio.CancelScope(shield=True)
        try:
            self.server.bind()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._serve, serving, on_ready, nursery.cancel_scope)
                try:
                    await trio.sleep_forever()
                finally:
                    await self._leave()
                    serving.cancel()
        finally:
            with trio.CancelScope(shield=True):
                await self._stop()
        if self._cannot_stay is not None:
            raise self._cannot_stay
        self.log_manager.directories.require_one_online()

    async def _serve(
        self,
        scope: trio.CancelScope,
        on_ready: Callable[[tuple[Listener, ...]], None],
        whole: trio.CancelScope,
    ) -> None:
        """Serve until `scope` is cancelled, which waits until the broker has left the cluster."""
        advertised = self._advertised_listeners()
        self.controller = self._make_controller(advertised)
        with scope:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                self._whole = whole
                self.replica_manager.on_directories_failed = self._log_directories_failed
                nursery.start_soon(self.server.serve)
                nursery.start_soon(self.channels.run)
                await self.config_manager.start(self.broker_id)
                await self.feature_follower.start()
                await self.controller.start()
                nursery.start_soon(self.controller.run)
                await wait_for_metadata(
                    self.metadata_cache, lambda _: self.metadata_cache.is_complete, JOIN_MS_MAX
                )
                await self.feature_follower.read()
                self._start_coordinators()
                self.log_maintenance.start()
                self.peers.start()
                self.start_task(hold_producer_ids, self)
                self._schedule_log_cleaner()
                self._schedule_leader_rebalance()
                on_ready(advertised)

    async def _leave(self) -> None:
        """Have the controller give this broker's partitions to others, before it stops.

        Kafka's controlled shutdown; there is nobody to give them to on a cluster of one.
        """
        others = self.metadata_cache.snapshot.alive_brokers.keys() - {self.broker_id}
        if not others or not self.config["controlled.shutdown.enable"]:
            return
        with trio.CancelScope(shield=True):
            with trio.move_on_after(LEAVE_MS_MAX / 1000):
                await leave_cluster(self)

    def _schedule_leader_rebalance(self) -> None:
        """Give brokers their preferred partitions back from time to time, if so configured."""

        def rebalance() -> None:
            if self.config["auto.leader.rebalance.enable"]:
                self.controller.rebalance_leaders()
            schedule()

        def schedule() -> None:
            interval_ms = self.config["leader.imbalance.check.interval.seconds"] * 1000
            self.timers.schedule(self.clock.monotonic_ms() + interval_ms, rebalance)

        schedule()

    def _schedule_log_cleaner(self) -> None:
        """Have compaction begin soon; its modules are not imported before."""
        if not self.config["log.cleaner.enable"] or self.config["log.cleaner.threads"] == 0:
            return

        def start() -> None:
            from .maintenance.log_cleaner_task import LogCleanerTask

            LogCleanerTask(self).start()

        delay_ms = min(self.config["log.cleaner.backoff.ms"], CLEANER_DELAY_MS_MAX)
        self.timers.schedule(self.clock.monotonic_ms() + delay_ms, start)

    async def _stop(self) -> None:
        """Let what is under way end, then close everything, logs last."""
        self.server.stop_accepting()
        self.log_maintenance.stop()
        self.peers.stop()
        self.replica_manager.on_directories_failed = None
        self.config_manager.stop()
        self.feature_follower.stop()
        if hasattr(self, "controller"):
            await self.controller.stop()
        for coordinator in self._coordinators:
            coordinator.close()
        self.server.finish_outside_work()  # the last answers go out
        self.server.close()
        self.log_manager.checkpoint_high_watermarks(self.replica_manager.high_watermarks())
        self.log_manager.close(self._broker_epoch())
        await self.metadata_store.close()

    def _log_directories_failed(self, failed: Sequence[FailedDirectory]) -> None:
        """Have the controller find other leaders; without any directory there is no broker."""
        if self.log_manager.directories.online:
            for directory in failed:
                self.metadata_cache.replicas_failed(directory.partitions)
            self.start_task(self.controller.log_directories_failed)
        elif self._whole is not None:
            logger.critical("all log directories have failed: the broker stops")
            self._whole.cancel()

    def _features_not_supported(self, why: FeaturesNotSupported) -> None:
        """A level was finalized that this release does not have: it may not stay, as in Kafka."""
        if self._whole is not None and self._cannot_stay is None:
            logger.critical("the broker stops: %s", why)
            self._cannot_stay = why
            self._whole.cancel()

    def _broker_epoch(self) -> int:
        return self.controller.broker_epoch if hasattr(self, "controller") else NO_BROKER_EPOCH

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
            broker=LiveBroker(
                self.broker_id, endpoints, self.config["broker.rack"], features=SUPPORTED
            ),
            store=self.metadata_store,
            channel=self.channels,
            config=self.config,
            clock=self.clock,
            random=self.random,
        )

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
