"""Which groups are kept here: one shard for each partition of `__consumer_offsets` led here.

Groups of loaded shards stand in one table as well, so that a heartbeat finds its group by one
look-up. Offsets of transactions wait for the transaction's end, which stands in the log as well.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import NO_PRODUCER_ID
from ...protocol.errors import ProtocolError
from ...protocol.internal.versioned import CoordinatorRecord as DecodedRecord
from ...runtime.steps import Steps, count_items
from ..log import LoggedRecord
from ..shards import Shard, ShardTable
from .classic.classic_groups import ClassicGroups
from .classic.group import ClassicGroup
from .classic.member import ClassicGroupMember
from .classic.messages import JoinAnswer, MemberProtocol, SyncAnswer
from .classic.states import ClassicGroupState, GroupEvent
from .consumer.group import ConsumerGroup
from .consumer.records import ends_group, read_record, replay
from .consumer.sessions import MemberSessions
from .offsets import OpenTransactions
from .records import (
    GroupKey,
    OffsetKey,
    StoredGroup,
    StoredMember,
    read_group_value,
    read_key,
    read_offset_value,
)
from .runtime import GroupRuntime
from .share.records import ends_share_group, read_share_record, replay_share_record
from .share.share_group import ShareGroup
from .streams.group import StreamsGroup
from .streams.records import ends_streams_group, read_streams_record, replay_streams_record

logger = logging.getLogger(__name__)

AnyGroup = ClassicGroup | ConsumerGroup | StreamsGroup
"""A group that commits offsets."""


class GroupShard(Shard):
    """The groups of one partition that this broker leads.

    Attributes:
        groups: classic ones by group id.
        consumer_groups: those of KIP-848, likewise; an id is in one of the four at most.
        share_groups: those that share records.
        streams_groups: those of Kafka Streams.
        transactions: those that would commit offsets for its groups.
    """

    __slots__ = (
        "_runtime",
        "consumer_groups",
        "groups",
        "share_groups",
        "streams_groups",
        "transactions",
    )

    def __init__(self, runtime: GroupRuntime, partition: int, leader_epoch: int) -> None:
        super().__init__(runtime.log, partition, leader_epoch)
        self.groups: dict[str, ClassicGroup] = {}
        self.consumer_groups: dict[str, ConsumerGroup] = {}
        self.share_groups: dict[str, ShareGroup] = {}
        self.streams_groups: dict[str, StreamsGroup] = {}
        self.transactions = OpenTransactions()
        self._runtime = runtime

    def find(self, group_id: str) -> AnyGroup | None:
        """The group of whatever type that commits offsets."""
        return (
            self.groups.get(group_id)
            or self.consumer_groups.get(group_id)
            or self.streams_groups.get(group_id)
        )

    def replay_end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """A marker ends what the producer's transaction would commit."""
        self.transactions.end(producer_id, self.find, committed=committed)

    def replay(self, key: bytes, record: LoggedRecord, producer_id: int) -> None:
        """Apply one record; see `Shard.replay`."""
        consumer_record = read_record(key, record.value)
        if consumer_record is not None:
            self._replay_consumer(consumer_record)
            return
        share_record = read_share_record(key, record.value)
        if share_record is not None:
            self._replay_share(share_record)
            return
        streams_record = read_streams_record(key, record.value)
        if streams_record is not None:
            self._replay_streams(streams_record)
            return
        read = read_key(key)
        if isinstance(read, OffsetKey):
            self._replay_offset(read, record, producer_id)
        elif isinstance(read, GroupKey):
            self._replay_group(read, record)

    def _replay_consumer(self, record: DecodedRecord) -> None:
        group_id = record.key.group_id
        group = self.consumer_groups.get(group_id)
        if group is None:
            if record.value is None:
                return
            group = ConsumerGroup(group_id, self.partition)
            classic = self.groups.pop(group_id, None)
            if classic is not None:
                group.offsets = classic.offsets
            self.consumer_groups[group_id] = group
        replay(group, record)
        if ends_group(record):
            del self.consumer_groups[group_id]
            if group.offsets:
                self._keep_offsets_of(group)

    def _replay_share(self, record: DecodedRecord) -> None:
        group_id = record.key.group_id
        group = self.share_groups.get(group_id)
        if group is None:
            if record.value is None:
                return
            group = self.share_groups[group_id] = ShareGroup(group_id, self.partition)
        replay_share_record(group, record)
        if ends_share_group(record):
            del self.share_groups[group_id]

    def _replay_streams(self, record: DecodedRecord) -> None:
        group_id = record.key.group_id
        group = self.streams_groups.get(group_id)
        if group is None:
            if record.value is None:
                return
            group = StreamsGroup(group_id, self.partition)
            classic = self.groups.pop(group_id, None)
            if classic is not None:
                group.offsets = classic.offsets
            self.streams_groups[group_id] = group
        replay_streams_record(group, record)
        if ends_streams_group(record):
            del self.streams_groups[group_id]
            if group.offsets:
                self._keep_offsets_of(group)

    def _keep_offsets_of(self, ended: ConsumerGroup | StreamsGroup) -> ClassicGroup:
        """A group without members goes on with the offsets of one that ended."""
        group = self._new_group(ended.group_id)
        group.offsets = ended.offsets
        self.groups[ended.group_id] = group
        return group

    def _replay_offset(self, key: OffsetKey, record: LoggedRecord, producer_id: int) -> None:
        group = self.find(key.group_id)
        if record.value is None:
            if group is not None:
                group.offsets.remove(key.topic, key.partition)
            return
        position = read_offset_value(record.value, record.offset)
        if group is None:
            group = self._new_group(key.group_id)
            # No more is known of it: a consumer that manages its partitions itself.
            group.state_timestamp_ms = position.commit_timestamp_ms
            self.groups[key.group_id] = group
        if producer_id == NO_PRODUCER_ID:
            group.offsets.put(key.topic, key.partition, position)
        else:
            group.offsets.put_pending(producer_id, key.topic, key.partition, position)
            self.transactions.note(producer_id, key.group_id)

    def _replay_group(self, key: GroupKey, record: LoggedRecord) -> None:
        before = self.groups.get(key.group_id)
        if key.group_id in self.consumer_groups:
            if record.value is None:
                return  # what it was before it became a consumer group
            before = self._keep_offsets_of(self.consumer_groups.pop(key.group_id))
        elif key.group_id in self.streams_groups:
            if record.value is None:
                return
            before = self._keep_offsets_of(self.streams_groups.pop(key.group_id))
        group = self._new_group(key.group_id)
        if before is not None:
            group.offsets = before.offsets
        if record.value is not None:
            restore_group(group, read_group_value(record.value))
            self.groups[key.group_id] = group
        elif group.offsets:
            self.groups[key.group_id] = group
        else:
            self.groups.pop(key.group_id, None)

    def _new_group(self, group_id: str) -> ClassicGroup:
        return ClassicGroup(group_id, self.partition, self._runtime.clock.now_ms())


def restore_group(group: ClassicGroup, stored: StoredGroup) -> None:
    """Make an empty group what its record says: a stable generation, or an empty group.

    Raises:
        ProtocolError: the record contradicts itself.
    """
    if stored.members and (stored.protocol_name is None or not stored.protocol_type):
        raise ProtocolError(f"group {group.group_id} has members and no protocol")
    member_ids = {member.member_id for member in stored.members}
    instance_ids = [m.group_instance_id for m in stored.members if m.group_instance_id is not None]
    if len(member_ids) < len(stored.members) or len(set(instance_ids)) < len(instance_ids):
        raise ProtocolError(f"group {group.group_id} has a member twice")
    for member in stored.members:
        group.add(_restore_member(member, stored), None)
    group.generation_id = stored.generation_id
    group.protocol_type = stored.protocol_type or None
    group.protocol_name = stored.protocol_name
    if stored.leader_id in group.members:
        group.leader_id = stored.leader_id
    group.enter(
        ClassicGroupState.STABLE if stored.members else ClassicGroupState.EMPTY,
        stored.state_timestamp_ms,
    )
    group.update_subscribed_topics()


def _restore_member(member: StoredMember, stored: StoredGroup) -> ClassicGroupMember:
    return ClassicGroupMember(
        member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.session_timeout_ms,
        protocol_type=stored.protocol_type,
        protocols=(MemberProtocol(stored.protocol_name or "", member.subscription),),
        assignment=member.assignment,
    )


class GroupShards(ShardTable[GroupShard]):
    """All shards of this broker.

    Args:
        runtime: settings, time and the log.
        topic_partitions: how many partitions `__consumer_offsets` has, or will have.
        classic: the verbs on classic groups, and their sessions.
        consumer_sessions: those of members of consumer groups.
        on_share_group_loaded: called with each share group of a loaded shard.
        on_streams_group_loaded: called with each streams group of one.

    Attributes:
        groups: the classic groups of all loaded shards, by group id.
        consumer_groups: the consumer groups, likewise; an id is in one of the four at most.
        share_groups: the share groups, likewise.
        streams_groups: the streams groups, likewise.
    """

    def __init__(
        self,
        runtime: GroupRuntime,
        topic_partitions: Callable[[], int],
        classic: ClassicGroups,
        consumer_sessions: MemberSessions,
        on_share_group_loaded: Callable[[ShareGroup], None],
        on_streams_group_loaded: Callable[[StreamsGroup], None],
    ) -> None:
        super().__init__(runtime, topic_partitions, "groups")
        self.groups: dict[str, ClassicGroup] = {}
        self.consumer_groups: dict[str, ConsumerGroup] = {}
        self.share_groups: dict[str, ShareGroup] = {}
        self.streams_groups: dict[str, StreamsGroup] = {}
        self._consumer_sessions = consumer_sessions
        self._on_share_group_loaded = on_share_group_loaded
        self._on_streams_group_loaded = on_streams_group_loaded
        self._to_reassign: set[str] = set()
        self._runtime: GroupRuntime = runtime
        self._classic = classic

    # -- finding a group --------------------------------------------------------------------

    def find(self, group_id: str) -> ClassicGroup | None:
        """The classic group, or None if it would be kept here and is not known as one.

        Raises:
            KafkaError: NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        group = self.groups.get(group_id)
        if group is None:
            self._loaded_shard(group_id)
        return group

    def find_any(self, group_id: str) -> AnyGroup | None:
        """The group of whatever type, or None if it would be kept here and is not known.

        Raises:
            KafkaError: NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        return (
            self.consumer_groups.get(group_id)
            or self.streams_groups.get(group_id)
            or self.find(group_id)
        )

    def find_known(self, group_id: str) -> AnyGroup | None:
        """The group of whatever type, or None if it is not known here for whatever reason."""
        return (
            self.groups.get(group_id)
            or self.consumer_groups.get(group_id)
            or self.streams_groups.get(group_id)
        )

    def find_or_create(self, group_id: str) -> ClassicGroup:
        """The classic group, an empty one if it is not known; it may be of no other type.

        Raises:
            KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, or GROUP_ID_NOT_FOUND of a
                share group.
        """
        group = self.groups.get(group_id)
        if group is None:
            assert group_id not in self.consumer_groups
            assert group_id not in self.streams_groups
            self._refuse_share_group(group_id)
            shard = self._loaded_shard(group_id)
            group = ClassicGroup(group_id, shard.partition, self._runtime.clock.now_ms())
            shard.groups[group_id] = self.groups[group_id] = group
        return group

    def forget(self, group: ClassicGroup) -> None:
        """Drop a group of which nothing is left."""
        if self.groups.get(group.group_id) is group:
            del self.groups[group.group_id]
            self._shards[group.partition].groups.pop(group.group_id, None)
            self._mark_dead(group)

    def all_groups(self) -> list[AnyGroup]:
        """The groups that commit offsets, of all types."""
        return [
            *self.groups.values(),
            *self.consumer_groups.values(),
            *self.streams_groups.values(),
        ]

    def forget_any(self, group: AnyGroup) -> None:
        """Drop a group of whatever type, of which nothing is left."""
        if isinstance(group, ConsumerGroup):
            self.forget_consumer_group(group)
        elif isinstance(group, StreamsGroup):
            self.forget_streams_group(group)
        else:
            self.forget(group)

    def add_consumer_group(self, group_id: str) -> ConsumerGroup:
        """A new consumer group, of an id that no group has.

        Raises:
            KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, or GROUP_ID_NOT_FOUND of a
                share group.
        """
        assert group_id not in self.groups
        self._refuse_share_group(group_id)
        shard = self._loaded_shard(group_id)
        group = ConsumerGroup(group_id, shard.partition)
        shard.consumer_groups[group_id] = self.consumer_groups[group_id] = group
        return group

    def add_share_group(self, group_id: str) -> ShareGroup:
        """A new share group, of an id that no group has.

        Raises:
            KafkaError: NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        assert group_id not in self.groups
        assert group_id not in self.consumer_groups
        shard = self._loaded_shard(group_id)
        group = ShareGroup(group_id, shard.partition)
        shard.share_groups[group_id] = self.share_groups[group_id] = group
        return group

    def add_streams_group(self, group_id: str) -> StreamsGroup:
        """A new streams group, of an id that no group has.

        Raises:
            KafkaError: NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        shard = self._loaded_shard(group_id)
        assert shard.find(group_id) is None
        assert group_id not in shard.share_groups
        group = StreamsGroup(group_id, shard.partition)
        shard.streams_groups[group_id] = self.streams_groups[group_id] = group
        return group

    def forget_streams_group(self, group: StreamsGroup) -> None:
        """Drop a streams group of which nothing is left."""
        if self.streams_groups.get(group.group_id) is group:
            del self.streams_groups[group.group_id]
            self._shards[group.partition].streams_groups.pop(group.group_id, None)
            group.mark_dead()

    def exchange_for_streams(self, classic: ClassicGroup, group: StreamsGroup) -> None:
        """Put a streams group in the place of the classic one that it was made of."""
        self.forget(classic)
        shard = self._shards[group.partition]
        shard.streams_groups[group.group_id] = self.streams_groups[group.group_id] = group

    def forget_share_group(self, group: ShareGroup) -> None:
        """Drop a share group of which nothing is left."""
        if self.share_groups.get(group.group_id) is group:
            del self.share_groups[group.group_id]
            self._shards[group.partition].share_groups.pop(group.group_id, None)
            group.mark_dead()

    def _refuse_share_group(self, group_id: str) -> None:
        if group_id in self.share_groups:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is a share group.")

    def make_classic(self, ended: ConsumerGroup | StreamsGroup) -> ClassicGroup:
        """Let a classic group without members take the place and offsets of one that ended."""
        self.forget_any(ended)
        group = self.find_or_create(ended.group_id)
        group.offsets, group.in_flight = ended.offsets, ended.in_flight
        return group

    def exchange_for_consumer(self, classic: ClassicGroup, group: ConsumerGroup) -> None:
        """Put a consumer group in the place of the classic one that it was made of."""
        self.forget(classic)
        shard = self._shards[group.partition]
        shard.consumer_groups[group.group_id] = self.consumer_groups[group.group_id] = group

    def exchange_for_classic(self, consumer: ConsumerGroup, group: ClassicGroup) -> None:
        """Put a classic group in the place of the consumer group that it was made of."""
        self.forget_consumer_group(consumer)
        self._shards[group.partition].groups[group.group_id] = self.groups[group.group_id] = group

    def forget_consumer_group(self, group: ConsumerGroup) -> None:
        """Drop a consumer group of which nothing is left."""
        if self.consumer_groups.get(group.group_id) is group:
            del self.consumer_groups[group.group_id]
            self._shards[group.partition].consumer_groups.pop(group.group_id, None)
            self._mark_consumer_group_dead(group)

    # -- transactions -------------------------------------------------------------------------

    def is_loaded(self, partition: int) -> bool:
        """Whether the groups of a partition are kept here, and known."""
        shard = self._shards.get(partition)
        return shard is not None and shard.is_loaded

    def note_pending(self, group: AnyGroup, producer_id: int) -> None:
        """A producer's transaction would commit offsets for the group."""
        shard = self._shards.get(group.partition)
        if shard is not None:
            shard.transactions.note(producer_id, group.group_id)

    def end_transaction(self, partition: int, producer_id: int, *, committed: bool) -> None:
        """A marker in the partition has ended the producer's transaction."""
        shard = self._shards.get(partition)
        if shard is not None and shard.is_loaded:
            shard.transactions.end(producer_id, self.find_known, committed=committed)

    # -- loading and unloading ----------------------------------------------------------------

    def _make_shard(self, partition: int, leader_epoch: int) -> GroupShard:
        return GroupShard(self._runtime, partition, leader_epoch)

    def _take_up(self, shard: GroupShard) -> Steps[None]:
        groups, consumer_groups = [*shard.groups.values()], [*shard.consumer_groups.values()]
        for group in groups:
            yield
            self.groups[group.group_id] = group
            self._resume(group)
            yield from count_items(len(group.members))
        for consumer_group in consumer_groups:
            yield
            group_id = consumer_group.group_id
            self.consumer_groups[group_id] = consumer_group
            consumer_group.refresh_state(loading=True)
            self._consumer_sessions.resume(consumer_group)
            if group_id in self._to_reassign:
                self._to_reassign.discard(group_id)
                consumer_group.invalidate_target_assignment()
            yield from count_items(len(consumer_group.members))
        for share_group in [*shard.share_groups.values()]:
            yield
            self.share_groups[share_group.group_id] = share_group
            share_group.refresh_state(loading=True)
            self._on_share_group_loaded(share_group)
            yield from count_items(len(share_group.members))
        for streams_group in [*shard.streams_groups.values()]:
            yield
            group_id = streams_group.group_id
            self.streams_groups[group_id] = streams_group
            streams_group.refresh_state(loading=True)
            self._on_streams_group_loaded(streams_group)
            if group_id in self._to_reassign:
                self._to_reassign.discard(group_id)
                streams_group.invalidate_target_assignment()
            yield from count_items(len(streams_group.members))

    def unload(self, partition: int) -> Steps[None]:
        """Another broker leads the partition now: forget its groups at once, and refuse who waits
        group by group."""
        shard = self._shards.pop(partition, None)
        if shard is None:
            return
        groups = [each for each in shard.groups.values() if self.groups.get(each.group_id) is each]
        consumer_groups = [
            each
            for each in shard.consumer_groups.values()
            if self.consumer_groups.get(each.group_id) is each
        ]
        share_groups = [
            each
            for each in shard.share_groups.values()
            if self.share_groups.get(each.group_id) is each
        ]
        streams_groups = [
            each
            for each in shard.streams_groups.values()
            if self.streams_groups.get(each.group_id) is each
        ]
        for group in groups:
            del self.groups[group.group_id]
        for consumer_group in consumer_groups:
            del self.consumer_groups[consumer_group.group_id]
        for share_group in share_groups:
            del self.share_groups[share_group.group_id]
        for streams_group in streams_groups:
            del self.streams_groups[streams_group.group_id]
        for group in groups:
            self._mark_dead(group)
            for member in group.members.values():
                group.answer_join(member, JoinAnswer(ErrorCode.NOT_COORDINATOR, member.member_id))
                group.answer_sync(member, SyncAnswer(ErrorCode.NOT_COORDINATOR))
            yield from count_items(1 + len(group.members))
        for consumer_group in consumer_groups:
            members = len(consumer_group.members)
            self._mark_consumer_group_dead(consumer_group)
            yield from count_items(1 + members)
        for share_group in share_groups:
            members = len(share_group.members)
            share_group.mark_dead()
            yield from count_items(1 + members)
        for streams_group in streams_groups:
            members = len(streams_group.members)
            streams_group.mark_dead()
            yield from count_items(1 + members)

    def reload(self, partition: int, group_id: str) -> None:
        """Read a partition's groups back from its log, which this broker goes on to lead.

        Args:
            group_id: the consumer group that made it necessary; it is to be assigned anew.
        """
        shard = self._shards.get(partition)
        if shard is not None:
            self._runtime.run_in_steps(self.unload(partition))
            self._to_reassign.add(group_id)
            self._runtime.schedule(0, partial(self.load, partition, shard.leader_epoch))

    def reload_broken(self, group: ConsumerGroup | ShareGroup | StreamsGroup) -> None:
        """Read a group back of which only the log can tell what it holds, if it is still kept."""
        known: ConsumerGroup | ShareGroup | StreamsGroup | None = (
            self.consumer_groups.get(group.group_id)
            or self.share_groups.get(group.group_id)
            or self.streams_groups.get(group.group_id)
        )
        if known is group:
            logger.warning(
                "reloading partition %d: a later write of group %s follows a failed one",
                group.partition,
                group.group_id,
            )
            self.reload(group.partition, group.group_id)

    def _resume(self, group: ClassicGroup) -> None:
        for member in group.members.values():
            self._classic.sessions.extend(group, member)
        size_max = self._runtime.settings.max_size
        if len(group.members) > size_max:
            self._classic.prepare(group, f"more members than group.max.size, {size_max}")

    def _mark_consumer_group_dead(self, group: ConsumerGroup) -> None:
        self._consumer_sessions.stop(group)
        group.mark_dead()

    def _mark_dead(self, group: ClassicGroup) -> None:
        self._classic.sessions.stop(group)
        group.take(GroupEvent.REMOVED, self._runtime.clock.now_ms())
