"""ConsumerGroups: the consumer groups kept here, and the verbs on them.

Which groups are kept here is `GroupShards`' to know; the rules are in `checks`, `heartbeats`,
`fencing` and `assigning`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ....common.errors import ErrorCode, KafkaError
from ..answers import UNKNOWN_MEMBER_ID, LeavingMember
from ..classic.group import Group
from ..classic.rebalancing import Rebalancing
from ..runtime import GroupRuntime
from .assignment.assigning import Assigning
from .checks import check_instance, check_request, static_member
from .describing import ConsumerGroupDescription, describe
from .environment import ConsumerSurroundings
from .fencing import Fencing, unknown_member
from .group import ConsumerGroup
from .heartbeat_request import HeartbeatRequest
from .heartbeats import HeartbeatCallback, Heartbeats
from .member import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from .migration.classic_members import ClassicMembers
from .migration.classic_timers import ClassicTimers
from .migration.migration import Migration
from .records.write import GroupWrite, Writer
from .sessions import MemberSessions
from .subscription.regular_expressions import RegularExpressions

if TYPE_CHECKING:
    from ..shards import GroupShards

logger = logging.getLogger(__name__)

LeaveCallback = Callable[[Sequence[ErrorCode]], None]


class ConsumerGroups:
    """All consumer groups that this broker coordinates.

    Args:
        runtime: settings, time, rng and the log.
        surroundings: topics, assignors and the settings of these groups.
    """

    shards: GroupShards
    """Keeps the groups; set by whoever puts both together, as each needs the other."""

    def __init__(self, runtime: GroupRuntime, surroundings: ConsumerSurroundings) -> None:
        settings, timings = surroundings.settings, surroundings.times
        self._runtime = runtime
        self._topics = surroundings.topics
        self.is_enabled = settings.is_enabled
        self.writer = Writer(runtime, self._resume_after_loss, self._reload)
        self.assigning = Assigning(runtime, timings, surroundings.assignors, surroundings.topics)
        self.expressions = RegularExpressions(
            runtime,
            surroundings.topics,
            self.assigning.metadata_hash,
            self._find_known,
            self.writer.submit,
            settings.regex_refresh_interval_ms,
        )
        self.migration = Migration(
            runtime, settings, surroundings.topics, self.assigning.metadata_hash
        )
        self.fencing = Fencing(self.writer, self.assigning, self.expressions, self.migration)
        self.sessions = MemberSessions(runtime, timings, self.fencing.fence)
        self.fencing.sessions = self.sessions
        self._heartbeats = Heartbeats(
            runtime,
            settings,
            timings,
            self.writer,
            self.assigning,
            self.expressions,
            self.sessions,
        )

        self.classic_members = ClassicMembers(
            runtime,
            settings,
            surroundings.topics,
            self.writer,
            self._heartbeats,
            self.sessions,
            ClassicTimers(runtime, self.fencing.fence),
            self.migration,
        )

    def attach(self, shards: GroupShards, rebalancing: Rebalancing) -> None:
        """Learn of who keeps the groups, and of who moves classic ones."""
        self.shards = self.migration.shards = shards
        self.migration.rebalancing = rebalancing

    # -- verbs --------------------------------------------------------------------------

    def heartbeat(self, request: HeartbeatRequest, respond: HeartbeatCallback) -> None:
        """ConsumerGroupHeartbeat: join, stay, change or leave.

        `respond` is called once, at once or when all that it changed is stored.

        Raises:
            KafkaError: the heartbeat is refused.
        """
        group = self.shards.consumer_groups.get(request.group_id)
        if group is not None and self._heartbeats.is_plain(group, request):
            respond(self._heartbeats.keep_alive(group, request))
            return
        check_request(request, self.assigning.assignor_names)
        if request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
            self.fencing.leave(self._find(request.group_id), request, respond)
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

    def _classic_to_join(self, request: HeartbeatRequest) -> Group | None:
        """The classic group that somebody wants to join by the consumer protocol."""
        if request.member_epoch != JOIN_EPOCH:
            return None
        return self.shards.groups.get(request.group_id)

    def _upgrade(
        self, classic: Group, request: HeartbeatRequest, respond: HeartbeatCallback
    ) -> None:
        write = self.migration.upgrade(classic)
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
        self.fencing.remove(write, list(leaving))

        def stored(error: ErrorCode) -> None:
            respond([own or error for own in errors])

        self.writer.submit(write, stored)

    def describe(self, group_id: str) -> ConsumerGroupDescription:
        """ConsumerGroupDescribe, for one group.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        group = self._find(group_id)
        return describe(group, self.assigning.assignor_names[0], self._topics())

    def topics_changed(self, topics: frozenset[str], *, has_new: bool) -> None:
        """Topics changed, came or went: groups that read them look at them again."""
        if has_new:
            self.expressions.note_new_topics()
        for group in self.shards.consumer_groups.values():
            if not group.subscribed_topics.isdisjoint(topics):
                group.needs_metadata_refresh = True

    def end_empty(self, group: ConsumerGroup) -> Group:
        """Let an empty classic group take the place of one that has no members."""
        logger.info("group %s is empty and becomes a classic group", group.group_id)
        write = GroupWrite(group)
        write.remove_group()
        self.writer.submit(write, partial(_log_failure, group))
        return self.shards.make_classic(group)

    # -- finding a group ----------------------------------------------------------------

    def _find_known(self, group_id: str) -> ConsumerGroup | None:
        return self.shards.consumer_groups.get(group_id)

    def _find(self, group_id: str) -> ConsumerGroup:
        group = self.shards.find_any(group_id)
        if group is None:
            raise _not_found(group_id, "is not known")
        if not isinstance(group, ConsumerGroup):
            raise _not_found(group_id, "is not a consumer group")
        if group.writes.is_broken:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return group

    def _write(self, request: HeartbeatRequest) -> GroupWrite:
        """A write on the group that a heartbeat is for; who joins makes the group."""
        group_id = request.group_id
        if request.member_epoch != JOIN_EPOCH:
            return GroupWrite(self._find(group_id))
        found = self.shards.find_any(group_id)
        if found is None:
            return GroupWrite(self.shards.add_consumer_group(group_id))
        return GroupWrite(self._find(group_id))

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

    def _reload(self, group: ConsumerGroup) -> None:
        if self.shards.consumer_groups.get(group.group_id) is group:
            logger.warning(
                "partition %d is read back: only its log can tell what group %s holds",
                group.partition,
                group.group_id,
            )
            self.shards.reload(group.partition, group.group_id)


def _close_conversion(group: ConsumerGroup) -> None:
    group.is_conversion_open = False


def _log_failure(group: ConsumerGroup, error: ErrorCode) -> None:
    if error:
        logger.warning(
            "the end of consumer group %s could not be stored: %s", group.group_id, error.name
        )


def _leaving_id(group: ConsumerGroup, leaving: LeavingMember) -> str:
    instance_id = leaving.group_instance_id
    if instance_id is None:
        if leaving.member_id not in group.members:
            raise unknown_member(group, leaving.member_id)
        return leaving.member_id
    member = static_member(group, instance_id)
    if leaving.member_id != UNKNOWN_MEMBER_ID:
        check_instance(member, leaving.member_id, instance_id)
    return member.member_id


def _not_found(group_id: str, why: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {why}.")
