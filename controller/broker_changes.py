"""Brokers and log directories come and go (Kafka's onBrokerStartup and onBrokerFailure)."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ..common.live_broker import LiveBroker
from ..common.topic_partition import TopicPartition
from ..runtime.long_work import KeepPace
from .channel.channel import ControllerChannel
from .channel.request_batch import ControllerBrokerRequestBatch
from .context import ControllerContext, PartitionAndReplica
from .partitions.leadership_writer import PartitionOf
from .partitions.partition_state_machine import PartitionStateMachine
from .partitions.reassignment import Reassignments
from .partitions.replica_state_machine import ReplicaStateMachine
from .partitions.states import PartitionStatus, ReplicaStatus
from .topics.topic_deletion import TopicDeletion

logger = logging.getLogger(__name__)


@dataclass(eq=False, repr=False)
class BrokerChanges:
    """What follows when a broker registers, when its registration goes, when a disk fails."""

    context: ControllerContext
    channel: ControllerChannel
    partitions: PartitionStateMachine
    replicas: ReplicaStateMachine
    batch: ControllerBrokerRequestBatch
    deletion: TopicDeletion
    reassignments: Reassignments
    keep_pace: KeepPace

    async def registrations_changed(self, registered: dict[int, LiveBroker]) -> None:
        """The registrations are now these: find out who is new, gone, or was restarted."""
        known = self.context.live_brokers
        restarted = {
            broker_id
            for broker_id, broker in registered.items()
            if broker_id in known and known[broker_id].epoch != broker.epoch
        }
        gone = known.keys() - registered.keys()
        new = registered.keys() - known.keys()
        for broker_id in restarted | gone:
            self.channel.remove_broker(broker_id)
            del known[broker_id]
        if restarted | gone:
            await self._failed(restarted | gone)
        for broker_id in sorted(restarted | new):
            known[broker_id] = registered[broker_id]
            self.channel.add_broker(registered[broker_id])
        if restarted | new:
            await self._started(restarted | new)
        self._update_endpoints(registered)

    def _update_endpoints(self, registered: dict[int, LiveBroker]) -> None:
        """A broker whose listeners or rack changed while it runs."""
        known = self.context.live_brokers
        moved = [each for broker_id, each in registered.items() if known[broker_id] != each]
        if moved:
            for broker in moved:
                known[broker.broker_id] = broker
            self.batch.add_live_brokers(known)
            self.batch.send()

    async def _failed(self, broker_ids: Collection[int]) -> None:
        logger.info("brokers %s are gone", sorted(broker_ids))
        context = self.context
        in_good_order = context.shutting_down.issuperset(broker_ids)
        for broker_id in broker_ids:
            context.shutting_down.discard(broker_id)
            context.offline_directories.pop(broker_id, None)
        replicas = await self._replicas_on(broker_ids)
        await self._replicas_failed(replicas, is_expected=in_good_order)
        self.batch.add_live_brokers(context.live_brokers)
        self.batch.send()
        await self.reassignments.resume()

    async def _replicas_failed(
        self, replicas: Collection[PartitionAndReplica], *, is_expected: bool = False
    ) -> None:
        """Their partitions get other leaders, if there is anyone; their ISRs shrink.

        Args:
            replicas: what failed.
            is_expected: their brokers had said that they would leave.
        """
        gone = set(replicas)
        leaderless: list[PartitionOf] = []
        for item in await self._partitions_of(gone):
            await self.keep_pace()
            if self._was_led_by(item, gone):
                leaderless.append(item)
        await self.partitions.set_status(leaderless, PartitionStatus.OFFLINE)
        await self.partitions.bring_all_online(is_expected=is_expected)
        being_deleted, others = await self._by_deletion(replicas)
        await self.replicas.change(others, ReplicaStatus.OFFLINE)
        await self.partitions.bring_electable_online(await self._partitions_of(others))
        self.batch.send()
        if being_deleted:
            await self.deletion.replicas_failed(being_deleted)

    async def _replicas_on(self, broker_ids: Collection[int]) -> list[PartitionAndReplica]:
        replicas: list[PartitionAndReplica] = []
        for replica in self.context.replicas_on(broker_ids):
            await self.keep_pace()
            replicas.append(replica)
        return replicas

    async def _by_deletion(
        self, replicas: Iterable[PartitionAndReplica]
    ) -> tuple[list[PartitionAndReplica], list[PartitionAndReplica]]:
        """Those whose topics are being deleted, and the others."""
        being_deleted: list[PartitionAndReplica] = []
        staying: list[PartitionAndReplica] = []
        for replica in replicas:
            await self.keep_pace()
            (being_deleted if self.deletion.is_deleting(replica.topic) else staying).append(replica)
        return being_deleted, staying

    async def _partitions_of(self, replicas: Iterable[PartitionAndReplica]) -> list[PartitionOf]:
        """In the order of topics and partitions, each once."""
        found: dict[PartitionOf, None] = {}
        for replica in sorted(replicas):
            await self.keep_pace()
            topic = self.context.any_topic(replica.topic)
            assert topic is not None, f"{replica} is of no known topic"
            found[PartitionOf(topic, replica.partition)] = None
        return list(found)

    def _was_led_by(self, item: PartitionOf, gone: Collection[PartitionAndReplica]) -> bool:
        topic, partition = item
        if topic.is_being_deleted or topic.status(partition) is PartitionStatus.NEW:
            return False
        leadership = topic.leaderships.get(partition)
        return (
            leadership is not None
            and PartitionAndReplica(topic.name, partition, leadership.leader) in gone
        )

    async def _started(self, broker_ids: Collection[int]) -> None:
        logger.info("brokers %s are here", sorted(broker_ids))
        context = self.context
        for broker_id in broker_ids:
            context.offline_directories.pop(broker_id, None)
            context.shutting_down.discard(broker_id)
        others = context.live_brokers.keys() - set(broker_ids)
        self.batch.add_live_brokers(others)
        self.batch.send()
        await self.batch.add_full_update_metadata(broker_ids)
        self.batch.send()
        _, staying = await self._by_deletion(context.replicas_on(broker_ids))
        for replica in staying:
            await self.keep_pace()
            context.replica_statuses.setdefault(replica, ReplicaStatus.OFFLINE)
        await self.replicas.change(staying, ReplicaStatus.ONLINE)
        await self.partitions.bring_all_online()
        self.batch.mark_leader_and_isr_full(broker_ids)
        self.batch.send()
        await self.reassignments.resume()
        await self.deletion.brokers_started(broker_ids)

    async def directories_failed(
        self, broker_id: int, partitions: Collection[TopicPartition]
    ) -> None:
        """A live broker cannot use the log directory of some of its partitions."""
        failed = self.context.offline_directories.setdefault(broker_id, set())
        news = [each for each in partitions if each not in failed]
        if not news:
            return
        failed.update(news)
        logger.error(
            "broker %d cannot use the log directory of %s",
            broker_id,
            ", ".join(f"{topic}-{partition}" for topic, partition in sorted(news)),
        )
        replicas = [PartitionAndReplica(*topic_partition, broker_id) for topic_partition in news]
        await self._replicas_failed(
            [each for each in replicas if each in self.context.replica_statuses]
        )

    async def directories_recovered(
        self, broker_id: int, partitions: Collection[TopicPartition]
    ) -> None:
        """A live broker can use replicas again whose log directory had failed."""
        replicas = [
            replica
            for topic_partition in sorted(partitions)
            if self.context.status(replica := PartitionAndReplica(*topic_partition, broker_id))
            is ReplicaStatus.OFFLINE
            and not self.deletion.is_deleting(replica.topic)
        ]
        if replicas:
            await self.replicas.change(replicas, ReplicaStatus.ONLINE)
            await self.partitions.bring_all_online()
            self.batch.send()
        if any(self.deletion.is_deleting(each.topic) for each in partitions):
            await self.deletion.brokers_started({broker_id})
