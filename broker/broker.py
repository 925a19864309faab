"""One broker: the composition root, which makes every part of it and imports them all.

Nothing below imports this module. Handlers get a `HandlerContext`, everything else the parts
that it uses.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ..common.live_broker import EndPoint, LiveBroker
from ..config.dynamic.dynamic_config import DynamicConfig
from ..config.group_configs import GroupConfigs
from ..config.listeners import Listener, advertise
from ..config.topic_configs import log_config, topic_values
from ..controller.channel import codec as wire
from ..controller.channel.channel_manager import ChannelManager
from ..controller.controller import Controller
from ..metadata.features import SUPPORTED, Features
from ..metadata.metadata_cache import MetadataCache, MetadataSnapshot
from ..metadata.metadata_waiting import wait_for_metadata
from ..metadata_store import znodes
from ..metadata_store.errors import MetadataStoreError
from ..metadata_store.store import MetadataStore
from ..replication.replica_manager import ReplicaManager, ReplicaSettings
from ..runtime import waiting
from ..runtime.clock import Clock
from ..runtime.descriptors import DescriptorPlan
from ..runtime.supervisor import Supervisor
from ..runtime.timers import Timers, repeat
from ..storage.log.log_config import LogConfig
from ..storage.log_manager.log_manager import FailedDirectory, LogManager
from .broker_state import BrokerState
from .coordinators import BrokerCoordinators
from .dynamic_config import config_listeners
from .dynamic_config.config_manager import USERS, ConfigManager
from .handlers.registry import REGISTRATIONS
from .interbroker.broker_channel import ChannelTasks
from .interbroker.broker_links import BrokerLinks
from .interbroker.controlled_shutdown import ControlledShutdown
from .interbroker.feature_follower import FeatureFollower, FeaturesNotSupported
from .interbroker.peers import BrokerPeers
from .interbroker.registered_brokers import RegisteredBrokers
from .maintenance.log_maintenance import LogMaintenance
from .maintenance.refused_requests import LOOK_MS, RefusedRequests
from .network.connection_quotas import ConnectionQuotas
from .network.listener_security import sasl_listeners, tls_listeners
from .network.request_memory import request_bytes_max
from .network.server import Server, ServerSettings
from .request.admission import Admission
from .request.authorizers import authorizer_of, by_authorizer
from .request.context import HandlerContext
from .request.dispatch import Dispatcher
from .request.fetch_sessions import FetchSessionCache
from .request.quotas.quota_table import QuotaTable
from .store_comparison import StoreReferences
from .telemetry.client_metrics import ClientMetrics

if TYPE_CHECKING:
    from .dynamic_config.acl_manager import AclManager
    from .dynamic_config.stored_passwords import StoredPasswords
    from .dynamic_config.token_manager import TokenManager

logger = logging.getLogger(__name__)

JOIN_MS_MAX = 30_000
"""How long a broker that starts waits for what a controller's view of the cluster lacks: brokers
that start with it, and topics that a controller of Kafka does not name. It says as often that it
waits for a controller: that is longer than the session of one that died
(`zookeeper.session.timeout.ms`, 18 s) and the election that follows."""

NO_TOPICS: Final[frozenset[str]] = frozenset()

CONTROLLED_SHUTDOWN_MS_MAX = 10_000
"""How long controlled shutdown may take."""

CLEANER_DELAY_MS_MAX = 1000
"""Compaction begins not later than this after the start."""


class Broker:
    """A broker between its start and its end.

    Args:
        broker_id: its number in the cluster.
        cluster_id: the cluster's id, as text.
        secret: by which the cluster's brokers know each other.
        config: its settings, which change while it runs.
        log_manager: its logs, loaded.
        metadata_store: an open session on the cluster's metadata.
        passwords: how secrets that are set while it runs are kept there.
        clock: the time.
        rng: the source of everything random.
        descriptors: what it may have open.
        make_server: makes what serves its listeners.
    """

    companions: frozenset[int] = frozenset()
    """The ids of the brokers that start together with this one, in its process: clients are told
    of all of them from the first answer on."""

    state = BrokerState.STARTING
    """What it is doing."""

    def __init__(
        self,
        *,
        broker_id: int,
        cluster_id: str,
        secret: bytes,
        config: DynamicConfig,
        log_manager: LogManager,
        metadata_store: MetadataStore,
        passwords: StoredPasswords,
        clock: Clock,
        rng: random.Random,
        descriptors: DescriptorPlan,
        make_server: Callable[..., Server] = Server,
    ) -> None:
        self.broker_id = broker_id
        self.cluster_id = cluster_id
        self.config = config
        self.clock = clock
        self.rng = rng
        self.timers = Timers()
        self.supervisor = Supervisor(self._flush)
        start_task = self.supervisor.start_task
        keep_running = self.supervisor.keep_running
        self.log_manager = log_manager
        self.metadata_store = metadata_store
        self.metadata_cache = MetadataCache(broker_id)
        self.features = Features()
        self.registered_brokers = RegisteredBrokers(
            broker_id, secret, config.inter_broker_listener_name, metadata_store
        )
        self.admission, self.acls = self._admission()
        self.feature_follower = FeatureFollower(
            metadata_store, self.features, keep_running, self._features_not_supported
        )
        self.group_configs = GroupConfigs(config)
        self.config_manager = ConfigManager(metadata_store, clock, keep_running, passwords)
        self._tls, self._sasl = tls_listeners(config), sasl_listeners(config, clock)
        self.links = BrokerLinks(
            broker_id,
            config.inter_broker_listener_name,
            self.metadata_cache,
            self.registered_brokers,
            self._tls,
            self._sasl,
            lambda host, port: self.server.connect(host, port),
        )
        self.channels = ChannelManager(
            config.inter_broker_listener_name,
            lambda to, endpoint: self.links.to_endpoint(to, endpoint, wire.VERSIONS),
            config["controller.socket.timeout.ms"],
            self.supervisor,
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
        self.replica_manager.partitions.is_in_cluster = self.metadata_cache.has_partition
        self.controller = Controller(
            broker=LiveBroker(
                broker_id, (), config["broker.rack"], features=SUPPORTED, proves_itself=True
            ),
            store=metadata_store,
            channel=self.channels,
            config=config,
            clock=clock,
            random=rng,
            supervisor=self.supervisor,
        )
        self.coordinators = BrokerCoordinators(
            config,
            self.group_configs,
            clock,
            self.timers,
            rng,
            self.replica_manager,
            self.metadata_cache,
            self.features,
            self.controller.producer_ids,
            ChannelTasks(self.links, self.metadata_cache, start_task, self._flush),
            self._create_topics,
        )
        self.replica_manager.leadership_listeners.append(self.coordinators.leadership_changed)
        self.fetch_sessions = FetchSessionCache(
            config["max.incremental.fetch.session.cache.slots"],
            rng,
            self.replica_manager.delayed_fetch,
        )
        self.context = HandlerContext(
            broker_id=broker_id,
            cluster_id=cluster_id,
            config=config,
            group_configs=self.group_configs,
            client_metrics=ClientMetrics(config, clock, rng),
            config_manager=self.config_manager,
            clock=clock,
            metadata_cache=self.metadata_cache,
            metadata_store=metadata_store,
            store_references=StoreReferences(metadata_store, log_manager, broker_id),
            features=self.features,
            feature_follower=self.feature_follower,
            log_manager=log_manager,
            replica_manager=self.replica_manager,
            fetch_sessions=self.fetch_sessions,
            controller=self.controller,
            coordinators=self.coordinators,
            links=self.links,
            registered_brokers=self.registered_brokers,
            registrations=REGISTRATIONS,
            admission=self.admission,
            acls=self.acls,
            tokens=self._tokens(),
            quotas=QuotaTable(
                config,
                clock,
                lambda stage: self.dispatcher.use_quotas(stage),
                lambda rates: self.server.quotas.use_ip_rates(rates),
            ),
            start_task=start_task,
        )
        self.dispatcher = Dispatcher(self.context, REGISTRATIONS, self.timers, imports_beside=True)
        self.server = make_server(
            ServerSettings(
                config.listeners,
                config["socket.request.max.bytes"],
                config["connections.max.idle.ms"],
                config["sasl.server.max.receive.size"],
                request_bytes_max(config["queued.max.request.bytes"]),
            ),
            self.dispatcher,
            clock,
            self.timers,
            self.replica_manager.flush,
            self.supervisor,
            ConnectionQuotas(config, clock, descriptors.connections, descriptors.scarce_from),
            self._tls,
            self._sasl,
        )
        self.log_maintenance = LogMaintenance(
            config, self.replica_manager, clock, self.timers, keep_running
        )
        self.peers = BrokerPeers(
            config,
            self.metadata_cache,
            metadata_store,
            clock,
            self.timers,
            self.replica_manager,
            self.links,
            self.supervisor,
            lambda: self.controller.broker_epoch,
            self._flush,
        )
        self.replica_manager.peers = self.peers
        self.replica_manager.partitions.select_replica = self.peers.replica_selector()
        config_listeners.register(self.context)
        if self._sasl is not None:
            self.config_manager.on_change(USERS, self._sasl.credentials.change)
        self.metadata_cache.listeners.append(self.admission.invalidate)
        self.registered_brokers.follow(self.metadata_cache, keep_running)
        self.replica_manager.on_partitions_changed = self.admission.invalidate
        self.features.on_change(lambda name, level: self.admission.invalidate())
        self._whole: waiting.CancelScope | None = None
        self._cannot_stay: FeaturesNotSupported | None = None

    def _admission(self) -> tuple[Admission, AclManager | None]:
        """Who may do what; the ACLs that say so where there is an authorizer."""
        is_broker = self.registered_brokers.is_broker
        admission = Admission(is_broker)
        authorizer = authorizer_of(self.config)
        if authorizer is None:
            return admission, None
        from ..security.authorizer.acl_authorizer import AclAuthorizer
        from .dynamic_config.acl_manager import AclManager

        admission.authorize_by(*by_authorizer(authorizer, is_broker))
        if not isinstance(authorizer, AclAuthorizer):
            admission.may_be_remembered = False  # nobody says when it decides otherwise
            return admission, None
        return admission, AclManager(
            self.metadata_store,
            authorizer,
            self.clock,
            self.supervisor.keep_running,
            admission.invalidate,
        )

    def _tokens(self) -> TokenManager | None:
        """The cluster's delegation tokens, which log in by SCRAM, if there is a key for them."""
        key = self.config["delegation.token.secret.key"]
        if key is None or not key.secret:
            return None
        from ..security.token.delegation_tokens import DelegationTokens
        from .dynamic_config.token_manager import TokenManager

        tokens = DelegationTokens(
            key.secret,
            self.config["delegation.token.max.lifetime.ms"],
            self.config["delegation.token.expiry.time.ms"],
            self.clock.now_ms,
        )
        if self._sasl is not None:
            self._sasl.credentials.find_token = tokens.credential
        return TokenManager(
            self.metadata_store, tokens, self.clock, self.rng, self.supervisor.keep_running
        )

    async def _start_tokens(self, tokens: TokenManager) -> None:
        await tokens.start()

        def interval_ms() -> int:
            interval: int = self.config["delegation.token.expiry.check.interval.ms"]
            return interval

        def remove_expired() -> None:
            self.supervisor.start_task(tokens.remove_expired)

        repeat(self.timers, self.clock, interval_ms, remove_expired)

    def _create_topics(self, names: Iterable[str]) -> None:
        """Have internal topics made that are not there; what it takes is imported then."""
        from .interbroker.forwarding import create_topics_beside

        create_topics_beside(self.context, names)

    def _flush(self) -> None:
        """Write and send what a task has staged and answered."""
        self.server.finish_outside_work()

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
        serving = waiting.new_cancel_scope(shield=True)
        try:
            self.server.bind()
            async with waiting.open_nursery() as nursery:
                nursery.start_soon(self._serve, serving, on_ready, nursery.cancel_scope)
                try:
                    await waiting.sleep_forever()
                finally:
                    try:
                        await self._shut_down_in_order()
                    finally:  # nothing else ends what is shielded from the end of this
                        serving.cancel()
        finally:
            self.supervisor.stop()  # what still waits is completed as its connection is closed
            with waiting.new_cancel_scope(shield=True):
                await self._stop()
        if self._cannot_stay is not None:
            raise self._cannot_stay
        self.log_manager.directories.require_one_online()

    async def _serve(
        self,
        scope: waiting.CancelScope,
        on_ready: Callable[[tuple[Listener, ...]], None],
        whole: waiting.CancelScope,
    ) -> None:
        """Serve until `scope` is cancelled, which waits until the broker has left the cluster."""
        advertised = self._advertised_listeners()
        endpoints = tuple(
            EndPoint(listener.name, listener.host, listener.port, listener.security_protocol)
            for listener in advertised
        )
        refused_requests = RefusedRequests(
            lambda: self.dispatcher.routes, self.replica_manager.refused_writes, self.clock
        )
        with scope:
            async with waiting.open_nursery() as nursery:
                self.supervisor.nursery = nursery
                self._whole = whole
                self.replica_manager.on_directories_failed = self._log_directories_failed
                self.replica_manager.on_replicas_missing = self._notify_of_log_directories
                await self.config_manager.start(self.broker_id)
                if self.acls is not None:
                    await self.acls.start()
                if self.context.tokens is not None:
                    await self._start_tokens(self.context.tokens)
                if self._tls is not None:
                    self.supervisor.keep_running(self._tls.follow_files)
                if self._sasl is not None:
                    self._sasl.start(self.supervisor.keep_running)
                await self.feature_follower.start()
                # Only what brings the view of the cluster is answered before there is one: a
                # client that is told of no topics takes them for deleted.
                self.dispatcher.hold()
                self.supervisor.keep_running(self.server.serve)
                self.supervisor.keep_running(self.channels.run)
                await self.controller.start(endpoints)
                self.supervisor.keep_running(self.controller.run)
                await self._wait_for_cluster()
                await self.feature_follower.read()
                if self.metadata_cache.is_complete:
                    await self.context.store_references.joined(
                        self.controller.broker_epoch, self.metadata_cache
                    )
                self.coordinators.start()
                self._begin_log_work()
                self.peers.start()
                self.supervisor.keep_running(self._hold_producer_ids)
                self._schedule_leader_rebalance()
                repeat(self.timers, self.clock, lambda: LOOK_MS, refused_requests.look)
                self.dispatcher.release()
                self._flush()
                self.state = BrokerState.RUNNING
                on_ready(advertised)
        refused_requests.look()

    async def _wait_for_cluster(self) -> None:
        """Wait for the first complete view of the cluster.

        As long as no controller has sent one there is no answer to give: Kafka's broker has none
        either before it listens, with KRaft. One in ZooKeeper mode says that there are no topics.
        """
        cache = self.metadata_cache
        topics = set(await self.metadata_store.children(znodes.TOPICS))
        topics -= set(await self.metadata_store.children(znodes.DELETE_TOPICS))

        def is_whole(snapshot: MetadataSnapshot) -> bool:
            return cache.is_complete_with(topics) and self._shows_companions(snapshot)

        while not await wait_for_metadata(cache, is_whole, JOIN_MS_MAX):
            if cache.is_complete_with(NO_TOPICS):
                logger.warning(
                    "the controller's metadata are not complete after %d s: broker %d answers with "
                    "the %d of %d topics that it knows",
                    JOIN_MS_MAX // 1000,
                    self.broker_id,
                    len(topics & cache.snapshot.partition_states.keys()),
                    len(topics),
                )
                return
            logger.warning(
                "no controller has sent the metadata of the cluster yet: until one does, broker %d "
                "answers no client",
                self.broker_id,
            )

    def _shows_companions(self, snapshot: MetadataSnapshot) -> bool:
        """Whether the brokers that start with this one are there, and lead what they have to."""
        if not self.companions:
            return True
        return self.companions <= snapshot.alive_brokers.keys() and all(
            state.leader >= 0 or self.companions.isdisjoint(state.isr)
            for of_topic in snapshot.partition_states.values()
            for state in of_topic.values()
        )

    async def _shut_down_in_order(self) -> None:
        """Controlled shutdown, unless it is switched off or nobody else is in the cluster."""
        self.state = BrokerState.PENDING_CONTROLLED_SHUTDOWN
        others = self.metadata_cache.snapshot.alive_brokers.keys() - {self.broker_id}
        if not others or not self.config["controlled.shutdown.enable"]:
            return
        shutdown = ControlledShutdown(self.metadata_cache, self.controller, self.links, self.config)
        in_time = waiting.move_on_after(CONTROLLED_SHUTDOWN_MS_MAX / 1000)
        with waiting.new_cancel_scope(shield=True), in_time:
            await shutdown.run()

    async def _hold_producer_ids(self) -> None:
        """Take a block of producer ids ahead, as Kafka's brokers do from their start on.

        The log directory that holds the embedded metadata store may fail. The other ones are
        served all the same, and an idempotent producer that connects only then needs an id. A
        broker of one directory ends with it, and waits until the first producer.
        """
        if len(self.log_manager.directories) > 1:
            try:
                await self.controller.producer_ids.take()
            except MetadataStoreError as error:
                logger.warning("no producer ids could be taken ahead: %s", error)

    def _begin_log_work(self) -> None:
        """Begin with what is done with all logs, as soon as they are all there."""
        if self.log_manager.unrecovered:
            self.supervisor.keep_running(self._recover_logs)
        else:
            self.log_maintenance.start()
            self._schedule_log_cleaner()

    async def _recover_logs(self) -> None:
        from .maintenance.log_recovery import recover_logs

        await recover_logs(self.replica_manager, self._flush)
        self._begin_log_work()

    def _schedule_leader_rebalance(self) -> None:
        """Give brokers their preferred partitions back from time to time, if so configured."""

        def rebalance() -> None:
            if self.config["auto.leader.rebalance.enable"]:
                self.controller.rebalance_leaders()

        def interval_ms() -> int:
            seconds: int = self.config["leader.imbalance.check.interval.seconds"]
            return seconds * 1000

        repeat(self.timers, self.clock, interval_ms, rebalance)

    def _schedule_log_cleaner(self) -> None:
        """Have compaction begin soon; its modules are not imported before."""
        if not self.config["log.cleaner.enable"] or self.config["log.cleaner.threads"] == 0:
            return

        delay_ms = min(self.config["log.cleaner.backoff.ms"], CLEANER_DELAY_MS_MAX)
        self.timers.schedule(
            self.clock.monotonic_ms() + delay_ms,
            lambda: self.supervisor.keep_running(self._start_log_cleaner),
        )

    async def _start_log_cleaner(self) -> None:
        from .maintenance.log_cleaner_task import LogCleanerTask

        LogCleanerTask(
            self.config,
            self.replica_manager,
            self.clock,
            self.timers,
            self.supervisor.keep_running,
        ).start()

    async def _stop(self) -> None:
        """Let what is under way end, then close everything, logs last."""
        self.state = BrokerState.SHUTTING_DOWN
        self.server.stop_accepting()
        self.log_maintenance.stop()
        self.peers.stop()
        self.replica_manager.on_directories_failed = None
        self.config_manager.stop()
        if self.acls is not None:
            self.acls.stop()
        if self.context.tokens is not None:
            self.context.tokens.stop()
        self.feature_follower.stop()
        await self.controller.stop()
        self.coordinators.close()
        self._flush()  # the last answers go out
        self.server.close()
        self.log_manager.checkpoint_high_watermarks(self.replica_manager.high_watermark_of)
        self.log_manager.close(self.controller.broker_epoch)
        await self.metadata_store.close()

    def _log_directories_failed(self, failed: Sequence[FailedDirectory]) -> None:
        """Have the controller find other leaders; without any directory there is no broker."""
        if self.log_manager.directories.online:
            for directory in failed:
                self.metadata_cache.replicas_failed(directory.partitions)
            self._notify_of_log_directories()
        elif self._whole is not None:
            logger.critical("all log directories have failed: the broker stops")
            self._whole.cancel()

    def _notify_of_log_directories(self) -> None:
        """Have the controller find out which replicas this broker can host."""
        self.supervisor.keep_running(self.controller.log_directories_changed)

    def _features_not_supported(self, why: FeaturesNotSupported) -> None:
        """A level was finalized that this release does not have: it may not stay, as in Kafka."""
        if self._whole is not None and self._cannot_stay is None:
            logger.critical("the broker stops: %s", why)
            self._cannot_stay = why
            self._whole.cancel()

    def _advertised_listeners(self) -> tuple[Listener, ...]:
        ports = {bound.listener.name: bound.port for bound in self.server.bound}
        return advertise(self.config.listeners, self.config.advertised_listeners, ports, _host_name)

    def _log_config(self, overrides: Mapping[str, str]) -> LogConfig:
        return log_config(self.config, overrides)

    def _min_insync_replicas(self, overrides: Mapping[str, str]) -> int:
        least: int = topic_values(self.config, overrides)["min.insync.replicas"]
        return least


def _host_name() -> str:
    """This machine's name as others may know it (Kafka asks for the canonical one)."""
    import socket

    return socket.getfqdn()
