"""Deleting topics: marked first, so that a deletion once begun is always brought to its end.

After Kafka's TopicDeletionManager. A topic goes once every replica's broker has deleted its
log; where one is not there, or fails, the deletion waits for it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ...common.errors import ErrorCode
from ...metadata_store import znodes
from ...metadata_store.errors import NodeExists
from ...metadata_store.store import Create
from ...runtime.long_work import KeepPace
from ..channel.channel import PartitionErrors
from ..channel.request_batch import ControllerBrokerRequestBatch
from ..context import ControllerContext, PartitionAndReplica, Topic
from ..fenced_store import FencedStore
from ..partitions.leadership_writer import PartitionOf
from ..partitions.partition_state_machine import PartitionStateMachine
from ..partitions.replica_state_machine import ReplicaStateMachine
from ..partitions.states import PartitionStatus, ReplicaStatus
from .topic_nodes import remove_topic_nodes

logger = logging.getLogger(__name__)

PARTITIONS_PER_STEP = 25
"""Topics that have so many partitions together, or one that has more, are one request to each
broker: a request for each topic made every broker copy its metadata as often."""

DELETED: frozenset[ErrorCode] = frozenset({ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
"""Answers to StopReplica after which a replica's log is gone."""

STOPPABLE = frozenset(
    {
        ReplicaStatus.NEW,
        ReplicaStatus.ONLINE,
        ReplicaStatus.OFFLINE,
        ReplicaStatus.DELETION_INELIGIBLE,
    }
)
"""From these a replica's deletion begins."""


@dataclass(eq=False, repr=False)
class TopicDeletion:
    """Takes topics out of the cluster."""

    context: ControllerContext
    store: FencedStore
    partitions: PartitionStateMachine
    replicas: ReplicaStateMachine
    batch: ControllerBrokerRequestBatch
    keep_pace: KeepPace

    def is_deleting(self, name: str) -> bool:
        """Whether a topic is marked for deletion."""
        topic = self.context.any_topic(name)
        return topic is not None and topic.is_being_deleted

    async def mark(self, topic: Topic) -> None:
        """From here on neither a crash nor a new controller stops the deletion."""
        with suppress(NodeExists):
            await self.store.multi([Create(znodes.delete_topic_path(topic.name))])
        topic.is_being_deleted = True

    async def begin(self, topics: Iterable[Topic]) -> None:
        """Delete topics that are marked, some at a time, as far as their brokers are there."""
        step: list[Topic] = []
        partition_count = 0
        for topic in topics:
            assert topic.is_being_deleted, f"{topic.name} is not marked for deletion"
            topic.reassignments.clear()  # wherever its replicas were going to, they all go
            step.append(topic)
            partition_count += len(topic.assignment)
            if partition_count >= PARTITIONS_PER_STEP:
                await self._begin(step)
                step, partition_count = [], 0
        if step:
            await self._begin(step)

    async def _begin(self, topics: Sequence[Topic]) -> None:
        for topic in topics:
            for partition in topic.assignment:
                await self.keep_pace()
                self.batch.add_update_metadata(self.context.live_brokers, topic, partition)
        self.batch.send()
        for topic in topics:
            for partition in topic.assignment:
                await self.keep_pace()
                topic.statuses.setdefault(partition, PartitionStatus.NEW)
            await self.partitions.set_status(_partitions_of(topic), PartitionStatus.OFFLINE)
        await self._delete_replicas(topics)

    async def _delete_replicas(self, topics: Sequence[Topic]) -> None:
        """Send each broker StopReplica; the deletions wait for brokers that are not there."""
        here: list[PartitionAndReplica] = []
        away: list[PartitionAndReplica] = []
        for topic in topics:
            away_before = len(away)
            for replica in topic.replicas():
                await self.keep_pace()
                status = self.context.replica_statuses.setdefault(replica, ReplicaStatus.OFFLINE)
                if status in STOPPABLE:
                    (here if self.context.is_online(replica) else away).append(replica)
            topic.deletion_waits = len(away) > away_before
        await self.replicas.change([*here, *away], ReplicaStatus.OFFLINE)
        await self.replicas.change(away, ReplicaStatus.DELETION_INELIGIBLE)
        await self.replicas.change(here, ReplicaStatus.DELETION_STARTED)
        self.batch.send()
        for topic in topics:
            await self._finish(topic)

    async def answered(self, broker_id: int, errors: PartitionErrors) -> None:
        """A broker says which of the replicas it was to delete are gone."""
        deleted: list[PartitionAndReplica] = []
        failed: list[PartitionAndReplica] = []
        for topic_partition, code in errors.items():
            await self.keep_pace()
            replica = PartitionAndReplica(*topic_partition, broker_id)
            if self.context.status(replica) is not ReplicaStatus.DELETION_STARTED:
                continue
            if code in DELETED:
                deleted.append(replica)
            else:
                logger.error("broker %d cannot delete %s-%d: %s", broker_id, *replica[:2], code)
                failed.append(replica)
        await self.replicas.change(deleted, ReplicaStatus.DELETION_SUCCESSFUL)
        await self.replicas_failed(failed)
        for name in sorted({replica.topic for replica in deleted}):
            topic = self.context.any_topic(name)
            if topic is not None:
                await self._finish(topic)

    async def replicas_failed(self, replicas: Collection[PartitionAndReplica]) -> None:
        """Replicas of topics being deleted are not there any more: their topics wait."""
        for replica in replicas:
            await self.keep_pace()
            topic = self.context.any_topic(replica.topic)
            status = self.context.status(replica)
            if topic is None or status is ReplicaStatus.DELETION_SUCCESSFUL:
                continue
            topic.deletion_waits = True
            if status in (ReplicaStatus.NEW, ReplicaStatus.ONLINE):
                await self.replicas.change([replica], ReplicaStatus.OFFLINE)
                status = ReplicaStatus.OFFLINE
            if status is not ReplicaStatus.DELETION_INELIGIBLE:
                await self.replicas.change([replica], ReplicaStatus.DELETION_INELIGIBLE)
        self.batch.send()

    async def brokers_started(self, broker_ids: Collection[int]) -> None:
        """Brokers are back: the deletions that waited for them go on."""
        for topic in list(self.context.topics()):
            if topic.is_being_deleted and any(
                replica.broker_id in broker_ids for replica in topic.replicas()
            ):
                await self._delete_replicas([topic])

    async def directories_changed(self, broker_id: int) -> None:
        """A broker's log directories are not what they were: it gets the StopReplica again."""
        failed = self.context.offline_directories.get(broker_id, set())
        for topic_partition in list(failed):
            if self.is_deleting(topic_partition.topic):
                failed.discard(topic_partition)
        await self.brokers_started({broker_id})

    async def _finish(self, topic: Topic) -> None:
        """Forget a topic all replicas of which are deleted."""
        done = ReplicaStatus.DELETION_SUCCESSFUL
        replicas: list[PartitionAndReplica] = []
        for replica in topic.replicas():
            await self.keep_pace()
            if self.context.status(replica) is not done:
                return
            replicas.append(replica)
        await remove_topic_nodes(self.store, topic.name, self.keep_pace)
        await self.replicas.change(replicas, ReplicaStatus.NON_EXISTENT)
        await self.partitions.set_status(_partitions_of(topic), PartitionStatus.NON_EXISTENT)
        self.context.remove_topic(topic)
        logger.info("deleted topic %s", topic.name)

    async def forget_unknown(self, marked: Iterable[str]) -> None:
        """Take away the marks of topics that there are not, as an administrator may make them."""
        for name in marked:
            if not self.context.has_name(name):
                await remove_topic_nodes(self.store, name, self.keep_pace)

    async def finish_former(self) -> None:
        """Go on with the deletions that a former controller left."""
        await self.forget_unknown(await self.store.store.children(znodes.DELETE_TOPICS))
        await self.begin([topic for topic in self.context.topics() if topic.is_being_deleted])


def _partitions_of(topic: Topic) -> Iterator[PartitionOf]:
    return (PartitionOf(topic, partition) for partition in topic.assignment)
