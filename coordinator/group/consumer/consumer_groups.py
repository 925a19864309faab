"""ConsumerGroups: the consumer groups kept here, and the verbs on them.

Whoever goes releases what it owned, and the group's epoch counts up; the next heartbeat of another
member computes the target without it. A static member may leave for a while instead: its place is
kept until its session is over. Source: Kafka 4.3's GroupMetadataManager (consumerGroupLeave,
consumerGroupFenceMembers), KIP-345.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ....common.errors import ErrorCode, KafkaError
from ....runtime.steps import Steps
from ..assignor import find_assignors
from ..classic.classic_groups import ClassicGroups
from ..classic.group import ClassicGroup
from ..classic.messages import UNKNOWN_MEMBER_ID, LeavingMember
from ..describing import ConsumerGroupDescription, describe_consumer_group
from ..refusals import group_not_found, unknown_member
from ..runtime import GroupRuntime
from .checks import check_instance, check_request, static_member
from .classic_members import ClassicMembers
from .group import ConsumerGroup
from .group_write import GroupWrite, Writer
from .heartbeat_request import HeartbeatRequest
from .heartbeats import HeartbeatCallback, Heartbeats
from .member import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH, NO_PARTITIONS, ConsumerGroupMember
from .migration import Migration
from .regular_expressions import RegularExpressions
from .sessions import MemberSessions
from .settings import ConsumerGroupSettings, GroupTimings
from .target_assignment import TargetAssignmentBuilder
from .topics import TopicsImage

if TYPE_CHECKING:
    from ..shards import GroupShards
from .heartbeat_request import HeartbeatAnswer

logger = logging.getLogger(__name__)
LeaveCallback = Callable[[Sequence[ErrorCode]], None]


class ConsumerGroups:
    """All consumer groups that this broker coordinates.

    Args:
        runtime: settings, time, rng and the log.
        settings: the broker's for these groups.
        timings: each group's.
        topics: the cluster's topics as they are now.
    """

    shards: GroupShards
    """Keeps the groups; set by whoever puts both together, as each needs the other."""

    def __init__(
        self,
        runtime: GroupRuntime,
        settings: ConsumerGroupSettings,
        timings: GroupTimings,
        topics: Callable[[], TopicsImage],
    ) -> None:
        self._runtime = runtime
        self._topics = topics
        self.is_enabled = settings.is_enabled
        self.writer = Writer(
            runtime, self._resume_after_loss, lambda group: self.shards.reload_broken(group)
        )
        self.target_builder = TargetAssignmentBuilder(
            runtime, timings, find_assignors(settings.assignors), topics
        )
        self.expressions = RegularExpressions(
            runtime,
            topics,
            self.target_builder.metadata_hash,
            self._find_known,
            self.writer.submit,
            settings.regex_refresh_interval_ms,
        )
        self.migration = Migration(runtime, settings, topics, self.target_builder.metadata_hash)
        self.sessions = MemberSessions(runtime, timings, self.fence)
        self._heartbeats = Heartbeats(
            runtime,
            settings,
            timings,
            self.writer,
            self.target_builder,
            self.expressions,
            self.sessions,
        )

        self.classic_members = ClassicMembers(
            runtime,
            settings,
            topics,
            self.writer,
            self._heartbeats,
            self.sessions,
            self.migration,
        )

    def attach(self, shards: GroupShards, classic: ClassicGroups) -> None:
        """Learn of who keeps the groups, and of who moves classic ones."""
        self.shards = self.migration.shards = shards
        self.migration.classic = classic

    # -- verbs --------------------------------------------------------------------------

    def heartbeat(self, request: HeartbeatRequest, respond: HeartbeatCallback) -> Steps[None]:
        """ConsumerGroupHeartbeat: join, stay, change or leave.

        `respond` is called once, at once or when all that it changed is stored. What may be written
        of a member that reads thousands of topics is encoded in steps; whether it is, is decided
        at once then: the group may be another one.

        Raises:
            KafkaError: the heartbeat is refused.
        """
        group = self._find_known(request.group_id)
        self._take_up((yield from self._heartbeats.made_ready(group, request)), respond)

    def keep_alive(self, request: HeartbeatRequest, respond: HeartbeatCallback) -> bool:
        """Answer a heartbeat that says nothing new at once, as most are.

        Returns:
            Whether it was one; else it is for `heartbeat`.
        """
        group = self.shards.consumer_groups.get(request.group_id)
        if group is None or not self._heartbeats.is_plain(group, request):
            return False
        respond(self._heartbeats.keep_alive(group, request))
        return True

    def _take_up(self, request: HeartbeatRequest, respond: HeartbeatCallback) -> None:
        if self.keep_alive(request, respond):
            return
        check_request(request, self.target_builder.assignor_names)
        if request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
            self._leave(self._find(request.group_id), request, respond)
            return
        classic = self._classic_to_join(request)
        if classic is not None:
            self._upgrade(classic, request, respond)
            return
        write = self._write(request)
        group = write.group
        try:
            self._heartbeats.heartbeat(write, request, respond)
        except KafkaError:
            write.take_back()
            self._forget_if_new(group)
            self.sessions.resume(group)
            raise

    def _classic_to_join(self, request: HeartbeatRequest) -> ClassicGroup | None:
        """The classic group that somebody wants to join by the consumer protocol."""
        if request.member_epoch != JOIN_EPOCH:
            return None
        return self.shards.groups.get(request.group_id)

    def _upgrade(
        self, classic: ClassicGroup, request: HeartbeatRequest, respond: HeartbeatCallback
    ) -> None:
        write = self.migration.upgrade(classic)
        write.encoded = request.encoded
        group = write.group
        try:
            self._heartbeats.heartbeat(write, request, respond)
        except KafkaError:
            self.sessions.stop(group)
            raise
        self.migration.take_over(classic, group)
        for member_id in group.members:
            self.sessions.extend(group, member_id)
        group.writes.when_settled(partial(_close_conversion, group))

    def _leave(
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
                raise unknown_member(group.group_id, request.member_id)
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

        self.writer.submit(write, stored)

    def fence(self, group: ConsumerGroup, member_id: str, reason: str) -> None:
        """Remove a member whose time is over."""
        logger.info("group %s: member %s fenced: %s", group.group_id, member_id, reason)
        write = GroupWrite(group)
        self.remove(write, [member_id])
        self.writer.submit(write, partial(_log_failure, group, member_id))

    def remove(self, write: GroupWrite, member_ids: Sequence[str]) -> None:
        """Remove members that are there, with all that they owned."""
        group = write.group
        if self.migration.may_downgrade(group, member_ids):
            self.migration.downgrade(
                write, member_ids, rebalance_for="its last member on the consumer protocol went"
            )
            return
        for member_id in member_ids:
            write.remove_member(member_id)
        self.expressions.forget_unused(write)
        write.put_epoch(group.epoch + 1, self.target_builder.metadata_hash(group))
        for member_id in member_ids:
            self.sessions.forget(group, member_id)

    def leave_group(
        self, group: ConsumerGroup, members: Sequence[LeavingMember], respond: LeaveCallback
    ) -> None:
        """LeaveGroup: remove members; `respond` gets the error of each, in their order.

        An administrator sends members away by it, and members on the classic protocol leave.
        """
        errors: list[ErrorCode] = []
        leaving: dict[str, None] = {}
        for member in members:
            try:
                leaving[_leaving_id(group, member)] = None
                errors.append(ErrorCode.NONE)
            except KafkaError as refusal:
                errors.append(refusal.code)
        if not leaving:
            respond(errors)
            return
        write = GroupWrite(group)
        self.remove(write, list(leaving))

        def stored(error: ErrorCode) -> None:
            respond([own or error for own in errors])

        self.writer.submit(write, stored)

    def describe(self, group_id: str) -> ConsumerGroupDescription:
        """ConsumerGroupDescribe, for one group.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        group = self._find(group_id)
        return describe_consumer_group(group, self.target_builder.assignor_names[0], self._topics())

    def topics_changed(self, topics: frozenset[str], *, has_new: bool) -> None:
        """Topics changed, came or went: groups that read them look at them again."""
        if has_new:
            self.expressions.note_new_topics()
        for group in self.shards.consumer_groups.values():
            if not group.subscribed_topics.isdisjoint(topics):
                group.needs_metadata_refresh = True

    def end_empty(self, group: ConsumerGroup) -> ClassicGroup:
        """Let an empty classic group take the place of one that has no members."""
        logger.info("group %s is empty and becomes a classic group", group.group_id)
        write = GroupWrite(group)
        write.remove_group()
        self.writer.submit(write, partial(_log_lost_end, group))
        return self.shards.make_classic(group)

    # -- finding a group ----------------------------------------------------------------

    def _find_known(self, group_id: str) -> ConsumerGroup | None:
        return self.shards.consumer_groups.get(group_id)

    def _find(self, group_id: str) -> ConsumerGroup:
        group = self.shards.find_any(group_id)
        if group is None:
            raise group_not_found(f"Group {group_id} not found.")
        if not isinstance(group, ConsumerGroup):
            raise group_not_found(f"Group {group_id} is not a consumer group.")
        if group.writes.is_broken:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return group

    def _write(self, request: HeartbeatRequest) -> GroupWrite:
        """A write on the group that a heartbeat is for; who joins makes the group."""
        group_id = request.group_id
        if self.shards.find_any(group_id) is None:
            if request.member_epoch != JOIN_EPOCH:
                raise group_not_found(f"Consumer group {group_id} not found.")
            return GroupWrite(self.shards.add_consumer_group(group_id), request.encoded)
        return GroupWrite(self._find(group_id), request.encoded)

    def _forget_if_new(self, group: ConsumerGroup) -> None:
        """Drop a group that was made for a member that could not join."""
        if group.has_nothing:
            self.shards.forget_consumer_group(group)

    # -- writes that failed -------------------------------------------------------------

    def _resume_after_loss(self, group: ConsumerGroup) -> None:
        if group.is_conversion_open:
            # The log says of which type it is.
            self.shards.reload(group.partition, group.group_id)
        elif self.shards.consumer_groups.get(group.group_id) is group:
            self.sessions.resume(group)
            self._forget_if_new(group)


def _close_conversion(group: ConsumerGroup) -> None:
    group.is_conversion_open = False


def _log_lost_end(group: ConsumerGroup, error: ErrorCode) -> None:
    if error:
        logger.warning(
            "could not store the deletion of consumer group %s: %s", group.group_id, error.name
        )


def _leaving_id(group: ConsumerGroup, leaving: LeavingMember) -> str:
    instance_id = leaving.group_instance_id
    if instance_id is None:
        if leaving.member_id not in group.members:
            raise unknown_member(group.group_id, leaving.member_id)
        return leaving.member_id
    member = static_member(group, instance_id)
    if leaving.member_id != UNKNOWN_MEMBER_ID:
        check_instance(member, leaving.member_id, instance_id)
    return member.member_id


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
            "group %s: could not store the removal of member %s: %s",
            group.group_id,
            member_id,
            error.name,
        )
