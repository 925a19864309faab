"""The other brokers, as this one's replicas need them: replication's `Peers`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from ...common.partition_state import LeaderAndIsr
from ...common.topic_partition import TopicPartition
from ...config.definition import ConfigError
from ...config.dynamic.dynamic_config import DynamicConfig
from ...metadata.metadata_cache import MetadataCache
from ...metadata_store.store import MetadataStore
from ...replication.alter_log_dirs.future_replica_tasks import FutureReplicaTasks
from ...replication.alter_log_dirs.future_replicas import MoveQuota
from ...replication.fetcher.fetch_state import InitialFetchState
from ...replication.fetcher.leader_endpoint import LeaderEndpoint
from ...replication.fetcher.manager import FetcherManager
from ...replication.fetcher.settings import FetcherSettings
from ...replication.fetcher.task import BYTES_PER_STEP, FetcherTasks
from ...replication.partition.partition import Partition
from ...replication.read.replica_selector import (
    LEADER_ONLY,
    RACK_AWARE,
    SELECTORS,
    RackAwareSelector,
    SelectReplica,
    select_leader,
)
from ...replication.replica_manager import ReplicaManager
from ...runtime.clock import Clock
from ...runtime.long_work import run_in_steps
from ...runtime.supervisor import Supervisor
from ...runtime.timers import Timers, repeat
from .broker_links import BrokerLinks
from .isr_writer import IsrWriter

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
MOVE_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


class BrokerPeers:
    """The peers of a broker that runs.

    Args:
        config: the broker's settings.
        cache: says which brokers are alive, and their racks.
        store: where ISRs are written.
        clock, timers: the broker's.
        replica_manager: the replicas.
        links: opens connections to the leaders.
        supervisor: runs what follows leaders, copies logs and writes ISRs.
        broker_epoch: of the broker's present registration.
        flush: completes and sends what waited for appended records.

    Attributes:
        fetchers: what follows the partitions that others lead.
        isr_writer: writes the ISRs of those led here.
        moves: what copies the replicas that move to another log directory.
    """

    def __init__(
        self,
        config: DynamicConfig,
        cache: MetadataCache,
        store: MetadataStore,
        clock: Clock,
        timers: Timers,
        replica_manager: ReplicaManager,
        links: BrokerLinks,
        supervisor: Supervisor,
        broker_epoch: Callable[[], int],
        flush: Callable[[], None],
    ) -> None:
        settings = FetcherSettings(
            broker_id=cache.broker_id,
            fetch_wait_ms_max=config["replica.fetch.wait.max.ms"],
            fetch_min_bytes=config["replica.fetch.min.bytes"],
            fetch_max_bytes=config["replica.fetch.max.bytes"],
            fetch_response_max_bytes=config["replica.fetch.response.max.bytes"],
            fetch_backoff_ms=config["replica.fetch.backoff.ms"],
            socket_timeout_ms=config["replica.socket.timeout.ms"],
        )
        endpoint = LeaderEndpoint(settings, broker_epoch)
        self._config = config
        self._cache = cache
        self._clock = clock
        self._timers = timers
        self._replica_manager = replica_manager
        self._flush = flush
        self._start_task = supervisor.start_task
        self.isr_writer = IsrWriter(store, clock, timers, supervisor.keep_running)
        self.fetchers = FetcherManager(
            settings,
            config["num.replica.fetchers"],
            replica_manager.get_partition,
            FetcherTasks(supervisor.keep_running, links.to_broker, endpoint, clock),
            quota=replica_manager.quotas.follower,
            on_appended=self._appended,
        )
        self._move_quota = MoveQuota(
            clock.monotonic_ms,
            config["alter.log.dirs.replication.quota.window.num"],
            config["alter.log.dirs.replication.quota.window.size.seconds"] * 1000,
        )
        self.moves = self._follow_moves(settings, supervisor.start_task)
        config.subscribe(("num.replica.fetchers",), self._resize)
        config.subscribe((LEADER_RATE, FOLLOWER_RATE, MOVE_RATE), self._bound)
        self._bound()

    def start(self) -> None:
        """Begin to look for followers that do not keep up."""
        self._schedule_shrinking()

    def stop(self) -> None:
        """Follow nobody any more."""
        self.fetchers.shutdown()
        self.moves.stop()

    # -- what replication asks ----------------------------------------------------------

    def is_alive(self, broker_id: int) -> bool:
        """Whether the controller said so last."""
        return broker_id in self._cache.snapshot.alive_brokers

    def submit_isr_change(self, partition: Partition, change: LeaderAndIsr) -> None:
        """Have it written."""
        self.isr_writer.submit(partition, change)

    def add_fetchers(self, partitions: Mapping[TopicPartition, InitialFetchState]) -> None:
        """Follow partitions."""
        self.fetchers.add_fetchers(partitions)

    def remove_fetchers(self, partitions: Collection[TopicPartition]) -> None:
        """Follow partitions no more."""
        self.fetchers.remove_fetchers(partitions)

    # -- for consumers ------------------------------------------------------------------

    def replica_selector(self) -> SelectReplica:
        """What `replica.selector.class` names; it is a class of Kafka's, by its name there.

        Raises:
            ConfigError: it is none of those.
        """
        name = self._config["replica.selector.class"]
        if name in (None, LEADER_ONLY):
            return select_leader
        if name == RACK_AWARE:
            return RackAwareSelector(self._rack_of)
        raise ConfigError(
            f"replica.selector.class is {name!r}, but must be one of {', '.join(SELECTORS)}"
        )

    def _rack_of(self, broker_id: int) -> str | None:
        broker = self._cache.snapshot.alive_brokers.get(broker_id)
        return None if broker is None else broker.rack

    # -- inside -------------------------------------------------------------------------

    def _appended(self, partitions: Collection[TopicPartition]) -> None:
        """What waited for records of a follower goes out."""
        if self._replica_manager.has_actions:
            self._flush()

    def _follow_moves(
        self, settings: FetcherSettings, start_task: Callable[..., None]
    ) -> FutureReplicaTasks:
        """Have replicas copied that move, as soon as there are any."""
        futures = self._replica_manager.future_replicas
        step_bytes = min(settings.fetch_max_bytes, BYTES_PER_STEP)
        futures.settings = settings._replace(fetch_max_bytes=step_bytes)
        futures.quota = self._move_quota
        tasks_max = self._config["num.replica.alter.log.dirs.threads"]
        moves = FutureReplicaTasks(futures, tasks_max, start_task, self._clock, self._timers)
        futures.on_work = moves.wake
        return moves

    def _resize(self) -> None:
        self.fetchers.resize(self._config["num.replica.fetchers"])

    def _bound(self) -> None:
        quotas, config = self._replica_manager.quotas, self._config
        quotas.leader.bytes_per_second_max = config[LEADER_RATE]
        quotas.follower.bytes_per_second_max = config[FOLLOWER_RATE]
        self._move_quota.bytes_per_second_max = config[MOVE_RATE]

    async def _shrink_isrs(self) -> None:
        await run_in_steps(self._replica_manager.shrink_isrs())

    def _schedule_shrinking(self) -> None:
        """Half of `replica.lag.time.max.ms` from now (Kafka's isr-expiration)."""

        def shrink() -> None:
            self._start_task(self._shrink_isrs)
            self.fetchers.shutdown_idle_fetchers()

        def interval_ms() -> int:
            lag_ms: int = self._config["replica.lag.time.max.ms"]
            return max(lag_ms // 2, 1)

        repeat(self._timers, self._clock, interval_ms, shrink)
