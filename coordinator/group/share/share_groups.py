"""ShareGroups: the share groups kept here, and the verbs on their members.

A heartbeat puts a member in or updates it, which may count the group's epoch up; a target is
computed if the epoch has none; the member gets it at once, for nobody has to give anything up.
All of it is one write. Only partitions that the share coordinator has begun are assigned. Source:
KIP-932; Kafka 4.3's GroupMetadataManager.shareGroupHeartbeat.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ....common.errors import ErrorCode, KafkaError
from ....runtime.clock import Clock
from ....runtime.steps import ITEMS_AT_LEAST, Steps, count_items
from ..assignor.assignor import GroupSpec, MemberSpec
from ..assignor.simple import SimpleAssignor
from ..consumer.group_write import Writer
from ..consumer.topics import TopicHashes, TopicsImage, existing_topics
from ..describing import DescribedPartitions
from ..records import NAMES_AT_ONCE, EncodedValue, fits_string
from ..refusals import (
    fenced_epoch,
    group_not_found,
    invalid_request,
    require_text,
    unknown_member,
)
from ..runtime import GroupRuntime
from ..session import Session
from .records import ShareGroupWrite, encode_member
from .settings import ShareGroupSettings, ShareGroupTimings
from .share_group import NO_ASSIGNMENT, ShareAssignment, ShareGroup, ShareMember
from .share_partitions import AnswersCallback, PartitionKey, SharePartitions

if TYPE_CHECKING:
    from ...share.operations import Persister
    from ..shards import GroupShards

logger = logging.getLogger(__name__)

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
ASSIGNOR = SimpleAssignor()


class ShareHeartbeat(NamedTuple):
    """A heartbeat request; None is "as in the last one".

    Attributes:
        member_epoch: 0 to join, -1 to leave.
        encoded: what it may lead to in the log, encoded before.
    """

    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None = None
    subscribed_topic_names: frozenset[str] | None = None
    client_id: str = ""
    client_host: str = ""
    encoded: Sequence[EncodedValue] = ()


class ShareHeartbeatAnswer(NamedTuple):
    """The answer to a heartbeat.

    Attributes:
        assignment: what the member is to read from now on; None where that has not changed.
    """

    error: ErrorCode
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: ShareAssignment | None = None


ShareHeartbeatCallback = Callable[[ShareHeartbeatAnswer], None]


class DescribedShareMember(NamedTuple):
    """A member as ShareGroupDescribe tells of it."""

    member: ShareMember
    assignment: list[DescribedPartitions]


class ShareGroupDescription(NamedTuple):
    """A group as ShareGroupDescribe tells of it."""

    group_id: str
    error: ErrorCode
    error_message: str | None = None
    state: str = ""
    epoch: int = 0
    assignment_epoch: int = 0
    members: tuple[DescribedShareMember, ...] = ()


class ShareGroups:
    """All share groups that this broker coordinates.

    Args:
        runtime: settings, time, rng and the log.
        settings: the broker's for these groups.
        timings: each group's.
        topics: the cluster's topics as they are now.
        persister: brings share partitions to their coordinators.
    """

    shards: GroupShards
    """Keeps the groups; set by whoever puts both together, as each needs the other."""

    def __init__(
        self,
        runtime: GroupRuntime,
        settings: ShareGroupSettings,
        timings: ShareGroupTimings,
        topics: Callable[[], TopicsImage],
        persister: Persister,
    ) -> None:
        self._runtime = runtime
        self._clock: Clock = runtime.clock
        self._settings = settings
        self._timings = timings
        self._topics = topics
        self._hashes = TopicHashes(topics)
        self._writer: Writer[ShareGroup] = Writer(
            runtime, self._resume_after_loss, lambda group: self.shards.reload_broken(group)
        )
        self.partitions = SharePartitions(
            runtime, self._writer, topics, persister, settings.initialize_retry_interval_ms
        )

    # -- verbs --------------------------------------------------------------------------

    def heartbeat(self, request: ShareHeartbeat, respond: ShareHeartbeatCallback) -> Steps[None]:
        """ShareGroupHeartbeat: join, stay, change or leave.

        `respond` is called once, at once or when all that it changed is stored. What may be written
        of a member that reads thousands of topics is encoded in steps; whether it is, is decided
        at once then: the group may be another one.

        Raises:
            KafkaError: the heartbeat is refused.
        """
        group = self.shards.share_groups.get(request.group_id)
        before = None if group is None else group.members.get(request.member_id)
        updated = _updated(before or ShareMember(request.member_id), request)
        names = updated.subscribed_topic_names
        if request.subscribed_topic_names is not None:
            yield from count_items(ITEMS_AT_LEAST)  # names that are equal were compared one by one
            request = request._replace(subscribed_topic_names=names)
        if updated != before and len(names) > NAMES_AT_ONCE:
            request = request._replace(encoded=[(yield from encode_member(updated))])
        self._take_up(request, respond)

    def _take_up(self, request: ShareHeartbeat, respond: ShareHeartbeatCallback) -> None:
        group = self.shards.share_groups.get(request.group_id)
        if group is not None and _is_plain(group, request):
            self._extend(group, request.member_id)
            respond(
                ShareHeartbeatAnswer(
                    ErrorCode.NONE,
                    None,
                    request.member_id,
                    request.member_epoch,
                    self._timings.heartbeat_interval_ms(group.group_id),
                )
            )
            return
        _check_request(request)
        if request.member_epoch == LEAVE_EPOCH:
            self._leave(self.find(request.group_id), request.member_id, respond)
            return
        if request.member_epoch != JOIN_EPOCH and self.is_unknown(request.group_id):
            raise group_not_found(f"Share group {request.group_id} not found.")
        write = ShareGroupWrite(self.find_or_create(request.group_id), request.encoded)
        group = write.group
        try:
            self._heartbeat(write, request, respond)
        except KafkaError:
            write.take_back()
            self._forget_if_new(group)
            raise

    def _heartbeat(
        self, write: ShareGroupWrite, request: ShareHeartbeat, respond: ShareHeartbeatCallback
    ) -> None:
        group = write.group
        before = self._find_member(group, request)
        updated = _updated(before, request)
        if updated != before or before.member_id not in group.members:
            write.put_metadata(updated)
        has_changed = updated.subscribed_topic_names != before.subscribed_topic_names
        if has_changed or group.needs_refresh:
            self._update_epoch(write, has_changed=has_changed)
        self._update_targets(write)
        member = self._reconcile(write, updated, has_changed=has_changed)
        self._extend(group, member.member_id)
        self.partitions.initialize(write)
        assignment = None
        if (
            request.member_epoch == JOIN_EPOCH
            or request.subscribed_topic_names is not None
            or member.assigned != before.assigned
        ):
            assignment = member.assigned
        answer = ShareHeartbeatAnswer(
            ErrorCode.NONE,
            None,
            member.member_id,
            member.member_epoch,
            self._timings.heartbeat_interval_ms(group.group_id),
            assignment,
        )
        self._writer.submit(write, partial(_respond, respond, answer))

    def _leave(self, group: ShareGroup, member_id: str, respond: ShareHeartbeatCallback) -> None:
        if member_id not in group.members:
            raise unknown_member(group.group_id, member_id)
        logger.info("share group %s: member %s leaves", group.group_id, member_id)
        answer = ShareHeartbeatAnswer(ErrorCode.NONE, member_id=member_id, member_epoch=LEAVE_EPOCH)
        self._remove(group, member_id, partial(_respond, respond, answer))

    def fence(self, group: ShareGroup, member_id: str, reason: str) -> None:
        """Remove a member whose time is over."""
        logger.info("share group %s: member %s fenced: %s", group.group_id, member_id, reason)
        self._remove(group, member_id, partial(_log_failure, group, member_id))

    def _remove(
        self, group: ShareGroup, member_id: str, on_complete: Callable[[ErrorCode], None]
    ) -> None:
        write = ShareGroupWrite(group)
        write.remove_member(member_id)
        now = group.now
        write.put_epoch(now.epoch + 1, self._hashes.metadata_hash(group.subscribed_topics))
        self._end_session(group, member_id)
        self._writer.submit(write, on_complete)

    def describe(self, group_id: str) -> ShareGroupDescription:
        """ShareGroupDescribe, for one group.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        image = self.find(group_id).replicated()
        topics = self._topics()
        members = []
        for member in image.members.values():
            assignment = []
            for topic_id, numbers in member.assigned.items():
                name = topics.name_of(topic_id)
                if name is not None:
                    assignment.append(DescribedPartitions(topic_id, name, sorted(numbers)))
            members.append(DescribedShareMember(member, assignment))
        return ShareGroupDescription(
            group_id,
            ErrorCode.NONE,
            None,
            image.state.value,
            image.epoch,
            image.target_epoch,
            tuple(members),
        )

    def delete(self, group: ShareGroup, respond: Callable[[ErrorCode], None]) -> None:
        """DeleteGroups, for a group without members: with the states of what it has read.

        Raises:
            KafkaError: NON_EMPTY_GROUP.
        """
        if group.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

        def deleted(error: ErrorCode) -> None:
            if error or group.members or self.shards.share_groups.get(group.group_id) is not group:
                respond(error or ErrorCode.NON_EMPTY_GROUP)
                return
            write = ShareGroupWrite(group)
            write.remove_group()
            self._writer.submit(write, partial(self._removed, group, respond))

        self.partitions.forget_all(group, deleted)

    def _removed(
        self, group: ShareGroup, respond: Callable[[ErrorCode], None], error: ErrorCode
    ) -> None:
        if not error:
            self.shards.forget_share_group(group)
        respond(error)

    def alter_offsets(
        self,
        group_id: str,
        offsets: Mapping[PartitionKey, int],
        names: Mapping[bytes, str],
        respond: AnswersCallback,
    ) -> None:
        """AlterShareGroupOffsets: have a group without members begin at some offsets.

        A group that is not there yet is made.

        Args:
            offsets: by topic id and partition.
            names: of the topics, by their ids.
            respond: called once, when all is stored or refused.

        Raises:
            KafkaError: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND of a group of another type,
                NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        group = self.find_or_create(group_id)
        self.partitions.alter(group, offsets, names, respond)
        self._forget_if_new(group)

    def topics_changed(self, topics: frozenset[str]) -> None:
        """Topics changed, came or went: groups that read them look at them again."""
        for group in self.shards.share_groups.values():
            if group.is_subscribed_to(topics):
                group.needs_refresh = True

    def resume(self, group: ShareGroup) -> None:
        """A group was loaded: its members have their session timeout from now on."""
        for member_id in group.members:
            self._extend(group, member_id)

    # -- finding a group ----------------------------------------------------------------

    def find(self, group_id: str) -> ShareGroup:
        """The group.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        group = self.shards.share_groups.get(group_id)
        if group is None:
            if self.shards.find_any(group_id) is not None:
                raise group_not_found(f"Group {group_id} is not a share group.")
            raise group_not_found(f"Group {group_id} not found.")
        if group.writes.is_broken:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return group

    def find_or_create(self, group_id: str) -> ShareGroup:
        """The group, a new one if there is none of any type.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, it is of another type; NOT_COORDINATOR or
                COORDINATOR_LOAD_IN_PROGRESS.
        """
        if self.is_unknown(group_id):
            return self.shards.add_share_group(group_id)
        return self.find(group_id)

    def find_if_known(self, group_id: str) -> ShareGroup | None:
        """The group, if there is a share group of that id.

        Raises:
            KafkaError: NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        if group_id not in self.shards.share_groups:
            self.shards.find_any(group_id)  # raises where it would be kept by another broker
            return None
        return self.find(group_id)

    def is_unknown(self, group_id: str) -> bool:
        """Whether there is no group of that id, of any type.

        Raises:
            KafkaError: NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        return group_id not in self.shards.share_groups and self.shards.find_any(group_id) is None

    def _find_member(self, group: ShareGroup, request: ShareHeartbeat) -> ShareMember:
        member = group.members.get(request.member_id)
        epoch = request.member_epoch
        if member is None:
            if epoch != JOIN_EPOCH:
                raise unknown_member(group.group_id, request.member_id)
            if len(group.members) >= self._settings.max_size:
                raise KafkaError(
                    ErrorCode.GROUP_MAX_SIZE_REACHED,
                    "The share group has reached its maximum capacity of "
                    f"{self._settings.max_size} members.",
                )
            logger.info("share group %s: member %s joins", group.group_id, request.member_id)
            return ShareMember(request.member_id)
        if epoch not in (JOIN_EPOCH, member.member_epoch, member.previous_member_epoch):
            raise fenced_epoch("share", epoch, member.member_epoch)
        return member

    def _forget_if_new(self, group: ShareGroup) -> None:
        """Drop a group that was made for what could not be done."""
        if group.has_nothing:
            self.shards.forget_share_group(group)

    # -- what a heartbeat changes ---------------------------------------------------------

    def _update_epoch(self, write: ShareGroupWrite, *, has_changed: bool) -> None:
        """Count the epoch up if subscriptions changed, or what may be assigned."""
        group = write.group
        now = group.now
        metadata_hash = self._hashes.metadata_hash(group.subscribed_topics)
        if has_changed or metadata_hash != now.metadata_hash or self._has_unassigned(group):
            write.put_epoch(now.epoch + 1, metadata_hash)
        group.needs_refresh = False

    def _has_unassigned(self, group: ShareGroup) -> bool:
        """Whether partitions may be assigned that no target has, or none that some target has."""
        assigned = {
            (topic_id, number)
            for target in group.now.targets.values()
            for topic_id, numbers in target.items()
            for number in numbers
        }
        assignable = {
            (topic_id, number)
            for topic_id, numbers in self.partitions.assignable(group).items()
            for number in numbers
        }
        return assigned != assignable

    def _update_targets(self, write: ShareGroupWrite) -> None:
        """Compute the targets of the group's epoch, if there are none and they may be computed."""
        group = write.group
        now = group.now
        now_ms = self._clock.now_ms()
        since_ms = now.assignment_timestamp_ms
        interval_ms = self._timings.assignment_interval_ms(group.group_id)
        if now.target_epoch >= now.epoch or (
            since_ms and since_ms <= now_ms < since_ms + interval_ms
        ):
            return
        image = self._topics()
        found = existing_topics(image, group.subscribed_topics)
        ids = {topic.name: topic.topic_id for topic in found}
        spec = GroupSpec(
            {
                member.member_id: MemberSpec(
                    # As many are looked at as there are topics, not as there are names.
                    frozenset(
                        ids[name] for name in member.subscribed_topic_names.intersection(ids)
                    ),
                    now.targets.get(member.member_id, NO_ASSIGNMENT),
                    None,
                    member.rack_id,
                )
                for member in now.members.values()
            }
        )
        targets = ASSIGNOR.assign_partitions(spec, self.partitions.assignable(group))
        for member_id, target in targets.items():
            if target != now.targets.get(member_id):
                write.put_target(member_id, target)
        write.put_target_epoch(now.epoch, now_ms)

    def _reconcile(
        self, write: ShareGroupWrite, member: ShareMember, *, has_changed: bool
    ) -> ShareMember:
        """Give a member its target."""
        now = write.group.now
        target = now.targets.get(member.member_id, NO_ASSIGNMENT)
        if has_changed and now.target_epoch < now.epoch:
            # Its target is of its former subscription.
            image = self._topics()
            target = {
                topic_id: numbers
                for topic_id, numbers in target.items()
                if image.name_of(topic_id) in member.subscribed_topic_names
            }
        if member.member_epoch == now.target_epoch and member.assigned == target:
            return member
        updated = member._replace(
            member_epoch=now.target_epoch,
            previous_member_epoch=member.member_epoch,
            assigned=target,
        )
        write.put_current(updated)
        return updated

    # -- sessions -------------------------------------------------------------------------

    def _extend(self, group: ShareGroup, member_id: str) -> None:
        session = group.sessions.get(member_id)
        if session is None:
            on_over = partial(self._session_is_over, group, member_id)
            session = group.sessions[member_id] = Session(self._runtime, on_over)
        session.extend(self._timings.session_timeout_ms(group.group_id))

    def _session_is_over(self, group: ShareGroup, member_id: str) -> None:
        if member_id in group.members:
            self.fence(group, member_id, "its session timed out")
        else:
            self._end_session(group, member_id)

    def _end_session(self, group: ShareGroup, member_id: str) -> None:
        session = group.sessions.pop(member_id, None)
        if session is not None:
            session.stop()

    # -- writes that failed -------------------------------------------------------------

    def _resume_after_loss(self, group: ShareGroup) -> None:
        if self.shards.share_groups.get(group.group_id) is group:
            self.resume(group)
            self._forget_if_new(group)


def _is_plain(group: ShareGroup, request: ShareHeartbeat) -> bool:
    """Whether the heartbeat says nothing new to a group where nothing is to be done."""
    member = group.members.get(request.member_id)
    now = group.now
    return (
        member is not None
        and request.member_epoch == member.member_epoch == now.target_epoch == now.epoch
        and not group.needs_refresh
        and group.writes.is_settled
        and request.subscribed_topic_names is None
        and request.rack_id is None
        and request.client_id == member.client_id
        and request.client_host == member.client_host
    )


def _check_request(request: ShareHeartbeat) -> None:
    for what, text in (
        ("GroupId", request.group_id),
        ("MemberId", request.member_id),
        ("RackId", request.rack_id),
    ):
        require_text(what, text)
        if text is not None and not fits_string(text):
            raise invalid_request(f"{what} is longer than the group's records can hold.")
    if request.member_epoch == JOIN_EPOCH:
        if not request.subscribed_topic_names:
            raise invalid_request("SubscribedTopicNames must be set in first request.")
    elif request.member_epoch < LEAVE_EPOCH:
        raise invalid_request("MemberEpoch is invalid.")


def _updated(member: ShareMember, request: ShareHeartbeat) -> ShareMember:
    """The member with what the heartbeat sets; what it does not set stays."""
    names = request.subscribed_topic_names
    if names is None or names == member.subscribed_topic_names:
        names = member.subscribed_topic_names  # the very same: later nobody looks at each
    return member._replace(
        client_id=request.client_id,
        client_host=request.client_host,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        subscribed_topic_names=names,
    )


def _respond(
    respond: ShareHeartbeatCallback, answer: ShareHeartbeatAnswer, error: ErrorCode
) -> None:
    respond(ShareHeartbeatAnswer(error) if error else answer)


def _log_failure(group: ShareGroup, member_id: str, error: ErrorCode) -> None:
    if error:
        logger.warning(
            "share group %s: could not store the removal of member %s: %s",
            group.group_id,
            member_id,
            error.name,
        )
