"""Loading: the groups of one partition, replayed from its log slice by slice.

Later records overrule earlier ones, tombstones delete, and offsets of transactions wait
for the transaction's end, which stands in the log as well. What cannot be read is passed
over with a warning: one bad record must not take a partition's groups away.
"""

from __future__ import annotations

import logging

from ...common.sentinels import NO_PRODUCER_ID
from ..log import LoggedBatch, LoggedRecord
from ..record_reader import RecordFormatError
from .classic.group import Group
from .classic.join_request import MemberProtocol
from .classic.member import GroupMember
from .classic.states import GroupState
from .consumer.group import ConsumerGroup
from .consumer.records.record_values import ConsumerGroupRecord, read_record
from .consumer.records.replaying import ends_group, is_tombstone, replay
from .context import CoordinatorContext
from .offsets.open_transactions import OpenTransactions
from .record_values import read_group_value, read_key, read_offset_value
from .records import GroupKey, OffsetKey, StoredGroup, StoredMember
from .settings import LOAD_SLICE_BYTES

logger = logging.getLogger(__name__)


class Loader:
    """Replays the log of one partition.

    Args:
        context: the log and the clock.
        partition: of `__consumer_offsets`.

    Attributes:
        groups: the classic groups found so far, by group id.
        consumer_groups: the consumer groups, likewise; an id is in one of both at most.
        transactions: those that would commit offsets for the groups.
        records_skipped: how many records were unreadable.
    """

    def __init__(self, context: CoordinatorContext, partition: int) -> None:
        self.partition = partition
        self.groups: dict[str, Group] = {}
        self.consumer_groups: dict[str, ConsumerGroup] = {}
        self.records_skipped = 0
        self._context = context
        self._log = context.log
        self._next_offset = self._log.start_offset(partition)
        self.transactions = OpenTransactions()

    def load_slice(self) -> bool:
        """Replay the next slice; returns whether that was the last.

        Raises:
            KafkaError: this broker does not lead the partition any more.
        """
        is_last = self._load_next()
        if is_last:
            for group in self.consumer_groups.values():
                group.refresh_state(loading=True)
        return is_last

    def _load_next(self) -> bool:
        if self._next_offset < self._log.end_offset(self.partition):
            batches = self._log.read(self.partition, self._next_offset, LOAD_SLICE_BYTES)
            if not batches:
                return True
            for batch in batches:
                self._replay(batch)
                self._next_offset = batch.next_offset
        return self._next_offset >= self._log.end_offset(self.partition)

    def _replay(self, batch: LoggedBatch) -> None:
        if batch.committed is not None:
            self.transactions.end(batch.producer_id, self._find, committed=batch.committed)
            return
        for record in batch.records:
            try:
                self._replay_record(record, batch.producer_id)
            except RecordFormatError as error:
                self.records_skipped += 1
                logger.warning(
                    "passing over the record at offset %d of partition %d: %s",
                    record.offset,
                    self.partition,
                    error,
                )

    def _replay_record(self, record: LoggedRecord, producer_id: int) -> None:
        if record.key is None:
            raise RecordFormatError("it has no key")
        consumer_record = read_record(record.key, record.value)
        if consumer_record is not None:
            self._replay_consumer(consumer_record)
            return
        key = read_key(record.key)
        if isinstance(key, OffsetKey):
            self._replay_offset(key, record, producer_id)
        elif isinstance(key, GroupKey):
            self._replay_group(key, record)

    def _replay_consumer(self, record: ConsumerGroupRecord) -> None:
        group_id = record.group_id
        group = self.consumer_groups.get(group_id)
        if group is None:
            if is_tombstone(record):
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

    def _keep_offsets_of(self, ended: ConsumerGroup) -> Group:
        """A group without members goes on with the offsets of one that ended."""
        group = self._new_group(ended.group_id)
        group.offsets = ended.offsets
        self.groups[ended.group_id] = group
        return group

    def _find(self, group_id: str) -> Group | ConsumerGroup | None:
        return self.groups.get(group_id) or self.consumer_groups.get(group_id)

    def _replay_offset(self, key: OffsetKey, record: LoggedRecord, producer_id: int) -> None:
        group = self._find(key.group_id)
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

    def _new_group(self, group_id: str) -> Group:
        return Group(group_id, self.partition, self._context.clock.now_ms())


def restore_group(group: Group, stored: StoredGroup) -> None:
    """Make an empty group what its record says: a stable generation, or an empty group.

    Raises:
        RecordFormatError: the record contradicts itself.
    """
    if stored.members and (stored.protocol_name is None or not stored.protocol_type):
        raise RecordFormatError(f"group {group.group_id} has members and no protocol")
    member_ids = {member.member_id for member in stored.members}
    instance_ids = [m.group_instance_id for m in stored.members if m.group_instance_id is not None]
    if len(member_ids) < len(stored.members) or len(set(instance_ids)) < len(instance_ids):
        raise RecordFormatError(f"group {group.group_id} has a member twice")
    for member in stored.members:
        group.add(_restore_member(member, stored), None)
    group.generation_id = stored.generation_id
    group.protocol_type = stored.protocol_type or None
    group.protocol_name = stored.protocol_name
    if stored.leader_id in group.members:
        group.leader_id = stored.leader_id
    group.enter(
        GroupState.STABLE if stored.members else GroupState.EMPTY, stored.state_timestamp_ms
    )
    group.update_subscribed_topics()


def _restore_member(member: StoredMember, stored: StoredGroup) -> GroupMember:
    return GroupMember(
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
