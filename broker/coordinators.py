"""The coordinators of a broker, each made when it is first needed.

Their modules are imported then, too: a broker without groups and transactions is ready sooner and
takes less memory.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

from ..common.internal_topics import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from ..common.topic_partition import TopicPartition
from ..config.dynamic.dynamic_config import DynamicConfig
from ..config.group_configs import GroupConfigs
from ..controller.producer_ids import ProducerIdManager
from ..metadata.features import TRANSACTION_VERSION, Features
from ..metadata.metadata_cache import MetadataCache
from ..replication.replica_manager import ReplicaManager
from ..runtime.clock import Clock
from ..runtime.timers import Timers
from .interbroker.broker_channel import ChannelTasks

if TYPE_CHECKING:
    from ..coordinator.group.coordinator import GroupCoordinator
    from ..coordinator.share.coordinator import ShareCoordinator
    from ..coordinator.share.operations import Operation, StateCallback
    from ..coordinator.transaction.coordinator import TransactionCoordinator
    from .interbroker.end_offsets import EndOffsets
    from .interbroker.marker_channels import MarkerChannels
    from .interbroker.transaction_markers import MarkerWriter
    from .interbroker.transaction_verification import TransactionVerifier
    from .share.persister import StatePersister
    from .share.share_partition_manager import SharePartitionManager

CoordinatorT = TypeVar(
    "CoordinatorT", "GroupCoordinator", "TransactionCoordinator", "ShareCoordinator"
)


@dataclass(eq=False)
class LazyPersister:
    """The persister of a broker, imported when a share group first needs it.

    Args:
        coordinators: of the broker.
    """

    coordinators: BrokerCoordinators

    def submit(self, operation: Operation, respond: StateCallback) -> None:
        """Have an operation done; see `Persister.submit`."""
        self.coordinators.persister.submit(operation, respond)


@dataclass(eq=False)
class BrokerCoordinators:
    """The coordinators of groups, transactions and share groups, and what carries them out.

    Args:
        producer_ids: this broker's, for transactions.
        tasks: for channels to other brokers.
        create_topics: has internal topics made that are not there.
    """

    config: DynamicConfig
    group_configs: GroupConfigs
    clock: Clock
    timers: Timers
    rng: random.Random
    replica_manager: ReplicaManager
    metadata_cache: MetadataCache
    features: Features
    producer_ids: ProducerIdManager
    tasks: ChannelTasks
    create_topics: Callable[[Iterable[str]], None]
    _made: list[GroupCoordinator | TransactionCoordinator | ShareCoordinator] = field(
        default_factory=list
    )
    _are_started: bool = False

    @cached_property
    def group(self) -> GroupCoordinator:
        """All groups that are coordinated here."""
        from ..coordinator.group.factory import create_group_coordinator

        return self._start_if_due(
            create_group_coordinator(
                self.config,
                self.replica_manager,
                self.metadata_cache,
                self.clock,
                self.timers,
                self.rng,
                self.group_configs,
                LazyPersister(self),
            )
        )

    @cached_property
    def share(self) -> ShareCoordinator:
        """The states of share partitions that are kept here."""
        from ..coordinator.share.factory import create_share_coordinator

        return self._start_if_due(
            create_share_coordinator(
                self.config, self.replica_manager, self.metadata_cache, self.clock, self.timers
            )
        )

    @cached_property
    def persister(self) -> StatePersister:
        """Brings the states of share partitions to where they are kept."""
        from .interbroker.broker_channel import BrokerChannels
        from .share.persister import StatePersister

        return StatePersister(
            self.config,
            self.clock,
            self.timers,
            self.replica_manager,
            self.metadata_cache,
            lambda: self.share,
            partial(BrokerChannels, self.tasks),
            lambda: self.create_topics([SHARE_GROUP_STATE]),
        )

    @cached_property
    def share_partitions(self) -> SharePartitionManager:
        """What share groups read of the partitions that are led here."""
        from .share.share_partition_manager import SharePartitionManager

        manager = SharePartitionManager(
            self.group_configs,
            self.replica_manager,
            self.persister,
            self.clock,
            self.timers,
            self.config["group.share.max.share.sessions"],
        )
        self.replica_manager.leadership_listeners.append(manager.leadership_changed)
        return manager

    @property
    def made_share_partitions(self) -> SharePartitionManager | None:
        """The same, if any share group was here yet."""
        made: SharePartitionManager | None = vars(self).get("share_partitions")
        return made

    @cached_property
    def end_offsets(self) -> EndOffsets:
        """Where partitions end, for what is answered about groups."""
        from .interbroker.end_offsets import EndOffsets

        return EndOffsets(self.config, self.replica_manager, self.metadata_cache, self.tasks)

    @cached_property
    def transaction(self) -> TransactionCoordinator:
        """All transactional ids that are coordinated here."""
        from ..coordinator.transaction.factory import create_transaction_coordinator

        return self._start_if_due(
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
    def marker_writer(self) -> MarkerWriter:
        """Writes the ends of transactions into the partitions that this broker leads."""
        from .interbroker.transaction_markers import MarkerWriter

        return MarkerWriter(
            lambda: self.config["request.timeout.ms"],
            self.clock,
            self.replica_manager,
            lambda: self.group,
        )

    @cached_property
    def marker_channels(self) -> MarkerChannels:
        """Brings the ends of transactions to the leaders of their partitions."""
        from .interbroker.marker_channels import MarkerChannels

        return MarkerChannels(
            self.config,
            self.clock,
            self.timers,
            self.replica_manager,
            self.metadata_cache,
            self.features,
            self.marker_writer,
            self.tasks,
        )

    @cached_property
    def transaction_verifier(self) -> TransactionVerifier:
        """Verifies that partitions written to here are part of their transactions."""
        from .interbroker.transaction_verification import TransactionVerifier

        return TransactionVerifier(
            self.config,
            self.clock,
            self.timers,
            self.replica_manager,
            self.metadata_cache,
            lambda: self.transaction,
            self.tasks,
        )

    def start(self) -> None:
        """Start those that are made, and from now on each as it is made."""
        self._are_started = True
        for coordinator in self._made:
            coordinator.start()

    def close(self) -> None:
        """Stop those that were made."""
        for coordinator in self._made:
            coordinator.close()

    def leadership_changed(
        self, topic_partition: TopicPartition, is_leader: bool, leader_epoch: int
    ) -> None:
        """Load or unload the coordinator's partition, if it is one of an internal topic."""
        coordinator: GroupCoordinator | TransactionCoordinator | ShareCoordinator
        if topic_partition.topic == CONSUMER_OFFSETS:
            coordinator = self.group
        elif topic_partition.topic == TRANSACTION_STATE:
            coordinator = self.transaction
        elif topic_partition.topic == SHARE_GROUP_STATE:
            coordinator = self.share
        else:
            return
        coordinator.note_leadership(topic_partition.partition, leader_epoch, is_leader=is_leader)

    def _start_if_due(self, made: CoordinatorT) -> CoordinatorT:
        self._made.append(made)
        if self._are_started:
            made.start()
        return made

    def _take_producer_id(self) -> int | None:
        """A producer id at once; without one at hand, some are fetched for the next time."""
        producer_id = self.producer_ids.take_nowait()
        if producer_id is None:
            self.tasks.start_task(self.producer_ids.refill)
        return producer_id
