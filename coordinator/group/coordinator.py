"""GroupCoordinator: finds the group of a request, and holds the verbs on it.

One broker coordinates a group: the leader of the partition of `__consumer_offsets` that
keeps it. Here is decided whether that is this broker; the verbs' rules are in `joining`,
`syncing`, `leaving`, `committing` and `removing`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from ...common.errors import ErrorCode, KafkaError
from ...runtime.steps import Steps, count_items, in_batches, run_at_once
from ..share.operations import NoPersister, Persister
from .admin_overrides import AdminOverrides
from .classic.classic_groups import ClassicGroups
from .classic.group import ClassicGroup
from .classic.messages import (
    UNKNOWN_MEMBER_ID,
    JoinAnswer,
    JoinCallback,
    JoinRequest,
    LeavingMember,
    SyncAnswer,
    SyncCallback,
    SyncRequest,
)
from .classic.states import ClassicGroupState
from .consumer.checks import check_fetch
from .consumer.consumer_groups import ConsumerGroups, LeaveCallback
from .consumer.group import ConsumerGroup
from .consumer.heartbeat_request import HeartbeatRequest
from .consumer.heartbeats import HeartbeatCallback
from .consumer.settings import ConsumerGroupSettings, GroupConfigValues, GroupTimings
from .consumer.states import ConsumerGroupState
from .consumer.topics import TopicsImage
from .describing import (
    ConsumerGroupDescription,
    DescribedGroup,
    ListedGroup,
    describe_classic_group,
    list_groups,
)
from .offset_metadata_manager import (
    OFFSETS_PER_PIECE,
    CommitCallback,
    CommitRequest,
    EncodedCommits,
    ErrorCallback,
    OffsetMetadataManager,
)
from .offsets import GroupOffsets
from .runtime import GroupRuntime
from .shards import AnyGroup, GroupShards
from .share.settings import ShareGroupSettings, ShareGroupTimings
from .share.share_group import ShareGroup
from .share.share_groups import ShareGroups
from .streams.group import StreamsGroup
from .streams.heartbeat import check_fetch as check_streams_fetch
from .streams.settings import StreamsGroupConfigs, StreamsGroupSettings
from .streams.states import StreamsGroupState
from .streams.streams_groups import StreamsGroups

logger = logging.getLogger(__name__)
NO_OFFSETS = GroupOffsets()
"""What a group that is not known has committed."""

EMPTY_STATES = (ClassicGroupState.EMPTY, ConsumerGroupState.EMPTY, StreamsGroupState.EMPTY)

FetchCallback = Callable[[ErrorCode, GroupOffsets], None]
"""Called once with a group's offsets, or with the reason why there are none to be had."""


class GroupCoordinator:
    """All groups that this broker coordinates.

    Every verb refuses a group that is not coordinated here by `KafkaError`: INVALID_GROUP_ID,
    NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS. Verbs that take a callback call it once,
    at once or later; a callback only sends the answer and may not come back here.

    Args:
        runtime: settings, time, rng and the log.
        topic_partitions: how many partitions `__consumer_offsets` has, or will have.
        topics: the cluster's topics as they are now.
        consumer_settings: what the configuration says of consumer groups.
        group_configs: what is set for single groups, before the broker's settings.
        share_settings: what the configuration says of share groups.
        persister: keeps what they have read; None: there is no share coordinator, and whoever
            joins a share group waits for it.
        streams_settings: what the configuration says of streams groups.

    Attributes:
        admin_overrides: what tests may do to groups from outside.
        share: the verbs on share groups.
        streams: the verbs on streams groups.
    """

    def __init__(
        self,
        runtime: GroupRuntime,
        topic_partitions: Callable[[], int],
        topics: Callable[[], TopicsImage],
        consumer_settings: ConsumerGroupSettings,
        group_configs: GroupConfigValues | None = None,
        share_settings: ShareGroupSettings | None = None,
        persister: Persister | None = None,
        streams_settings: StreamsGroupSettings | None = None,
    ) -> None:
        classic = self._classic = ClassicGroups(runtime)
        self._runtime = runtime
        timings = GroupTimings(group_configs or consumer_settings)
        self._consumer = ConsumerGroups(runtime, consumer_settings, timings, topics)
        share_settings = share_settings or ShareGroupSettings()
        self.share = ShareGroups(
            runtime,
            share_settings,
            ShareGroupTimings(group_configs or share_settings),
            topics,
            persister or NoPersister(),
        )
        streams_settings = streams_settings or StreamsGroupSettings()
        self.streams = StreamsGroups(
            runtime,
            streams_settings,
            StreamsGroupConfigs(group_configs or streams_settings),
            topics,
        )
        self._shards = GroupShards(
            runtime,
            topic_partitions,
            classic,
            self._consumer.sessions,
            self.share.resume,
            self.streams.resume,
        )
        self.share.shards = self.streams.shards = self._shards
        self._consumer.attach(self._shards, classic)
        self._groups = self._shards.groups
        self.admin_overrides = AdminOverrides(
            self._shards, classic, self._consumer, self.share, self.streams
        )
        self._sessions = classic.sessions
        self._offsets = OffsetMetadataManager(runtime, self._shards, classic.sessions)

    @property
    def groups(self) -> list[ClassicGroup]:
        """All classic groups that are coordinated here and known."""
        return list(self._groups.values())

    @property
    def consumer_groups(self) -> list[ConsumerGroup]:
        """All consumer groups that are coordinated here and known."""
        return list(self._shards.consumer_groups.values())

    @property
    def share_groups(self) -> list[ShareGroup]:
        """All share groups that are coordinated here and known."""
        return list(self._shards.share_groups.values())

    @property
    def streams_groups(self) -> list[StreamsGroup]:
        """All streams groups that are coordinated here and known."""
        return list(self._shards.streams_groups.values())

    @property
    def all_groups(self) -> list[AnyGroup | ShareGroup]:
        """All groups that are coordinated here and known, of every type."""
        return [*self._shards.all_groups(), *self._shards.share_groups.values()]

    @property
    def serves_consumer_groups(self) -> bool:
        """Whether group.coordinator.rebalance.protocols has the consumer protocol."""
        return self._consumer.is_enabled

    @property
    def is_loading(self) -> bool:
        """Whether there may be groups here that are not known yet."""
        return self._shards.is_loading

    def partition_for(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that keeps the group."""
        return self._shards.partition_for(group_id)

    # -- membership -----------------------------------------------------------------------

    def join_group(self, request: JoinRequest, respond: JoinCallback) -> None:
        """JoinGroup; see `ClassicGroups`."""
        _check_group_id(request.group_id)
        settings = self._runtime.settings
        if not (
            settings.min_session_timeout_ms
            <= request.session_timeout_ms
            <= settings.max_session_timeout_ms
        ):
            raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)
        streams_group = self._shards.streams_groups.get(request.group_id)
        if request.group_id in self._shards.share_groups or (
            streams_group is not None and streams_group.members
        ):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        consumer_group = self._shards.consumer_groups.get(request.group_id)
        if consumer_group is not None and consumer_group.members:
            self._consumer.classic_members.join(consumer_group, request, respond)
            return
        group: ClassicGroup | None
        if streams_group is not None:
            group = self.streams.end_empty(streams_group)
        elif request.member_id != UNKNOWN_MEMBER_ID:
            group = self._shards.find(request.group_id)
        elif consumer_group is not None:
            group = self._consumer.end_empty(consumer_group)
        else:
            group = self._shards.find_or_create(request.group_id)
        if group is None:
            respond(JoinAnswer(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
        else:
            self._classic.join(group, request, respond)

    def sync_group(self, request: SyncRequest, respond: SyncCallback) -> None:
        """SyncGroup; see `ClassicGroups`."""
        _check_group_id(request.group_id)
        consumer_group = self._shards.consumer_groups.get(request.group_id)
        if consumer_group is not None:
            self._consumer.classic_members.sync(consumer_group, request, respond)
            return
        group = self._shards.find(request.group_id)
        if group is None:
            respond(SyncAnswer(ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            self._classic.sync(group, request, respond)

    def heartbeat(
        self, group_id: str, generation_id: int, member_id: str, group_instance_id: str | None
    ) -> ErrorCode:
        """Heartbeat: keep the member's session alive, and tell it if it is called back."""
        group = self._groups.get(group_id)
        if group is None:
            consumer_group = self._shards.consumer_groups.get(group_id)
            if consumer_group is not None:
                return self._consumer.classic_members.heartbeat(
                    consumer_group, generation_id, member_id, group_instance_id
                )
            return self._heartbeat_of_unknown(group_id)
        if group_instance_id is None:
            member = group.members.get(member_id)
            if member is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
        else:
            try:
                member = group.check_member(member_id, group_instance_id)
            except KafkaError as refusal:
                return refusal.code
        if generation_id != group.generation_id:
            return ErrorCode.ILLEGAL_GENERATION
        self._sessions.extend(group, member)
        return group.answers.heartbeat

    def _heartbeat_of_unknown(self, group_id: str) -> ErrorCode:
        try:
            _check_group_id(group_id)
            self._shards.find(group_id)
        except KafkaError as refusal:
            if refusal.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return ErrorCode.NONE  # it may well be a member; its session is not counted yet
            return refusal.code
        return ErrorCode.UNKNOWN_MEMBER_ID

    def leave_group(
        self, group_id: str, members: Sequence[LeavingMember], respond: LeaveCallback
    ) -> None:
        """LeaveGroup: `respond` gets the error of each member, in their order."""
        _check_group_id(group_id)
        group = self._shards.find_any(group_id)
        if group is None or isinstance(group, StreamsGroup):
            respond([ErrorCode.UNKNOWN_MEMBER_ID] * len(members))
        elif isinstance(group, ConsumerGroup):
            self._consumer.leave_group(group, members, respond)
        else:
            respond(self._classic.leave(group, members))

    def consumer_group_keep_alive(
        self, request: HeartbeatRequest, respond: HeartbeatCallback
    ) -> bool:
        """Answer a heartbeat that says nothing new; see `ConsumerGroups.keep_alive`."""
        return self._consumer.keep_alive(request, respond)

    def consumer_group_heartbeat(
        self, request: HeartbeatRequest, respond: HeartbeatCallback
    ) -> Steps[None]:
        """ConsumerGroupHeartbeat (KIP-848); see `ConsumerGroups.heartbeat`."""
        return self._consumer.heartbeat(request, respond)

    # -- offsets --------------------------------------------------------------------------

    def encode_commits(self, request: CommitRequest) -> Steps[EncodedCommits]:
        """Make the records of what is to be committed; whether it is, `commit_offsets` decides.

        Raises:
            KafkaError: a string is longer than a record can hold.
        """
        return self._offsets.encode(
            request.group_id,
            request.commits,
            request.retention_ms,
            is_transactional=request.transaction is not None,
        )

    def commit_offsets(
        self,
        request: CommitRequest,
        respond: CommitCallback,
        encoded: EncodedCommits | None = None,
    ) -> None:
        """OffsetCommit; see `OffsetMetadataManager`.

        Args:
            encoded: what `encode_commits` has made of the request; a short one needs no steps.

        Raises:
            KafkaError: nothing is committed, for a reason that holds for all partitions.
        """
        group = self._shards.find_any(request.group_id)
        if group is None:
            if request.generation_id >= 0:
                raise KafkaError(request.unknown_group_error)
            group = self._shards.find_or_create(request.group_id)
        if encoded is None:
            encoded = run_at_once(self.encode_commits(request))
        self._offsets.commit(group, request, encoded, respond)

    def require_coordinated(self, group_id: str) -> None:
        """Refuse a group that is not kept here, before a transaction adds its offsets."""
        _check_group_id(group_id)
        self._shards.find_any(group_id)

    def is_loaded(self, partition: int) -> bool:
        """Whether the groups of a partition of `__consumer_offsets` are kept here, and known."""
        return self._shards.is_loaded(partition)

    def complete_transaction(self, partition: int, producer_id: int, *, committed: bool) -> None:
        """A marker in a partition of `__consumer_offsets` has ended a producer's transaction."""
        self._shards.end_transaction(partition, producer_id, committed=committed)

    def fetch_offsets(
        self,
        group_id: str,
        respond: FetchCallback,
        *,
        require_stable: bool,
        member_id: str | None = None,
        member_epoch: int = -1,
    ) -> None:
        """OffsetFetch: hand over what the group committed; the callee does not change it.

        Args:
            require_stable: wait for commits that are on their way (KIP-447).
            member_id: of a member of a consumer group, which is answered only in its epoch.
            member_epoch: of that member.

        Raises:
            KafkaError: UNKNOWN_MEMBER_ID or STALE_MEMBER_EPOCH.
        """
        group = self._shards.find_any(group_id)
        if group is None:
            respond(ErrorCode.NONE, NO_OFFSETS)
            return
        if isinstance(group, ConsumerGroup):
            check_fetch(group, member_id, member_epoch)
        elif isinstance(group, StreamsGroup):
            check_streams_fetch(group, member_id, member_epoch)
        known = group

        def settled() -> None:
            if known.is_dead:
                respond(ErrorCode.NOT_COORDINATOR, NO_OFFSETS)
            else:
                respond(ErrorCode.NONE, known.offsets)

        if require_stable:
            known.in_flight.when_settled(settled)
        else:
            respond(ErrorCode.NONE, known.offsets)

    def delete_offsets(
        self,
        group_id: str,
        partitions: Sequence[tuple[str, int]],
        respond: Callable[[Sequence[ErrorCode]], None],
    ) -> None:
        """OffsetDelete (KIP-496): the error of each partition, in their order.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND, or NON_EMPTY_GROUP where the members are no
                consumers, so that nobody can tell what they read.
        """
        _check_group_id(group_id)
        group = self._shards.find_any(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        if (
            isinstance(group, ClassicGroup)
            and group.state is not ClassicGroupState.EMPTY
            and not group.uses_consumer_protocol
        ):
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        subscribed = [group.is_subscribed_to(topic) for topic, _ in partitions]
        deleted = [
            key
            for key, is_subscribed in zip(partitions, subscribed, strict=True)
            if not is_subscribed
            and (group.offsets.get(*key) is not None or group.offsets.is_pending(*key))
        ]

        def removed(error: ErrorCode) -> None:
            respond(
                [
                    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_subscribed else error
                    for is_subscribed in subscribed
                ]
            )

        self._offsets.remove(group, dict.fromkeys(deleted), removed)

    def delete_partition_offsets(self, partitions: Iterable[tuple[str, int]]) -> Steps[None]:
        """Delete what any group committed for partitions that exist no longer, some at a time."""
        gone = frozenset(partitions)
        for group in self._shards.all_groups():
            yield
            deleted = [key for key in _all_partitions(group) if key in gone]
            for piece in in_batches(deleted, OFFSETS_PER_PIECE):
                if self._shards.find_known(group.group_id) is group:
                    remove = partial(self._offsets.remove, group, piece, _log_failure)
                    self._runtime.run_flushed(remove)
                    yield from count_items(len(piece))

    # -- groups as a whole ----------------------------------------------------------------

    def describe_group(self, group_id: str) -> DescribedGroup:
        """DescribeGroups, for one group: GROUP_ID_NOT_FOUND if it is not known."""
        group = self._shards.find_any(group_id)
        if isinstance(group, ClassicGroup):
            return describe_classic_group(group)
        message = f"Group {group_id} not found."
        if group is not None or group_id in self._shards.share_groups:
            message = f"Group {group_id} is not a classic group."
        return DescribedGroup(
            group_id,
            ErrorCode.GROUP_ID_NOT_FOUND,
            ClassicGroupState.DEAD.value,
            error_message=message,
        )

    def describe_consumer_group(self, group_id: str) -> ConsumerGroupDescription:
        """ConsumerGroupDescribe, for one group; see `ConsumerGroups.describe`."""
        _check_group_id(group_id)
        return self._consumer.describe(group_id)

    def list_groups(self, states: Iterable[str], types: Iterable[str]) -> Steps[list[ListedGroup]]:
        """ListGroups: the groups coordinated here, filtered by state and type.

        Raises:
            KafkaError: COORDINATOR_LOAD_IN_PROGRESS.
        """
        if self._shards.is_loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        listed = yield from list_groups(self.all_groups, states, types)
        return listed

    def delete_group(self, group_id: str, respond: ErrorCallback) -> Steps[None]:
        """DeleteGroups, for one group, with all its offsets; a few hundred of them at a time.

        Who comes to the group meanwhile keeps it, without the offsets that are gone by then.

        Raises:
            KafkaError: GROUP_ID_NOT_FOUND or NON_EMPTY_GROUP.
        """
        share_group = self._shards.share_groups.get(group_id)
        if share_group is not None:
            self.share.delete(share_group, respond)
            return
        partitions = _all_partitions(self._deletable_group(group_id))
        pieces = list(in_batches(partitions, OFFSETS_PER_PIECE)) or [[]]
        outcomes: list[ErrorCode] = []

        def removed(error: ErrorCode) -> None:
            outcomes.append(error)
            if len(outcomes) == len(pieces):
                respond(next(filter(None, outcomes), ErrorCode.NONE))

        for number, piece in enumerate(pieces, start=1):
            try:
                group = self._deletable_group(group_id)
                self._offsets.remove(group, piece, removed, with_group=number == len(pieces))
            except KafkaError as refusal:
                removed(refusal.code)
            if number < len(pieces):
                self._runtime.log.flush()  # its end is as long as its beginning
                yield from count_items(len(piece))

    def _deletable_group(self, group_id: str) -> AnyGroup:
        group = self._shards.find_any(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        if group.state not in EMPTY_STATES:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        return group

    def topics_changed(self, topics: frozenset[str], has_new: bool) -> None:
        """Topics changed, came or went, and whether any came."""
        self._consumer.topics_changed(topics, has_new=has_new)
        self.share.topics_changed(topics)
        self.streams.topics_changed(topics)

    # -- leadership and running -----------------------------------------------------------

    def note_leadership(self, partition: int, leader_epoch: int, *, is_leader: bool) -> None:
        """A partition of `__consumer_offsets` came to be led here, or is not led here any more."""
        if is_leader:
            self._shards.load(partition, leader_epoch)
        else:
            self._runtime.run_in_steps(self._shards.unload(partition))

    def start(self) -> None:
        """Begin to look for expired offsets from time to time."""
        self._offsets.start()

    def close(self) -> None:
        """Stop, and tell those who wait to look for another coordinator."""
        self._offsets.close()
        for partition in self._shards.partitions():
            run_at_once(self._shards.unload(partition))

    def expire_offsets(self) -> None:
        """Remove the offsets that are kept for longer than they are to be, of all groups."""
        run_at_once(self._offsets.expire_all())


def _check_group_id(group_id: str) -> None:
    """Membership needs a name; offsets may be kept under the empty one, as ever."""
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)


def _all_partitions(group: AnyGroup) -> list[tuple[str, int]]:
    """Every partition for which the group has committed, or is about to in a transaction."""
    committed = [(topic, partition) for topic, partition, _ in group.offsets]
    return list(dict.fromkeys(committed) | dict.fromkeys(group.offsets.pending_partitions()))


def _log_failure(error: ErrorCode) -> None:
    if error:
        logger.warning("could not delete offsets of deleted topics: %s", error.name)
