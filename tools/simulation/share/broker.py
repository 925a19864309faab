"""One broker of a run of share groups: the product's partitions, share coordinator and manager.

Its replicas have nothing to fetch: every broker begins with the same records, since what moves here
is who leads them.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from ....broker.share.persister import StatePersister
from ....broker.share.share_partition_manager import RequestedPartition, SharePartitionManager
from ....broker.share.state_messages import operations_in, response_of
from ....common.internal_topics import SHARE_GROUP_STATE
from ....common.partition_state import LeaderAndIsr, PartitionState
from ....common.sentinels import NO_EPOCH
from ....common.topic_partition import TopicPartition
from ....config.broker_config import BrokerConfig
from ....config.group_configs import GroupConfigs
from ....coordinator.runtime import CoordinatorRuntime
from ....coordinator.share.coordinator import ShareCoordinator
from ....coordinator.share.operations import SharePartitionKey, StateAnswer
from ....coordinator.share.settings import ShareCoordinatorSettings
from ....protocol.records import build_batch
from ....replication.fetcher.fetch_state import InitialFetchState
from ....replication.partition.partition import Partition
from ....replication.replica_manager import ReplicaManager, ReplicaSettings
from ....runtime.clock import ManualClock
from ....runtime.steps import run_at_once
from ....runtime.timers import Timers
from ....storage.log.append_origin import AppendOrigin
from ....storage.log.log_config import LogConfig
from ....storage.log_manager.log_manager import LogManager
from ..disks.memory_files import MemoryFiles
from .network import StateChannel, StateChannels, StateNetwork, StateRequest
from .state_log import StateLog, StateLogView

if TYPE_CHECKING:
    from ....metadata.metadata_cache import MetadataCache

TOPIC = "t"
TOPIC_ID = bytes(range(1, 17))
LOG_CONFIG = LogConfig(segment_bytes=700, retention_ms=2**60)
GROUP = "group"
READ_PARTITION = RequestedPartition(TOPIC_ID, TopicPartition(TOPIC, 0))
SHARE_PARTITION = SharePartitionKey(GROUP, TOPIC_ID, 0)
DELIVERIES_MAX = 3
LOCK_MS = 1_000
SESSIONS_MAX = 100
UPDATES_PER_SNAPSHOT = 4
BATCHES = (1, 3, 2, 5, 1, 1, 4, 2, 6, 1, 3, 2, 1, 4, 5, 2)
"""How many records the batches of the topic have."""
RECORDS = sum(BATCHES)
START_MS = 1_700_000_000_000
CONFIG = BrokerConfig.from_sources(
    {
        "group.share.min.record.lock.duration.ms": str(LOCK_MS),
        "group.share.record.lock.duration.ms": str(LOCK_MS),
        "group.share.delivery.count.limit": str(DELIVERIES_MAX),
    }
)


class KnownLeader:
    """What a persister asks of its broker's metadata cache; it may be out of date.

    Attributes:
        leader: of the partition of `__share_group_state`.
    """

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.leader = broker_id

    def contains(self, topic: str) -> bool:
        """Both topics are there from the beginning."""
        return topic in (TOPIC, SHARE_GROUP_STATE)

    def get_partition_info(self, topic: str, partition: int) -> SimpleNamespace:
        """Who is said to lead."""
        return SimpleNamespace(leader=self.leader)

    def has_alive_broker(self, broker_id: int) -> bool:
        """A broker that is not there does not answer."""
        return True


class SharingBroker:
    """A broker's process, one life after another; its topic's records stay.

    Args:
        broker_id: which one.
        clock: the time.
        rng: decides everything random.
        state_log: where states are kept.
        network: takes what brokers say to each other.

    Attributes:
        leads_since: the epoch in which it came to lead the topic's partition; -1: it does not.
    """

    def __init__(
        self,
        broker_id: int,
        clock: ManualClock,
        rng: random.Random,
        state_log: StateLog,
        network: StateNetwork,
    ) -> None:
        self.broker_id = broker_id
        self.clock = clock
        self.alive = False
        self.life = 0
        self.leads_since = self._heard_epoch = NO_EPOCH
        self._files = MemoryFiles()
        self._rng = rng
        self._state_log = state_log
        self._state_network = network

    def start(self) -> None:
        """A process begins; it knows of no leader yet."""
        self.life += 1
        self.alive = True
        self.leads_since = self._heard_epoch = NO_EPOCH
        self.timers = Timers()
        self.log_manager = LogManager(
            ["/data"],
            clock=self.clock,
            default_config=LOG_CONFIG,
            files=self._files,
            rng=self._rng,
            recovery_threads=1,
        )
        settings = ReplicaSettings(
            self.broker_id,
            lambda overrides: LOG_CONFIG,
            lambda overrides: int(overrides["min.insync.replicas"]),
        )
        self.replica_manager = ReplicaManager(settings, self.log_manager, self.clock, self.timers)
        self.replica_manager.peers = self
        self.log_manager.load_logs()
        self.view = StateLogView(self._state_log, self.broker_id)
        self.known = KnownLeader(self.broker_id)
        self.coordinator = ShareCoordinator(
            CoordinatorRuntime(self.clock, self.timers, self.view),
            ShareCoordinatorSettings(updates_per_snapshot=UPDATES_PER_SNAPSHOT),
            lambda: 1,
            lambda topic_id: 1,
            lambda partition, offset: None,
        )
        self.channels: StateChannels | None = None
        self.persister = StatePersister(
            CONFIG,
            self.clock,
            self.timers,
            self.replica_manager,
            cast("MetadataCache", self.known),
            lambda: self.coordinator,
            self._make_channels,
            lambda: None,
        )
        configs = GroupConfigs(CONFIG)
        configs.change(GROUP, {"share.auto.offset.reset": "earliest"})
        self.manager = SharePartitionManager(
            configs,
            self.replica_manager,
            self.persister,
            self.clock,
            self.timers,
            SESSIONS_MAX,
        )
        self.replica_manager.leadership_listeners.append(self.manager.leadership_changed)

    def _make_channels(self, sender: object) -> StateChannels:
        self.channels = StateChannels(sender)  # type: ignore[arg-type]  # of the persister above
        return self.channels

    def fill(self) -> None:
        """Write the topic's records, as all brokers do."""
        self.lead_or_follow(self.broker_id, 0)
        (partition,) = self.replica_manager.partitions.values()
        for count in BATCHES:
            batch = build_batch([(None, b"v", START_MS, ())] * count)
            self.replica_manager.append_records(
                timeout_ms=0,
                required_acks=1,
                internal_topics_allowed=False,
                origin=AppendOrigin.CLIENT,
                entries={partition.topic_partition: memoryview(bytearray(batch))},
                on_complete=lambda outcome: None,
            )
            self.replica_manager.flush()
        assert partition.log_end_offset == RECORDS

    def end(self) -> None:
        """The process is no more."""
        self.alive = False
        self.log_manager.abandon()
        self._files = self._files.after_kill()

    def settle(self) -> None:
        """What a loop does after everything else."""
        self.timers.run_due(self.clock.monotonic_ms())
        self.replica_manager.flush()
        self.view.flush()
        assert not self.timers.failures, self.timers.failures

    # -- what others see of it -----------------------------------------------------------------

    @property
    def state_channels(self) -> Collection[StateChannel]:
        """To the other brokers."""
        return [] if self.channels is None else self.channels.by_broker.values()

    @property
    def partitions(self) -> Mapping[TopicPartition, Partition]:
        """What it hosts."""
        return self.replica_manager.partitions

    @property
    def leads_topic(self) -> bool:
        """Whether it thinks so."""
        partition = self.partitions.get(READ_PARTITION.topic_partition)
        return self.alive and partition is not None and partition.is_leader

    @property
    def start_offset(self) -> int | None:
        """Of the share partition, if it holds it."""
        return next((each.records.start_offset for each in self.manager.led if each.records), None)

    # -- orders --------------------------------------------------------------------------------

    def lead_or_follow(self, leader: int, leader_epoch: int) -> None:
        """Hear who leads the topic's partition. A leader has all records by itself."""
        if leader != self.broker_id:
            self.leads_since = NO_EPOCH
        elif self.leads_since == NO_EPOCH or leader_epoch > self._heard_epoch + 1:
            self.leads_since = leader_epoch
        self._heard_epoch = leader_epoch
        replicas = (leader,)
        state = PartitionState(
            TOPIC, TOPIC_ID, 0, 1, leader, leader_epoch, replicas, 0, replicas,
            is_new=leader_epoch == 0, config={"min.insync.replicas": "1"},
        )  # fmt: skip
        self.replica_manager.become_leader_or_follower(0, 1, [state])

    def hear_of_coordinator(self, leader: int, leader_epoch: int) -> None:
        """Hear who leads the partition of `__share_group_state`."""
        self.known.leader = leader
        is_leader = leader == self.broker_id
        if self.view.led_epoch not in (NO_EPOCH, leader_epoch):
            self.coordinator.note_leadership(0, leader_epoch, is_leader=False)
            self.view.stop_leading()
        if is_leader and self.view.led_epoch != leader_epoch:
            self.view.begin_leading(leader_epoch)
            self.coordinator.note_leadership(0, leader_epoch, is_leader=True)

    def is_alive(self, broker_id: int) -> bool:
        """All are."""
        return True

    def submit_isr_change(self, partition: Partition, change: LeaderAndIsr) -> None:
        """No ISR changes: a leader has all records by itself."""

    def add_fetchers(self, partitions: Mapping[TopicPartition, InitialFetchState]) -> None:
        """There is nothing to fetch."""

    def remove_fetchers(self, partitions: Collection[TopicPartition]) -> None:
        """There is nothing to fetch."""

    # -- requests of other brokers -------------------------------------------------------------

    def take(self, request: StateRequest) -> None:
        """Do what another broker asks of the share coordinator here, and answer when it is done."""
        message = request.message
        api_key = type(message).api_key
        answers: dict[SharePartitionKey, StateAnswer] = {}
        (operation,) = run_at_once(operations_in(api_key, message))

        def answered(answer: StateAnswer) -> None:
            answers[operation.key] = answer
            request.response = run_at_once(response_of(api_key, answers))
            self._state_network.answers.append(request)

        self.coordinator.submit(operation, answered)
