"""Who may commit and fetch offsets of a consumer group, and in which epoch.

A commit of a former epoch is taken for partitions that the member had then and has still: it
may commit while a new epoch's answer is on its way (KIP-1251). Source: Kafka 4.3's
ConsumerGroup.validateOffsetCommit and validateOffsetFetch.
"""

from __future__ import annotations

from collections.abc import Iterable

from ....common.errors import ErrorCode, KafkaError
from .fencing import unknown_member
from .group import ConsumerGroup
from .member import ConsumerGroupMember

FIRST_COMMIT_VERSION_WITH_EPOCHS = 9
"""OffsetCommit before this one speaks of generations, which such members do not have."""

UNKNOWN_EPOCH = -1


class CommitEpochs:
    """What a commit has to be checked for besides who sends it.

    Args:
        member: who commits, or None where it is nobody in particular.
        epoch: that of the commit.
    """

    def __init__(self, member: ConsumerGroupMember | None, epoch: int) -> None:
        self._member = member
        self._epoch = epoch

    def check(self, partitions: Iterable[tuple[bytes, int]]) -> None:
        """Refuse the commit if one of its partitions was not the member's in its epoch.

        Args:
            partitions: topic ids and partitions.

        Raises:
            KafkaError: STALE_MEMBER_EPOCH, or ILLEGAL_GENERATION for a member on the classic
                protocol.
        """
        member = self._member
        if member is None:
            return
        for topic_id, partition in partitions:
            since = member.assignment_epoch(topic_id, partition)
            if since is None or self._epoch < since:
                raise stale_epoch(member, self._epoch)


ANY_PARTITION = CommitEpochs(None, UNKNOWN_EPOCH)


def check_commit(
    group: ConsumerGroup,
    member_id: str,
    group_instance_id: str | None,
    epoch: int,
    api_version: int,
    *,
    is_transactional: bool = False,
) -> CommitEpochs:
    """Refuse a commit by the wrong client; what is returned checks the partitions.

    Args:
        epoch: the member epoch, or the generation of a member on the classic protocol.
        api_version: of OffsetCommit; it does not count for a commit in a transaction.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID, UNSUPPORTED_VERSION, STALE_MEMBER_EPOCH or
            ILLEGAL_GENERATION.
    """
    if epoch < 0 and not group.members:
        return ANY_PARTITION  # from an admin client, or a consumer that assigns itself
    if (
        is_transactional
        and epoch == UNKNOWN_EPOCH
        and member_id == ""
        and group_instance_id is None
    ):
        return ANY_PARTITION  # from a producer that does not tell whose offsets it commits
    member = group.members.get(member_id)
    if member is None:
        raise unknown_member(group, member_id)
    if (
        not is_transactional
        and not member.uses_classic_protocol
        and api_version < FIRST_COMMIT_VERSION_WITH_EPOCHS
    ):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if epoch == member.member_epoch:
        return ANY_PARTITION
    if epoch > member.member_epoch:
        raise stale_epoch(member, epoch)
    return CommitEpochs(member, epoch)


def check_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> None:
    """Refuse to tell offsets to a member that is not in its epoch.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH or ILLEGAL_GENERATION.
    """
    if member_id is None and epoch < 0:
        return
    member = group.members.get(member_id or "")
    if member is None:
        raise unknown_member(group, member_id or "")
    if epoch != member.member_epoch:
        raise stale_epoch(member, epoch)


def stale_epoch(member: ConsumerGroupMember, epoch: int) -> KafkaError:
    """The member is in another epoch, or was not given the partition in that one."""
    code = ErrorCode.STALE_MEMBER_EPOCH
    if member.uses_classic_protocol:
        code = ErrorCode.ILLEGAL_GENERATION
    return KafkaError(
        code,
        f"Member {member.member_id} is in epoch {member.member_epoch}; epoch {epoch} does not do.",
    )
