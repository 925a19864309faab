"""What a group needs of whoever resolves its members' regular expressions."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ..group import ConsumerGroup
from ..heartbeat_request import HeartbeatRequest
from ..member import ConsumerGroupMember
from ..records.write import GroupWrite


class ExpressionUpdate(NamedTuple):
    """What a heartbeat changed about regular expressions.

    Attributes:
        is_changed: whether the member subscribes by another one than before.
        is_resolved: whether the topics of the new one are known already, so that the group's
            subscription changes with this heartbeat.
    """

    is_changed: bool = False
    is_resolved: bool = False


NO_UPDATE = ExpressionUpdate()


class Expressions(Protocol):
    """Resolves regular expressions to topics, at once or later."""

    def update(
        self,
        write: GroupWrite,
        before: ConsumerGroupMember,
        member: ConsumerGroupMember,
        request: HeartbeatRequest,
    ) -> ExpressionUpdate:
        """A member sent a heartbeat; it has been put into the group already.

        Raises:
            KafkaError: INVALID_REGULAR_EXPRESSION.
        """

    def is_settled(self, group: ConsumerGroup) -> bool:
        """Whether a heartbeat that brings no other expression has nothing to be done for any."""

    def forget_unused(self, write: GroupWrite) -> None:
        """Members were removed: delete expressions that nobody subscribes by any more."""
