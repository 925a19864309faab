"""ConsumerGroupHeartbeat: a member joins, changes, or goes on towards its target.

One heartbeat takes three steps: the member is put into the group or updated, which may count
the group's epoch up; a target assignment is computed if the epoch has none; and the member
goes one step towards its target. All of it is one write. Source: Kafka 4.3's
GroupMetadataManager.consumerGroupHeartbeat.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from ....common.errors import ErrorCode
from ....runtime.rng import random_uuid, uuid_to_text
from ....runtime.steps import ITEMS_AT_LEAST, Steps, count_items, map_steps
from ..records import NAMES_AT_ONCE
from ..refusals import unknown_member
from ..runtime import GroupRuntime
from .checks import (
    check_epoch,
    check_instance,
    check_released,
    check_room,
    static_member,
)
from .current_assignment import Reconciliation, reconcile
from .group import ConsumerGroup
from .group_write import GroupWrite, Writer
from .heartbeat_request import HeartbeatAnswer, HeartbeatRequest
from .member import JOIN_EPOCH, NO_TIMEOUT, ConsumerGroupMember
from .records import encode_member
from .regular_expressions import Expressions
from .sessions import MemberSessions
from .settings import ConsumerGroupSettings, GroupTimings
from .states import MemberState
from .target_assignment import TargetAssignmentBuilder

logger = logging.getLogger(__name__)
HeartbeatCallback = Callable[[HeartbeatAnswer], None]


class Heartbeats:
    """The rules of a heartbeat that is no leaving.

    Args:
        runtime: time and rng.
        settings: the broker's.
        timings: each group's.
        writer: stores what changes.
        target_builder: the group's own steps.
        expressions: resolves regular expressions.
        sessions: the timers of members.
    """

    def __init__(
        self,
        runtime: GroupRuntime,
        settings: ConsumerGroupSettings,
        timings: GroupTimings,
        writer: Writer[ConsumerGroup],
        target_builder: TargetAssignmentBuilder,
        expressions: Expressions,
        sessions: MemberSessions,
    ) -> None:
        self._runtime = runtime
        self._settings = settings
        self._timings = timings
        self._writer = writer
        self._target_builder = target_builder
        self._expressions = expressions
        self._sessions = sessions

    def is_plain(self, group: ConsumerGroup, request: HeartbeatRequest) -> bool:
        """Whether the heartbeat says nothing new to a group where nothing is to be done.

        All that is left then is to keep the session alive, which is what almost all are for.
        """
        member = group.members.get(request.member_id)
        return (
            member is not None
            and request.member_epoch == member.member_epoch == group.target_epoch == group.epoch
            and member.state is MemberState.STABLE
            and not group.needs_metadata_refresh
            and group.writes.is_settled
            and request.subscribed_topic_names is None
            and request.subscribed_topic_regex is None
            and request.owned is None
            and request.rebalance_timeout_ms == NO_TIMEOUT
            and request.server_assignor is None
            and request.rack_id is None
            and request.instance_id == member.instance_id
            and request.client_id == member.client_id
            and request.client_host == member.client_host
            and (not member.subscribed_topic_regex or self._expressions.is_settled(group))
        )

    def keep_alive(self, group: ConsumerGroup, request: HeartbeatRequest) -> HeartbeatAnswer:
        """The answer to a heartbeat that says nothing new."""
        self._sessions.extend(group, request.member_id)
        return HeartbeatAnswer(
            ErrorCode.NONE,
            None,
            request.member_id,
            request.member_epoch,
            self._timings.heartbeat_interval_ms(group.group_id),
        )

    def made_ready(
        self, group: ConsumerGroup | None, request: HeartbeatRequest
    ) -> Steps[HeartbeatRequest]:
        """The heartbeat with what it may write encoded, if its member reads very many topics.

        Args:
            group: the group, if it is there.
            request: the heartbeat.
        """
        before = None
        if group is not None and request.instance_id is not None:
            before = group.static_member(request.instance_id)
        elif group is not None:
            before = group.members.get(request.member_id)
        updated = _updated(before or ConsumerGroupMember(request.member_id), request)
        members = [] if updated == before else [updated]
        if before is not None and before.member_id != request.member_id:
            members.append(before)  # it comes back under another id
        long = [each for each in members if len(each.subscribed_topic_names) > NAMES_AT_ONCE]
        if request.subscribed_topic_names is not None:
            yield from count_items(ITEMS_AT_LEAST)  # names that are equal were compared one by one
            request = request._replace(subscribed_topic_names=updated.subscribed_topic_names)
        return request._replace(encoded=(yield from map_steps(encode_member, long)))

    def heartbeat(
        self, write: GroupWrite, request: HeartbeatRequest, respond: HeartbeatCallback
    ) -> None:
        """Take a heartbeat up; it is answered once all that it changed is stored.

        Args:
            write: on the group; it may hold what made it a consumer group already.

        Raises:
            KafkaError: it is refused; the write is to be taken back.
        """
        group = write.group
        check_room(group, request.member_id, self._settings.max_size)
        if not request.member_id:
            request = request._replace(member_id=uuid_to_text(random_uuid(self._runtime.rng)))
        if request.instance_id is None:
            before = self._find_dynamic(group, request)
        else:
            before = self._find_static(write, request, request.instance_id)
        updated = _updated(before, request)
        member = self.advance(write, before, updated, request)
        self._sessions.extend(group, member.member_id)
        assignment = None
        if (
            request.member_epoch == JOIN_EPOCH
            or request.is_full
            or member.assigned_partitions != before.assigned_partitions
        ):
            assignment = member.assigned_partitions
        answer = HeartbeatAnswer(
            ErrorCode.NONE,
            None,
            member.member_id,
            member.member_epoch,
            self._timings.heartbeat_interval_ms(group.group_id),
            assignment,
        )
        self._writer.submit(write, partial(_respond, respond, answer))

    def advance(
        self,
        write: GroupWrite,
        before: ConsumerGroupMember,
        updated: ConsumerGroupMember,
        request: HeartbeatRequest,
        *,
        keeps_target: bool = False,
    ) -> ConsumerGroupMember:
        """Put the member in as it is now, and take it one step towards its target.

        Args:
            write: on its group.
            before: the member as it was.
            updated: the member with what it said of itself.
            request: says what it owns.
            keeps_target: whether the group is about to end, so that no other target is
                computed for it.

        Raises:
            KafkaError: it is refused.
        """
        has_subscription_changed = self._update_member(write, before, updated, request)
        if not keeps_target:
            self._target_builder.update_target(write)
        elif write.group.target_epoch < write.group.epoch:
            return updated
        return self._reconcile(write, updated, request, has_subscription_changed)

    # -- who it is ----------------------------------------------------------------------

    def _find_dynamic(self, group: ConsumerGroup, request: HeartbeatRequest) -> ConsumerGroupMember:
        member = group.members.get(request.member_id)
        if member is None:
            if request.member_epoch != JOIN_EPOCH:
                raise unknown_member(group.group_id, request.member_id)
            logger.info("group %s: member %s joins", group.group_id, request.member_id)
            return ConsumerGroupMember(request.member_id)
        check_epoch(member, request.member_epoch, request.owned)
        return member

    def _find_static(
        self, write: GroupWrite, request: HeartbeatRequest, instance_id: str
    ) -> ConsumerGroupMember:
        group = write.group
        if request.member_epoch != JOIN_EPOCH:
            member = static_member(group, instance_id)
            check_instance(member, request.member_id, instance_id)
            check_epoch(member, request.member_epoch, request.owned)
            return member
        member_or_none = group.static_member(instance_id)
        if member_or_none is None:
            logger.info(
                "group %s: static member %s joins as %s",
                group.group_id,
                instance_id,
                request.member_id,
            )
            return group.members.get(request.member_id) or ConsumerGroupMember(request.member_id)
        if not member_or_none.uses_classic_protocol:
            check_released(member_or_none, request.member_id, instance_id)
        return self.replace_static(write, member_or_none, request.member_id)

    def replace_static(
        self, write: GroupWrite, old: ConsumerGroupMember, member_id: str
    ) -> ConsumerGroupMember:
        """Let a static member go on under another member id, with its target and partitions."""
        group = write.group
        logger.info(
            "group %s: static member %s comes back as %s, and was %s",
            group.group_id,
            old.instance_id,
            member_id,
            old.member_id,
        )
        target = group.target_of(old.member_id)
        member = old._replace(member_id=member_id, member_epoch=0, previous_member_epoch=0)
        write.remove_member(old.member_id)
        self._sessions.forget(group, old.member_id)
        write.put_metadata(member)
        write.put_target(member_id, target)
        write.put_current(member)
        return member

    # -- what it changes ----------------------------------------------------------------

    def _update_member(
        self,
        write: GroupWrite,
        before: ConsumerGroupMember,
        updated: ConsumerGroupMember,
        request: HeartbeatRequest,
    ) -> bool:
        """Put the member in; returns whether it subscribes to anything else than before."""
        group = write.group
        if updated != before:
            write.put_metadata(updated)
        names_changed = updated.subscribed_topic_names != before.subscribed_topic_names
        expression = self._expressions.update(write, before, updated, request)
        if names_changed or expression.is_resolved or group.needs_metadata_refresh:
            self._target_builder.update_epoch(
                write, has_subscription_changed=names_changed or expression.is_resolved
            )
        return names_changed or expression.is_changed

    def _reconcile(
        self,
        write: GroupWrite,
        updated: ConsumerGroupMember,
        request: HeartbeatRequest,
        has_subscription_changed: bool,
    ) -> ConsumerGroupMember:
        group = write.group
        if updated.is_reconciled_to(group.target_epoch) and not has_subscription_changed:
            return updated
        member = reconcile(
            Reconciliation(
                updated,
                group.target_epoch,
                group.target_of(updated.member_id),
                self._target_builder.subscribed_topic_ids(group, updated),
                has_subscription_changed,
                request.owned,
                group.is_taken,
            )
        )
        if member != updated:
            write.put_current(member)
            if member.uses_classic_protocol:
                pass  # it is given time to join and to sync instead
            elif member.state is MemberState.UNREVOKED_PARTITIONS:
                self._sessions.expect_revocation(group, member)
            else:
                self._sessions.note_reconciled(group, member.member_id)
        return member


def _updated(member: ConsumerGroupMember, request: HeartbeatRequest) -> ConsumerGroupMember:
    """The member with what the heartbeat sets; what it does not set stays."""
    changes: dict[str, Any] = {
        "client_id": request.client_id,
        "client_host": request.client_host,
        "classic_member_metadata": None,
    }
    if request.instance_id is not None:
        changes["instance_id"] = request.instance_id
    if request.rack_id is not None:
        changes["rack_id"] = request.rack_id
    if request.rebalance_timeout_ms != NO_TIMEOUT:
        changes["rebalance_timeout_ms"] = request.rebalance_timeout_ms
    if request.server_assignor is not None:
        changes["server_assignor_name"] = request.server_assignor
    names = request.subscribed_topic_names
    if names is not None and names != member.subscribed_topic_names:
        # Else they stay the very same: what compares them later need not look at each.
        changes["subscribed_topic_names"] = names
    if request.subscribed_topic_regex is not None:
        changes["subscribed_topic_regex"] = request.subscribed_topic_regex
    return member._replace(**changes)


def _respond(respond: HeartbeatCallback, answer: HeartbeatAnswer, error: ErrorCode) -> None:
    respond(HeartbeatAnswer(error) if error else answer)
