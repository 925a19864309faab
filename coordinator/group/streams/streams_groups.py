"""StreamsGroups: the streams groups kept here, and the verbs on them.

A heartbeat puts a member in or updates it, sees what the topology comes to, counts the group's
epoch up where anything changed, computes targets if the epoch has none, and takes the member one
step towards its own. All of it is one write. Internal topics that are missing are named in the
answer, for who answers to have them made. Source: KIP-1071; Kafka 4.3's
GroupMetadataManager.streamsGroupHeartbeat.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ....common.errors import ErrorCode, KafkaError
from ....runtime.clock import Clock
from ....runtime.steps import Steps, run_at_once
from ..classic.group import ClassicGroup
from ..classic.states import ClassicGroupState
from ..consumer.group_write import Writer
from ..consumer.topics import TopicHashes, TopicsImage
from ..records import group_tombstone
from ..refusals import group_not_found, unknown_member
from ..runtime import GroupRuntime
from ..session import Session
from .configured_topology import ConfiguredTopology, Status, StatusCode
from .group import MemberTimers, StreamsGroup
from .heartbeat import (
    FoundTopology,
    StreamsHeartbeat,
    StreamsHeartbeatAnswer,
    StreamsHeartbeatCallback,
    check_epoch,
    check_request,
    check_tags,
    check_tasks,
    endpoints_of,
    find_topology,
)
from .member import JOIN_EPOCH, LEAVE_EPOCH, NO_TIMEOUT, StreamsMember
from .reconciliation import reconcile
from .records import StreamsGroupWrite, encode_member, encode_topology
from .settings import STANDBY_REPLICAS, StreamsGroupConfigs, StreamsGroupSettings
from .states import StreamsMemberState
from .task_assignor import AssignedMember, AssignedSubtopology, assign_tasks
from .tasks import NOTHING, Tasks
from .topology import InternalTopic, Topology

if TYPE_CHECKING:
    from ..shards import GroupShards

logger = logging.getLogger(__name__)
ValueT = TypeVar("ValueT")
NOT_VALIDATED = -1
"""The epoch of a validated topology where topics are missing."""

TAGS_AT_ONCE = 100
"""So many are encoded in a fraction of a millisecond."""

FAILURE_REPORTED_INTERVALS = 2
"""For so many heartbeat intervals members are told why an internal topic could not be made, and
it is not tried again."""


class DescribedStreamsMember(NamedTuple):
    """A member as StreamsGroupDescribe tells of it."""

    member: StreamsMember
    target: Tasks


class StreamsGroupDescription(NamedTuple):
    """A group as StreamsGroupDescribe tells of it."""

    group_id: str
    error: ErrorCode
    error_message: str | None = None
    state: str = ""
    epoch: int = 0
    assignment_epoch: int = 0
    topology: Topology | None = None
    members: tuple[DescribedStreamsMember, ...] = ()


class StreamsGroups:
    """All streams groups that this broker coordinates.

    Args:
        runtime: settings, time, rng and the log.
        settings: the broker's for these groups.
        configs: each group's.
        topics: the cluster's topics as they are now.

    Attributes:
        is_enabled: whether group.coordinator.rebalance.protocols has `streams`.
    """

    shards: GroupShards
    """Keeps the groups; set by whoever puts both together, as each needs the other."""

    def __init__(
        self,
        runtime: GroupRuntime,
        settings: StreamsGroupSettings,
        configs: StreamsGroupConfigs,
        topics: Callable[[], TopicsImage],
    ) -> None:
        self.is_enabled = settings.is_enabled
        self._runtime = runtime
        self._clock: Clock = runtime.clock
        self._settings = settings
        self._configs = configs
        self._topics = topics
        self._hashes = TopicHashes(topics)
        self._writer: Writer[StreamsGroup] = Writer(
            runtime, self._resume_after_loss, lambda group: self.shards.reload_broken(group)
        )

    # -- verbs --------------------------------------------------------------------------

    def heartbeat(
        self, request: StreamsHeartbeat, respond: StreamsHeartbeatCallback
    ) -> Steps[None]:
        """StreamsGroupHeartbeat: join, stay, change or leave.

        `respond` is called once, at once or when all that it changed is stored. What is long of
        that is made ready in steps; whether it is stored, is decided at once then: group and topics
        may be others.

        Raises:
            KafkaError: the heartbeat is refused.
        """
        check_request(request)
        yield from check_tags(request)
        self._take_up((yield from self._made_ready(request)), respond)

    def _made_ready(self, request: StreamsHeartbeat) -> Steps[StreamsHeartbeat]:
        """The heartbeat with what it may store, and what its group's topology comes to."""
        group = self.shards.streams_groups.get(request.group_id)
        before = None if group is None else group.members.get(request.member_id)
        updated = _updated(before or StreamsMember(request.member_id), request)
        encoded = []
        if updated != before and len(updated.client_tags) > TAGS_AT_ONCE:
            encoded.append((yield from encode_member(updated)))
        topology = None if group is None else group.now.topology
        if topology is None and request.topology is not None:
            topology = request.topology
            encoded.append((yield from encode_topology(topology)))
        if topology is not None and (
            group is None or group.configured is None or group.needs_refresh
        ):
            request = request._replace(found=(yield from find_topology(topology, self._topics())))
        return request._replace(encoded=encoded)

    def _take_up(self, request: StreamsHeartbeat, respond: StreamsHeartbeatCallback) -> None:
        if request.member_epoch == LEAVE_EPOCH:
            self._leave(self.find(request.group_id), request, respond)
            return
        group, classic = self._find_or_create(request)
        write = StreamsGroupWrite(group, request.encoded)
        if classic is not None:
            write.add(group_tombstone(group.group_id))
        try:
            self._heartbeat(write, request, respond)
        except KafkaError:
            write.take_back()
            if group.is_conversion_open:
                group.stop_timers()
            else:
                self._resume_after_loss(group)
            raise
        if classic is not None:
            self.shards.exchange_for_streams(classic, group)
            group.writes.when_settled(partial(_close_conversion, group))

    def _heartbeat(
        self,
        write: StreamsGroupWrite,
        request: StreamsHeartbeat,
        respond: StreamsHeartbeatCallback,
    ) -> None:
        group = write.group
        is_new = group.now.epoch == 1 and not group.members
        was_empty = not group.members
        before = self._find_member(group, request)
        updated = _updated(before, request)
        must_bump = updated != before or before.member_id not in group.members
        if must_bump:
            write.put_metadata(updated)
        topology = self._update_topology(write, request)
        statuses: list[Status] = []
        if updated.topology_epoch < topology.epoch:
            statuses.append(
                Status(
                    StatusCode.STALE_TOPOLOGY,
                    f"The member's topology epoch {updated.topology_epoch} is behind the group's "
                    f"topology epoch {topology.epoch}.",
                )
            )
        configured = self._update_epoch(write, topology, request, must_bump=must_bump)
        if was_empty:
            self._begin_initial_delay(group)
        target_epoch, target = self._update_targets(write, configured, updated.member_id, statuses)
        member = self._reconcile(write, updated, target_epoch, target, request)
        self._extend(group, member.member_id)
        if request.shutdown_application and group.shutdown_requested_by is None:
            logger.info("streams group %s: %s ends it", group.group_id, member.member_id)
            group.shutdown_requested_by = member.member_id
        answer = self._answer(group, request, configured, before, member)
        if configured.problem is not None:
            statuses.append(configured.problem)
        if group.shutdown_requested_by is not None:
            statuses.append(
                Status(
                    StatusCode.SHUTDOWN_APPLICATION,
                    f"Streams group member {group.shutdown_requested_by} encountered a fatal error "
                    "and requested a shutdown for the entire application.",
                )
            )
        answer = answer._replace(statuses=tuple(statuses))
        if is_new:
            # What the first member can be asked for is told with the next change: Kafka forgets
            # the count of a group that is not stored yet.
            group.endpoint_epoch = 0
            answer = answer._replace(endpoint_epoch=0)
        self._writer.submit(write, partial(_respond, respond, answer))

    def _answer(
        self,
        group: StreamsGroup,
        request: StreamsHeartbeat,
        configured: ConfiguredTopology,
        before: StreamsMember,
        member: StreamsMember,
    ) -> StreamsHeartbeatAnswer:
        assigned = None
        if request.member_epoch == JOIN_EPOCH or member.assigned != before.assigned:
            assigned = member.assigned
            if member.user_endpoint is not None:
                group.endpoint_epoch += 1
        endpoints = None
        if group.endpoint_epoch != request.endpoint_epoch:
            endpoints = endpoints_of(group.now, configured, self._topics())
        return StreamsHeartbeatAnswer(
            ErrorCode.NONE,
            None,
            member.member_id,
            member.member_epoch,
            self._configs.heartbeat_interval_ms(group.group_id),
            (),
            assigned,
            group.endpoint_epoch,
            endpoints,
            *self._missing(group, configured),
        )

    def _leave(
        self, group: StreamsGroup, request: StreamsHeartbeat, respond: StreamsHeartbeatCallback
    ) -> None:
        member_id = request.member_id
        if request.shutdown_application and group.shutdown_requested_by is None:
            group.shutdown_requested_by = member_id
        if member_id not in group.members:
            raise unknown_member(group.group_id, member_id)
        logger.info("streams group %s: member %s leaves", group.group_id, member_id)
        answer = StreamsHeartbeatAnswer(
            ErrorCode.NONE, member_id=member_id, member_epoch=request.member_epoch
        )
        self._remove(group, member_id, partial(_respond, respond, answer))

    def fence(self, group: StreamsGroup, member_id: str, reason: str) -> None:
        """Remove a member whose time is over."""
        logger.info("streams group %s: member %s fenced: %s", group.group_id, member_id, reason)
        self._remove(group, member_id, partial(_log_failure, group, member_id))

    def _remove(
        self, group: StreamsGroup, member_id: str, on_complete: Callable[[ErrorCode], None]
    ) -> None:
        write = StreamsGroupWrite(group)
        write.remove_member(member_id)
        now = group.now
        write.put_epoch(
            now.epoch + 1, now.metadata_hash, now.validated_topology_epoch, now.assignor_settings
        )
        self._forget_timers(group, member_id)
        self._writer.submit(write, on_complete)

    def describe(self, group_id: str) -> StreamsGroupDescription:
        """StreamsGroupDescribe, for one group.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        group = self.find(group_id)
        image = group.replicated()
        topology = image.topology
        configured = group.configured
        if topology is not None and configured is not None and configured.is_ready:
            known = configured.subtopologies or {}
            topology = topology._replace(
                subtopologies={each: known[each].subtopology for each in known}
            )
        return StreamsGroupDescription(
            group_id,
            ErrorCode.NONE,
            None,
            image.state.value,
            image.epoch,
            image.target_epoch,
            topology,
            tuple(
                DescribedStreamsMember(member, image.targets.get(member.member_id, NOTHING))
                for member in image.members.values()
            ),
        )

    def end_empty(self, group: StreamsGroup) -> ClassicGroup:
        """Let an empty classic group take the place of one that has no members."""
        logger.info("streams group %s is empty and becomes a classic group", group.group_id)
        write = StreamsGroupWrite(group)
        write.remove_group()
        self._writer.submit(write, partial(_log_lost_end, group))
        return self.shards.make_classic(group)

    def topics_changed(self, topics: frozenset[str]) -> None:
        """Topics changed, came or went: groups that need them look at them again."""
        for group in self.shards.streams_groups.values():
            topology = group.now.topology
            if topology is not None and not topology.required_topics.isdisjoint(topics):
                group.needs_refresh = True

    def note_creation_failures(self, group_id: str, failures: Mapping[str, str]) -> None:
        """Internal topics of a group could not be made: members are told so for a while."""
        group = self.shards.streams_groups.get(group_id)
        if group is not None:
            interval_ms = self._configs.heartbeat_interval_ms(group_id)
            until_ms = self._clock.monotonic_ms() + FAILURE_REPORTED_INTERVALS * interval_ms
            group.creation_failures.update(
                {name: (reason, until_ms) for name, reason in failures.items()}
            )

    def resume(self, group: StreamsGroup) -> None:
        """A group was loaded: its members have their session timeout from now on."""
        for member in group.members.values():
            timers = group.timers.get(member.member_id)
            if timers is None:
                self._extend(group, member.member_id)
                timers = group.timers[member.member_id]
            if timers.rebalance is None and member.state is StreamsMemberState.UNREVOKED_TASKS:
                self._expect_revocation(group, member)

    # -- finding a group ----------------------------------------------------------------

    def find(self, group_id: str) -> StreamsGroup:
        """The group.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        group = self.shards.streams_groups.get(group_id)
        if group is None:
            if self.shards.find_any(group_id) is None and group_id not in self.shards.share_groups:
                raise group_not_found(f"Group {group_id} not found.")
            raise group_not_found(f"Group {group_id} is not a streams group.")
        if group.writes.is_broken:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return group

    def _find_or_create(
        self, request: StreamsHeartbeat
    ) -> tuple[StreamsGroup, ClassicGroup | None]:
        """The group, and the classic group without members whose place it is to take."""
        group_id = request.group_id
        known = self.shards.find_any(group_id)
        if group_id in self.shards.share_groups:
            return self.find(group_id), None
        if known is None:
            if request.member_epoch != JOIN_EPOCH:
                raise group_not_found(f"Streams group {group_id} not found.")
            return self.shards.add_streams_group(group_id), None
        if request.member_epoch != JOIN_EPOCH:
            return self.find(group_id), None
        if isinstance(known, ClassicGroup) and (
            known.state is ClassicGroupState.EMPTY and not known.pending_members
        ):
            logger.info("classic group %s is empty and becomes a streams group", group_id)
            group = StreamsGroup(group_id, known.partition)
            group.is_conversion_open = True
            group.offsets, group.in_flight = known.offsets, known.in_flight
            return group, known
        return self.find(group_id), None

    def _find_member(self, group: StreamsGroup, request: StreamsHeartbeat) -> StreamsMember:
        member = group.members.get(request.member_id)
        if request.member_epoch == JOIN_EPOCH:
            if len(group.members) >= self._settings.max_size:
                raise KafkaError(
                    ErrorCode.GROUP_MAX_SIZE_REACHED,
                    "The streams group has reached its maximum capacity of "
                    f"{self._settings.max_size} members.",
                )
            logger.info("streams group %s: member %s joins", group.group_id, request.member_id)
            return member or StreamsMember(request.member_id)
        if member is None:
            raise unknown_member(group.group_id, request.member_id)
        check_epoch(member, request)
        return member

    def _forget_if_new(self, group: StreamsGroup) -> None:
        """Drop a group that was made for a member that could not join."""
        if group.has_nothing:
            self.shards.forget_streams_group(group)

    # -- what a heartbeat changes ---------------------------------------------------------

    def _update_topology(self, write: StreamsGroupWrite, request: StreamsHeartbeat) -> Topology:
        """The group's topology; the first one that is told becomes it."""
        group = write.group
        known, reported = group.now.topology, request.topology
        if known is None:
            if reported is None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_SERVER_ERROR, "The group's topology is not known."
                )
            if reported.epoch < 0:
                raise KafkaError(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY, "Topology epoch must be non-negative."
                )
            write.put_topology(reported)
            group.configured = None
            return reported
        if reported is not None and reported.epoch >= known.epoch and reported != known:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
        return known

    def _update_epoch(
        self,
        write: StreamsGroupWrite,
        topology: Topology,
        request: StreamsHeartbeat,
        *,
        must_bump: bool,
    ) -> ConfiguredTopology:
        """See what the topology comes to, and count the epoch up if anything has changed."""
        group = write.group
        now = group.now
        metadata_hash = now.metadata_hash
        configured = group.configured
        if configured is None or group.needs_refresh:
            found = self._found(topology, request.found)
            metadata_hash = self._hashes.metadata_hash(found.required)
            if configured is None or metadata_hash != now.metadata_hash:
                if isinstance(found.configured, KafkaError):
                    # Another one: it would keep the calls that it comes through.
                    raise KafkaError(found.configured.code, found.configured.message)
                configured = found.configured
        validated_epoch = NOT_VALIDATED
        if configured.is_ready:
            validated_epoch = topology.epoch
            check_tasks(configured, request)
        assignor_settings = self._configs.assignor_settings(group.group_id)
        if (
            must_bump
            or metadata_hash != now.metadata_hash
            or validated_epoch != now.validated_topology_epoch
            or assignor_settings != now.assignor_settings
        ):
            write.put_epoch(now.epoch + 1, metadata_hash, validated_epoch, assignor_settings)
        group.configured = configured
        group.needs_refresh = False
        return configured

    def _found(self, topology: Topology, found: FoundTopology | None) -> FoundTopology:
        """What a topology comes to now, which may have been found before."""
        topics = self._topics()
        if found is None or found.topics is not topics or found.topology != topology:
            return run_at_once(find_topology(topology, topics))
        return found

    def _begin_initial_delay(self, group: StreamsGroup) -> None:
        """Let a group that has been empty wait for more members."""
        delay_ms = self._configs.initial_rebalance_delay_ms(group.group_id)
        if delay_ms > 0 and group.initial_delay is None:
            group.initial_delay = self._runtime.schedule(
                delay_ms, partial(self._end_initial_delay, group)
            )

    def _end_initial_delay(self, group: StreamsGroup) -> None:
        """Compute the first targets for all who came meanwhile."""
        group.initial_delay = None
        configured = group.configured
        if not group.members or configured is None or group.writes.is_broken:
            return
        write = StreamsGroupWrite(group)
        self._update_targets(write, configured, "", [])
        if write.before is not None:
            self._writer.submit(write, partial(_log_lost_targets, group))

    def _update_targets(
        self,
        write: StreamsGroupWrite,
        configured: ConfiguredTopology,
        member_id: str,
        statuses: list[Status],
    ) -> tuple[int, Tasks]:
        """Compute the targets of the group's epoch, if there are none and they may be computed.

        Returns:
            The epoch of the targets, and that of one member.
        """
        group = write.group
        now = group.now
        if group.initial_delay is not None:
            statuses.append(
                Status(
                    StatusCode.ASSIGNMENT_DELAYED,
                    "Assignment delayed due to the configured initial rebalance delay.",
                )
            )
            return now.target_epoch, NOTHING
        if now.target_epoch < now.epoch:
            now_ms = self._clock.now_ms()
            since_ms = now.assignment_timestamp_ms
            interval_ms = self._configs.assignment_interval_ms(group.group_id)
            if since_ms and since_ms <= now_ms < since_ms + interval_ms:
                statuses.append(
                    Status(
                        StatusCode.ASSIGNMENT_DELAYED,
                        "Assignment delayed due to the configured assignment interval.",
                    )
                )
            else:
                targets = _compute_targets(group, configured)
                write.put_targets(now.epoch, targets, now_ms)
        now = group.now
        return now.target_epoch, now.targets.get(member_id, NOTHING)

    def _reconcile(
        self,
        write: StreamsGroupWrite,
        member: StreamsMember,
        target_epoch: int,
        target: Tasks,
        request: StreamsHeartbeat,
    ) -> StreamsMember:
        """Take a member one step towards its target."""
        if member.is_reconciled_to(target_epoch):
            return member
        group = write.group
        holders = group.now.holders()
        updated = reconcile(member, target_epoch, target, request.owned, holders)
        if updated != member:
            write.put_current(updated)
            if updated.state is StreamsMemberState.UNREVOKED_TASKS:
                self._expect_revocation(group, updated)
            elif updated.member_id in group.timers:
                group.timers[updated.member_id].cancel_rebalance()
        return updated

    def _missing(
        self, group: StreamsGroup, configured: ConfiguredTopology
    ) -> tuple[tuple[InternalTopic, ...], tuple[tuple[str, str], ...]]:
        """The internal topics that are to be made now, and those that could not be lately."""
        now_ms = self._clock.monotonic_ms()
        failures = group.creation_failures
        for name in [name for name, (_, until_ms) in failures.items() if until_ms <= now_ms]:
            del failures[name]
        missing = [topic for topic in configured.missing if topic.name not in failures]
        reported = [
            (topic.name, failures[topic.name][0])
            for topic in configured.missing
            if topic.name in failures
        ]
        return tuple(missing), tuple(reported)

    # -- sessions -------------------------------------------------------------------------

    def _extend(self, group: StreamsGroup, member_id: str) -> None:
        self._timers(group, member_id).session.extend(
            self._configs.session_timeout_ms(group.group_id)
        )

    def _timers(self, group: StreamsGroup, member_id: str) -> MemberTimers:
        timers = group.timers.get(member_id)
        if timers is None:
            on_over = partial(self._session_is_over, group, member_id)
            timers = group.timers[member_id] = MemberTimers(Session(self._runtime, on_over))
        return timers

    def _expect_revocation(self, group: StreamsGroup, member: StreamsMember) -> None:
        """Give the member its rebalance timeout to say that it gave its tasks up."""
        timers = self._timers(group, member.member_id)
        timers.cancel_rebalance()
        timers.rebalance = self._runtime.schedule(
            max(member.rebalance_timeout_ms, 0),
            partial(self._look_at_revocation, group, member.member_id, member.member_epoch),
        )

    def _session_is_over(self, group: StreamsGroup, member_id: str) -> None:
        if not group.is_dead and member_id in group.members:
            self.fence(group, member_id, "its session timed out")
        else:
            self._forget_timers(group, member_id)

    def _look_at_revocation(self, group: StreamsGroup, member_id: str, epoch: int) -> None:
        timers = group.timers.get(member_id)
        if timers is not None:
            timers.rebalance = None
        member = group.members.get(member_id)
        if (
            not group.is_dead
            and member is not None
            and member.member_epoch == epoch
            and member.state is StreamsMemberState.UNREVOKED_TASKS
        ):
            reason = (
                f"it kept tasks longer than the {member.rebalance_timeout_ms} ms of its rebalance "
                f"timeout, in epoch {epoch}"
            )
            self.fence(group, member_id, reason)

    def _forget_timers(self, group: StreamsGroup, member_id: str) -> None:
        timers = group.timers.pop(member_id, None)
        if timers is not None:
            timers.cancel()

    # -- writes that failed -------------------------------------------------------------

    def _resume_after_loss(self, group: StreamsGroup) -> None:
        if group.is_conversion_open:
            # The log says of which type it is.
            self.shards.reload(group.partition, group.group_id)
        elif self.shards.streams_groups.get(group.group_id) is group:
            for member_id in [each for each in group.timers if each not in group.members]:
                self._forget_timers(group, member_id)
            self.resume(group)
            self._forget_if_new(group)


def _compute_targets(group: StreamsGroup, configured: ConfiguredTopology) -> dict[str, Tasks]:
    """The targets of all members; nobody has any where topics are missing."""
    now = group.now
    if not configured.is_ready:
        return dict.fromkeys(now.members, NOTHING)
    members = {
        member.member_id: AssignedMember(
            member.process_id, now.targets.get(member.member_id, NOTHING)
        )
        for member in now.members.values()
    }
    subtopologies = {
        subtopology_id: AssignedSubtopology(each.task_count, each.subtopology.is_stateful)
        for subtopology_id, each in (configured.subtopologies or {}).items()
    }
    return assign_tasks(members, subtopologies, int(now.assignor_settings[STANDBY_REPLICAS]))


def _updated(member: StreamsMember, request: StreamsHeartbeat) -> StreamsMember:
    """The member with what the heartbeat sets; what it does not set stays."""
    timeout_ms, topology = request.rebalance_timeout_ms, request.topology
    return member._replace(
        client_id=request.client_id,
        client_host=request.client_host,
        rack_id=_or_former(request.rack_id, member.rack_id),
        rebalance_timeout_ms=member.rebalance_timeout_ms
        if timeout_ms == NO_TIMEOUT
        else timeout_ms,
        topology_epoch=member.topology_epoch if topology is None else topology.epoch,
        process_id=_or_former(request.process_id, member.process_id),
        client_tags=_or_former(request.client_tags, member.client_tags),
        user_endpoint=_or_former(request.user_endpoint, member.user_endpoint),
    )


def _or_former(new: ValueT | None, former: ValueT) -> ValueT:
    return former if new is None else new


def _close_conversion(group: StreamsGroup) -> None:
    group.is_conversion_open = False


def _respond(
    respond: StreamsHeartbeatCallback, answer: StreamsHeartbeatAnswer, error: ErrorCode
) -> None:
    respond(StreamsHeartbeatAnswer(error) if error else answer)


def _log_failure(group: StreamsGroup, member_id: str, error: ErrorCode) -> None:
    if error:
        logger.warning(
            "streams group %s: could not store the removal of member %s: %s",
            group.group_id,
            member_id,
            error.name,
        )


def _log_lost_targets(group: StreamsGroup, error: ErrorCode) -> None:
    if error:
        logger.warning(
            "streams group %s: could not store its first assignment: %s",
            group.group_id,
            error.name,
        )


def _log_lost_end(group: StreamsGroup, error: ErrorCode) -> None:
    if error:
        logger.warning(
            "could not store the deletion of streams group %s: %s", group.group_id, error.name
        )
