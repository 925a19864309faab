"""Members on the classic protocol in a consumer group: their requests, translated.

JoinGroup is a heartbeat that tells everything: it updates the member, and takes it one step
towards its target; the member epoch is its generation. There is no leader: SyncGroup fetches
what the broker assigned. Heartbeat calls the member back whenever there is a step to take:
the group's epoch is ahead of it, it has partitions to give up, or what it waits for is free.
Source: KIP-848 ("Supporting Online Consumer Group Upgrade"); Kafka 4.3's
`classicGroupJoinToConsumerGroup` and its neighbours.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ....common.errors import ErrorCode, KafkaError
from ....protocol.errors import ProtocolError
from ....runtime.rng import random_uuid, uuid_to_text
from ..classic.messages import (
    UNKNOWN_MEMBER_ID,
    JoinAnswer,
    JoinCallback,
    JoinRequest,
    SyncAnswer,
    SyncCallback,
    SyncRequest,
)
from ..consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    Subscription,
    read_subscription,
    write_assignment,
)
from ..refusals import unknown_member
from ..runtime import GroupRuntime
from .checks import check_instance, check_room, static_member
from .group import ConsumerGroup
from .group_write import GroupWrite, Writer
from .heartbeat_request import HeartbeatRequest
from .heartbeats import Heartbeats
from .member import NO_TIMEOUT, ClassicMemberMetadata, ClassicProtocol, ConsumerGroupMember
from .migration import Migration, by_topic_id, by_topic_name, common_protocols
from .sessions import MemberSessions
from .settings import ConsumerGroupSettings
from .states import MemberState
from .topics import TopicsImage

logger = logging.getLogger(__name__)


class ClassicMembers:
    """The rules of JoinGroup, SyncGroup and Heartbeat in a consumer group.

    Args:
        runtime: time and rng.
        settings: the broker's.
        topics: the cluster's topics as they are now.
        writer: stores what changes.
        heartbeats: takes members towards their targets.
        sessions: the timers of members.
        migration: whether such members may be in the group, and what their joining may end.
    """

    def __init__(
        self,
        runtime: GroupRuntime,
        settings: ConsumerGroupSettings,
        topics: Callable[[], TopicsImage],
        writer: Writer[ConsumerGroup],
        heartbeats: Heartbeats,
        sessions: MemberSessions,
        migration: Migration,
    ) -> None:
        self._runtime = runtime
        self._settings = settings
        self._topics = topics
        self._writer = writer
        self._heartbeats = heartbeats
        self._sessions = sessions
        self._migration = migration

    # -- JoinGroup ------------------------------------------------------------------------

    def join(self, group: ConsumerGroup, request: JoinRequest, respond: JoinCallback) -> None:
        """Take the request up; it is answered once all that it changed is stored."""
        write = GroupWrite(group)
        try:
            self._join(write, request, respond)
        except KafkaError as refusal:
            write.take_back()
            self._sessions.resume(group)
            respond(JoinAnswer(refusal.code, request.member_id))

    def _join(self, write: GroupWrite, request: JoinRequest, respond: JoinCallback) -> None:
        group = write.group
        member_id = request.member_id
        is_new = member_id == UNKNOWN_MEMBER_ID
        if is_new:
            member_id = uuid_to_text(random_uuid(self._runtime.rng))
        self._check_join(group, request, member_id)
        if is_new and request.requires_known_member_id and request.group_instance_id is None:
            respond(JoinAnswer(ErrorCode.MEMBER_ID_REQUIRED, member_id))
            return
        subscription = _subscription(request)
        existing = None
        if request.group_instance_id is not None:
            existing = group.static_member(request.group_instance_id)
        ends_as_classic = existing is not None and self._migration.may_downgrade_replacing(
            group, existing
        )
        before = self._find(write, request, member_id, existing, is_new=is_new)
        updated = _updated(before, request, subscription)
        step = HeartbeatRequest(
            group.group_id, member_id, 0, owned=by_topic_id(subscription.owned, self._topics())
        )
        member = self._heartbeats.advance(
            write, before, updated, step, keeps_target=ends_as_classic
        )
        if ends_as_classic:
            is_stale = group.target_epoch < group.epoch
            self._migration.downgrade(
                write,
                (),
                rebalance_for="its last member on the consumer protocol was replaced"
                if is_stale
                else None,
            )
        answer = JoinAnswer(
            ErrorCode.NONE,
            member_id,
            member.member_epoch,
            CONSUMER_PROTOCOL_TYPE,
            request.protocols[0].name,
        )

        def stored(error: ErrorCode) -> None:
            if error:
                respond(JoinAnswer(error, member_id))
                return
            if group.members.get(member_id) is not None and not ends_as_classic:
                self._sessions.extend(group, member_id)
                self._sessions.note_joined(group, member)
            respond(answer)

        self._sessions.extend(group, member_id)
        self._writer.submit(write, stored)

    def _check_join(self, group: ConsumerGroup, request: JoinRequest, member_id: str) -> None:
        _check_loaded(group)
        if self._migration.policy.is_disabled:
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        check_room(group, member_id, self._settings.max_size)
        names = [protocol.name for protocol in request.protocols]
        if not _supports(group, request.protocol_type, names):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    def _find(
        self,
        write: GroupWrite,
        request: JoinRequest,
        member_id: str,
        existing: ConsumerGroupMember | None,
        *,
        is_new: bool,
    ) -> ConsumerGroupMember:
        """The member as it was; a static one that comes back takes its former place."""
        group, instance_id = write.group, request.group_instance_id
        if instance_id is None or (existing is None and is_new):
            return group.members.get(member_id) or ConsumerGroupMember(member_id)
        if existing is not None and is_new:
            return self._heartbeats.replace_static(write, existing, member_id)
        member = static_member(group, instance_id)
        check_instance(member, member_id, instance_id)
        return member

    # -- SyncGroup ------------------------------------------------------------------------

    def sync(self, group: ConsumerGroup, request: SyncRequest, respond: SyncCallback) -> None:
        """Hand the member its assignment, once that is stored."""
        try:
            member = self._check_sync(group, request)
        except KafkaError as refusal:
            respond(SyncAnswer(refusal.code))
            return

        def stored(error: ErrorCode) -> None:
            if error:
                respond(SyncAnswer(error))
                return
            self._sessions.note_synced(group, member.member_id)
            if member.member_id in group.members:
                self._sessions.extend(group, member.member_id)
            respond(
                SyncAnswer(
                    ErrorCode.NONE,
                    self._assignment(member),
                    request.protocol_type,
                    request.protocol_name,
                )
            )

        self._writer.submit(GroupWrite(group), stored)

    def _check_sync(self, group: ConsumerGroup, request: SyncRequest) -> ConsumerGroupMember:
        _check_loaded(group)
        member = _classic_member(
            group, request.member_id, request.group_instance_id, request.generation_id
        )
        assert member.classic_member_metadata is not None
        name = member.classic_member_metadata.supported_protocols[0].name
        if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or (
            request.protocol_name not in (None, name)
        ):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if (
            group.epoch > member.member_epoch
            and member.state is not MemberState.UNREVOKED_PARTITIONS
        ):
            self._sessions.expect_join(group, member)
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        return member

    def _assignment(self, member: ConsumerGroupMember) -> bytes:
        assert member.classic_member_metadata is not None
        metadata = member.classic_member_metadata.supported_protocols[0].metadata
        return write_assignment(by_topic_name(member.assigned_partitions, self._topics()), metadata)

    # -- Heartbeat ------------------------------------------------------------------------

    def heartbeat(
        self,
        group: ConsumerGroup,
        generation_id: int,
        member_id: str,
        group_instance_id: str | None,
    ) -> ErrorCode:
        """Keep the member's session alive, and call it back if there is a step to take."""
        if group.writes.is_broken:
            return ErrorCode.NONE  # as while a group is loaded
        try:
            member = _classic_member(group, member_id, group_instance_id, generation_id)
        except KafkaError as refusal:
            return refusal.code
        self._sessions.extend(group, member_id)
        if (
            member.member_epoch < group.epoch
            or member.state is MemberState.UNREVOKED_PARTITIONS
            or (
                member.state is MemberState.UNRELEASED_PARTITIONS
                and not _waits_for_others(group, member)
            )
        ):
            self._sessions.expect_join(group, member)
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE


def _check_loaded(group: ConsumerGroup) -> None:
    if group.writes.is_broken:
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)


def _subscription(request: JoinRequest) -> Subscription:
    try:
        return read_subscription(request.protocols[0].metadata)
    except ProtocolError as error:
        logger.warning("group %s: a subscription cannot be read: %s", request.group_id, error)
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR) from None


def _updated(
    member: ConsumerGroupMember, request: JoinRequest, subscription: Subscription
) -> ConsumerGroupMember:
    timeout_ms = request.rebalance_timeout_ms
    return member._replace(
        instance_id=request.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms
        if timeout_ms == NO_TIMEOUT
        else timeout_ms,
        subscribed_topic_names=subscription.topics,
        subscribed_topic_regex="",
        client_id=request.client_id,
        client_host=request.client_host,
        classic_member_metadata=ClassicMemberMetadata(
            request.session_timeout_ms,
            tuple(ClassicProtocol(name, metadata) for name, metadata in request.protocols),
        ),
    )


def _supports(group: ConsumerGroup, protocol_type: str, names: list[str]) -> bool:
    """Whether all classic members have one of these protocols in common."""
    if protocol_type != CONSUMER_PROTOCOL_TYPE or not names:
        return False
    common = common_protocols(group.members.values())
    return common is None or not common.isdisjoint(names)


def _classic_member(
    group: ConsumerGroup, member_id: str, group_instance_id: str | None, generation_id: int
) -> ConsumerGroupMember:
    if group_instance_id is None:
        member = group.members.get(member_id)
        if member is None:
            raise unknown_member(group.group_id, member_id)
    else:
        member = static_member(group, group_instance_id)
        check_instance(member, member_id, group_instance_id)
    if not member.uses_classic_protocol:
        raise unknown_member(group.group_id, member_id)
    if generation_id != member.member_epoch:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    return member


def _waits_for_others(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Whether something of its target is neither its own nor free."""
    return any(
        number not in member.assigned_partitions.get(topic_id, ())
        and (topic_id, number) in group.owners
        for topic_id, numbers in group.target_of(member.member_id).items()
        for number in numbers
    )
