"""What tests may do to a group from outside: expire a session, set off a rebalance.

Kafka has no such verbs; they do what a silent member, or a changed one, leads to.
"""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from .classic.classic_groups import ClassicGroups
from .classic.group import ClassicGroup
from .consumer.consumer_groups import ConsumerGroups
from .consumer.group import ConsumerGroup
from .shards import GroupShards


class AdminOverrides:
    """The verbs, for groups of both types.

    Args:
        shards: where groups are found.
        classic: the verbs on classic groups.
        consumer: the others.
    """

    def __init__(
        self, shards: GroupShards, classic: ClassicGroups, consumer: ConsumerGroups
    ) -> None:
        self._shards = shards
        self._classic = classic
        self._consumer = consumer

    def expire_session(self, group_id: str, member_id: str) -> None:
        """Give up a member as one that was silent for its session timeout.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND or UNKNOWN_MEMBER_ID.
        """
        group = self._find(group_id)
        if member_id not in group.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if isinstance(group, ConsumerGroup):
            self._consumer.fence(group, member_id, "its session timed out")
        else:
            self._classic.expire_member(group, group.members[member_id])

    def rebalance(self, group_id: str, reason: str) -> None:
        """Have a group's members share its partitions anew, as when one of them has changed.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND.
        """
        group = self._find(group_id)
        if isinstance(group, ConsumerGroup):
            group.invalidate_target_assignment()
        elif group.members:
            self._classic.prepare_or_complete(group, reason)

    def _find(self, group_id: str) -> ClassicGroup | ConsumerGroup:
        group = self._shards.find_any(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        return group
