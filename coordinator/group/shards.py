"""Which groups are kept here: one shard for each partition of `__consumer_offsets` led here.

Groups of loaded shards stand in one table as well, so that a heartbeat finds its group by one
look-up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from ...common.errors import ErrorCode
from ..shard_table import LedShard, ShardTable
from .answers import JoinAnswer, SyncAnswer
from .classic.group import Group
from .classic.rebalancing import Rebalancing
from .classic.states import GroupEvent
from .consumer.group import ConsumerGroup
from .consumer.sessions import MemberSessions
from .context import CoordinatorContext
from .loading import Loader
from .offsets.open_transactions import OpenTransactions


class Shard(LedShard[Loader]):
    """The groups of one partition that this broker leads.

    Attributes:
        groups: classic ones by group id; empty until everything is loaded.
        consumer_groups: the others, likewise.
        transactions: those that would commit offsets for its groups.
    """

    __slots__ = ("consumer_groups", "groups", "transactions")

    def __init__(self, partition: int, leader_epoch: int, loader: Loader) -> None:
        super().__init__(partition, leader_epoch, loader)
        self.groups: dict[str, Group] = {}
        self.consumer_groups: dict[str, ConsumerGroup] = {}
        self.transactions = OpenTransactions()


class Shards(ShardTable[Shard]):
    """All shards of this broker.

    Args:
        context: settings, time and the log.
        topic_partitions: how many partitions `__consumer_offsets` has, or will have.
        rebalancing: owns the sessions of loaded members.
        consumer_sessions: those of members of consumer groups.

    Attributes:
        groups: the classic groups of all loaded shards, by group id.
        consumer_groups: the consumer groups, likewise; an id is in one of both at most.
    """

    def __init__(
        self,
        context: CoordinatorContext,
        topic_partitions: Callable[[], int],
        rebalancing: Rebalancing,
        consumer_sessions: MemberSessions,
    ) -> None:
        super().__init__(context, topic_partitions, "groups")
        self.groups: dict[str, Group] = {}
        self.consumer_groups: dict[str, ConsumerGroup] = {}
        self._consumer_sessions = consumer_sessions
        self._to_reassign: set[str] = set()
        self._context = context
        self._rebalancing = rebalancing

    # -- finding a group --------------------------------------------------------------------

    def find(self, group_id: str) -> Group | None:
        """The classic group, or None if it would be kept here and is not known as one.

        Raises:
            KafkaError: NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        group = self.groups.get(group_id)
        if group is None:
            self._loaded_shard(group_id)
        return group

    def find_any(self, group_id: str) -> Group | ConsumerGroup | None:
        """The group of whatever type, or None if it would be kept here and is not known.

        Raises:
            KafkaError: NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        return self.consumer_groups.get(group_id) or self.find(group_id)

    def find_or_create(self, group_id: str) -> Group:
        """The classic group, an empty one if it is not known; it may not be a consumer group.

        Raises:
            KafkaError: NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        group = self.groups.get(group_id)
        if group is None:
            assert group_id not in self.consumer_groups
            shard = self._loaded_shard(group_id)
            group = Group(group_id, shard.partition, self._context.clock.now_ms())
            shard.groups[group_id] = self.groups[group_id] = group
        return group

    def forget(self, group: Group) -> None:
        """Drop a group of which nothing is left."""
        if self.groups.get(group.group_id) is group:
            del self.groups[group.group_id]
            self._shards[group.partition].groups.pop(group.group_id, None)
            self._bury(group)

    def add_consumer_group(self, group_id: str) -> ConsumerGroup:
        """A new consumer group, of an id that no group has.

        Raises:
            KafkaError: NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        assert group_id not in self.groups
        shard = self._loaded_shard(group_id)
        group = ConsumerGroup(group_id, shard.partition)
        shard.consumer_groups[group_id] = self.consumer_groups[group_id] = group
        return group

    def make_classic(self, consumer: ConsumerGroup) -> Group:
        """Let a classic group without members take a consumer group's place and offsets."""
        self.forget_consumer_group(consumer)
        group = self.find_or_create(consumer.group_id)
        group.offsets, group.in_flight = consumer.offsets, consumer.in_flight
        return group

    def exchange_for_consumer(self, classic: Group, group: ConsumerGroup) -> None:
        """Put a consumer group in the place of the classic one that it was made of."""
        self.forget(classic)
        shard = self._shards[group.partition]
        shard.consumer_groups[group.group_id] = self.consumer_groups[group.group_id] = group

    def exchange_for_classic(self, consumer: ConsumerGroup, group: Group) -> None:
        """Put a classic group in the place of the consumer group that it was made of."""
        self.forget_consumer_group(consumer)
        self._shards[group.partition].groups[group.group_id] = self.groups[group.group_id] = group

    def forget_consumer_group(self, group: ConsumerGroup) -> None:
        """Drop a consumer group of which nothing is left."""
        if self.consumer_groups.get(group.group_id) is group:
            del self.consumer_groups[group.group_id]
            self._shards[group.partition].consumer_groups.pop(group.group_id, None)
            self._bury_consumer_group(group)

    # -- transactions -------------------------------------------------------------------------

    def is_loaded(self, partition: int) -> bool:
        """Whether the groups of a partition are kept here, and known."""
        shard = self._shards.get(partition)
        return shard is not None and shard.is_loaded

    def note_pending(self, group: Group | ConsumerGroup, producer_id: int) -> None:
        """A producer's transaction would commit offsets for the group."""
        shard = self._shards.get(group.partition)
        if shard is not None:
            shard.transactions.note(producer_id, group.group_id)

    def end_transaction(self, partition: int, producer_id: int, *, committed: bool) -> None:
        """A marker in the partition has ended the producer's transaction."""
        shard = self._shards.get(partition)
        if shard is not None and shard.is_loaded:
            shard.transactions.end(producer_id, self.find_known, committed=committed)

    def find_known(self, group_id: str) -> Group | ConsumerGroup | None:
        """The group of whatever type, or None if it is not known here for whatever reason."""
        return self.groups.get(group_id) or self.consumer_groups.get(group_id)

    # -- loading and unloading ----------------------------------------------------------------

    def _make_shard(self, partition: int, leader_epoch: int) -> Shard:
        return Shard(partition, leader_epoch, Loader(self._context, partition))

    def _take_up(self, shard: Shard, loader: Loader) -> None:
        shard.groups = loader.groups
        shard.transactions = loader.transactions
        self.groups.update(loader.groups)
        shard.consumer_groups = loader.consumer_groups
        self.consumer_groups.update(loader.consumer_groups)
        self._resume(loader.groups.values())
        for group in loader.consumer_groups.values():
            self._consumer_sessions.resume(group)
            if group.group_id in self._to_reassign:
                self._to_reassign.discard(group.group_id)
                group.distrust_targets()

    def unload(self, partition: int) -> None:
        """Another broker leads the partition now: tell those who wait, and forget its groups."""
        shard = self._shards.pop(partition, None)
        if shard is None:
            return
        for group in shard.groups.values():
            del self.groups[group.group_id]
            self._bury(group)
            for member in group.members.values():
                group.answer_join(member, JoinAnswer(ErrorCode.NOT_COORDINATOR, member.member_id))
                group.answer_sync(member, SyncAnswer(ErrorCode.NOT_COORDINATOR))
        for consumer_group in shard.consumer_groups.values():
            del self.consumer_groups[consumer_group.group_id]
            self._bury_consumer_group(consumer_group)

    def reload(self, partition: int, group_id: str) -> None:
        """Read a partition's groups back from its log, which this broker goes on to lead.

        Args:
            group_id: the consumer group that made it necessary; it is to be assigned anew.
        """
        shard = self._shards.get(partition)
        if shard is not None:
            self.unload(partition)
            self._to_reassign.add(group_id)
            self._context.schedule(0, partial(self.load, partition, shard.leader_epoch))

    def _resume(self, groups: Iterable[Group]) -> None:
        size_max = self._context.settings.max_size
        for group in groups:
            for member in group.members.values():
                self._rebalancing.sessions.extend(group, member)
            if len(group.members) > size_max:
                self._rebalancing.prepare(group, f"more members than group.max.size, {size_max}")

    def _bury_consumer_group(self, group: ConsumerGroup) -> None:
        self._consumer_sessions.stop(group)
        group.bury()

    def _bury(self, group: Group) -> None:
        self._rebalancing.sessions.stop(group)
        group.take(GroupEvent.REMOVED, self._context.clock.now_ms())
