"""Which groups are kept here: one shard for each partition of `__consumer_offsets` led here.

A shard is loading, then loaded, until another broker leads its partition. Groups of loaded
shards stand in one table as well, so that a heartbeat finds its group by one look-up.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial

from ....protocol.errors import ErrorCode, KafkaError
from .answers import JoinAnswer, SyncAnswer
from .context import CoordinatorContext
from .group import Group
from .loading import Loader
from .partitioning import partition_for
from .rebalancing import Rebalancing
from .states import GroupEvent

logger = logging.getLogger(__name__)


class Shard:
    """The groups of one partition that this broker leads.

    Attributes:
        leader_epoch: since which this broker leads it.
        loader: replays the log; None once everything is loaded.
        groups: by group id; empty until everything is loaded.
    """

    __slots__ = ("groups", "leader_epoch", "loader", "partition")

    def __init__(self, partition: int, leader_epoch: int, loader: Loader) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.loader: Loader | None = loader
        self.groups: dict[str, Group] = {}

    @property
    def is_loaded(self) -> bool:
        """Whether its groups may be asked for."""
        return self.loader is None


class Shards:
    """All shards of this broker.

    Args:
        context: settings, time and the log.
        topic_partitions: how many partitions `__consumer_offsets` has, or will have.
        rebalancing: owns the sessions of loaded members.

    Attributes:
        groups: the groups of all loaded shards, by group id.
    """

    def __init__(
        self,
        context: CoordinatorContext,
        topic_partitions: Callable[[], int],
        rebalancing: Rebalancing,
    ) -> None:
        self.groups: dict[str, Group] = {}
        self._shards: dict[int, Shard] = {}
        self._context = context
        self._topic_partitions = topic_partitions
        self._rebalancing = rebalancing

    # -- finding a group --------------------------------------------------------------------

    def partition_for(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that keeps the group."""
        return partition_for(group_id, self._topic_partitions())

    def find(self, group_id: str) -> Group | None:
        """The group, or None if it would be kept here and is not known.

        Raises:
            KafkaError: NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        group = self.groups.get(group_id)
        if group is None:
            self._loaded_shard(group_id)
        return group

    def find_or_create(self, group_id: str) -> Group:
        """The group, an empty one if it is not known.

        Raises:
            KafkaError: NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        group = self.groups.get(group_id)
        if group is None:
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

    @property
    def is_loading(self) -> bool:
        """Whether there may be groups here that are not known yet."""
        return any(not shard.is_loaded for shard in self._shards.values())

    def partitions(self) -> list[int]:
        """The partitions that are led here."""
        return sorted(self._shards)

    def _loaded_shard(self, group_id: str) -> Shard:
        shard = self._shards.get(self.partition_for(group_id))
        if shard is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        if not shard.is_loaded:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return shard

    # -- loading and unloading ----------------------------------------------------------------

    def load(self, partition: int, leader_epoch: int) -> None:
        """This broker leads a partition now: learn its groups, a first slice at once."""
        shard = self._shards.get(partition)
        if shard is not None:
            shard.leader_epoch = max(shard.leader_epoch, leader_epoch)
            return
        try:
            shard = Shard(partition, leader_epoch, Loader(self._context, partition))
        except KafkaError as failure:
            logger.error("cannot load the groups of partition %d: %s", partition, failure)
            return
        self._shards[partition] = shard
        self._context.run_flushed(partial(self._load_slice, shard))

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

    def _load_slice(self, shard: Shard) -> None:
        loader = shard.loader
        if loader is None or self._shards.get(shard.partition) is not shard:
            return
        try:
            done = loader.load_slice()
        except KafkaError as failure:
            logger.error("cannot load the groups of partition %d: %s", shard.partition, failure)
            del self._shards[shard.partition]
            return
        if not done:
            self._context.schedule(0, partial(self._load_slice, shard))
            return
        shard.loader = None
        shard.groups = loader.groups
        self.groups.update(loader.groups)
        self._resume(loader.groups.values())

    def _resume(self, groups: Iterable[Group]) -> None:
        size_max = self._context.settings.max_size
        for group in groups:
            for member in group.members.values():
                self._rebalancing.sessions.extend(group, member)
            if len(group.members) > size_max:
                self._rebalancing.prepare(group, f"more members than group.max.size, {size_max}")

    def _bury(self, group: Group) -> None:
        self._rebalancing.sessions.stop(group)
        group.take(GroupEvent.REMOVED, self._context.clock.now_ms())
