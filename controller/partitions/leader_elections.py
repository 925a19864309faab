"""What an elected controller does to leaders and replicas: elect, reassign, shut down."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum

from ...common.error_texts import default_error
from ...common.errors import ErrorCode, KafkaError
from ...common.named_tuple import NamedTuple
from ...common.topic_partition import TopicPartition
from ...metadata_store.errors import MetadataStoreError
from ...runtime.long_work import run_at_pace
from ...runtime.steps import Steps
from ..active_controller import ActiveController
from ..context import PartitionAndReplica, Reassignment
from ..fenced_store import kafka_error_of
from ..topics.topic_names import shown_name
from .leadership import Election, Electorate, elect_for_controlled_shutdown, elect_for_offline
from .leadership import elect_preferred as preferred
from .leadership_writer import PartitionOf
from .states import PartitionStatus, ReplicaStatus

logger = logging.getLogger(__name__)

Outcome = KafkaError | None


class ElectionType(IntEnum):
    """Which leader to elect, by its number in ElectLeaders."""

    PREFERRED = 0
    UNCLEAN = 1


class ElectionPlan(NamedTuple):
    """What an election comes to before anything is done.

    Attributes:
        needing: the partitions that need a leader.
        outcomes: of the others.
    """

    needing: list[PartitionOf]
    outcomes: dict[TopicPartition, Outcome]


class LeaderElections:
    """What an elected controller does to leaders and replicas."""

    def __init__(self, controller: ActiveController) -> None:
        self._controller = controller
        self._context = controller.context

    # -- elections ------------------------------------------------------------------------

    async def elect(
        self, kind: ElectionType, partitions: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, Outcome]:
        """Elect leaders (KIP-183, KIP-460).

        Args:
            kind: the preferred leader; or any live replica where there is no leader.
            partitions: which; all where it is None, and then those that need no election are
                left out of the answer.
        """
        keep_pace = self._controller.keep_pace
        needing, outcomes = await run_at_pace(self._plan(kind, partitions), keep_pace)
        left = set(await self._controller.partitions.bring_online(needing, _ELECTIONS[kind]))
        self._controller.batch.send()
        for item in needing:
            await keep_pace()
            refusal = _NOT_AVAILABLE[kind] if item in left else None
            outcomes[TopicPartition(item.topic.name, item.partition)] = (
                None if refusal is None else default_error(refusal)
            )
        return outcomes

    def _plan(
        self, kind: ElectionType, partitions: Iterable[TopicPartition] | None
    ) -> Steps[ElectionPlan]:
        """Which partitions `elect` would find a leader for; it yields after each."""
        outcomes: dict[TopicPartition, Outcome] = {}
        needing: list[PartitionOf] = []
        for topic_partition in self._all() if partitions is None else partitions:
            yield
            item = self._find(topic_partition)
            if item is None:
                name, index = topic_partition
                text = f"No such topic as {shown_name(name)}"
                if self._context.topic(name) is not None:
                    text = f"No such partition as {name}-{index}"
                outcomes[topic_partition] = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
            elif self._needs(kind, item):
                needing.append(item)
            elif partitions is not None:
                outcomes[topic_partition] = default_error(ErrorCode.ELECTION_NOT_NEEDED)
        return ElectionPlan(needing, outcomes)

    def _all(self) -> Iterator[TopicPartition]:
        for topic in self._context.topics():
            if not topic.is_being_deleted:
                for partition in topic.assignment:
                    yield TopicPartition(topic.name, partition)

    def _find(self, topic_partition: TopicPartition) -> PartitionOf | None:
        topic = self._context.topic(topic_partition.topic)
        if topic is None or topic_partition.partition not in topic.assignment:
            return None
        return PartitionOf(topic, topic_partition.partition)

    def _needs(self, kind: ElectionType, item: PartitionOf) -> bool:
        topic, partition = item
        leadership = topic.leaderships.get(partition)
        if kind is ElectionType.PREFERRED:
            return leadership is None or leadership.leader != topic.assignment[partition][0]
        return leadership is None or not self._context.is_online(
            PartitionAndReplica(topic.name, partition, leadership.leader)
        )

    async def rebalance(self) -> None:
        """Give brokers back the partitions they are preferred for, where too many are not theirs.

        By `leader.imbalance.per.broker.percentage`, after checkAndTriggerAutoLeaderRebalance.
        """
        allowed = self._controller.config["leader.imbalance.per.broker.percentage"] / 100
        by_preferred: dict[int, list[PartitionOf]] = {}
        for topic in self._context.topics():
            if not topic.is_being_deleted:
                for partition, replicas in topic.assignment.items():
                    await self._controller.keep_pace()
                    item = PartitionOf(topic, partition)
                    by_preferred.setdefault(replicas[0], []).append(item)
        for broker_id, items in sorted(by_preferred.items()):
            moved: list[PartitionOf] = []
            ready: list[PartitionOf] = []
            for item in items:
                await self._controller.keep_pace()
                if self._needs(ElectionType.PREFERRED, item):
                    moved.append(item)
                    if self._may_return(item):
                        ready.append(item)
            if len(moved) / len(items) <= allowed or broker_id not in self._context.live_brokers:
                continue
            if ready:
                logger.info("broker %d gets %d partitions back", broker_id, len(ready))
                await self._controller.partitions.bring_online(ready, preferred)
        self._controller.batch.send()

    def _may_return(self, item: PartitionOf) -> bool:
        """Whether the preferred leader would be elected now; if not, the store is not read."""
        topic, partition = item
        leadership = topic.leaderships.get(partition)
        return (
            leadership is not None
            and partition not in topic.reassignments
            and topic.status(partition) is PartitionStatus.ONLINE
            and topic.assignment[partition][0] in leadership.isr
            and topic.assignment[partition][0] in self._context.electable(topic, partition)
        )

    # -- a broker is about to stop ----------------------------------------------------------

    async def shut_down(self, broker_id: int, broker_epoch: int) -> list[TopicPartition]:
        """Move a broker's partitions to others, before it stops (controlled shutdown).

        Args:
            broker_epoch: of the registration that shuts down; negative where the request has none.

        Returns:
            The partitions that it still leads and that others hold too: it may try again.

        Raises:
            KafkaError: STALE_BROKER_EPOCH, or BROKER_NOT_AVAILABLE for one not registered.
        """
        broker = self._context.live_brokers.get(broker_id)
        if broker is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"There is no broker {broker_id}.")
        if 0 <= broker_epoch < broker.epoch:
            raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
        self._context.shutting_down.add(broker_id)
        led, followed = await self._shared_partitions(broker_id)
        left = await self._controller.partitions.bring_online(led, elect_for_controlled_shutdown)
        self._controller.batch.send()
        if left:
            # It stays in sync until it can go: another that stops may hand over to it meanwhile.
            return [TopicPartition(topic.name, partition) for topic, partition in left]
        replicas: list[PartitionAndReplica] = []
        for topic, partition in followed:
            await self._controller.keep_pace()
            self._controller.batch.add_stop_replica([broker_id], topic, partition, delete=False)
            replicas.append(PartitionAndReplica(topic.name, partition, broker_id))
        self._controller.batch.send()
        await self._controller.replicas.change(replicas, ReplicaStatus.OFFLINE)
        self._controller.batch.send()
        return []

    async def _shared_partitions(
        self, broker_id: int
    ) -> tuple[list[PartitionOf], list[PartitionOf]]:
        """The partitions a broker leads and those it follows, of those that others hold too."""
        led: list[PartitionOf] = []
        followed: list[PartitionOf] = []
        for topic in self._context.topics():
            if topic.is_being_deleted:
                continue
            for partition, replicas in topic.assignment.items():
                await self._controller.keep_pace()
                leadership = topic.leaderships.get(partition)
                if broker_id in replicas and len(replicas) > 1 and leadership is not None:
                    leads = leadership.leader == broker_id
                    (led if leads else followed).append(PartitionOf(topic, partition))
        return led, followed

    # -- reassignments ------------------------------------------------------------------------

    async def reassign(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        *,
        may_change_factor: bool = True,
    ) -> dict[TopicPartition, Outcome]:
        """Move partitions to other brokers, or cancel their reassignment where the target is None.

        Args:
            may_change_factor: whether a partition may get more replicas or fewer (KIP-860).
        """
        outcomes: dict[TopicPartition, Outcome] = {}
        for topic_partition, target in targets.items():
            await self._controller.keep_pace()
            item = self._find(topic_partition)
            outcomes[topic_partition] = None
            try:
                if item is None:
                    name, index = topic_partition
                    text = f"Unable to find a topic named {shown_name(name)}."
                    if self._context.topic(name) is not None:
                        text = f"Unable to find partition {name}:{index}."
                    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
                if target is None:
                    await self._controller.reassignments.cancel(item)
                else:
                    if not may_change_factor:
                        self._controller.reassignments.require_possible(target)
                        _require_same_factor(item, target)
                    await self._controller.reassignments.begin(item, target)
            except (KafkaError, MetadataStoreError) as error:
                outcomes[topic_partition] = kafka_error_of(error)
        return outcomes

    async def reassignments(
        self, partitions: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, tuple[tuple[int, ...], Reassignment]]:
        """Replicas and reassignment of those partitions, of all where None, that are moving."""
        moving: dict[TopicPartition, tuple[tuple[int, ...], Reassignment]] = {}
        for topic_partition in self._all() if partitions is None else partitions:
            await self._controller.keep_pace()
            item = self._find(topic_partition)
            if item is not None and item.partition in item.topic.reassignments:
                moving[topic_partition] = (
                    item.topic.assignment[item.partition],
                    item.topic.reassignments[item.partition],
                )
        return moving


def _require_same_factor(item: PartitionOf, target: Sequence[int]) -> None:
    present = len(item.topic.target_replicas(item.partition))
    if len(target) != present:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {present} to {len(target)}",
        )


def _elect_unclean(electorate: Electorate) -> Electorate:
    return electorate._replace(allows_unclean=True)


_ELECTIONS: dict[ElectionType, Election] = {
    ElectionType.PREFERRED: preferred,
    ElectionType.UNCLEAN: lambda electorate: elect_for_offline(_elect_unclean(electorate)),
}
_NOT_AVAILABLE = {
    ElectionType.PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    ElectionType.UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}
