"""What is refused of heartbeats, commits and fetches in consumer groups, and why.

A commit of a former epoch is taken for partitions that the member had then and has still: it
may commit while a new epoch's answer is on its way (KIP-1251). Source: Kafka 4.3's
GroupCoordinatorService (what a request must say), GroupMetadataManager (who may go on in which
epoch), ConsumerGroup.validateOffsetCommit and validateOffsetFetch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from ....common.errors import ErrorCode, KafkaError
from ..records import fits_string
from ..refusals import fenced_epoch, invalid_request, require_text, unknown_member
from .group import ConsumerGroup
from .heartbeat_request import HeartbeatRequest
from .member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    NO_TIMEOUT,
    ConsumerGroupMember,
    OwnedPartitions,
)

FIRST_VERSION_WITH_CLIENT_IDS = 1
"""From here on clients make their member ids themselves (KIP-1082)."""


def check_request(request: HeartbeatRequest, assignors: Sequence[str]) -> None:
    """Refuse what no group would take.

    Raises:
        KafkaError: INVALID_REQUEST or UNSUPPORTED_ASSIGNOR.
    """
    epoch = request.member_epoch
    if (
        request.api_version >= FIRST_VERSION_WITH_CLIENT_IDS
        or epoch > JOIN_EPOCH
        or epoch == LEAVE_EPOCH
    ):
        require_text("MemberId", request.member_id)
    require_text("GroupId", request.group_id)
    require_text("InstanceId", request.instance_id)
    require_text("RackId", request.rack_id)
    if epoch == JOIN_EPOCH:
        _check_first(request)
    elif epoch == LEAVE_STATIC_EPOCH:
        if request.instance_id is None:
            raise invalid_request("InstanceId can't be null.")
    elif epoch < LEAVE_STATIC_EPOCH:
        raise invalid_request("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: "
            f"{', '.join(assignors)}.",
        )
    for text in (request.group_id, request.member_id, request.instance_id, request.rack_id):
        if text is not None and not fits_string(text):
            raise invalid_request("An id is longer than the group's records can hold.")


def check_room(group: ConsumerGroup, member_id: str, size_max: int) -> None:
    """Refuse a new member of a full group.

    Raises:
        KafkaError: GROUP_MAX_SIZE_REACHED.
    """
    if len(group.members) >= size_max and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {size_max} members.",
        )


def check_epoch(
    member: ConsumerGroupMember, epoch: int, owned: Mapping[bytes, Set[int]] | None
) -> None:
    """Refuse a heartbeat of another epoch than the member's.

    One of the epoch before is taken if the member owns no more than it may: the answer with
    the new epoch may have been lost. One that joins again is taken in any epoch.

    Raises:
        KafkaError: FENCED_MEMBER_EPOCH.
    """
    if epoch in (JOIN_EPOCH, member.member_epoch):
        return
    if (
        epoch < member.member_epoch
        and epoch == member.previous_member_epoch
        and _owns_no_more_than(owned, member.assigned_partitions)
    ):
        return
    raise fenced_epoch("consumer", epoch, member.member_epoch)


def static_member(group: ConsumerGroup, instance_id: str) -> ConsumerGroupMember:
    """The member that has a static identity.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID.
    """
    member = group.static_member(instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    return member


def check_instance(member: ConsumerGroupMember, member_id: str, instance_id: str) -> None:
    """Refuse whoever uses a static identity that another member has now.

    Raises:
        KafkaError: FENCED_INSTANCE_ID.
    """
    if member.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.member_id}.",
        )


def check_released(member: ConsumerGroupMember, member_id: str, instance_id: str) -> None:
    """Refuse to let anybody take over a static identity whose member has not left.

    Raises:
        KafkaError: UNRELEASED_INSTANCE_ID.
    """
    if member.member_epoch != LEAVE_STATIC_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group "
            f"because the instance id is owned by {member.member_id} member.",
        )


def _check_first(request: HeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == NO_TIMEOUT:
        raise invalid_request("RebalanceTimeoutMs must be provided in first request.")
    if request.owned is None or request.owned:
        raise invalid_request("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise invalid_request(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining."
        )


def _owns_no_more_than(owned: Mapping[bytes, Set[int]] | None, assigned: OwnedPartitions) -> bool:
    if owned is None:
        return False
    return all(
        topic_id in assigned and all(number in assigned[topic_id] for number in numbers)
        for topic_id, numbers in owned.items()
    )


FIRST_COMMIT_VERSION_WITH_EPOCHS = 9
"""OffsetCommit before this one speaks of generations, which such members do not have."""

UNKNOWN_EPOCH = -1


def check_commit(
    group: ConsumerGroup,
    member_id: str,
    group_instance_id: str | None,
    epoch: int,
    api_version: int,
    partitions: Iterable[tuple[bytes, int]] = (),
    *,
    is_transactional: bool = False,
) -> None:
    """Refuse a commit by the wrong client, or of partitions that it did not have in its epoch.

    Args:
        epoch: the member epoch, or the generation of a member on the classic protocol.
        api_version: of OffsetCommit; it does not count for a commit in a transaction.
        partitions: topic ids and partitions.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID, UNSUPPORTED_VERSION, STALE_MEMBER_EPOCH or
            ILLEGAL_GENERATION.
    """
    if epoch < 0 and not group.members:
        return  # from an admin client, or a consumer that assigns itself
    if (
        is_transactional
        and epoch == UNKNOWN_EPOCH
        and member_id == ""
        and group_instance_id is None
    ):
        return  # from a producer that does not say whose offsets it commits
    member = group.members.get(member_id)
    if member is None:
        raise unknown_member(group.group_id, member_id)
    if (
        not is_transactional
        and not member.uses_classic_protocol
        and api_version < FIRST_COMMIT_VERSION_WITH_EPOCHS
    ):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if epoch == member.member_epoch:
        return
    if epoch > member.member_epoch:
        raise stale_epoch(member, epoch)
    for topic_id, partition in partitions:
        since = member.assignment_epoch(topic_id, partition)
        if since is None or epoch < since:
            raise stale_epoch(member, epoch)


def check_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> None:
    """Refuse offsets to a member that is not in its epoch.

    Raises:
        KafkaError: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH or ILLEGAL_GENERATION.
    """
    if member_id is None and epoch < 0:
        return
    member = group.members.get(member_id or "")
    if member is None:
        raise unknown_member(group.group_id, member_id or "")
    if epoch != member.member_epoch:
        raise stale_epoch(member, epoch)


def stale_epoch(member: ConsumerGroupMember, epoch: int) -> KafkaError:
    """The member is in another epoch, or was not given the partition in that one."""
    code, received = ErrorCode.STALE_MEMBER_EPOCH, "member epoch"
    if member.uses_classic_protocol:
        code, received = ErrorCode.ILLEGAL_GENERATION, "generation id"
    return KafkaError(
        code,
        f"The received {received} {epoch} does not match the expected member epoch "
        f"{member.member_epoch}.",
    )
