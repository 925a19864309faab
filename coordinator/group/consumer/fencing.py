"""Members go: they leave, stay silent, or keep what they have to give up.

Whoever goes releases what it owned, and the group's epoch counts up; the next heartbeat of
another member computes the target without it. A static member may leave for a while instead:
its place is kept until its session is over. Source: Kafka 4.3's consumerGroupLeave and
consumerGroupFenceMembers, KIP-345.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial

from ....common.errors import ErrorCode, KafkaError
from .assignment.assigning import Assigning
from .checks import check_instance, static_member
from .group import ConsumerGroup
from .heartbeat_request import HeartbeatAnswer, HeartbeatRequest
from .member import LEAVE_STATIC_EPOCH, NO_PARTITIONS, ConsumerGroupMember
from .migration.migration import Migration
from .records.write import GroupWrite, Writer
from .sessions import MemberSessions
from .subscription.expressions import Expressions

logger = logging.getLogger(__name__)


class Fencing:
    """The rules of leaving and of being fenced.

    Args:
        writer: stores what changes.
        assigning: counts the group's epoch up.
        expressions: forgets those of members that went.
        migration: what is left may be a classic group.
    """

    sessions: MemberSessions
    """The timers of members; set by whoever puts both together, as each needs the other."""

    def __init__(
        self,
        writer: Writer,
        assigning: Assigning,
        expressions: Expressions,
        migration: Migration,
    ) -> None:
        self._migration = migration
        self._writer = writer
        self._assigning = assigning
        self._expressions = expressions

    def leave(
        self,
        group: ConsumerGroup,
        request: HeartbeatRequest,
        respond: Callable[[HeartbeatAnswer], None],
    ) -> None:
        """A member says that it leaves; it is answered once that is stored.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
        """
        if request.instance_id is None:
            member = group.members.get(request.member_id)
            if member is None:
                raise unknown_member(group, request.member_id)
        else:
            member = static_member(group, request.instance_id)
            check_instance(member, request.member_id, request.instance_id)
        write = GroupWrite(group)
        if request.instance_id is not None and request.member_epoch == LEAVE_STATIC_EPOCH:
            logger.info(
                "group %s: static member %s leaves for a while", group.group_id, member.member_id
            )
            write.put_current(_left_for_a_while(member))
        else:
            logger.info("group %s: member %s leaves", group.group_id, member.member_id)
            self.remove(write, [member.member_id])

        def stored(error: ErrorCode) -> None:
            if error:
                respond(HeartbeatAnswer(error))
            else:
                respond(
                    HeartbeatAnswer(
                        ErrorCode.NONE,
                        member_id=member.member_id,
                        member_epoch=request.member_epoch,
                    )
                )

        self._writer.submit(write, stored)

    def fence(self, group: ConsumerGroup, member_id: str, reason: str) -> None:
        """Remove a member whose time is over."""
        logger.info("group %s gives up member %s: %s", group.group_id, member_id, reason)
        write = GroupWrite(group)
        self.remove(write, [member_id])
        self._writer.submit(write, partial(_log_failure, group, member_id))

    def remove(self, write: GroupWrite, member_ids: Sequence[str]) -> None:
        """Remove members that are there, with all that they owned."""
        group = write.group
        if self._migration.may_downgrade(group, member_ids):
            self._migration.downgrade(
                write, member_ids, rebalance_for="its last member on the consumer protocol went"
            )
            return
        for member_id in member_ids:
            write.remove_member(member_id)
        self._expressions.forget_unused(write)
        write.put_epoch(group.epoch + 1, self._assigning.metadata_hash(group))
        for member_id in member_ids:
            self.sessions.forget(group, member_id)


def unknown_member(group: ConsumerGroup, member_id: str) -> KafkaError:
    """Nobody of that id is in the group."""
    return KafkaError(
        ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group.group_id} has no member {member_id!r}."
    )


def _left_for_a_while(member: ConsumerGroupMember) -> ConsumerGroupMember:
    """A static member that is away: it keeps what it owns, of no epoch any more."""
    return member._replace(
        member_epoch=LEAVE_STATIC_EPOCH,
        assigned_partitions={
            topic_id: dict.fromkeys(partitions, 0)
            for topic_id, partitions in member.assigned_partitions.items()
        },
        partitions_pending_revocation=NO_PARTITIONS,
    )


def _log_failure(group: ConsumerGroup, member_id: str, error: ErrorCode) -> None:
    if error:
        logger.warning(
            "group %s: the end of member %s could not be stored: %s",
            group.group_id,
            member_id,
            error.name,
        )
