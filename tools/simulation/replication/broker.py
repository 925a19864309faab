"""One broker of a replication run: the product's replica manager, logs and fetchers.

What is around them in a real broker is simulated: links, sessions, metadata. Its disk is one
in memory, which a process that is killed leaves as it is, and a power cut does not.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from ....broker.handlers.fetch import handle_fetch
from ....broker.handlers.list_offsets import handle_list_offsets
from ....broker.handlers.offset_for_leader_epoch import handle_offset_for_leader_epoch
from ....broker.handlers.registry import Handler
from ....broker.request.admission import Admission
from ....broker.request.fetch_sessions import FetchSessionCache
from ....broker.request.outcomes import Answer, Stepwise
from ....common.partition_state import LeaderAndIsr
from ....common.topic_partition import TopicPartition
from ....protocol.api_keys import ApiKey
from ....replication.fetcher.fetch_state import InitialFetchState
from ....replication.fetcher.fetcher import ReplicaFetcher
from ....replication.fetcher.leader_endpoint import LeaderEndpoint
from ....replication.fetcher.manager import FetcherManager
from ....replication.fetcher.settings import FetcherSettings
from ....replication.fetcher.truncation import Truncation
from ....replication.partition.partition import Partition
from ....replication.replica_manager import ReplicaManager, ReplicaSettings
from ....runtime.clock import ManualClock
from ....runtime.steps import run_at_once
from ....runtime.timers import Timers
from ....storage.log.log_config import LogConfig
from ....storage.log_manager.deferred_deletion import delete_due
from ....storage.log_manager.log_manager import LogManager
from ..disks.memory_files import MemoryFiles
from .controller import TOPIC_ID, Order
from .isr_calls import IsrCall
from .network import Call, FetcherDriver, Network, ReceivedRequest

if TYPE_CHECKING:
    from ....broker.request.context import HandlerContext
    from ....broker.request.requests import Request

LAG_MS_MAX = 300
FETCH_WAIT_MS = 40
BACKOFF_MS = 20
FETCH_BYTES_MAX = 400
"""About three batches: a follower that was away needs several fetches."""
SESSION_SLOTS = 100

LOG_CONFIG = LogConfig(segment_bytes=700, retention_ms=2**60, file_delete_delay_ms=1_000)


class SimulatedMetadata:
    """What a broker's handlers ask of its metadata cache.

    Attributes:
        snapshot: always the same, for nothing in it changes.
    """

    def __init__(self, topics: Collection[str]) -> None:
        (self._topic,) = topics
        self.snapshot = self._topic

    def topic_name(self, topic_id: bytes) -> str | None:
        """The one topic there is."""
        return self._topic if topic_id == TOPIC_ID else None

    def contains_partition(self, topic: str, partition: int) -> bool:
        """Nobody asks for others."""
        return topic == self._topic

    def get_partition_info(self, topic: str, partition: int) -> None:
        """Who leads is known from the replica itself."""

    def get_alive_broker_node(self, broker_id: int, listener_name: str) -> None:
        """Followers need no addresses."""


class SteppedClock:
    """A broker's own clocks: they run fast or slow, and the wall clock may be set wrong, too.

    Args:
        clock: the time that passes.

    Attributes:
        ahead_ms: how wrong its wall time was set.
    """

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.ahead_ms = 0
        self._drift_permille = 0
        self._drifts_from_ms = clock.monotonic_ms()
        self._drifted_ms = 0

    def drift(self, permille: int) -> None:
        """Run fast, or slow if it is negative, by so much from now on."""
        self._drifted_ms = self._drifted_by_now()
        self._drifts_from_ms = self._clock.monotonic_ms()
        self._drift_permille = permille

    def now_ms(self) -> int:
        """Wall time in milliseconds since the epoch."""
        return self._clock.now_ms() + self.ahead_ms + self._drifted_by_now()

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary moment; never goes back."""
        return self._clock.monotonic_ms() + self._drifted_by_now()

    def _drifted_by_now(self) -> int:
        passed_ms = self._clock.monotonic_ms() - self._drifts_from_ms
        return self._drifted_ms + passed_ms * self._drift_permille // 1000


class ReplicatingBroker:
    """A broker's process, one life after another on the same disk.

    Args:
        broker_id: which one.
        clock: the time.
        network: where fetchers' requests go.
        send_isr_change: where changes of ISRs go.
        topic: the one there is.
        rng: decides everything random.
        truncation: how its followers find out where logs part.

    Attributes:
        alive: whether the process runs.
        frozen: whether it is stopped for a while, and does nothing.
        life: counts processes.
        epoch: of its registration; -1 if it has none.
        alive_brokers: of the last UpdateMetadata.
        drivers: of its fetchers.
    """

    def __init__(
        self,
        broker_id: int,
        clock: ManualClock,
        network: Network,
        send_isr_change: Callable[[IsrCall], None],
        topic: str,
        rng: random.Random,
        truncation: Truncation = Truncation.FETCH,
    ) -> None:
        self.broker_id = broker_id
        self.clock = SteppedClock(clock)
        self.network = network
        self.alive = False
        self.frozen = False
        self.life = 0
        self.epoch = -1
        self.files = MemoryFiles()
        self.alive_brokers: frozenset[int] = frozenset()
        self.drivers: list[FetcherDriver] = []
        self.metadata_cache = SimulatedMetadata([topic])
        self.config = {"fetch.max.bytes": 1 << 20}
        self.admission = Admission(lambda connection: True)
        self.quotas = SimpleNamespace(stage=None)
        """Followers have none."""
        self._send_isr_change = send_isr_change
        self._rng = rng
        self._settings = FetcherSettings(
            broker_id,
            fetch_wait_ms_max=FETCH_WAIT_MS,
            fetch_max_bytes=FETCH_BYTES_MAX,
            fetch_response_max_bytes=2 * FETCH_BYTES_MAX,
            fetch_backoff_ms=BACKOFF_MS,
            truncation=truncation,
        )

    # -- its life -----------------------------------------------------------------------

    def start(self) -> None:
        """A process begins, on what is on the disk. Raises PowerCut where that was armed."""
        self.life += 1
        self.alive = True
        self.frozen = False
        self.epoch = -1
        self.alive_brokers = frozenset()
        self.drivers = []
        self.timers = Timers()
        self.log_manager = LogManager(
            ["/data"],
            clock=self.clock,
            default_config=LOG_CONFIG,
            files=self.files,
            rng=self._rng,
            recovery_threads=1,
        )
        self.replica_manager = ReplicaManager(
            ReplicaSettings(
                self.broker_id,
                lambda overrides: LOG_CONFIG,
                lambda overrides: int(overrides["min.insync.replicas"]),
                LAG_MS_MAX,
            ),
            self.log_manager,
            self.clock,
            self.timers,
        )
        self.fetch_sessions = FetchSessionCache(
            SESSION_SLOTS, self._rng, self.replica_manager.delayed_fetch
        )
        endpoint = LeaderEndpoint(self._settings, lambda: self.epoch)

        def start_fetcher(fetcher: ReplicaFetcher) -> FetcherDriver:
            driver = FetcherDriver(self, fetcher, endpoint)
            self.drivers.append(driver)
            return driver

        self.fetchers = FetcherManager(
            self._settings, 1, self.replica_manager.get_partition, start_fetcher
        )
        self.replica_manager.peers = self
        self.log_manager.load_logs()

    def end(self) -> None:
        """The process is no more; whoever calls says what becomes of the disk."""
        self.alive = False
        self.epoch = -1
        for driver in list(self.drivers):
            driver.close()
        self.log_manager.abandon()

    def close(self) -> None:
        """End in good order."""
        self.fetchers.shutdown()
        self.replica_manager.flush()
        self.checkpoint_high_watermarks()
        self.log_manager.close()
        self.alive = False
        self.epoch = -1

    def settle(self) -> None:
        """What a loop does after everything else: due timers, and all that can complete."""
        self.timers.run_due(self.clock.monotonic_ms())
        self.replica_manager.flush()

    # -- what its replicas ask (`Peers`) ------------------------------------------------

    def is_alive(self, broker_id: int) -> bool:
        """Whether the controller said so last."""
        return broker_id in self.alive_brokers

    def submit_isr_change(self, partition: Partition, change: LeaderAndIsr) -> None:
        """It is on its way to the store."""
        self._send_isr_change(IsrCall(self, partition, change))

    def add_fetchers(self, partitions: Mapping[TopicPartition, InitialFetchState]) -> None:
        """Follow."""
        self.fetchers.add_fetchers(partitions)

    def remove_fetchers(self, partitions: Collection[TopicPartition]) -> None:
        """Follow no more."""
        self.fetchers.remove_fetchers(partitions)

    # -- what its handlers use (`HandlerContext`) ------------------------------------------

    def authorize(self, request: Any, operation: str, resource_type: str, name: str) -> bool:
        """Whether a follower may do something."""
        return self.admission.authorize(request, operation, resource_type, name)

    def obey(self, order: Order) -> None:
        """An order of the controller, of this one or a former."""
        if order.broker_epoch != self.epoch:
            return
        replica_manager = self.replica_manager
        if not replica_manager.admit_controller(order.controller_epoch):
            return
        self.alive_brokers = order.alive
        if order.states:
            self.replica_manager.become_leader_or_follower(0, order.controller_epoch, order.states)

    def receive(self, call: Call) -> None:
        """A follower's request."""
        request = ReceivedRequest(call)
        context, received = cast("HandlerContext", self), cast("Request[Any]", request)
        handlers: dict[int, Handler] = {
            ApiKey.FETCH: handle_fetch,
            ApiKey.OFFSET_FOR_LEADER_EPOCH: handle_offset_for_leader_epoch,
            ApiKey.LIST_OFFSETS: handle_list_offsets,
        }
        outcome = handlers[call.api_key](context, received)
        if isinstance(outcome, Stepwise):
            request.answer(run_at_once(outcome.work))
        elif isinstance(outcome, Answer):
            request.answer(outcome.response)

    # -- what it does by itself ---------------------------------------------------------

    def shrink_isrs(self) -> None:
        """Look for followers that do not keep up."""
        run_at_once(self.replica_manager.shrink_isrs())
        self.fetchers.shutdown_idle_fetchers()

    def checkpoint_high_watermarks(self) -> None:
        """Write them down."""
        self.log_manager.checkpoint_high_watermarks(self.replica_manager.high_watermark_of)

    def sync(self) -> None:
        """Have everything on the disk for sure, for now."""
        for log in list(self.log_manager.logs.values()):
            log.flush_to_disk()
        self.log_manager.checkpoint_offsets()

    def delete_old_segments(self) -> None:
        """Drop what the log starts have left behind."""
        run_at_once(self.replica_manager.delete_old_segments())
        delete_due(self.log_manager.deletions.take_due(self.clock.monotonic_ms()))

    # -- what others see of it ----------------------------------------------------------

    @property
    def partitions(self) -> Mapping[TopicPartition, Partition]:
        """What it hosts."""
        return self.replica_manager.partitions

    def leads(self, topic_partition: TopicPartition) -> bool:
        """Whether it thinks so."""
        partition = self.partitions.get(topic_partition)
        return self.alive and partition is not None and partition.is_leader
