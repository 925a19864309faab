"""What tests may do to a group from outside: expire a session, set off a rebalance.

Kafka has no such verbs; they do what a silent member, or a changed one, leads to.
"""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from .classic.classic_groups import ClassicGroups
from .consumer.consumer_groups import ConsumerGroups
from .consumer.group import ConsumerGroup
from .shards import AnyGroup, GroupShards
from .share.share_group import ShareGroup
from .share.share_groups import ShareGroups
from .streams.group import StreamsGroup
from .streams.streams_groups import StreamsGroups


class AdminOverrides:
    """The verbs, for groups of all types.

    Args:
        shards: where groups are found.
        classic: the verbs on classic groups.
        consumer: those on consumer groups.
        share: those on share groups.
        streams: those on streams groups.
    """

    def __init__(
        self,
        shards: GroupShards,
        classic: ClassicGroups,
        consumer: ConsumerGroups,
        share: ShareGroups,
        streams: StreamsGroups,
    ) -> None:
        self._shards = shards
        self._classic = classic
        self._consumer = consumer
        self._share = share
        self._streams = streams

    def expire_session(self, group_id: str, member_id: str) -> None:
        """Give up a member as one that was silent for its session timeout.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND or UNKNOWN_MEMBER_ID.
        """
        group = self._shards.share_groups.get(group_id) or self._find(group_id)
        if member_id not in group.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if isinstance(group, ShareGroup):
            self._share.fence(group, member_id, "its session timed out")
        elif isinstance(group, StreamsGroup):
            self._streams.fence(group, member_id, "its session timed out")
        elif isinstance(group, ConsumerGroup):
            self._consumer.fence(group, member_id, "its session timed out")
        else:
            self._classic.expire_member(group, group.members[member_id])

    def rebalance(self, group_id: str, reason: str) -> None:
        """Have a group's members share its partitions anew, as when one of them has changed.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND; a share group does not rebalance.
        """
        group = self._find(group_id)
        if isinstance(group, ConsumerGroup | StreamsGroup):
            group.invalidate_target_assignment()
        elif group.members:
            self._classic.prepare_or_complete(group, reason)

    def _find(self, group_id: str) -> AnyGroup:
        group = self._shards.find_any(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        return group
